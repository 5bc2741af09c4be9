"""A group of pods of a trace, that is decided about again: all members at once, in the state of the first outcome."""

from collections.abc import Mapping, Sequence

from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.cycle.engine import Engine
from scheduler.cycle.pod_groups.cycle import verdict_of
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import SchedulerError
from scheduler.framework.queued import QueuedPod
from scheduler.replay.trace.lines import Decision, decision_of
from scheduler.runtime.framework import Framework

Verdict = tuple[CycleState, Placed | Unplaced | SchedulerError]


def decided_together(engine: Engine, framework: Framework, members: Sequence[QueuedPod]) -> dict[str, Verdict]:
    """Return what becomes of each member, by UID. Raises LookupError if the configuration has no groups."""
    if engine.pod_groups is None:
        raise LookupError("it has groups of pods, and its feature gates and profiles have none")
    decision = engine.pod_groups.decide(framework, members)
    outcomes = {each.queued.pod.uid: each for each in decision.members}
    found = {}
    for queued in members:
        outcome = outcomes.get(queued.pod.uid)
        state = CycleState() if outcome is None else outcome.state
        found[queued.pod.uid] = state, verdict_of(decision, outcome)
    return found


class ReplayedGroup:
    """One decision about a group."""

    def __init__(self, engine: Engine, framework: Framework, start: int, members: Sequence[QueuedPod]) -> None:
        """`start` of the first search."""
        self._engine = engine
        self.framework = framework
        self.start = start
        self._members = {queued.pod.uid: queued for queued in members}
        self._verdicts: dict[Framework, Mapping[str, Verdict]] = {}

    def queued(self, uid: str) -> QueuedPod:
        """Return a member. Raises LookupError."""
        return self._members[uid]

    def outcome(self, framework: Framework, uid: str) -> tuple[CycleState, Decision]:
        """Return the outcome of a member by these plugins: all are decided about when the first is asked for."""
        verdicts = self._verdicts.get(framework)
        if verdicts is None:
            self._engine.algorithm.next_start = self.start
            members = tuple(self._members.values())
            verdicts = self._verdicts[framework] = decided_together(self._engine, framework, members)
        state, verdict = verdicts[uid]
        return state, decision_of(state, verdict)
