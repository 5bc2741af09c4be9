"""Parts and jobs: none ends, hangs or fails unseen."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import uvloop

from scheduler.process import tasks as module
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.process.virtual_time import run_virtually
from tests.fakes import sample, settle


class Supervised:
    def __init__(self) -> None:
        self.metrics = Metrics()
        self.stop = asyncio.Event()
        self.tasks = Tasks(self.metrics, self.stop)
        self.ended: list[str] = []
        """How jobs ended."""

    def failures(self, operation: str) -> float:
        return sample(self.metrics, "loadmaster_task_failures_total", operation=operation)

    def note(self, error: BaseException | None) -> None:
        self.ended.append("done" if error is None else f"{type(error).__name__}: {error}")


async def for_ever() -> None:
    await asyncio.get_running_loop().create_future()


async def at_once() -> None:
    """Be done."""


async def broken() -> None:
    raise RuntimeError("a bug")


async def cancelled_from_within() -> None:
    raise asyncio.CancelledError


async def stubborn() -> None:
    """Go on when cancelled, once."""
    try:
        await for_ever()
    except asyncio.CancelledError:
        await for_ever()


# --- parts ---


@pytest.mark.parametrize("part", [at_once, broken, cancelled_from_within, for_ever])
async def test_a_part_that_ends_or_is_cancelled_by_somebody_else_ends_the_program(
    part: Callable[[], Coroutine[Any, Any, None]], caplog: pytest.LogCaptureFixture
) -> None:
    supervised = Supervised()
    running = supervised.tasks.start("relister", part())
    assert supervised.tasks.are_running()
    await settle()
    running.cancel()
    await settle()

    assert supervised.stop.is_set()
    assert supervised.tasks.failed
    assert not supervised.tasks.are_running()
    assert supervised.failures("part") == 1
    (record,) = caplog.records
    assert (record.levelname, record.__dict__["part"]) == ("CRITICAL", "relister")


async def test_a_part_that_we_cancel_is_no_failure() -> None:
    supervised = Supervised()
    one, other = (supervised.tasks.start(name, for_ever()) for name in ("one", "other"))
    await supervised.tasks.cancel(one)
    assert (one.done(), other.done()) == (True, False)
    await supervised.tasks.cancel()

    assert other.done()
    assert not supervised.tasks.failed
    assert not supervised.stop.is_set()


@pytest.mark.parametrize(
    ("part", "told", "failures"), [(at_once, [], 0), (broken, ["A part failed while the program was ending"], 1)]
)
async def test_a_part_may_end_once_the_program_is_told_to_stop_and_if_it_fails_that_is_told(
    part: Callable[[], Coroutine[Any, Any, None]], told: list[str], failures: int, caplog: pytest.LogCaptureFixture
) -> None:
    supervised = Supervised()
    supervised.stop.set()
    supervised.tasks.start("loop", part())
    await settle()

    assert caplog.messages == told
    assert supervised.failures("part") == failures
    assert not supervised.tasks.failed


async def test_a_part_that_does_not_end_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "CANCEL_SECONDS", 0.01)
    supervised = Supervised()
    part = supervised.tasks.start("stubborn", stubborn())
    await settle()
    await supervised.tasks.cancel()

    assert caplog.messages == ["Tasks did not end"]
    part.cancel()
    await settle()


# --- jobs ---


async def test_a_job_that_is_done_is_forgotten() -> None:
    supervised = Supervised()
    jobs = supervised.tasks.jobs("event", 60)
    jobs.start("send", at_once(), supervised.note)
    assert len(jobs) == 1
    await settle()

    assert (len(jobs), supervised.ended, supervised.failures("event")) == (0, ["done"], 0)


async def test_a_job_that_fails_is_logged_once_counted_and_settled(caplog: pytest.LogCaptureFixture) -> None:
    supervised = Supervised()
    supervised.tasks.jobs("event", 60).start("send events", broken(), supervised.note)
    await settle()

    (record,) = caplog.records
    assert (record.message, record.__dict__["task"]) == ("A job failed unexpectedly", "send events")
    assert record.exc_info is not None
    assert supervised.ended == ["RuntimeError: a bug"]
    assert supervised.failures("event") == 1
    assert supervised.tasks.are_running()


async def test_a_job_that_somebody_else_cancels_is_settled_even_before_it_began() -> None:
    supervised = Supervised()
    jobs = supervised.tasks.jobs("binding", 60)
    for began in (False, True):
        job = jobs.start("bind", for_ever(), supervised.note)
        if began:
            await settle()
        job.cancel()
        await settle()

    assert supervised.ended == ["CancelledError: it was cancelled, but not by who started it"] * 2
    assert supervised.failures("binding") == 2


async def test_jobs_under_way_are_waited_for_but_not_for_ever() -> None:
    supervised = Supervised()
    jobs = supervised.tasks.jobs("binding", 60)
    jobs.start("one", asyncio.sleep(0), supervised.note)
    jobs.start("other", for_ever(), supervised.note)

    assert await jobs.finish(0.01) == 1
    assert supervised.ended == ["done", "done"]
    assert supervised.failures("binding") == 0


async def test_what_cannot_be_settled_is_told(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: BaseException | None) -> None:
        raise RuntimeError("no room")

    supervised = Supervised()
    supervised.tasks.jobs("event", 60).start("send", at_once(), fail)
    await settle()

    assert caplog.messages == ["What a job left could not be settled"]
    assert supervised.failures("event") == 1


async def test_a_job_that_takes_too_long_is_told_once_cancelled_and_settled(caplog: pytest.LogCaptureFixture) -> None:
    supervised = Supervised()
    jobs = supervised.tasks.jobs("preemption", 0)
    jobs.start("preempt", stubborn(), supervised.note)
    await settle()
    jobs.look_for_late()
    await settle()
    assert caplog.messages == ["A job takes more than 0 s"]
    assert supervised.ended == []
    jobs.look_for_late()
    await jobs.finish(0)

    assert caplog.messages == ["A job takes more than 0 s"]
    assert supervised.failures("preemption") == 1


async def test_a_late_job_of_a_kind_that_may_not_be_cancelled_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    supervised = Supervised()
    jobs = supervised.tasks.jobs("binding", 0, cancels_late=False)
    job = jobs.start("bind", for_ever(), supervised.note)
    await settle()
    jobs.look_for_late()
    jobs.look_for_late()
    await settle()

    assert not job.done()
    assert caplog.messages == ["A job takes more than 0 s"]
    await jobs.finish(0)


async def test_jobs_in_time_are_left_alone() -> None:
    supervised = Supervised()
    jobs = supervised.tasks.jobs("event", 60)
    job = jobs.start("send", for_ever(), supervised.note)
    await settle()
    jobs.look_for_late()
    await settle()

    assert not job.done()
    await supervised.tasks.close()
    assert job.done()


async def test_late_jobs_are_looked_for_all_the_time_and_know_why_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0)
    supervised = Supervised()
    supervised.tasks.start("task watch", supervised.tasks.watch())
    supervised.tasks.jobs("event", 0).start("send", for_ever(), supervised.note)
    await settle()

    assert supervised.ended == ["TimeoutError: not done after 0 s"]
    assert supervised.failures("event") == 1
    await supervised.tasks.close()


async def test_what_fails_in_a_callback_is_told_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    def callback() -> None:
        raise RuntimeError("a bug")

    supervised = Supervised()
    supervised.tasks.start("task watch", supervised.tasks.watch())
    await settle()
    asyncio.get_running_loop().call_soon(callback)
    await settle()

    assert caplog.messages == ["Something failed outside of all parts and jobs"]
    assert supervised.failures("callback") == 1
    await supervised.tasks.close()


async def test_that_a_connection_had_ended_while_it_was_read_is_nothing_to_tell(
    caplog: pytest.LogCaptureFixture,
) -> None:
    supervised = Supervised()
    supervised.tasks.start("task watch", supervised.tasks.watch())
    await settle()
    context = {"message": "Fatal error on SSL protocol", "exception": late_write()}
    asyncio.get_running_loop().call_exception_handler(context)

    assert caplog.messages == []
    assert supervised.failures("callback") == 0
    await supervised.tasks.close()


async def test_what_kopf_has_given_up_is_nothing_to_tell_and_what_others_forget_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gc.collect()  # what other tests have forgotten is nothing to tell here
    caplog.clear()
    supervised = Supervised()
    supervised.tasks.start("task watch", supervised.tasks.watch())
    await settle()
    source = "async def read():\n    raise OSError('cut')\n"
    for path in ("/lib/kopf/scanning.py", "/lib/other/scanning.py"):
        names: dict[str, Any] = {}
        exec(compile(source, path, "exec"), names)
        forgotten = asyncio.ensure_future(names["read"]())
        await settle()
        del forgotten
        gc.collect()

    assert caplog.messages == ["Something failed outside of all parts and jobs"]
    await supervised.tasks.close()


def late_write() -> RuntimeError:
    """What uvloop raises when a connection is written to after its end."""

    async def write() -> RuntimeError:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
        transport, _ = await loop.create_connection(asyncio.Protocol, *server.sockets[0].getsockname())
        transport.abort()
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError) as raised:
            transport.write(b"late")
        server.close()
        return raised.value

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(uvloop.run, write()).result()


async def test_the_gauges_count_parts_and_jobs_and_know_the_oldest() -> None:
    supervised = Supervised()
    jobs, idle = supervised.tasks.jobs("event", 60), supervised.tasks.jobs("binding", 60)
    assert supervised.tasks.jobs("event", 60) is jobs
    supervised.tasks.start("part", for_ever())
    jobs.start("send", for_ever())
    jobs.start("send", for_ever())
    await asyncio.sleep(0.01)

    assert dict(supervised.tasks.counts()) == {("part",): 1, ("event",): 2, ("binding",): 0}
    ages = dict(supervised.tasks.ages())
    assert ages["event",] >= 0.01
    assert (ages["binding",], idle.oldest) == (0.0, 0.0)
    await supervised.tasks.close()
    assert dict(supervised.tasks.counts()) == {("part",): 0, ("event",): 0, ("binding",): 0}


# --- repetitions ---


def test_work_is_done_again_after_each_end_whatever_that_was() -> None:
    async def live() -> tuple[int, float]:
        supervised, begun = Supervised(), 0

        async def work() -> None:
            nonlocal begun
            begun += 1
            if begun == 2:
                raise RuntimeError("a bug")
            await asyncio.sleep(1)

        repetition = supervised.tasks.repeat("reading", 60, 10, work)
        await asyncio.sleep(25)
        repetition.stop()
        await asyncio.sleep(100)
        return begun, supervised.failures("reading")

    assert run_virtually(live()) == (3, 1)


def test_a_repetition_that_is_stopped_cancels_what_is_under_way() -> None:
    async def live() -> tuple[list[str], float]:
        supervised, ends = Supervised(), list[str]()

        async def work() -> None:
            try:
                await for_ever()
            except asyncio.CancelledError:
                ends.append("cancelled")
                raise

        repetition = supervised.tasks.repeat("reading", 60, 10, work)
        await asyncio.sleep(1)
        repetition.stop()
        await asyncio.sleep(100)
        return ends, supervised.failures("reading")

    assert run_virtually(live()) == (["cancelled"], 0)


def test_without_an_event_loop_nothing_is_repeated() -> None:
    begun: list[str] = []

    async def work() -> None:
        begun.append("work")

    Tasks(Metrics()).repeat("reading", 60, 10, work).stop()

    assert begun == []
