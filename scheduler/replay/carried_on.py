"""What a configuration would have made of a trace, left to itself: its own placements count for the next decision.

    pods, nodes and objects come and go as in the trace
        an attempt of the trace ─┬─ placed ─► counts on the node that was chosen now, whatever was recorded
                                 └─ not ────► WAITING ─► tried again after something has gone or changed, and at the end

Victims of preemption go at once. What happened only because of what was decided then, as the deletion of a pod that
was preempted, or what a claim was bound to, happens here, too: the longer the trace, the rougher the answer.
"""

from typing import Final

from scheduler.api.pod import Pod
from scheduler.config.types import Config
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.framework.cycle_state import CycleState
from scheduler.process.progress import SILENT, Progress
from scheduler.replay.no_writers import Silence
from scheduler.replay.player import Compare, Player
from scheduler.replay.trace import lines
from scheduler.replay.trace.lines import Line
from scheduler.replay.trace.trace_file import Trace
from scheduler.replay.trace.trace_time import TraceClock, turns
from scheduler.runtime.framework import Framework
from scheduler.runtime.registry import Registry

TRIES: Final = 2
"""Of one attempt: the second after preemption has made room."""

RETRY_MILLISECONDS: Final = 1_000
"""Of the trace's time, between two tries of the pods that wait: the shortest backoff, and what keeps a trace in which
many wait from taking for ever."""


class _Evictions(Silence):
    """Whoever is evicted is gone at once."""

    player: "CarriedOn"

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        return self.player.evict(victim)


class CarriedOn(Player):
    """Plays a trace for a configuration that decides for itself. If it has one profile, that takes all pods."""

    def __init__(
        self, trace: Trace, clock: TraceClock, config: Config, registry: Registry, progress: Progress = SILENT
    ) -> None:
        """Raises ConfigError as Player does."""
        evictions = _Evictions()
        super().__init__(trace, clock, config, registry, evictions)
        evictions.player = self
        self._progress = progress
        self._waiting: dict[str, tuple[Framework, Pod]] = {}
        """UID → pods that found no node."""
        self._own: dict[str, str] = {}
        """UID → the node of the pods that were placed here."""
        self._numbers: dict[str, int] = {}
        """UID → how often it was tried here."""
        self._has_changed = False
        """Whether something has gone or changed since the waiting pods were tried."""
        self._retried_at = 0
        """When that was, in milliseconds of the trace's time."""
        self._due: list[str] = []
        self._evicted: set[str] = set()

    async def carry_on(self) -> None:
        """Play all, and try those that wait once more."""
        await self.play(lambda _attempt, _replayed: None)
        await self._try_waiting()

    def evict(self, victim: Pod) -> bool:
        """Let a pod go; False if it is gone already."""
        existed = self.engine.pods.pop(victim.uid, None) is not None
        self._forget(victim.uid)
        self._evicted.add(victim.uid)
        return existed

    @property
    def evicted(self) -> int:
        """How many pods had to make room."""
        return len(self._evicted)

    async def _play(self, line: Line, compare: Compare) -> None:
        match line:
            case lines.Decide():
                self._decide_later(line)
            case lines.Count() if line.uid in self._own:
                self.engine.cache.confirm(self._pod_of(line).bound_to(self._own[line.uid]))
            case lines.Count() if line.uid in self._waiting or line.uid in self._evicted:
                pass
            case lines.Count() | lines.SetNode():
                await super()._play(line, compare)
                self._has_changed = True
            case lines.Nominate() if self.begun_at:
                pass
            case (
                lines.Uncount() | lines.EndNomination() | lines.AskExtenders() | lines.Decided() | lines.Assume()
                | lines.PreBind() | lines.Bound() | lines.Undo() | lines.Answer()
            ):  # fmt: skip
                pass  # what was decided then
            case lines.RemovePod():
                await super()._play(line, compare)
                self._forget(line.uid)
            case _:
                await super()._play(line, compare)
        for uid in self._due:
            await self._try(uid)
        if self._due and self._has_changed and self.clock.milliseconds >= self._retried_at + RETRY_MILLISECONDS:
            await self._try_waiting()
        self._due.clear()

    async def _try_waiting(self) -> None:
        self._has_changed, self._retried_at = False, self.clock.milliseconds
        for uid in tuple(self._waiting):
            await self._try(uid)

    async def _try(self, uid: str) -> None:
        for _ in range(TRIES):
            found = self._waiting.get(uid)
            if found is None or not self._try_once(*found):
                return
            await turns()  # the victims go

    def _try_once(self, framework: Framework, pod: Pod) -> bool:
        """Try a pod; whether room was made for it."""
        engine, state = self.engine, CycleState()
        number = self._numbers[pod.uid] = self._numbers.get(pod.uid, 0) + 1
        try:
            decision: Placed | Unplaced = engine.algorithm.schedule(framework, state, pod, number)
        except Exception:  # noqa: BLE001  a plugin's fault: the pod waits
            return False
        if isinstance(decision, Unplaced):
            engine.nominator.add(pod, decision.nominated_node_name)
            return bool(decision.nominated_node_name)
        placed = pod.bound_to(decision.node_name)
        engine.cache.assume(placed)
        engine.nominator.delete(pod.uid)
        if self._reserved(framework, state, placed):
            self._own[pod.uid] = decision.node_name
            del self._waiting[pod.uid]
        else:
            engine.cache.forget(placed)
        return False

    def _reserved(self, framework: Framework, state: CycleState, pod: Pod) -> bool:
        try:
            if framework.run_reserve(state, pod, pod.node_name) is None:
                return True
        except Exception:  # noqa: BLE001  as above
            pass
        framework.run_unreserve(state, pod, pod.node_name)
        return False

    def _forget(self, uid: str) -> None:
        self._waiting.pop(uid, None)
        self._own.pop(uid, None)
        self.engine.nominator.delete(uid)
        self.engine.cache.remove(uid)
        self._has_changed = True

    # --- what the trace says ---

    def _decide_later(self, line: lines.Decide) -> None:
        self._progress.done += 1
        uid = line.uid
        if uid not in self._evicted and self.engine.cache.get(uid) is None:
            attempt = self._attempt(line)
            self._numbers[uid] = attempt.number - 1
            self._waiting[uid] = attempt.framework, attempt.pod
            self._due.append(uid)

    def _profile(self, name: str) -> Framework:
        frameworks = self.engine.frameworks
        if name not in frameworks and len(frameworks) == 1:
            return next(iter(frameworks.values()))
        return super()._profile(name)

    def _set_pod(self, pod: Pod) -> None:
        """Show plugins a pod where it is here, not where it was then."""
        uid = pod.uid
        if uid in self._own:
            super()._set_pod(pod.bound_to(self._own[uid]))
        elif uid not in self._evicted and not (uid in self._waiting and pod.node_name):
            super()._set_pod(pod)
