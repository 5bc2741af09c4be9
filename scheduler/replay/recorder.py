"""Records a running scheduler: subscribes to its events while a client reads the trace.

    IDLE ──read──► STATE: written step by step ─► FOLLOWING ──time is up, not leading, another configuration──► END
                     └────────────────────────────┴──the buffer is full: the reader is too slow─────────────► END
                                                  └──the reader has gone──► IDLE

The last line says why the recording ended, unless the reader ended it. The buffer for the reader is bounded in bytes.
Recording never delays a decision; a pod's lines take 20 to 45 µs at 5,000 nodes.
"""

import asyncio
import gzip
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from functools import partial
from importlib import metadata
from typing import Any, Final

import msgspec

from scheduler.api.pods.pod import Pod
from scheduler.cycle import cycle_events as cycle
from scheduler.engine.engine import Engine
from scheduler.extenders.conversation import ExtendersAnswered
from scheduler.framework.errors import ApiError
from scheduler.groups.group_events import GroupDecided, GroupStarted, NodesReserved, ReservationEnded
from scheduler.process.time_slice import TimeSlice
from scheduler.replay.trace import lines
from scheduler.replay.trace.extender_answers import written_answer
from scheduler.replay.trace.lines import Line
from scheduler.runtime.event_stream import EngineEvent, Handlers
from scheduler.state import state_events as state

MAX_WAITING: Final = 32 << 20
"""Bytes of lines that wait for the reader."""

MEMBER: Final = 64 << 10
"""Bytes of lines that are compressed at once: half a millisecond."""

PAUSE_SECONDS: Final = 0.25
"""Between two looks at an empty buffer."""

BEAT_SECONDS: Final = 15.0
"""Between two signs of life while nothing happens: readers and proxies give up connections that are silent."""

BEAT: Final = gzip.compress(b"", mtime=0)
"""A member without lines, which a trace may have anywhere after its first one."""

TOO_SLOW: Final = f"the reader was too slow: more than {MAX_WAITING >> 20} MiB of the trace waited for it"
NOT_LEADING: Final = "this replica is no longer the leader"
OTHER_CONFIG: Final = "the configuration has changed: record again for what follows"
REBUILT: Final = "a change failed half way, and the node table was rebuilt"
UNWRITABLE: Final = "what happened could not be written"
FULL_TIME: Final = "the time was up"

NOWHERE: Final = "https://extender.invalid"


class Recorder:
    """Recordings of one engine, one at a time."""

    def __init__(
        self,
        engine: Engine,
        config: Callable[[], dict[str, Any]],
        is_leading: Callable[[], bool],
        gates: Callable[[], Mapping[str, bool]] = dict,
        max_waiting: int = MAX_WAITING,
        pause: float = PAUSE_SECONDS,
        beat: float = BEAT_SECONDS,
    ) -> None:
        """`config` returns the configuration in effect, without secrets; `gates`, the feature gates that were set."""
        self._engine = engine
        self._config = config
        self._is_leading = is_leading
        self._gates = gates
        self._max_waiting, self._pause, self._beat = max_waiting, pause, beat
        self.is_busy = False

    @property
    def is_leading(self) -> bool:
        return self._is_leading()

    async def record(self, seconds: float = 0.0) -> AsyncGenerator[bytes, None]:
        """Yield the parts of a trace, for `seconds` or until the generator is closed; none if a recording is under way.

        An empty part means that nothing has happened for a while; a BEAT, that nothing has for long.
        """
        if self.is_busy:
            return
        self.is_busy = True
        engine, recording = self._engine, _Recording(self._engine, self._max_waiting)
        try:
            header = lines.Header(
                version=metadata.version("loadmaster"),
                recorded_at=time.time(),
                config=self._config(),
                next_start=engine.algorithm.next_start,
                feature_gates=dict(self._gates()),
                bindings=engine.loop.bindings,
                raw_pods=engine.profiles.resources.raw_pods,
            )
            state = _StateAtStart(engine)
            engine.stream.subscribe(recording.handlers)  # no await in between: each later change is a line
            yield _packed(msgspec.json.encode(header) + b"\n")
            async for part in _in_parts(state.lines()):
                yield part
            said = time.monotonic()
            deadline = said + seconds if seconds else None
            while not recording.over_because:
                if not self.is_leading:
                    recording.end(NOT_LEADING)
                elif deadline is not None and time.monotonic() >= deadline:
                    recording.end(FULL_TIME)
                elif part := recording.take():
                    yield _packed(part)
                    said = time.monotonic()
                    await asyncio.sleep(0)  # a reader that takes it at once does not suspend this task
                elif time.monotonic() - said >= self._beat:
                    yield BEAT
                    said = time.monotonic()
                else:
                    await asyncio.sleep(self._pause)
                    yield b""
            engine.stream.unsubscribe(recording.handlers)
            while part := recording.take():
                yield _packed(part)
                await asyncio.sleep(0)
        finally:
            engine.stream.unsubscribe(recording.handlers)
            self.is_busy = False


class _Recording:
    """Writes a line for each event that decisions depend on."""

    def __init__(self, engine: Engine, max_waiting: int) -> None:
        self._engine = engine
        self._began = time.monotonic()
        self._max_waiting = max_waiting
        self._waiting = bytearray()
        self._next_start = 0
        self._is_deciding_group = False
        self._first_step = 0
        """How many steps of the loop's were taken before those of the decision."""
        self._noted_steps = 0
        """The number of its steps that is in the trace."""
        self._in_group: set[str] = set()
        """UIDs of the members of the last group whose outcomes are to come."""
        self._left_out: set[str] = set()
        """Those of a group whose decision began before the recording."""
        self.over_because = ""
        """Why it has ended; empty while it goes on."""
        own = self._own
        self._lines: Mapping[type[EngineEvent], Callable[[Any, int], Line]] = {
            state.PodCounted: self._counted,
            state.PodUncounted: lambda event, at: lines.Uncount(at, event.uid),
            state.NodeSet: lambda event, at: lines.SetNode(at, lines.written(event.node)),
            state.NodeRemoved: lambda event, at: lines.RemoveNode(at, event.name),
            state.NodeQuarantined: _quarantine,
            state.PodNominated: lambda event, at: lines.Nominate(at, event.pod.uid, event.node_name, own(event.pod)),
            state.NominationEnded: lambda event, at: lines.EndNomination(at, event.uid),
            state.ObjectSet: lambda event, at: lines.SetObject(at, event.resource, lines.written(event.new)),
            state.ObjectRemoved: lambda event, at: lines.RemoveObject(at, event.resource, event.uid),
            cycle.PodSeen: lambda event, at: lines.SetPod(at, lines.written(event.pod)),
            cycle.PodGone: lambda event, at: lines.RemovePod(at, event.uid),
            cycle.SearchStarted: self._search,
            cycle.Decided: self._decision,
            ExtendersAnswered: _extender_answer,
            GroupStarted: self._group,
            NodesReserved: lambda event, at: lines.Reserve(at, event.reservation),
            ReservationEnded: lambda _, at: lines.EndReservation(at),
            cycle.AttemptGivenUp: lambda event, at: lines.GiveUp(at, event.uid),
            cycle.PreBindStarted: lambda event, at: lines.PreBind(at, event.pod.uid),
            cycle.PodBound: lambda event, at: lines.Bound(at, event.pod.uid),
            cycle.BindingUndone: lambda event, at: lines.Undo(at, event.pod.uid),
            cycle.CallAnswered: _answer,
        }
        self.handlers: Handlers = {
            **dict.fromkeys(self._lines, self._record),
            cycle.AttemptStarted: self._start,
            cycle.Decided: self._decided,
            GroupDecided: self._end_group,
            cycle.Reconfigured: lambda _: self.end(OTHER_CONFIG),
            state.TableRebuilt: lambda _: self.end(REBUILT),
        }

    def take(self) -> bytes:
        """Take whole lines out of the buffer, about MEMBER bytes."""
        end = self._waiting.find(b"\n", MEMBER) + 1 or len(self._waiting)
        part = bytes(self._waiting[:end])
        del self._waiting[:end]
        return part

    def end(self, why: str) -> None:
        if not self.over_because:
            self._write(lambda at: lines.End(at, why))
            self.over_because = why

    def _write(self, line_at: Callable[[int], Line]) -> None:
        """Write a line; `line_at` makes it for a time in milliseconds."""
        if self.over_because:
            return
        milliseconds = int((time.monotonic() - self._began) * 1000)
        try:
            line = self._steps(milliseconds) + lines.encode(line_at(milliseconds))
        except Exception as error:  # noqa: BLE001  an object that others wrote: the recording pays, never the scheduler
            # Not the error's text, which may be as odd as the object.
            self.end(f"{UNWRITABLE}: {type(error).__name__}")
            return
        if len(self._waiting) + len(line) > self._max_waiting:
            self._waiting += lines.encode(lines.End(milliseconds, TOO_SLOW))
            self.over_because = TOO_SLOW
        else:
            self._waiting += line

    def _steps(self, milliseconds: int) -> bytes:
        """Return a line before one that happens in the middle of a decision about a group, if steps were taken."""
        count = self._engine.loop.group_steps - self._first_step
        if not self._is_deciding_group or count == self._noted_steps:
            return b""
        self._noted_steps = count
        return lines.encode(lines.GroupSteps(milliseconds, count))

    def _record(self, event: EngineEvent) -> None:
        self._write(partial(self._lines[type(event)], event))

    def _start(self, event: cycle.AttemptStarted) -> None:
        self._next_start = self._engine.algorithm.next_start
        if event.has_extenders:
            self._write(lambda at: lines.AskExtenders(at, event.queued.pod.uid, event.profile, event.queued.attempts))

    def _counted(self, event: state.PodCounted, at: int) -> Line:
        pod = event.pod
        if event.is_assumed:
            return lines.Assume(at, pod.uid, pod.node_name)
        return lines.Count(at, pod.uid, False, self._own(pod))

    def _search(self, event: cycle.SearchStarted, at: int) -> Line:
        return lines.Search(at, event.pod.uid, self._engine.algorithm.next_start, self._own(event.pod))

    def _group(self, event: GroupStarted, at: int) -> Line:
        self._in_group = {queued.pod.uid for queued in event.members}
        self._is_deciding_group, self._noted_steps = True, 0
        self._first_step = self._engine.loop.group_steps
        members = [(queued.pod.uid, queued.attempts) for queued in event.members]
        own = {each.pod.uid: raw for each in event.members if (raw := self._own(each.pod)) is not lines.NOTHING}
        return lines.DecideGroup(at, event.profile, self._engine.algorithm.next_start, members, own)

    def _end_group(self, event: GroupDecided) -> None:
        self._is_deciding_group = False
        uids = {queued.pod.uid for queued in event.members}
        if uids != self._in_group:  # it began before the recording
            self._left_out = uids

    def _decided(self, event: cycle.Decided) -> None:
        if event.queued.pod.uid in self._left_out:
            self._left_out.discard(event.queued.pod.uid)
        else:
            self._record(event)

    def _decision(self, event: cycle.Decided, at: int) -> Line:
        queued, pod, decision = event.queued, event.queued.pod, lines.decision_of(event.state, event.decision)
        if event.has_extenders:
            return lines.Decided(at, pod.uid, decision)
        if pod.uid in self._in_group:
            self._in_group.discard(pod.uid)
            return lines.DecideMember(at, pod.uid, decision)
        return lines.Decide(at, pod.uid, event.profile, queued.attempts, self._next_start, decision, self._own(pod))

    def _own(self, pod: Pod) -> msgspec.Raw:
        """A version of a pod that the watch has not shown."""
        return lines.NOTHING if self._engine.pods.get(pod.uid) is pod else lines.written(pod)


def _quarantine(event: state.NodeQuarantined, at: int) -> Line:
    return (lines.EndQuarantine if event.has_ended else lines.Quarantine)(at, event.name)


def _extender_answer(event: ExtendersAnswered, at: int) -> Line:
    return lines.ExtenderAnswer(at, event.uid, written_answer(event.verb, event.answer))


def _answer(event: cycle.CallAnswered, at: int) -> Line:
    if isinstance(event.answer, ApiError):
        return lines.Answer(at, event.call, event.answer.status, lines.written(str(event.answer)))
    return lines.Answer(at, event.call, None, lines.written(event.answer))


class _StateAtStart:
    """The state that decisions read, at one moment. Pods and objects are never changed: it can be written later."""

    def __init__(self, engine: Engine) -> None:
        """A few milliseconds for tens of thousands of pods, as nothing is copied but references."""
        cache, table = engine.cache, engine.cache.table
        self._names, self._free = table.layout()
        self._nodes = [node for name in self._names if name and (node := table.node(name)) is not None]
        self._resting = cache.resting
        self._objects = {resource: list(engine.objects.known(resource).values()) for resource in engine.watched}
        self._pods = list(engine.pods.values())
        # By row, and in the order in which a row has them: both matter to preemption.
        self._counted = [list(table.pods_on(name)) for name in self._names if name]
        if cache.what_ifs:
            self._counted = [[pod for pod in pods if pod.uid not in cache.what_ifs] for pods in self._counted]
        self._shown = {id(pod) for pod in self._pods}
        self._assumed = {pod.uid for pod in cache.assumed_pods()}
        self._reservation = engine.group_parts.reserved.reservation
        self._preemptions = [
            (str(each.key), tuple(pod.uid for pod in each.pods), tuple(each.victims))
            for each in engine.core.preemptions.kept()
        ]
        self._nominations = [(node_name, list(pods)) for node_name, pods in engine.nominator.by_node()]

    def lines(self) -> Iterator[lines.Line]:
        """Yield the lines in the order in which a replay needs them."""
        yield lines.Layout(0, self._names, self._free)
        for resource, objects in self._objects.items():
            for each in objects:
                yield lines.SetObject(0, resource, lines.written(each))
        for node in self._nodes:
            yield lines.SetNode(0, lines.written(node))
        for name in self._resting:
            yield lines.Quarantine(0, name)
        for pod in self._pods:
            yield lines.SetPod(0, lines.written(pod))
        for pods in self._counted:
            for pod in pods:
                # The version that counts may be ours, with the node that it is assumed on.
                yield lines.Count(0, pod.uid, pod.uid in self._assumed, self._own(pod))
        yield from self._kept()
        yield lines.Begin(0)

    def _kept(self) -> Iterator[Line]:
        """Yield what nodes keep for pods without a node."""
        for node_name, pods in self._nominations:
            for pod in pods:
                yield lines.Nominate(0, pod.uid, node_name, self._own(pod))
        for preemption in self._preemptions:
            yield lines.Preempt(0, *preemption)
        if self._reservation is not None:
            yield lines.Reserve(0, self._reservation)

    def _own(self, pod: Pod) -> msgspec.Raw:
        return lines.NOTHING if id(pod) in self._shown else lines.written(pod)


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
    """Return a configuration for a trace: without the addresses of extenders, which a replay does not call."""
    without = {**document, "extenders": [{**each, "urlPrefix": NOWHERE} for each in document.get("extenders") or ()]}
    for extender in without["extenders"]:
        extender.pop("tlsConfig", None)
    return without
