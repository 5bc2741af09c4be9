"""Decides again about a group of pods of a trace: all members at once, in the state of the first outcome.

A decision that others interrupted between its steps is interrupted after the same steps.
"""

from collections.abc import Mapping, Sequence

from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.cycle.steps import Steps, in_one_go
from scheduler.engine.engine import Engine
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import SchedulerError
from scheduler.framework.queued import QueuedPod
from scheduler.groups.decision import GroupDecision, verdicts_of
from scheduler.replay.trace.lines import Decision, decision_of
from scheduler.runtime.framework import Framework

Verdict = tuple[CycleState, Placed | Unplaced | SchedulerError]


def decided_together(engine: Engine, framework: Framework, members: Sequence[QueuedPod]) -> dict[str, Verdict]:
    """Return what becomes of each member, by UID. Raises LookupError if the configuration has no groups."""
    return _verdicts(engine, framework, in_one_go(_steps(engine, framework, members)), members)


def _steps(engine: Engine, framework: Framework, members: Sequence[QueuedPod]) -> Steps[GroupDecision]:
    if engine.pod_groups is None:
        raise LookupError("it has groups of pods, and its feature gates and profiles have none")
    return engine.pod_groups.decide_in_steps(framework, members)


def _verdicts(
    engine: Engine, framework: Framework, decision: GroupDecision, members: Sequence[QueuedPod]
) -> dict[str, Verdict]:
    return {
        queued.pod.uid: (CycleState() if outcome is None else outcome.state, verdict)
        for part, pods in decision.by_group(members, engine.group_parts.groups.key_of)
        for queued, outcome, verdict in verdicts_of(part, pods)
    }


class ReplayedGroup:
    def __init__(self, engine: Engine, framework: Framework, start: int, members: Sequence[QueuedPod]) -> None:
        """`start` of the first search. Raises LookupError if the configuration has no groups."""
        self._engine = engine
        self.framework = framework
        self.start = start
        self._members = {queued.pod.uid: queued for queued in members}
        self._verdicts: dict[Framework, Mapping[str, Verdict]] = {}
        self._steps = _steps(engine, framework, tuple(self._members.values()))
        self._taken = 0
        self._decision: GroupDecision | None = None

    def queued(self, uid: str) -> QueuedPod:
        """Return a member. Raises LookupError."""
        return self._members[uid]

    def advance(self, count: int) -> None:
        """Take so many steps of the decision by the recorded plugins, those that were taken included."""
        self._begin()
        while self._taken < count and self._decision is None:
            self._taken += 1
            try:
                next(self._steps)
            except StopIteration as end:
                self._decision = end.value

    def end(self) -> None:
        """Take assumptions back if the decision has no end."""
        self._steps.close()

    def outcome(self, framework: Framework, uid: str) -> tuple[CycleState, Decision]:
        """Return the outcome of a member by these plugins: all are decided about when the first is asked for."""
        verdicts = self._verdicts.get(framework)
        if verdicts is None:
            members = tuple(self._members.values())
            if framework is self.framework:
                self._begin()
                decision = self._decision or in_one_go(self._steps)
            else:
                self._engine.algorithm.next_start = self.start
                decision = in_one_go(_steps(self._engine, framework, members))
            verdicts = self._verdicts[framework] = _verdicts(self._engine, framework, decision, members)
        state, verdict = verdicts[uid]
        return state, decision_of(state, verdict)

    def _begin(self) -> None:
        if not self._taken:
            self._engine.algorithm.next_start = self.start
