"""Records a running scheduler: an observer while somebody reads the trace, and nothing at all otherwise.

    IDLE ──read──► STATE: written bit by bit ─► FOLLOWING ──time is up, not leading, another configuration──► END
                     └──────────────────────────┴──more waits than may: the reader is too slow──────────────► END
                                                └──the reader has gone──► IDLE

Whatever ends it, unless the reader does, is named in the last line. What waits for the reader is bounded in bytes; a
decision costs its line and is never held up: a pod's lines take 20 to 45 µs, at 5,000 nodes.
"""

import asyncio
import gzip
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from importlib import metadata
from typing import Any, Final

import msgspec

from scheduler.api.objects import Node
from scheduler.api.pod import Pod
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.cycle.engine import Engine
from scheduler.cycle.observer import Call, ExtenderAnswer
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import ApiError
from scheduler.framework.queued import QueuedPod
from scheduler.process.time_slice import TimeSlice
from scheduler.replay.start import StateAtStart
from scheduler.replay.trace import lines
from scheduler.replay.trace.extender_answers import written_answer
from scheduler.replay.trace.lines import Line
from scheduler.runtime.framework import Framework

MAX_WAITING: Final = 32 << 20
"""Bytes of lines that wait for the reader."""

MEMBER: Final = 64 << 10
"""Bytes of lines that are packed at once: half a millisecond."""

PAUSE_SECONDS: Final = 0.25
"""Between two members, where little happens."""

TOO_SLOW: Final = f"the reader was too slow: more than {MAX_WAITING >> 20} MiB of the trace waited for it"
NOT_LEADING: Final = "this replica is no longer the leader"
OTHER_CONFIG: Final = "the configuration has changed: record again for what follows"
REBUILT: Final = "a change failed half way, and the node table was rebuilt"
UNWRITABLE: Final = "what happened could not be written"
FULL_TIME: Final = "the time was up"

NOWHERE: Final = "https://extender.invalid"


class Recorder:
    """For one engine; one recording at a time."""

    def __init__(
        self,
        engine: Engine,
        config: Callable[[], dict[str, Any]],
        is_leading: Callable[[], bool],
        max_waiting: int = MAX_WAITING,
        pause: float = PAUSE_SECONDS,
    ) -> None:
        """`config`: what is in effect, as a file that shows no secrets."""
        self._engine = engine
        self._config = config
        self._is_leading = is_leading
        self._max_waiting, self._pause = max_waiting, pause
        self.is_busy = False

    @property
    def is_leading(self) -> bool:
        """Whether there is anything to record."""
        return self._is_leading()

    async def record(self, seconds: float = 0.0) -> AsyncGenerator[bytes, None]:
        """Yield the parts of a trace: of `seconds`, or until the generator is closed. Nothing, if one is under way.

        An empty part says that nothing has happened for a while.
        """
        if self.is_busy:
            return
        self.is_busy = True
        recording = _Recording(self._engine, self._max_waiting)
        try:
            async for part in self._parts(recording, seconds):
                yield part
        finally:
            self._engine.observe(None)
            self.is_busy = False

    async def _parts(self, recording: "_Recording", seconds: float) -> AsyncGenerator[bytes, None]:
        engine = self._engine
        header = lines.Header(
            version=metadata.version("loadmaster"),
            recorded_at=time.time(),
            config=self._config(),
            next_start=engine.algorithm.next_start,
            bindings=engine.loop.bindings,
            needs=tuple(sorted(engine.profiles.resources.needs)),
        )
        state = StateAtStart(engine)
        engine.observe(recording)  # in the same step: what comes after the state is in a line
        yield _packed(msgspec.json.encode(header) + b"\n")
        async for part in _in_parts(state.lines()):
            yield part
        deadline = time.monotonic() + seconds if seconds else None
        while not recording.over_because:
            if not self.is_leading:
                recording.end(NOT_LEADING)
            elif deadline is not None and time.monotonic() >= deadline:
                recording.end(FULL_TIME)
            elif part := recording.take():
                yield _packed(part)
                await asyncio.sleep(0)  # a reader that takes it at once suspends nobody
            else:
                await asyncio.sleep(self._pause)
                yield b""
        engine.observe(None)
        while part := recording.take():
            yield _packed(part)
            await asyncio.sleep(0)


class _Recording:
    """Implements scheduler.cycle.observer.Observer: a line for each call."""

    def __init__(self, engine: Engine, max_waiting: int) -> None:
        self._engine = engine
        self._algorithm = engine.algorithm
        self._began = time.monotonic()
        self._max_waiting = max_waiting
        self._waiting = bytearray()
        self._next_start = 0
        self.over_because = ""
        """Why nothing is recorded any more."""

    def take(self) -> bytes:
        """Take some whole lines off what waits."""
        end = self._waiting.find(b"\n", MEMBER) + 1 or len(self._waiting)
        part = bytes(self._waiting[:end])
        del self._waiting[:end]
        return part

    def end(self, why: str) -> None:
        """Record no more."""
        if not self.over_because:
            self._write(lambda at: lines.End(at, why))
            self.over_because = why

    def _write(self, line_at: Callable[[int], Line]) -> None:
        """Write a line; `line_at` makes it for a time in milliseconds."""
        if self.over_because:
            return
        milliseconds = int((time.monotonic() - self._began) * 1000)
        try:
            line = lines.encode(line_at(milliseconds))
        except Exception as error:  # noqa: BLE001  an object that others wrote: the recording pays, never the scheduler
            # Not its text, which may be as odd as what it is about.
            self.end(f"{UNWRITABLE}: {type(error).__name__}")
            return
        if len(self._waiting) + len(line) > self._max_waiting:
            self._waiting += lines.encode(lines.End(milliseconds, TOO_SLOW))
            self.over_because = TOO_SLOW
        else:
            self._waiting += line

    def _own(self, pod: Pod) -> msgspec.Raw:
        """A version of a pod that the watch has not shown."""
        return lines.NOTHING if self._engine.pods.get(pod.uid) is pod else lines.written(pod)

    # --- scheduler.state.observer ---

    def assumed(self, pod: Pod) -> None:
        self._write(lambda at: lines.Assume(at, pod.uid, pod.node_name))

    def confirmed(self, pod: Pod) -> None:
        self._write(lambda at: lines.Count(at, pod.uid, False, self._own(pod)))

    def uncounted(self, uid: str) -> None:
        self._write(lambda at: lines.Uncount(at, uid))

    def node_set(self, node: Node) -> None:
        self._write(lambda at: lines.SetNode(at, lines.written(node)))

    def node_removed(self, name: str) -> None:
        self._write(lambda at: lines.RemoveNode(at, name))

    def rests(self, name: str) -> None:
        self._write(lambda at: lines.Quarantine(at, name))

    def rested(self, name: str) -> None:
        self._write(lambda at: lines.EndQuarantine(at, name))

    def rebuilt(self) -> None:
        self.end(REBUILT)

    def nominated(self, pod: Pod, node_name: str) -> None:
        self._write(lambda at: lines.Nominate(at, pod.uid, node_name, self._own(pod)))

    def nomination_ended(self, uid: str) -> None:
        self._write(lambda at: lines.EndNomination(at, uid))

    def object_set(self, resource: str, new: Any) -> None:
        self._write(lambda at: lines.SetObject(at, resource, lines.written(new)))

    def object_removed(self, resource: str, uid: str) -> None:
        self._write(lambda at: lines.RemoveObject(at, resource, uid))

    # --- scheduler.cycle.observer ---

    def pod_shown(self, pod: Pod) -> None:
        self._write(lambda at: lines.SetPod(at, lines.written(pod)))

    def pod_gone(self, uid: str) -> None:
        self._write(lambda at: lines.RemovePod(at, uid))

    def deciding(self) -> None:
        self._next_start = self._algorithm.next_start

    def decided(
        self, framework: Framework, state: CycleState, queued: QueuedPod, decision: Placed | Unplaced | BaseException
    ) -> None:
        pod, number, start = queued.pod, queued.attempts, self._next_start
        self._write(
            lambda at: lines.Decide(
                at, pod.uid, framework.name, number, start, lines.decision_of(state, decision), self._own(pod)
            )
        )

    def asking(self, framework: Framework, queued: QueuedPod) -> None:
        self._write(lambda at: lines.AskExtenders(at, queued.pod.uid, framework.name, queued.attempts))

    def searching(self, pod: Pod) -> None:
        self._write(lambda at: lines.Search(at, pod.uid, self._algorithm.next_start, self._own(pod)))

    def extenders_answered(self, uid: str, verb: str, answer: ExtenderAnswer | Exception) -> None:
        self._write(lambda at: lines.ExtenderAnswer(at, uid, written_answer(verb, answer)))

    def decided_with_extenders(
        self, framework: Framework, state: CycleState, queued: QueuedPod, decision: Placed | Unplaced | BaseException
    ) -> None:
        self._write(lambda at: lines.Decided(at, queued.pod.uid, lines.decision_of(state, decision)))

    def gave_up(self, uid: str) -> None:
        self._write(lambda at: lines.GiveUp(at, uid))

    def reconfigured(self) -> None:
        self.end(OTHER_CONFIG)

    def pre_binding(self, pod: Pod) -> None:
        self._write(lambda at: lines.PreBind(at, pod.uid))

    def bound(self, pod: Pod) -> None:
        self._write(lambda at: lines.Bound(at, pod.uid))

    def undone(self, pod: Pod) -> None:
        self._write(lambda at: lines.Undo(at, pod.uid))

    def answered(self, call: Call, answer: Any | ApiError) -> None:
        if isinstance(answer, ApiError):
            self._write(lambda at: lines.Answer(at, call, answer.status, lines.written(str(answer))))
        else:
            self._write(lambda at: lines.Answer(at, call, None, lines.written(answer)))


async def _in_parts(state: Iterator[Line]) -> AsyncGenerator[bytes, None]:
    waiting = bytearray()
    time_slice = TimeSlice()
    for line in state:
        waiting += lines.encode(line)
        if len(waiting) >= MEMBER:
            yield _packed(waiting)
            waiting.clear()
        await time_slice.give_way()
    yield _packed(waiting)


def _packed(text: bytes | bytearray) -> bytes:
    return gzip.compress(text, compresslevel=1, mtime=0)


def without_secrets(document: dict[str, Any]) -> dict[str, Any]:
    """A configuration as a trace has it: nobody asks extenders in a replay, so it need not say where they are."""
    shown = {**document, "extenders": [{**each, "urlPrefix": NOWHERE} for each in document.get("extenders") or ()]}
    for extender in shown["extenders"]:
        extender.pop("tlsConfig", None)
    return shown
