"""Makes the state of a trace again, change by change, and decides each attempt in the state in which it was decided.

    line of the trace ─┬─ what happened ─► cache, objects, nominations, plugins: as it was
                       └─ an attempt ────► decided anew ─► compared with what was recorded; what was recorded counts

The queue has no part in it: which pod is tried when, and what became of it, is in the trace. Plugins reserve, prepare
bindings and take back as they did; what they ask of the API server is answered as it was.
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.objects import Node
from scheduler.api.pod import Pod
from scheduler.api.unstructured import unstructured_hook
from scheduler.config.types import Config
from scheduler.cycle.engine import Engine, build_engine
from scheduler.cycle.observer import Call
from scheduler.cycle.writers import Writers
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import ApiError, ConfigError
from scheduler.framework.events import POD
from scheduler.framework.resources import struct_of
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.replay.no_writers import Silence
from scheduler.replay.replayed_calls import ReplayedCalls
from scheduler.replay.replayed_extenders import ReplayedAttempts
from scheduler.replay.trace import lines
from scheduler.replay.trace.extender_answers import WrittenAnswer
from scheduler.replay.trace.lines import Decision, Number, decision_of, encoded
from scheduler.replay.trace.trace_file import Line, Trace
from scheduler.replay.trace.trace_time import TraceClock, turns
from scheduler.runtime.framework import Framework
from scheduler.runtime.registry import Registry

PRE_BIND_SECONDS: Final = 86_400.0
"""Of the trace's time. Its end is in the trace."""

TICK: Final = 100
"""Milliseconds of the trace's time, after which timers of plugins are looked at."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt of the trace."""

    framework: Framework
    pod: Pod
    number: int
    start: int
    """Where the search began."""
    recorded: Decision
    written: bytes
    """The recorded decision as it stands in the trace."""
    has_extenders: bool = False
    """Whether extenders had a say in it: no other configuration can decide it without asking them."""


class Judge(Protocol):
    """Looks at each attempt, in the state in which it was decided."""

    def judge(self, attempt: Attempt, replayed: Decision, written: bytes) -> None:
        """`replayed`: what was decided now, by the recorded configuration; `written`: as it would stand in a trace."""

    def not_judged(self) -> None:
        """An attempt cannot be decided again: extenders were asked before the recording began."""


@dataclass(slots=True, eq=False)
class _Open:
    """A pod that was placed, and is not bound yet."""

    framework: Framework
    state: CycleState
    pod: Pod
    pre_binding: Any = None


class Player:
    """Plays one trace."""

    def __init__(
        self, trace: Trace, clock: TraceClock, config: Config, registry: Registry, silence: Silence | None = None
    ) -> None:
        """Raises ConfigError if a profile cannot be built. Needs a running event loop that goes by `clock`."""
        self.clock = clock
        self._trace = trace
        self._calls = ReplayedCalls(self.clock.wall)
        silence, metrics = silence or Silence(), Metrics()
        writers = Writers(silence, silence, silence, silence, self._calls, self._calls)
        self.tasks = Tasks(metrics)
        self.engine: Engine = build_engine(config, registry, writers, metrics, self.clock.now, self.tasks)
        self._jobs = self.tasks.jobs("replay", PRE_BIND_SECONDS)
        self._pods = Decoder[Pod](self.engine.pod_type).quick
        self._objects = {name: _decoder_of(name) for name in self.engine.watched}
        self._open: dict[str, _Open] = {}
        self._decided: _Open | None = None
        """What the last attempt came to, if it placed its pod."""
        self._extended = ReplayedAttempts(self.engine, self._jobs, metrics)
        self._ticked = 0
        self._steps: dict[str, Callable[[Line], None]] = {
            lines.LAYOUT: self._layout,
            lines.NODE: self._node,
            lines.OBJECT: self._object,
            lines.POD: self._pod,
            lines.COUNT: self._count,
            lines.REST: self._rest,
            lines.NO_REST: self._no_rest,
            lines.NOMINATE: self._nominate,
            lines.NO_NOMINATION: self._no_nomination,
            lines.NODE_GONE: self._node_gone,
            lines.OBJECT_GONE: self._object_gone,
            lines.POD_GONE: self._pod_gone,
            lines.UNCOUNT: self._uncount,
            lines.BEGIN: self._begin,
            lines.ASSUME: self._assume,
            lines.ASKING: self._asking,
            lines.GAVE_UP: self._gave_up,
        }
        self._awaited: dict[str, Callable[[Line], Awaitable[None]]] = {
            lines.PRE_BIND: self._pre_bind,
            lines.BOUND: self._bound,
            lines.UNDO: self._undo,
            lines.ANSWER: self._answer,
            lines.SEARCH: self._search,
            lines.EXTENDERS: self._extenders,
        }
        """Those that let tasks of plugins go on."""
        self.begun_at = 0.0
        """When the state at the start was whole, in seconds of time.perf_counter; 0 if it never was."""
        engine = self.engine
        engine.algorithm.next_start = trace.header.next_start

    async def play(self, judge: Judge) -> None:
        """Play all that the trace has. Raises ConfigError for a line that makes no sense."""
        trace = self._trace
        for kind, line in trace.lines():
            try:
                await self._play(kind, line, judge)
            except ConfigError:
                raise
            except Exception as error:  # a line may have anything in it
                detail = Unreadable(str(error) or type(error).__name__)
                place = f"{trace.path}: line {trace.number}"
                raise ConfigError([f"{place} cannot be replayed: {kind}: {detail}"]) from error

    async def _play(self, kind: str, line: Line, judge: Judge) -> None:
        self.clock.milliseconds = _number(line[1])
        if self.clock.milliseconds >= self._ticked + TICK:
            self._ticked = self.clock.milliseconds
            await turns()
        step = self._steps.get(kind)
        if step is not None:
            step(line)
        elif kind == lines.DECIDE:
            self._decide(line, judge)
        elif kind in self._awaited:
            await self._awaited[kind](line)
        elif kind == lines.DECIDED:
            self._end(line, judge)
        else:
            raise ValueError("a kind of line that this program does not know")

    # --- decisions ---

    def _decide(self, line: Line, judge: Judge) -> None:
        attempt = self._attempt_of(line)
        state, made = self.decide(attempt.framework, attempt)
        self._decided = None
        if attempt.recorded.node:
            self._decided = _Open(attempt.framework, state, attempt.pod)
        judge.judge(attempt, made, encoded(made))

    def _asking(self, line: Line) -> None:
        self._extended.begin(_text(line[2]), self._profile(_text(line[3])), _number(line[4]))

    async def _search(self, line: Line) -> None:
        uid, start = _text(line[2]), _number(line[3])
        attempt = self._extended.get(uid)
        if attempt is not None:
            await attempt.search(self._pods(line[4]) if len(line) > 4 else self.engine.pods[uid], start)

    async def _extenders(self, line: Line) -> None:
        attempt = self._extended.get(_text(line[2]))
        if attempt is not None:
            await attempt.hear(_extender_answer(line[3]))

    def _gave_up(self, line: Line) -> None:
        self._extended.take(_text(line[2]))

    def _end(self, line: Line, judge: Judge) -> None:
        uid, self._decided = _text(line[2]), None
        ended = self._extended.take(uid)
        if ended is None:
            judge.not_judged()
            return
        if isinstance(ended.outcome, Exception):
            state, made = CycleState(), decision_of(CycleState(), ended.outcome)
        else:
            state, made = ended.outcome.state, decision_of(ended.outcome.state, ended.outcome.decision)
        pod, recorded = ended.pod or self.engine.pods[uid], _decision(line[3])
        if recorded.node:
            self._decided = _Open(ended.framework, state, pod)
        attempt = Attempt(ended.framework, pod, ended.number, ended.start, recorded, bytes(line[3]), has_extenders=True)
        judge.judge(attempt, made, encoded(made))

    def _attempt_of(self, line: Line) -> Attempt:
        framework = self._profile(_text(line[3]))
        pod = self._pods(line[7]) if len(line) > 7 else self.engine.pods[_text(line[2])]
        return Attempt(framework, pod, _number(line[4]), _number(line[5]), _decision(line[6]), bytes(line[6]))

    def _profile(self, name: str) -> Framework:
        framework = self.engine.frameworks.get(name)
        if framework is None:
            raise LookupError(f"there is no profile {name!r} in the configuration")
        return framework

    def decide(self, framework: Framework, attempt: Attempt) -> tuple[CycleState, Decision]:
        """Decide an attempt now, by a profile of this engine."""
        algorithm, state = self.engine.algorithm, CycleState()
        algorithm.next_start = attempt.start
        try:
            decision: Any = algorithm.schedule(framework, state, attempt.pod, attempt.number)
        except Exception as error:  # noqa: BLE001  whatever a plugin raises is what the attempt came to
            decision = error
        return state, decision_of(state, decision)

    def _assume(self, line: Line) -> None:
        uid, node_name = _text(line[2]), _text(line[3])
        decided, self._decided = self._decided, None
        known = decided.pod if decided is not None and decided.pod.uid == uid else self.engine.pods[uid]
        pod = known.bound_to(node_name)
        self.engine.cache.assume(pod)
        if decided is None or decided.pod.uid != uid:
            return
        decided.pod = pod
        self._open[uid] = decided
        with suppress(Exception):  # a refusal or a fault: what it led to is in the trace
            refusal = decided.framework.run_reserve(decided.state, pod, node_name)
            if refusal is None:
                holds, _ = decided.framework.run_permit(decided.state, pod, node_name)
                if holds:
                    decided.framework.handle.waiting_pods.add(pod, holds)

    async def _pre_bind(self, line: Line) -> None:
        opened = self._open.get(_text(line[2]))
        if opened is not None:
            opened.framework.handle.waiting_pods.remove(opened.pod.uid)
            opened.pre_binding = self._jobs.start(f"prepare {opened.pod}", _prepared(opened))
            await turns()  # as far as it came then, before anything else happened

    async def _bound(self, line: Line) -> None:
        opened = self._open.pop(_text(line[2]), None)
        if opened is not None:
            opened.framework.handle.waiting_pods.remove(opened.pod.uid)
            if opened.framework.plugins.at["post_bind"]:
                self._jobs.start(f"after {opened.pod}", _told(opened))
                await turns()

    async def _undo(self, line: Line) -> None:
        opened = self._open.pop(_text(line[2]), None)
        if opened is None:
            return
        opened.framework.handle.waiting_pods.remove(opened.pod.uid)
        if opened.pre_binding is not None:
            await turns()
            if not opened.pre_binding.done():
                self._jobs.cancel(opened.pre_binding)
                await turns()
        opened.framework.run_unreserve(opened.state, opened.pod, opened.pod.node_name)

    async def _answer(self, line: Line) -> None:
        call = _call(line[2])
        status: int | None = _status(line[3])
        answer: Any
        if status is not None:
            answer = ApiError(status, _text(line[4]))
        elif call.verb in ("read", "post"):
            answer = _bytes(line[4])
        elif call.verb == "delete":
            answer = None
        elif call.resource == POD:
            answer = self._pods(line[4])
        else:
            answer = _decoder_of(call.resource)(line[4])
        await turns()
        self._calls.answer(call, answer)
        await turns()

    # --- the state ---

    def _layout(self, line: Line) -> None:
        names, free = _texts(line[2]), _numbers(line[3])
        if sorted(free) != [row for row, name in enumerate(names) if not name]:
            raise ValueError("rows that are free have names")
        if len(set(filter(None, names))) != len(names) - len(free):
            raise ValueError("a node has two rows")
        self.engine.cache.table.lay_out(names, free)

    def _begin(self, line: Line) -> None:
        self.begun_at = time.perf_counter()

    def _node(self, line: Line) -> None:
        self.engine.cache.set_node(_node(line[2]))

    def _node_gone(self, line: Line) -> None:
        self.engine.cache.remove_node(_text(line[2]))

    def _rest(self, line: Line) -> None:
        self.engine.cache.rest(_text(line[2]))

    def _no_rest(self, line: Line) -> None:
        self.engine.cache.end_rest(_text(line[2]))

    def _object(self, line: Line) -> None:
        resource = _text(line[2])
        decoder = self._objects.get(resource)
        if decoder is not None:
            self.engine.objects.set(resource, decoder(line[3]))

    def _object_gone(self, line: Line) -> None:
        resource = _text(line[2])
        if resource in self._objects:
            self.engine.objects.remove(resource, _text(line[3]))

    def _pod(self, line: Line) -> None:
        self._show(self._pods(line[2]))

    def _show(self, pod: Pod) -> None:
        """Let plugins see a version of a pod."""
        pods = self.engine.pods
        known = pods.get(pod.uid)
        if known is not None:
            pod.derive_like(known)
        pods[pod.uid] = pod

    def _pod_gone(self, line: Line) -> None:
        self.engine.pods.pop(_text(line[2]), None)

    def _count(self, line: Line) -> None:
        _, pod = self._counted(line)
        if bytes(line[3]) == b"true":
            self.engine.cache.assume(pod)
        else:
            self.engine.cache.confirm(pod)

    def _counted(self, line: Line) -> tuple[str, Pod]:
        uid = self._uid(line)
        return uid, self._pods(line[4]) if len(line) > 4 else self.engine.pods[uid]

    def _uid(self, line: Line) -> str:
        return _text(line[2])

    def _uncount(self, line: Line) -> None:
        self.engine.cache.remove(_text(line[2]))

    def _nominate(self, line: Line) -> None:
        uid = _text(line[2])
        pod = self._pods(line[4]) if len(line) > 4 else self.engine.pods[uid]
        self.engine.nominator.add(pod, _text(line[3]))

    def _no_nomination(self, line: Line) -> None:
        self.engine.nominator.delete(_text(line[2]))


async def _prepared(opened: _Open) -> None:
    with suppress(Exception):  # how it ended is in the trace
        framework, node_name = opened.framework, opened.pod.node_name
        framework.run_pre_bind_pre_flight(opened.state, opened.pod, node_name)
        await framework.run_pre_bind(opened.state, opened.pod, node_name)


async def _told(opened: _Open) -> None:
    await opened.framework.run_post_bind(opened.state, opened.pod, opened.pod.node_name)


def _decoder_of(resource: str) -> Callable[[msgspec.Raw], Any]:
    return Decoder[Any](struct_of(resource), unstructured_hook).quick


_text = Decoder[str](str).quick
_texts = Decoder[list[str]](list[str]).quick
_number = Decoder[int](Number).quick
_numbers = Decoder[list[int]](list[int]).quick
_status = Decoder[int | None](int | None).quick
_bytes = Decoder[bytes](bytes).quick
_node = Decoder[Node](Node).quick
_call = Decoder[Call](Call).quick
_extender_answer = Decoder[WrittenAnswer](WrittenAnswer).quick
_decision = Decoder[Decision](Decision).quick
