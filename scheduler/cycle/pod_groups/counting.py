"""How many pods of a group of alike ones fit, counted node by node instead of tried one by one.

Preemption for a group asks once for each pod that may be evicted whether the group fits with it back. Each answer costs
a decision about all members, tens of seconds altogether in a large cluster, during which nothing else happens.

If members are alike, and what a node says to one depends on nothing but the node and its own pods, then a group gets as
many nodes as all nodes together have space for, in whatever order they are chosen: a member takes space on one node and
changes nothing on the others. So it is enough to know how many fit on each node, and only those change whose pods leave
or come back. Plugins simulate that by themselves, as in the preemption for a pod (`runtime/preemption/dry_run.py`):
the table is not touched.

`counted` says whether all of this holds. If not, each answer is a decision, as in kube-scheduler.
"""

from collections.abc import Sequence
from typing import Final

from scheduler.api.pod import Pod
from scheduler.cycle.pod_groups.decision import UNSCHEDULABLE_GROUP
from scheduler.cycle.pod_groups.placements import none_fits
from scheduler.framework.columns import Rows
from scheduler.framework.cycle_state import GroupCycleState
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.dry_run import NodeSimulation
from scheduler.framework.pod_groups import PodGroup
from scheduler.framework.status import Code, Status
from scheduler.runtime.framework import Framework
from scheduler.runtime.guards.plugin_faults import is_of_tree
from scheduler.runtime.preemption.dry_run import DryRun
from scheduler.state.node_table import NodeTable

GANGS: Final = frozenset(("GangScheduling", "Coscheduling"))
"""The plugins by which a group is complete as soon as its minimum of pods has nodes."""


def counted(framework: Framework, table: NodeTable, group: PodGroup, pods: Sequence[Pod]) -> "CountedWhatIf | None":
    """Return what counts the pods of a group that fit; None if they have to be decided about. Raises PluginError."""
    if table.is_broken or group.problem or group.resources or group.required_level or group.preferred_level:
        return None
    at = framework.plugins.at
    permits = {plugin.name for plugin in at["permit"]}
    if not permits <= GANGS or ("Coscheduling" if group.is_ours else "GangScheduling") not in permits:
        return None
    if not {plugin.name for plugin in at["pre_filter"]} <= {plugin.name for plugin in at["filter"]}:
        return None  # it may refuse pods by what is in the whole cluster
    state = _state_of_all(framework, pods)
    if state is None:
        return None
    run = framework.handle.dry_runs.begin(state, pods[0])
    if not run.holds_everywhere:
        return None
    rows = framework.run_filter(state, pods[0], None).feasible
    missing = group.minimum - framework.handle.pod_groups.members(pods[0]).scheduled_count
    refused = none_fits(1) if framework.handle.pod_groups.are_tried_in_placements else UNSCHEDULABLE_GROUP
    return CountedWhatIf(table, run, pods[0], rows, max(1, missing), len(pods), Status(Code.UNSCHEDULABLE, (refused,)))


def _state_of_all(framework: Framework, pods: Sequence[Pod]) -> GroupCycleState | None:
    """Return the state of these pods after PreFilter if no plugin distinguishes them, or reserves anything for them."""
    first = GroupCycleState()
    for pod in pods:
        state = first if pod is pods[0] else GroupCycleState()
        names, refusal = framework.run_pre_filter(state, pod, Diagnosis(0))
        if names is not None or refusal is not None or state.skip_filter != first.skip_filter:
            return None
        if state.known_spec.pod_class is not first.known_spec.pod_class:
            return None
    at, skipped = framework.plugins.at, first.skip_filter
    active = [plugin for plugin in at["filter"] if plugin.name not in skipped]
    if not {plugin.name for plugin in active} <= first.known_spec.pod_class.signatures.keys():
        return None
    if not all(is_of_tree(type(plugin)) for plugin in (*active, *at["permit"])):
        return None  # only of our own it is known that they refuse no node because pods have left it
    return first if all(plugin.name in skipped for plugin in at["reserve"]) else None


class CountedWhatIf:
    """Implements framework.group_preemption.GroupWhatIf. Nothing is changed by it."""

    decisions: Final = 0

    def __init__(
        self, table: NodeTable, run: DryRun, pod: Pod, admitting: Rows, needed: int, members: int, refused: Status
    ) -> None:
        """`pod` stands for all, as many as are `needed` make the group complete; `admitting`: where one fits now.

        `refused`: what a decision says of a group of which too few fit.
        """
        self._refused = refused
        self._table = table
        self._run = run
        self._pod = pod
        self._needed = needed
        self._members = members
        self._nodes: dict[int, _Node] = {}
        self._fits = 0
        """How many fit for certain: the sum over the nodes."""
        self._unsure: dict[int, _Node] = {}
        """Those on which more may fit than is known, by row, in the order in which they changed."""
        for row in admitting.tolist():
            self._unsure[row] = self._node(row)

    def remove(self, pods: Sequence[Pod]) -> None:
        for pod in pods:
            row = self._table.row_of(pod.node_name)
            if row is not None:
                node = self._unsure[row] = self._node(row)
                node.remove(pod)

    def put_back(self, pods: Sequence[Pod]) -> None:
        for pod in pods:
            row = self._table.row_of(pod.node_name)
            if row is not None:
                node = self._unsure[row] = self._node(row)
                self._fits -= node.fits
                node.put_back(pod)

    def refusal(self) -> Status | None:
        if self._members < self._needed:
            return self._refused
        while self._fits < self._needed and self._unsure:
            _, node = self._unsure.popitem()
            self._fits -= node.fits
            node.count(self._pod, self._needed)
            self._fits += node.fits
        return None if self._fits >= self._needed else self._refused

    def _node(self, row: int) -> "_Node":
        node = self._nodes.get(row)
        if node is None:
            node = self._nodes[row] = _Node(self._run.simulate(row))
        return node


class _Node:
    """One node while pods leave it and come back."""

    __slots__ = ("_beyond", "_simulation", "fits")

    def __init__(self, simulation: NodeSimulation) -> None:
        self._simulation = simulation
        self._beyond: dict[str, None] = {}
        """The pods that are back although no member fits with them. None does with more, so they are not counted."""
        self.fits = 0
        """How many members fit, as far as is known."""

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
