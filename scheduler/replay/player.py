"""Rebuilds the state of a trace, change by change, and decides each attempt in the state in which it was decided.

    line of the trace ─┬─ a change ───► applied to cache, objects, nominations and plugins
                       └─ an attempt ─► decided again, then compared; the recorded decision counts for what follows

The queue is not used: the trace says which pod was tried when. Plugins run Reserve, PreBind and Unreserve where they
did in the trace, and their calls to the API server get the recorded answers.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.api.unstructured import unstructured_hook
from scheduler.config.types import Config
from scheduler.cycle.binding import BindingCycle
from scheduler.cycle.writers import NoWriters, Writers
from scheduler.engine.engine import Engine, build_engine
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import ApiError, ConfigError
from scheduler.framework.handle import Evictor
from scheduler.framework.nodes.resources import struct_of
from scheduler.framework.queued import QueuedPod
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.replay.replayed_calls import ReplayedCalls
from scheduler.replay.replayed_extenders import ReplayedAttempt
from scheduler.replay.replayed_groups import ReplayedGroup
from scheduler.replay.trace import lines
from scheduler.replay.trace.lines import Decision, Line, decision_of, kind_of
from scheduler.replay.trace.trace_file import Trace
from scheduler.replay.trace.trace_time import TraceClock, turns
from scheduler.runtime.framework import Framework
from scheduler.runtime.registry import Registry

PRE_BIND_SECONDS: Final = 86_400.0
"""Of the trace's time: no limit, as the trace has the end of PreBind."""

TICK: Final = 100
"""Milliseconds of the trace's time between two checks of plugins' timers."""

Compare = Callable[["Attempt", Decision], None]
"""Takes an attempt and what the recorded configuration decides now, in the state in which it was decided."""


@dataclass(frozen=True, slots=True)
class Attempt:
    framework: Framework
    pod: Pod
    number: int
    start: int
    """The start of the search."""
    recorded: Decision
    group: ReplayedGroup | None = None
    """The group with which the pod was decided about."""
    has_extenders: bool = False
    """Whether extenders took part in it: no other configuration can decide it without calling them."""


class Player:
    def __init__(
        self, trace: Trace, clock: TraceClock, config: Config, registry: Registry, evictor: Evictor | None = None
    ) -> None:
        """Raises ConfigError if a profile cannot be built. Needs a running event loop that goes by `clock`."""
        self.clock = clock
        self._trace = trace
        self._calls = ReplayedCalls(self.clock.wall)
        nothing, self._metrics = NoWriters(), Metrics()
        writers = Writers(nothing, nothing, nothing, evictor or nothing, self._calls, self._calls)
        self.tasks = Tasks(self._metrics)
        config = config.without_resizes()
        self.engine: Engine = build_engine(config, registry, writers, self._metrics, self.clock.now, self.tasks)
        self._jobs = self.tasks.jobs("replay", PRE_BIND_SECONDS)
        self._pod_from = Decoder[Pod](Pod).quick
        self._objects = {name: _decoder_of(name) for name in self.engine.watched}
        self._group: ReplayedGroup | None = None
        """The last group that was decided about."""
        self._placed: BindingCycle | None = None
        """The pod of the last attempt, if that placed it, to be assumed."""
        self._bindings: dict[str, BindingCycle] = {}
        """UID → pods that are assumed, and not bound yet."""
        self._preparations: dict[str, asyncio.Task[None]] = {}
        """UID → PreBind of some of these."""
        self._attempts_with_extenders: dict[str, ReplayedAttempt] = {}
        """UID → attempts with extenders that began during the recording."""
        self._ticked = 0
        self.begun_at = 0.0
        """When the state at the start was whole, in seconds of time.perf_counter; 0 if it never was."""
        self.not_decided = 0
        """Attempts that cannot be decided again: their extenders were called before the recording began."""
        self.engine.algorithm.next_start = trace.header.next_start

    async def play(self, compare: Compare) -> None:
        """Play all that the trace has. Raises ConfigError for a line that makes no sense."""
        trace = self._trace
        for line in trace.lines():
            try:
                self.clock.milliseconds = line.milliseconds
                if self.clock.milliseconds >= self._ticked + TICK:
                    self._ticked = self.clock.milliseconds
                    await turns()
                await self._play(line, compare)
            except ConfigError:
                raise
            except Exception as error:  # a line may have anything in it
                detail = Unreadable(str(error) or type(error).__name__)
                place = f"{trace.path}: line {trace.number}"
                raise ConfigError([f"{place} cannot be replayed: {kind_of(line)}: {detail}"]) from error

    async def _play(self, line: Line, compare: Compare) -> None:  # noqa: C901  a case for each kind of line
        engine, cache = self.engine, self.engine.cache
        match line:
            case lines.SetPod():
                self._set_pod(self._pod_from(line.pod))
            case lines.Count():
                pod = self._pod_of(line)
                if line.is_assumed:
                    cache.assume(pod)
                else:
                    cache.confirm(pod)
            case lines.Decide():
                self._decide(line, compare)
            case lines.DecideGroup():
                if self._group is not None:
                    self._group.end()
                members = self._members(line)
                for member in members:
                    engine.core.preemptions.end_stale(member.pod.uid)
                self._group = ReplayedGroup(engine, self._profile(line.profile), line.start, members)
            case lines.GroupSteps():
                if self._group is not None:
                    self._group.advance(line.count)
            case lines.DecideMember():
                self._decide_member(line, compare)
            case lines.Assume():
                self._assume(line)
            case lines.Bound():
                await self._bound(line.uid)
            case lines.PreBind():
                await self._pre_bind(line.uid)
            case lines.Undo():
                await self._undo(line.uid)
            case lines.Uncount():
                cache.remove(line.uid)
            case lines.RemovePod():
                gone = engine.pods.pop(line.uid, None)
                if gone is not None:
                    engine.group_parts.groups.members_by_group.remove(gone)
                engine.core.preemptions.gone(line.uid)
            case lines.SetNode():
                cache.set_node(_node(line.node))
            case lines.RemoveNode():
                cache.remove_node(line.name)
            case lines.Quarantine():
                cache.rest(line.name)
            case lines.EndQuarantine():
                cache.end_rest(line.name)
            case lines.SetObject():
                decoder = self._objects.get(line.resource)
                if decoder is not None:
                    engine.objects.set(line.resource, decoder(line.content))
            case lines.RemoveObject():
                if line.resource in self._objects:
                    engine.objects.remove(line.resource, line.uid)
            case lines.Nominate():
                engine.nominator.add(self._pod_of(line), line.node_name)
            case lines.EndNomination():
                engine.nominator.delete(line.uid)
            case lines.Preempt():
                pods, victims = ([engine.pods[uid] for uid in uids] for uids in (line.pods, line.victims))
                key = engine.group_parts.groups.key_of(pods[0])
                engine.core.preemptions.begin(key or pods[0].uid, pods, victims, keeps=True)
            case lines.Reserve():
                engine.group_parts.reserved.reserve(line.reservation)
            case lines.EndReservation():
                engine.group_parts.reserved.reserve(None)
            case lines.Answer():
                await self._answer(line)
            case lines.AskExtenders():
                self._end_attempt(line.uid)
                framework = self._profile(line.profile)
                attempt = ReplayedAttempt(engine, framework, line.attempt, self._metrics, self._jobs)
                self._attempts_with_extenders[line.uid] = attempt
            case lines.Search():
                if (open_attempt := self._attempts_with_extenders.get(line.uid)) is not None:
                    await open_attempt.search(self._pod_of(line), line.start)
            case lines.ExtenderAnswer():
                if (open_attempt := self._attempts_with_extenders.get(line.uid)) is not None:
                    await open_attempt.answer(line.answer)
            case lines.Decided():
                self._decided_with_extenders(line, compare)
            case lines.GiveUp():
                self._end_attempt(line.uid)
            case lines.Layout():
                self._lay_out(line)
            case lines.Begin():
                self.begun_at = time.perf_counter()
            case lines.End() | lines.Sum():
                raise ValueError("lines follow it, or its end is missing")

    # --- decisions ---

    def _decide(self, line: lines.Decide, compare: Compare) -> None:
        attempt = self._attempt(line)
        self.engine.core.preemptions.end_stale(attempt.pod.uid)
        state, made = self.decide(attempt.framework, attempt)
        self._note_placement(attempt, state)
        compare(attempt, made)

    def _members(self, line: lines.DecideGroup) -> list[QueuedPod]:
        return [QueuedPod(self._member(line, uid), 0.0, number) for uid, number in line.members]

    def _member(self, line: lines.DecideGroup, uid: str) -> Pod:
        own = line.own.get(uid)
        return self._pod_from(own) if own else self.engine.pods[uid]

    def _decide_member(self, line: lines.DecideMember, compare: Compare) -> None:
        group = self._group
        if group is None:
            raise LookupError("no group is decided about")
        queued = group.queued(line.uid)
        framework = group.framework
        attempt = Attempt(framework, queued.pod, queued.attempts, group.start, line.decision, group)
        state, made = group.outcome(framework, line.uid)
        self._note_placement(attempt, state)
        compare(attempt, made)

    def _decided_with_extenders(self, line: lines.Decided, compare: Compare) -> None:
        self._placed = None
        ended = self._end_attempt(line.uid)
        if ended is None:
            self.not_decided += 1
            return
        if isinstance(ended.outcome, Exception):
            state, made = CycleState(), decision_of(CycleState(), ended.outcome)
        else:
            state, made = ended.outcome.state, decision_of(ended.outcome.state, ended.outcome.decision)
        pod = ended.pod or self.engine.pods[line.uid]
        attempt = Attempt(ended.framework, pod, ended.number, ended.start, line.decision, has_extenders=True)
        self._note_placement(attempt, state)
        compare(attempt, made)

    def _note_placement(self, attempt: Attempt, state: CycleState) -> None:
        node = attempt.recorded.node
        self._placed = BindingCycle(attempt.framework, state, attempt.pod, node) if node else None

    def _end_attempt(self, uid: str) -> ReplayedAttempt | None:
        attempt = self._attempts_with_extenders.pop(uid, None)
        if attempt is not None:
            attempt.end()
        return attempt

    def _attempt(self, line: lines.Decide) -> Attempt:
        return Attempt(self._profile(line.profile), self._pod_of(line), line.attempt, line.start, line.decision)

    def _profile(self, name: str) -> Framework:
        framework = self.engine.frameworks.get(name)
        if framework is None:
            raise LookupError(f"there is no profile {name!r} in the configuration")
        return framework

    def decide(self, framework: Framework, attempt: Attempt) -> tuple[CycleState, Decision]:
        """Decide an attempt now, by a profile of this engine."""
        if attempt.group is not None:
            return attempt.group.outcome(framework, attempt.pod.uid)
        algorithm, state = self.engine.algorithm, CycleState()
        algorithm.next_start = attempt.start
        try:
            decision: Any = algorithm.schedule(framework, state, attempt.pod, attempt.number)
        except Exception as error:  # noqa: BLE001  an exception of a plugin is the outcome of the attempt
            decision = error
        return state, decision_of(state, decision)

    def _assume(self, line: lines.Assume) -> None:
        placed, self._placed = self._placed, None
        if placed is None or placed.pod.uid != line.uid:
            self.engine.cache.assume(self.engine.pods[line.uid].bound_to(line.node_name))
            return
        placed.pod = placed.framework.bound(placed.state, placed.pod, line.node_name)
        placed.node_name = line.node_name
        self.engine.cache.assume(placed.pod)
        self._bindings[line.uid] = placed
        with suppress(Exception):  # a refusal or a fault: its consequences are in the trace
            placed.reserve()

    async def _pre_bind(self, uid: str) -> None:
        binding = self._bindings.get(uid)
        if binding is not None:
            binding.end_hold()
            self._preparations[uid] = self._jobs.start(f"prepare {binding.pod}", _prepare(binding))
            await turns()  # to where it was then, before anything else happened

    async def _bound(self, uid: str) -> None:
        binding = self._end_binding(uid)
        if binding is not None and binding.framework.plugins.at["post_bind"]:
            self._jobs.start(f"after {binding.pod}", _post_bind(binding))
            await turns()

    async def _undo(self, uid: str) -> None:
        preparation = self._preparations.get(uid)
        binding = self._end_binding(uid)
        if preparation is not None:
            await turns()
            if not preparation.done():
                self._jobs.cancel(preparation)
                await turns()
        if binding is not None:
            binding.unreserve()

    def _end_binding(self, uid: str) -> BindingCycle | None:
        self._preparations.pop(uid, None)
        binding = self._bindings.pop(uid, None)
        if binding is not None:
            binding.end_hold()
        return binding

    async def _answer(self, line: lines.Answer) -> None:
        call = line.call
        answer: Any
        if line.status is not None:
            answer = ApiError(line.status, _text(line.content))
        elif call.verb in ("read", "post"):
            answer = _bytes(line.content)
        elif call.verb == "delete":
            answer = None
        else:
            answer = _decoder_of(call.resource)(line.content)
        await turns()
        self._calls.answer(call, answer)
        await turns()

    # --- the state ---

    def _lay_out(self, line: lines.Layout) -> None:
        names, free = line.names, line.free
        if sorted(free) != [row for row, name in enumerate(names) if not name]:
            raise ValueError("rows that are free have names")
        if len(set(filter(None, names))) != len(names) - len(free):
            raise ValueError("a node has two rows")
        self.engine.cache.table.lay_out(names, free)

    def _pod_of(self, line: lines.Count | lines.Nominate | lines.Decide | lines.Search) -> Pod:
        """The pod in the line, or the version that the watch has shown."""
        return self._pod_from(line.pod) if line.pod else self.engine.pods[line.uid]

    def _set_pod(self, pod: Pod) -> None:
        pods = self.engine.pods
        known = pods.get(pod.uid)
        if known is not None:
            pod.derive_like(known)
        pods[pod.uid] = pod
        groups = self.engine.group_parts
        if groups.are_on and not pod.node_name and pod.spec.scheduler_name in self.engine.frameworks:
            groups.pod_waits(pod)


async def _prepare(binding: BindingCycle) -> None:
    with suppress(Exception):  # how it ended is in the trace
        binding.framework.run_pre_bind_pre_flight(binding.state, binding.pod, binding.node_name)
        await binding.prepare()


async def _post_bind(binding: BindingCycle) -> None:
    await binding.framework.run_post_bind(binding.state, binding.pod, binding.node_name)


def _decoder_of(resource: str) -> Callable[[msgspec.Raw], Any]:
    return Decoder[Any](struct_of(resource), unstructured_hook).quick


_text = Decoder[str](str).quick
_bytes = Decoder[bytes](bytes).quick
_node = Decoder[Node](Node).quick
