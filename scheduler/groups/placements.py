"""Tries a group of pods in each of several placements, and chooses the best in which it fits.

    plugins: which placements? ─► a what-if for each ─┬─ none fits ─► refused
                                                     ├─ one ───────► that one
                                                     └─ several ───► plugins: which is best? equals: by a hash

Rule: podGroupSchedulingPlacementAlgorithm in pkg/scheduler/schedule_one_podgroup.go at v1.37.2.
"""

import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
from msgspec.structs import replace

from scheduler.cycle.algorithm import Algorithm
from scheduler.cycle.failure import as_scheduler_error
from scheduler.cycle.steps import Steps
from scheduler.framework.columns import BoolColumn
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.placements import Placement, PodGroupAssignments, ProposedAssignment
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Code, Status, unschedulable
from scheduler.groups.decision import NONE_PLACED, UNSCHEDULABLE_GROUP, GroupDecision
from scheduler.process.metrics import PlacementMetrics
from scheduler.runtime.framework import Framework


class WhatIf(Protocol):
    def __call__(self, placement: BoolColumn | None, *, leaves: bool = False) -> Steps[GroupDecision]:
        """Decide among the rows of a placement, or all nodes; `leaves`: as in what_if.py."""


Choice: TypeAlias = Callable[[Framework, Sequence[QueuedPod], WhatIf], Steps[GroupDecision]]
"""The decision about a group by what-ifs."""


def decide_on_all_nodes(framework: Framework, members: Sequence[QueuedPod], what_if: WhatIf) -> Steps[GroupDecision]:
    """Decide about a group where plugins are not asked for placements."""
    return what_if(None, leaves=True)


def decide_among_placements(
    algorithm: Algorithm,
    metrics: PlacementMetrics,
    framework: Framework,
    members: Sequence[QueuedPod],
    what_if: WhatIf,
) -> Steps[GroupDecision]:
    """Decide about a group. Raises nothing that a plugin raises."""
    table, pod, state = algorithm.table, members[0].pod, CycleState()
    state.record_plugin_metrics = True
    try:
        placements = framework.placing.generate(state, pod, Placement("", np.flatnonzero(table.in_use)))
    except BaseException as error:  # noqa: BLE001 - only this group is affected; nothing is awaited
        return failed(framework, members, error)
    if isinstance(placements, Status):
        return GroupDecision(status=placements)
    metrics.generated.labels(framework.name).inc(len(placements))
    fitting: list[tuple[Placement, GroupDecision]] = []
    first: GroupDecision | None = None
    for placement in placements:
        began = time.perf_counter()
        mask = _mask(placement, table.size, table.count)
        result = replace((yield from what_if(mask)), placement=placement.name)
        if result.code is Code.ERROR:
            return result
        first = first or result
        is_feasible = result.status is None or result.status is NONE_PLACED
        metrics.note(framework.name, time.perf_counter() - began, is_feasible=is_feasible)
        if is_feasible:
            fitting.append((placement, result))
    if not fitting:
        assert first is not None, "there is one placement at least"
        assert first.status is not None, "it did not fit"
        text = none_fits(len(placements), first.status.reasons[0])
        return replace(first, status=unschedulable(UNSCHEDULABLE_GROUP, text), placement="")
    if len(fitting) == 1:
        return fitting[0][1]
    candidates = [PodGroupAssignments(placement, _proposed(result)) for placement, result in fitting]
    try:
        totals = framework.placing.score(state, pod, candidates).total
    except BaseException as error:  # noqa: BLE001 - the same
        return failed(framework, members, error)
    best = np.flatnonzero(totals == totals.max())
    return fitting[algorithm.select(best, pod, members[0].attempts)][1]


def none_fits(placements: int, first: str) -> str:
    """Return what is said of a group that fits in none of so many placements; `first`: the refusal in the first one."""
    return f"0/{placements} placements are available, first placement status: {first}"


def failed(framework: Framework, members: Sequence[QueuedPod], error: BaseException) -> GroupDecision:
    """Report what a plugin raised; return the decision about the group that this costs an attempt."""
    framework.faults.report(error, members[0].pod)
    return GroupDecision(status=Status(Code.ERROR, (str(as_scheduler_error(error)),)))


def _mask(placement: Placement, size: int, count: int) -> BoolColumn | None:
    """Return the rows of a placement as a column; None if it has all nodes."""
    if len(placement.rows) == count:
        return None
    mask = np.zeros(size, np.bool_)
    mask[placement.rows] = True
    return mask


def _proposed(decision: GroupDecision) -> list[ProposedAssignment]:
    return [ProposedAssignment(each.queued.pod, each.node_name) for each in decision.members if each.node_name]
