"""The one way to start a task that is not awaited: none ends, hangs or fails unseen.

A part runs as long as the program does, a job ends by itself:

    part ──ends, fails, or is cancelled by others──► the program ends with exit code 1; until then `/livez` fails
      └────the program is asked to stop────────────► may end; is cancelled

    job ──done──────────────────────────────────────► (nothing)
     │ ───fails, or is cancelled by others──────────► logged, counted, settled
     │ ───takes too long────────────────────────────► logged, counted; cancelled and settled, if its kind says so
     └────`finish`, `cancel`────────────────────────► cancelled

To settle is up to who started the job: a pod goes back to the queue, a slot is released. Tasks that their starter
awaits are in `scheduler.framework.awaited`. What fails outside of these (timers, callbacks, tasks of libraries) comes
to the event loop's exception handler, which counts it too.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import PurePath
from typing import Any, Final, TypeAlias

from scheduler.process.metrics import Metrics, Samples
from scheduler.process.sources import Sources

LOOK_SECONDS: Final = 10.0
"""Between two searches for jobs that take too long."""

CANCEL_SECONDS: Final = 5.0
"""For cancelled tasks to end; those that do not are left alone, with a log line."""

PARTS: Final = "part"
"""The operation of parts in metrics."""

OUTSIDE: Final = "callback"
"""The operation, in metrics, of failures outside of parts and jobs."""

Work: TypeAlias = Coroutine[Any, Any, None]

Ended: TypeAlias = Callable[[BaseException | None], None]
"""Called when a job has ended: with None if it is done or was cancelled here, otherwise with why it failed."""

_logger = logging.getLogger(__name__)


class Tasks:
    """All tasks of one scheduler."""

    def __init__(self, metrics: Metrics, stop: asyncio.Event | None = None) -> None:
        """`stop` is set to end the program: by its owner, or here when a part has failed."""
        self._failures = metrics.task_failures
        self._sources = Sources(metrics)
        self._stop = stop or asyncio.Event()
        self._parts: set[asyncio.Task[None]] = set()
        self._cancelled: set[asyncio.Task[None]] = set()
        self._jobs: dict[str, Jobs] = {}
        self._others: dict[str, Callable[[], int]] = {}
        self._idle: list[Repetition] = []
        self.failed = False
        """Whether a part has failed."""

    def start(self, name: str, part: Work) -> "asyncio.Task[None]":
        """Start a part."""
        task = asyncio.get_running_loop().create_task(part, name=name)
        self._parts.add(task)
        task.add_done_callback(self._part_ended)
        return task

    def jobs(self, operation: str, seconds: float, *, cancels_late: bool = True) -> "Jobs":
        """The jobs of one kind, each of which may take `seconds`; those that take longer are cancelled if so asked.

        `operation` is their label in metrics. Asked for twice, the jobs are the same, as those of two profiles.
        """
        found = self._jobs.get(operation)
        if found is None:
            found = self._jobs[operation] = Jobs(self, operation, seconds, cancels_late=cancels_late)
        return found

    def repeat(self, operation: str, seconds: float, pause: float, work: Callable[[], Work]) -> "Repetition":
        """Do `work` as a job now, and again `pause` seconds after each end. Without an event loop it is not done.

        An ApiError is no failure of the job: what it asks does not answer.
        """
        repetition = Repetition(
            self.jobs(operation, seconds), operation, pause, partial(self._sources.asked, operation, work)
        )
        if not repetition.is_at_work:
            self._idle.append(repetition)
        return repetition

    async def do_once(self) -> None:
        """Do periodic work once that could not begin without an event loop: a simulation has no later."""
        for repetition in self._idle:
            await repetition.once()

    def are_running(self) -> bool:
        """Return whether all parts are."""
        return not self.failed

    async def cancel(self, *parts: "asyncio.Task[None]") -> None:
        """Cancel these parts, or all of them, and wait for their end."""
        ending = self._parts & set(parts or self._parts)
        self._cancelled |= ending
        await cancel_all(ending)

    async def close(self) -> None:
        """Cancel all parts and jobs."""
        await self.cancel()
        for jobs in self._jobs.values():
            await jobs.finish(0)

    async def watch(self) -> None:
        """A part: look for jobs that take too long."""
        asyncio.get_running_loop().set_exception_handler(self._failed_outside)
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for jobs in self._jobs.values():
                jobs.look_for_late()

    def report(self, operation: str, name: str, problem: str, error: BaseException | None = None) -> None:
        """Log and count an unexpected failure."""
        self._failures.labels(operation).inc()
        _logger.error(problem, extra={"operation": operation, "task": name}, exc_info=error)

    def count(self, operation: str, read: Callable[[], int]) -> None:
        """Count tasks too that their starters await."""
        self._others[operation] = read

    def counts(self) -> Samples:
        """How many parts and jobs there are, by operation: for a gauge."""
        yield (PARTS,), len(self._parts)
        for operation, jobs in self._jobs.items():
            yield (operation,), len(jobs)
        for operation, read in self._others.items():
            yield (operation,), read()

    def ages(self) -> Samples:
        """Seconds for which the oldest job of each operation has been running: for a gauge."""
        for operation, jobs in self._jobs.items():
            yield (operation,), jobs.oldest

    def _part_ended(self, task: "asyncio.Task[None]") -> None:
        self._parts.discard(task)
        error = None if task.cancelled() else task.exception()
        cancelled = task in self._cancelled
        self._cancelled.discard(task)
        if not (cancelled or self._stop.is_set()):
            self.failed = True
            self._failures.labels(PARTS).inc()
            how = "was cancelled" if task.cancelled() else "failed" if error is not None else "came to its end"
            fields = {"part": task.get_name(), "how": how}
            _logger.critical("A part ended; the program ends too", extra=fields, exc_info=error)
            self._stop.set()
        elif error is not None:
            self.report(PARTS, task.get_name(), "A part failed while the program was ending", error)

    def _failed_outside(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        task = context.get("task") or context.get("future")
        name = task.get_name() if isinstance(task, asyncio.Task) else str(context.get("message"))
        if is_late_for_a_connection(context.get("exception")):
            _logger.debug("A connection had ended already", extra={"task": name})
            return
        if is_forsaken_by_kopf(context):
            _logger.debug("kopf gave up something that failed too", extra={"task": name})
            return
        self.report(OUTSIDE, name, "Something failed outside of all parts and jobs", context.get("exception"))


def is_late_for_a_connection(error: BaseException | None) -> bool:
    """Return whether uvloop's TLS has gone on reading from a connection that was aborted a turn before.

    What it reads makes it write something, and that fails. Nothing is lost: the connection has ended, and who used it
    knows. asyncio's TLS says nothing then; uvloop's only of an OSError (`SSLProtocol._fatal_error`).
    """
    return isinstance(error, RuntimeError) and str(error).endswith("; the handler is closed")


def is_forsaken_by_kopf(context: dict[str, Any]) -> bool:
    """Return whether it is a task of kopf's whose failure is not asked for, as another one like it failed before.

    kopf asks for the resources of all API groups at once, and at the first failure, which it reports and tries again,
    leaves the others alone (`_read_new_apis` in kopf/_cogs/clients/scanning.py).
    """
    task = context.get("future")
    if not isinstance(task, asyncio.Task) or context.get("message") != "Task exception was never retrieved":
        return False
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and "kopf" in PurePath(code.co_filename).parts


class Jobs:
    """Jobs of one kind. They are counted, and the oldest is known."""

    def __init__(self, tasks: Tasks, operation: str, seconds: float, *, cancels_late: bool) -> None:
        self._tasks = tasks
        self._operation = operation
        self._seconds = seconds
        self._cancels_late = cancels_late
        self._running: dict[asyncio.Task[None], tuple[float, Ended | None]] = {}
        """Each with when it was started, in the order of that."""
        self._late: set[asyncio.Task[None]] = set()
        """Those that took too long."""
        self._finishing: set[asyncio.Task[None]] = set()
        """Those that `finish` and `cancel` have cancelled."""

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator["asyncio.Task[None]"]:
        return iter(tuple(self._running))

    @property
    def oldest(self) -> float:
        """Seconds for which the oldest has been running; 0 without any."""
        for started, _ in self._running.values():
            return asyncio.get_running_loop().time() - started
        return 0.0

    def start(self, name: str, work: Work, ended: Ended | None = None) -> "asyncio.Task[None]":
        """Start a job."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(work, name=name)
        self._running[task] = loop.time(), ended
        task.add_done_callback(self._ended)
        return task

    async def finish(self, seconds: float) -> int:
        """Wait up to `seconds` for the jobs under way, then cancel the rest; return how many those were."""
        if not self._running:
            return 0
        _, late = await asyncio.wait(self, timeout=seconds)
        self._finishing |= late
        await cancel_all(late)
        return len(late)

    def cancel(self, task: "asyncio.Task[None]") -> None:
        """End a job that is not wanted any more: that is no failure."""
        if task in self._running:
            self._finishing.add(task)
            task.cancel()

    def look_for_late(self) -> None:
        """Report each job that takes too long, once; cancel it, if that is the way of its kind."""
        now = asyncio.get_running_loop().time()
        for task, (started, _) in tuple(self._running.items()):
            if now - started < self._seconds:
                return
            if task not in self._late:
                self._late.add(task)
                self._tasks.report(self._operation, task.get_name(), f"A job takes more than {self._seconds:g} s")
                if self._cancels_late:
                    task.cancel()

    def _ended(self, task: "asyncio.Task[None]") -> None:
        _, ended = self._running.pop(task)
        error = self._cancellation(task) if task.cancelled() else task.exception()
        if error is not None and task not in self._late:
            self._tasks.report(self._operation, task.get_name(), "A job failed unexpectedly", error)
        if self._late or self._finishing:
            self._late.discard(task)
            self._finishing.discard(task)
        if ended is not None:
            try:
                ended(error)
            except Exception as problem:  # noqa: BLE001  it must not hide in the event loop
                self._tasks.report(self._operation, task.get_name(), "What a job left could not be settled", problem)

    def _cancellation(self, task: "asyncio.Task[None]") -> BaseException | None:
        if task in self._finishing:
            return None
        if task in self._late:
            return TimeoutError(f"not done after {self._seconds:g} s")
        return asyncio.CancelledError("it was cancelled, but not by who started it")


class Repetition:
    """A job that is done again after each end, until it is stopped.

    idle ──a job is started──► under way ──ends, however it does──► waiting ──after the pause──► under way …
      └───────────`stop`, from anywhere──────────────────────────────────────────────────────────► stopped
    """

    def __init__(self, jobs: Jobs, name: str, pause: float, work: Callable[[], Work]) -> None:
        self._jobs = jobs
        self._name = name
        self._pause = pause
        self._work = work
        self._stopped = False
        self._timer: asyncio.TimerHandle | None = None
        self._job: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        with suppress(RuntimeError):
            self._loop = asyncio.get_running_loop()
        if self._loop is not None:
            self._again()

    @property
    def is_at_work(self) -> bool:
        """Whether it was begun where an event loop runs: otherwise nothing is done."""
        return self._loop is not None

    async def once(self) -> None:
        """Do it now, and not again. What goes wrong is reported, not raised."""
        if not self._stopped:
            self._job = self._jobs.start(self._name, self._work(), self._ended)
            await asyncio.wait((self._job,))

    def stop(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._job is not None:
            self._jobs.cancel(self._job)

    def _again(self) -> None:
        self._job = self._jobs.start(self._name, self._work(), self._ended)

    def _ended(self, error: BaseException | None) -> None:
        self._job = None
        if not self._stopped and self._loop is not None:
            self._timer = self._loop.call_later(self._pause, self._again)


async def cancel_all(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    """Cancel these tasks and wait for their end, though not for ever."""
    ending = set(tasks)
    for task in ending:
        task.cancel()
    if ending:
        _, stuck = await asyncio.wait(ending, timeout=CANCEL_SECONDS)
        if stuck:
            _logger.warning("Tasks did not end", extra={"tasks": sorted(task.get_name() for task in stuck)})
