"""The number of alike pods of a group that fit, counted node by node instead of tried one by one.

Preemption for a group asks once for each pod that may be evicted whether the group fits with it back. Decisions about
all members would take tens of seconds in a large cluster, during which nothing else happens.

If members are alike, and a node's answer depends on nothing but the node and its own pods, then as many fit as all
nodes together have space for, in whatever order they are chosen, and that changes only where pods leave or come back.
Plugins simulate it by themselves, as in the preemption for a pod (`runtime/preemption/dry_run.py`): the table is not
touched. Nodes are counted in steps, each at one moment; in the end `fits_still` says whether changes by others matter.

`counted` says whether all of this holds. If not, each answer is a decision, as in kube-scheduler.
"""

from collections.abc import Callable, Collection, Iterable, Sequence, Set
from functools import partial
from typing import Final

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.config.defaults import CAPACITY_SCHEDULING
from scheduler.cycle.steps import Overtaken, Steps
from scheduler.framework.cycle_state import GroupCycleState
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.groups.pod_groups import PodGroup
from scheduler.framework.nodes.columns import BoolColumn
from scheduler.framework.preemption.dry_run import NodeSimulation
from scheduler.framework.shares import IS_CHARGED
from scheduler.framework.status import Code, Status
from scheduler.groups.decision import UNSCHEDULABLE_GROUP
from scheduler.groups.placements import none_fits
from scheduler.groups.reservations.reservation import Reservation
from scheduler.runtime.framework import Framework
from scheduler.runtime.guards.plugin_faults import is_of_tree
from scheduler.runtime.preemption.dry_run import DryRun
from scheduler.state.cache import Cache
from scheduler.state.nodes.node_table import NodeTable

GANGS: Final = frozenset(("GangScheduling", "Coscheduling"))
"""The plugins by which a group is complete as soon as its minimum of pods has nodes."""

NODES_AT_ONCE: Final = 128
"""Nodes that are added in one step: less than a millisecond."""


def counted(
    framework: Framework,
    cache: Cache,
    reserved: Reservation | None,
    group: PodGroup,
    pods: Sequence[Pod],
    may_leave: Callable[[Pod], bool],
    *,
    is_charged: bool,
) -> Steps["CountedWhatIf | None"]:
    """Return what counts the pods of a group that fit; None if they have to be decided about.

    `reserved`: the nodes that are kept for a group, even if pods leave them. `is_charged`: whether space in the group's
    share is asked elsewhere.

    Raises PluginError, and, between steps only, Overtaken.
    """
    table, layout = cache.table, cache.layouts
    if table.is_broken or group.problem or group.resources or group.required_level or group.preferred_level:
        return None
    at = framework.plugins.at
    permits = {plugin.name for plugin in at["permit"]}
    if not permits <= GANGS or ("Coscheduling" if group.is_ours else "GangScheduling") not in permits:
        return None
    before = {plugin.name for plugin in at["pre_filter"]} - {plugin.name for plugin in at["filter"]}
    if before - ({CAPACITY_SCHEDULING} if is_charged else set()):
        return None  # it may refuse pods by what is in the whole cluster
    found = yield from _state_of_all(framework, pods, is_charged=is_charged)
    if found is None:
        return None
    state, names = found
    missing = group.minimum - framework.handle.pod_groups.members(pods[0]).scheduled_count
    is_placed = framework.handle.pod_groups.are_tried_in_placements
    refused = none_fits(1, UNSCHEDULABLE_GROUP) if is_placed else UNSCHEDULABLE_GROUP
    runs = partial(framework.handle.dry_runs.begin, state, pods[0])
    status, is_rest = Status(Code.UNSCHEDULABLE, (refused,)), group.is_ours and missing <= 0
    needed = len(pods) if is_rest else max(1, missing)
    what_if = CountedWhatIf(runs, pods[0], needed, len(pods), status, is_rest=is_rest)
    for first in range(0, table.size, NODES_AT_ONCE):
        closed = () if reserved is None else frozenset(reserved.closed_to(framework, table, pods[0]).tolist())
        rows = [row for row in range(first, min(first + NODES_AT_ONCE, table.size)) if row not in closed]
        if names is not None:
            name_of = table.names()
            rows = [row for row in rows if name_of[row] in names]
        admits = np.zeros(table.size, np.bool_)
        admits[framework.run_filter(state, pods[0], None).feasible] = True
        if not what_if.add(table, rows, admits, may_leave):
            return None
        yield
        if layout != cache.layouts:
            raise Overtaken
    return what_if


def _state_of_all(
    framework: Framework, pods: Sequence[Pod], *, is_charged: bool
) -> Steps[tuple[GroupCycleState, Set[str] | None] | None]:
    """Return the state of these pods after PreFilter if no plugin distinguishes them, or reserves anything for them.

    With the names of the nodes that there are for them; None for all.
    """
    first, on_nodes = GroupCycleState(), None
    for pod in pods:
        state = first if pod is pods[0] else GroupCycleState()
        if is_charged:
            state.write(IS_CHARGED, True)
        names, refusal = framework.run_pre_filter(state, pod, Diagnosis(0))
        if pod is pods[0]:
            on_nodes = names
        if names != on_nodes or refusal is not None or state.skip_filter != first.skip_filter:
            return None
        if state.known_spec.pod_class is not first.known_spec.pod_class:
            return None
        yield
    at, skipped = framework.plugins.at, first.skip_filter
    active = [plugin for plugin in at["filter"] if plugin.name not in skipped]
    if not {plugin.name for plugin in active} <= first.known_spec.pod_class.signatures.keys():
        return None
    if not all(is_of_tree(type(plugin)) for plugin in (*active, *at["permit"])):
        return None  # only of our own it is known that they refuse no node because pods have left it
    return (first, on_nodes) if all(plugin.name in skipped for plugin in at["reserve"]) else None


class CountedWhatIf:
    """Implements framework.group_preemption.GroupWhatIf. Nothing is changed by it."""

    decisions: Final = 0

    def __init__(
        self, runs: Callable[[], DryRun], pod: Pod, needed: int, members: int, refused: Status, *, is_rest: bool = False
    ) -> None:
        """`pod` stands for all, as many as are `needed` make the group complete. `runs` begins a dry run for it.

        `refused`: what a decision says of a group of which too few fit. `is_rest`: whether these are beyond the minimum
        of a group: then as many are needed as fit when it is asked first, without all that might leave.
        """
        self._is_open = is_rest
        self.refused = refused
        self._runs = runs
        self._pod = pod
        self.needed = needed
        self._members = members
        self._nodes: dict[str, _Node] = {}
        self._fits = 0
        """How many fit for certain: the sum over the nodes."""
        self._unsure: dict[str, _Node] = {}
        """Those on which more may fit than is known, in the order in which they changed."""

    def add(self, table: NodeTable, rows: Iterable[int], admits: BoolColumn, may_leave: Callable[[Pod], bool]) -> bool:
        """Add those of these rows, as they are now, on which a member fits, or which pods `may_leave`.

        Returns False if there are plugins that have to be asked on the table. `admits`: where one fits now.
        """
        run, names, in_use = self._runs(), table.names(), table.in_use
        if not run.holds_everywhere:
            return False
        for row in rows:
            pods = tuple(table.pods_on(names[row])) if in_use[row] else ()
            if admits[row] or any(map(may_leave, pods)):
                node = self._nodes[names[row]] = _Node(run.simulate(row), pods)
                if admits[row]:
                    self._unsure[names[row]] = node
        return True

    def pods_by_node(self) -> Iterable[Collection[Pod]]:
        return [node.pods for node in self._nodes.values()]

    def remove(self, pods: Sequence[Pod]) -> None:
        for pod in pods:
            name = pod.spec.node_name
            node = self._unsure[name] = self._nodes[name]
            node.remove(pod)

    def put_back(self, pods: Sequence[Pod]) -> None:
        for pod in pods:
            name = pod.spec.node_name
            node = self._unsure[name] = self._nodes[name]
            self._fits -= node.fits
            node.put_back(pod)

    def refusal(self) -> Status | None:
        if self._members < self.needed:
            return self.refused
        while self._fits < self.needed and self._unsure:
            _, node = self._unsure.popitem()
            self._count(node)
        if self._is_open:
            self._is_open, self.needed = False, max(1, min(self.needed, self._fits))
        return None if self._fits >= self.needed else self.refused

    def keeps_its_nodes(self) -> bool:
        return self.refusal() is None

    has_other_nodes = keeps_its_nodes

    def fits_still(self, cache: Cache, since: int, victims: Iterable[Pod]) -> bool:
        """Return whether the group fits if the `victims` leave, whatever others have done to nodes `since`.

        Raises PluginError.
        """
        if self.refusal() is not None:
            return False
        if cache.changes == since:
            return True  # pods may have left at most
        run = self._runs()
        if not run.holds_everywhere:
            return False
        leaving: dict[str, list[Pod]] = {}
        for pod in victims:
            leaving.setdefault(pod.node_name, []).append(pod)
        for name, before in self._nodes.items():
            if not before.fits:
                continue
            row = cache.table.row_of(name)
            if row is None:
                self._fits -= before.fits
            elif cache.changed_by_others(name) > since:
                now = _Node(run.simulate(row))
                for pod in leaving.get(name, ()):
                    now.remove(pod)
                self._fits -= before.fits
                self._count(now)
        return self._fits >= self.needed

    def _count(self, node: "_Node") -> None:
        self._fits -= node.fits
        node.count(self._pod, self.needed)
        self._fits += node.fits


class _Node:
    """One node while pods leave it and come back."""

    __slots__ = ("_beyond", "_simulation", "fits", "pods")

    def __init__(self, simulation: NodeSimulation, pods: Collection[Pod] = ()) -> None:
        """`pods`: those that it had in the beginning."""
        self._simulation = simulation
        self._beyond: dict[str, None] = {}
        """The pods that are back although no member fits with them. None does with more, so they are not counted."""
        self.pods = pods
        self.fits = 0
        """How many members are known to fit."""

    def remove(self, pod: Pod) -> None:
        if pod.uid in self._beyond:
            del self._beyond[pod.uid]
        else:
            self._simulation.remove((pod,))

    def put_back(self, pod: Pod) -> None:
        self.fits = 0
        if self._is_full() or self._simulation.reprieve((pod,)):
            self._beyond[pod.uid] = None

    def count(self, member: Pod, most: int) -> None:
        """Find out how many members fit, up to as many as `most`."""
        self.fits = 0 if self._is_full() else 1
        while 0 < self.fits < most and not self._simulation.reprieve((member,)):
            self.fits += 1
        self._simulation.remove((member,) * (self.fits - 1))

    def _is_full(self) -> bool:
        return bool(self._beyond) or self._simulation.refusal() is not None
