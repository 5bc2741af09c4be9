"""What plugins post is recorded with its answers, and answered from the trace in a replay: nothing is sent then."""

from scheduler.cycle.observed_calls import ObservedCalls
from scheduler.cycle.observer import Call
from scheduler.framework.errors import ApiError
from scheduler.framework.handle import NO_CREDENTIALS, Access, NoReads, NoWrites
from scheduler.replay.replayed_calls import ReplayedCalls
from tests.fakes import run

URL = "http://licences/take"


class Echo(NoReads):
    """Answers what is posted."""

    async def post(self, url: str, body: bytes, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        if body == b"full":
            raise ApiError(409, "no licence is free")
        return body


class Recorder:
    """The part of an observer that hears of calls."""

    def __init__(self) -> None:
        self.answers: list[tuple[Call, bytes | ApiError]] = []

    def answered(self, call: Call, answer: bytes | ApiError) -> None:
        self.answers.append((call, answer))


def test_each_post_gets_the_answer_that_it_got_whatever_their_order() -> None:
    recorder, calls = Recorder(), ObservedCalls(NoWrites(), Echo())
    calls.observer = recorder  # type: ignore[assignment]
    replayed = ReplayedCalls(lambda: 0.0)

    async def record_and_replay() -> list[object]:
        for body in (b"one", b"two"):
            await calls.post(URL, body, 5)
        for call, answer in recorder.answers:
            replayed.answer(call, answer)
        return [await replayed.post(URL, body, 5) for body in (b"two", b"one")]

    assert run(record_and_replay()) == [b"two", b"one"]
    assert "one" not in str(recorder.answers[0][0]), "a trace holds no more than a digest of what was posted"


def test_a_refusal_is_replayed_too() -> None:
    recorder, calls = Recorder(), ObservedCalls(NoWrites(), Echo())
    calls.observer = recorder  # type: ignore[assignment]
    replayed = ReplayedCalls(lambda: 0.0)

    async def statuses() -> list[int]:
        found = []
        for poster in (calls, replayed):
            try:
                await poster.post(URL, b"full", 5)
            except ApiError as error:
                found.append(error.status)
            for call, answer in recorder.answers:
                replayed.answer(call, answer)
        return found

    assert run(statuses()) == [409, 409]
