"""What plugins post is recorded with its answers, and answered from the trace in a replay: nothing is sent then."""

from scheduler.cycle.api_calls import PublishedCalls
from scheduler.cycle.cycle_events import CallAnswered
from scheduler.framework.errors import ApiError
from scheduler.framework.handle import NO_CREDENTIALS, Access, NoReads, NoWrites
from scheduler.replay.replayed_calls import ReplayedCalls
from scheduler.runtime.event_stream import EventStream
from tests.fakes import run

URL = "http://licences/take"


class Echo(NoReads):
    """Answers what is posted."""

    async def post(self, url: str, body: bytes, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        if body == b"full":
            raise ApiError(409, "no licence is free")
        return body


def recorded_calls() -> tuple[list[CallAnswered], PublishedCalls]:
    answers: list[CallAnswered] = []
    stream = EventStream()
    stream.subscribe({CallAnswered: answers.append})
    return answers, PublishedCalls(NoWrites(), Echo(), stream)


def test_each_post_gets_the_answer_that_it_got_whatever_their_order() -> None:
    answers, calls = recorded_calls()
    replayed = ReplayedCalls(lambda: 0.0)

    async def record_and_replay() -> list[object]:
        for body in (b"one", b"two"):
            await calls.post(URL, body, 5)
        for each in answers:
            replayed.answer(each.call, each.answer)
        return [await replayed.post(URL, body, 5) for body in (b"two", b"one")]

    assert run(record_and_replay()) == [b"two", b"one"]
    assert "one" not in str(answers[0].call), "a trace holds no more than a digest of what was posted"


def test_a_refusal_is_replayed_too() -> None:
    answers, calls = recorded_calls()
    replayed = ReplayedCalls(lambda: 0.0)

    async def statuses() -> list[int]:
        found = []
        for poster in (calls, replayed):
            try:
                await poster.post(URL, b"full", 5)
            except ApiError as error:
                found.append(error.status)
            for each in answers:
                replayed.answer(each.call, each.answer)
        return found

    assert run(statuses()) == [409, 409]
