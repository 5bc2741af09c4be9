"""Tries a group of pods in each of several placements, and chooses the best in which it fits.

    plugins: which placements? ─► a what-if for each ─┬─ none fits ─► refused
                                                     ├─ one ───────► that one
                                                     └─ several ───► those with nominated nodes, as for a single pod;
                                                                     plugins: which is best? equals: by a hash

Rule: podGroupSchedulingPlacementAlgorithm in pkg/scheduler/schedule_one_podgroup.go at v1.37.2.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np
from msgspec import structs

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Algorithm
from scheduler.cycle.failure import as_scheduler_error
from scheduler.cycle.steps import Steps
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.groups.placements import Placement, PodGroupAssignments, ProposedAssignment
from scheduler.framework.status import Code, Status, unschedulable
from scheduler.groups.decision import NONE_PLACED, UNSCHEDULABLE_GROUP, GroupDecision
from scheduler.groups.what_if import Search
from scheduler.process.metrics import PlacementMetrics
from scheduler.runtime.framework import Framework
from scheduler.state.nodes.node_table import NodeTable


class WhatIf(Protocol):
    def __call__(self, placement: Placement | None, *, leaves: bool = False) -> Steps[GroupDecision]:
        """Decide among the nodes of a placement, or all; `leaves`: as in what_if.py."""


class Choice(Protocol):
    def __call__(self, search: Search, what_if: WhatIf, within: Placement | None = None) -> Steps[GroupDecision]:
        """Decide about a group by what-ifs, `within` the placement of the one that it is part of."""


def decide_on_all_nodes(search: Search, what_if: WhatIf, within: Placement | None = None) -> Steps[GroupDecision]:
    """Decide about a group where plugins are not asked for placements."""
    return what_if(within, leaves=within is None)


def decide_among_placements(
    algorithm: Algorithm,
    metrics: PlacementMetrics,
    search: Search,
    what_if: WhatIf,
    within: Placement | None = None,
) -> Steps[GroupDecision]:
    """Decide about a group, `within` the placement of the one that it is part of. Raises nothing that a plugin raises.

    Placements of groups of groups are not counted.
    """
    framework, tree, table, pod = search.framework, search.tree, algorithm.table, search.first.pod
    state = CycleState() if tree is None else tree.write(CycleState())
    state.record_plugin_metrics = True
    try:
        everywhere = within or Placement("", np.flatnonzero(table.in_use))
        placements = framework.placing.generate(state, pod, everywhere)
    except BaseException as error:  # noqa: BLE001 - only this group is affected; nothing is awaited
        return failed(framework, pod, error)
    if isinstance(placements, Status):
        return GroupDecision(status=placements)
    is_counted = tree is None or not tree.is_composite
    if is_counted:
        metrics.generated.labels(framework.name).inc(len(placements))
    fitting: list[tuple[Placement, GroupDecision]] = []
    first: GroupDecision | None = None
    rejectors = frozenset[str]()
    for placement in placements:
        began = time.perf_counter()
        result = structs.replace((yield from what_if(placement)), placement=placement.name)
        if result.code is Code.ERROR:
            return result
        first = first or result
        is_feasible = result.status is None or result.status is NONE_PLACED
        if is_counted:
            metrics.note(framework.name, time.perf_counter() - began, is_feasible=is_feasible)
        if is_feasible:
            fitting.append((placement, result))
        else:
            rejectors |= result.all_rejectors()
    if not fitting:
        assert first is not None, "there is one placement at least"
        assert first.status is not None, "it did not fit"
        text = none_fits(len(placements), first.status.reasons[0])
        status = unschedulable(UNSCHEDULABLE_GROUP, text)
        return structs.replace(first, status=status, placement="", rejectors=rejectors)
    return _best(algorithm, search, state, _nominated(fitting))


def _best(
    algorithm: Algorithm, search: Search, state: CycleState, fitting: Sequence[tuple[Placement, GroupDecision]]
) -> GroupDecision:
    """Return the decision in the placement that plugins prefer."""
    if len(fitting) == 1:
        return fitting[0][1]
    framework, pod = search.framework, search.first.pod
    candidates = []
    for placement, result in fitting:
        proposed = [ProposedAssignment(each.queued.pod, each.node_name) for each in result.bound()]
        candidates.append(PodGroupAssignments(placement, proposed))
    try:
        totals = framework.placing.score(state, pod, candidates).total
    except BaseException as error:  # noqa: BLE001 - only this group is affected; nothing is awaited
        return failed(framework, pod, error)
    best = np.flatnonzero(totals == totals.max())
    return fitting[algorithm.select(best, pod, search.first.attempts)][1]


def _nominated(fitting: Sequence[tuple[Placement, GroupDecision]]) -> Sequence[tuple[Placement, GroupDecision]]:
    """Return those in which most members have the node that they are nominated to: all if none is."""
    counts = [sum(each.queued.pod.nominated_node_name == each.node_name for each in one.bound()) for _, one in fitting]
    most = max(counts)
    return [each for each, count in zip(fitting, counts, strict=True) if count == most]


def none_fits(placements: int, first: str) -> str:
    """Return what is said of a group that fits in none of so many placements; `first`: the refusal in the first one."""
    return f"0/{placements} placements are available, first placement status: {first}"


def failed(framework: Framework, pod: Pod, error: BaseException) -> GroupDecision:
    """Report what a plugin raised; return the decision about the group that this costs an attempt."""
    framework.faults.report(error, pod)
    return GroupDecision(status=Status(Code.ERROR, (str(as_scheduler_error(error)),)))


def limited(search: Search, placement: Placement | None, table: NodeTable) -> Search:
    """Return a search for nodes of a placement, or of all, only."""
    if placement is None or len(placement.rows) == table.count:
        return replace(search, layout=None)
    mask = np.zeros(table.size, np.bool_)
    mask[placement.rows] = True
    return replace(search, schedule=partial(search.schedule, placement=mask))
