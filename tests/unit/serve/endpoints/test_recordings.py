"""`/debug/record`: who may have a trace, and for how long."""

from collections.abc import AsyncGenerator

import pytest

from scheduler.serve.endpoints.recordings import BAD_SECONDS, BUSY, NOT_LEADING, TRACE, Recordings


class FakeRecorder:
    def __init__(self, *, is_busy: bool = False, is_leading: bool = True) -> None:
        self.is_busy, self.is_leading = is_busy, is_leading
        self.asked: list[float] = []

    async def record(self, seconds: float) -> AsyncGenerator[bytes, None]:
        self.asked.append(seconds)
        yield b"trace"


@pytest.mark.parametrize(("query", "seconds"), [({}, 0.0), ({"seconds": "0"}, 0.0), ({"seconds": "86400"}, 86_400.0)])
async def test_a_trace_goes_on_for_as_long_as_it_is_asked_for(query: dict[str, str], seconds: float) -> None:
    recorder = FakeRecorder()

    answer = await Recordings(recorder)(query)

    assert (answer.status, answer.content_type, answer.goes_on, answer.close) == (200, TRACE, True, True)
    assert not isinstance(answer.body, bytes)
    assert [part async for part in answer.body] == [b"trace"]
    assert recorder.asked == [seconds]


@pytest.mark.parametrize("seconds", ["", "-1", "1.5", "ten", "86401", "9" * 5000, "²", "\u0661"])
async def test_what_is_no_number_of_seconds_is_refused(seconds: str) -> None:
    assert await Recordings(FakeRecorder())({"seconds": seconds}) is BAD_SECONDS


async def test_one_recording_goes_on_at_a_time_and_who_does_not_lead_has_nothing_to_record() -> None:
    assert await Recordings(FakeRecorder(is_busy=True))({}) is BUSY
    assert await Recordings(FakeRecorder(is_leading=False))({}) is NOT_LEADING
