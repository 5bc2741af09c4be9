"""Keeps pods within their shares of the cluster: ElasticQuota of scheduler-plugins, Kueue's queues, or a tree in the
arguments.

    PreFilter: is there space in the pod's share? ─no─► it is pending for quota, in the queue, until there is
                                 │                ─yes► on which nodes, if the quota is for some nodes only
                                 └► PostFilter: who has borrowed what it is guaranteed? They are evicted

A profile that has this plugin has shares. The engine keeps them, with their usage and the pods to wake when there is
more: `handle.shares`. Usage is that of all pods with a node, no matter who placed them.
"""

import math
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final, Literal, NamedTuple

import numpy as np

from plugins.contrib.capacity_scheduling.pod_groups import group_victims
from plugins.contrib.capacity_scheduling.victims import MAX_CANDIDATES, Found, VictimSearch
from plugins.default_preemption.plugin import DefaultPreemption
from plugins.node_resources.lower_requests import askers, lowered_to
from plugins.shared.eviction.budgets import BUDGET_PARTS, POD_DISRUPTION_BUDGET, Budgets
from plugins.shared.eviction.eligibility import (
    GROUP_WAITING,
    IN_VAIN,
    WAITING,
    ineligibility,
    leaving,
    newest_of,
    no_victims,
)
from plugins.shared.eviction.executor import CLUSTER, Executor, Preemptor
from scheduler import framework as fw
from scheduler.api.label_selectors import parse_label_selector
from scheduler.api.quota.quota_amounts import MAX, amounts_in
from scheduler.api.read_only import NOTHING
from scheduler.api.wording.spelling import spelled
from scheduler.framework.field_errors import duplicate, invalid, required
from scheduler.framework.preemption.victims import NEVER

_QUANTITIES: Final = (
    ("minimum", "minimum"),
    ("maximum", "maximum"),
    ("borrowing_limit", "borrowingLimit"),
    ("lending_limit", "lendingLimit"),
)
OF_GROUP: Final = fw.unschedulable("preemption: not eligible as a member of a group")
WITHOUT_REASON: Final = fw.unschedulable()

_ELASTIC: Final = (fw.ELASTIC_QUOTA, fw.ELASTIC_QUOTA_SIGS)
_OF_KUEUE: Final = (fw.CLUSTER_QUEUE, fw.LOCAL_QUEUE, fw.COHORT, fw.RESOURCE_FLAVOR)

_EVICTIONS: Final = (fw.Write(fw.POD, ("delete",)), fw.Write(fw.POD, ("patch",), "status"))
_STATUSES: Final = tuple(
    write for resource in _ELASTIC for write in (fw.Write(resource, ("get",)), fw.Write(resource, ("patch",), "status"))
)
_OF_QUEUES: Final = (fw.Write(fw.CLUSTER_QUEUE, ("get",)), fw.Write(fw.CLUSTER_QUEUE, ("patch",), "status"))


@dataclass
class CapacityScheduling(
    fw.PreEnqueuePlugin, fw.PreFilterPlugin, fw.PostFilterPlugin, fw.PodGroupPostFilterPlugin, fw.ExplainPlugin
):
    """Rule for elastic quotas, and texts: pkg/capacityscheduling of scheduler-plugins."""

    name: ClassVar[str] = "CapacityScheduling"
    reads: ClassVar[Sequence[str]] = (*_ELASTIC, POD_DISRUPTION_BUDGET, fw.NAMESPACE, *_OF_KUEUE)
    parts: ClassVar[Mapping[str, Sequence[str]]] = {fw.NAMESPACE: (), POD_DISRUPTION_BUDGET: BUDGET_PARTS}
    writes: ClassVar[Sequence[fw.Write]] = (*_EVICTIONS, *_STATUSES)

    elastic_quotas: bool = True
    """Whether the pods of a namespace with an ElasticQuota count against that."""

    shares: Sequence[fw.DeclaredShare] = ()
    """Further shares, which count first. A pod belongs to the first that it matches."""

    kueue_queues: bool = False
    """Whether pods of Kueue's LocalQueues count against their ClusterQueues. Pods that Kueue manages are refused."""

    kueue_status: bool = False
    """Whether the status of ClusterQueues is kept up to date: only where Kueue's controller does not run."""

    order: Literal["Priority", "DominantShare", "DecayedUsage"] = "Priority"
    """Which of the waiting pods goes first: by the pods' priority and age, or that of the share which borrows the
    smallest part of what it could, or has used least lately; by the weights of shares."""

    usage_half_life_seconds: float = 86_400.0
    """After this time past usage counts half."""

    resource_weights: Mapping[str, float] = field(default_factory=lambda: NOTHING)
    """How much an amount of a resource counts as past usage; 1 where it is left out."""

    pending_reason: Literal["WaitingForQuota", "Unschedulable"] = "WaitingForQuota"
    """The reason in the condition PodScheduled of pods that lack quota. Autoscalers add nodes for `Unschedulable`."""

    def __post_init__(self) -> None:
        self._kinds = NodeKinds()
        # What is not asked for is not watched.
        evicts = self.elastic_quotas or self.kueue_queues or any(map(_evicts, self.shares))
        self.reads = (  # type: ignore[misc]
            *(_ELASTIC if self.elastic_quotas else ()),
            *((POD_DISRUPTION_BUDGET,) if evicts else ()),
            fw.NAMESPACE,
            *(_OF_KUEUE if self.kueue_queues else ()),
        )
        self.writes = (  # type: ignore[misc]
            *(_EVICTIONS if evicts else ()),
            *(_STATUSES if self.elastic_quotas else ()),
            *(_OF_QUEUES if self.kueue_queues and self.kueue_status else ()),
        )

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.kueue_status and not self.kueue_queues:
            yield "kueueStatus", invalid(True, "requires kueueQueues")
        if not 0 < self.usage_half_life_seconds < math.inf:
            yield "usageHalfLifeSeconds", invalid(self.usage_half_life_seconds, "must be positive")
        for resource, weight in self.resource_weights.items():
            if not 0 <= weight < math.inf:
                yield f"resourceWeights[{resource}]", invalid(weight, "must not be negative")
        names = set[str]()
        for number, share in enumerate(self.shares):
            at = f"shares[{number}]"
            if not share.name:
                yield f"{at}.name", required()
            elif share.name in names:
                yield f"{at}.name", duplicate(share.name)
            names.add(share.name)
            for name, problem in _problems(share):
                yield f"{at}.{name}", problem

    def start(self, handle: fw.Handle) -> None:
        self._handle = handle
        self._shares = handle.shares
        self._groups = handle.pod_groups
        self._executor = Executor(handle, self.name)
        self._leaves_nodes = any(issubclass(each, DefaultPreemption) for each in handle.post_filters)
        """Whether what is a matter of nodes alone is up to DefaultPreemption."""

    def kept(self) -> Executor:
        """The preemptions that are under way: their preemptors still have to wait for them."""
        return self._executor

    def take_over(self, kept: Executor) -> None:
        self._executor = kept

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """The pod's own updates; and, for one with space in its share that lacks a node, what may give its flavor one.

        Pods that lack space are out of reach of these: they are pending for quota.
        """
        own = fw.on(fw.TARGET_POD, fw.Action.UPDATE)
        if not self.kueue_queues:
            return (own,)
        new_nodes = fw.on(fw.NODE, fw.Action.ADD | fw.Action.UPDATE_NODE_LABEL)
        return (own, new_nodes, *(fw.on(each, hint=_declares_otherwise, key=type) for each in _OF_KUEUE))

    def pre_enqueue(self, pod: fw.Pod) -> fw.Status | None:
        """Keep a pod out whose preemption is under way; if that fails, the pod is tried again."""
        if self._executor.hold_back(pod.uid):
            return WAITING
        if self._executor.group_count and (key := fw.entry_key(self._groups, pod)) and self._executor.hold_back(key):
            return GROUP_WAITING
        return None

    def _is_due(self, uid: str) -> bool:
        """Return whether a pod is tried because all of its victims, or those of its group, are gone."""
        preemption = self._handle.preemptions.of(uid)
        return preemption is not None and preemption.is_due

    def pre_filter(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns
    ) -> fw.PreFilterResult | fw.Status | None:
        """Refuse a pod for which there is no space in its share. Evictions may help if that takes anything back."""
        refusal = None if state.get(fw.IS_CHARGED, bool) else self._shares.refusal(pod)
        if refusal is not None:
            may_help = refusal.lacks and self._shares.takes_back(refusal.key) and not self._groups.name_of(pod)
            return fw.unschedulable(refusal.message) if may_help else fw.unresolvable(refusal.message)
        kind = self._shares.nodes_for(pod) if self.kueue_queues else None
        return None if kind is None else fw.PreFilterResult(self._kinds.names(kind, nodes))

    def obstacles_anywhere(self, state: fw.CycleState, pod: fw.Pod, refusal: fw.Status) -> Sequence[fw.Obstacle]:
        """Say by how much a pod asks for too much. What else would help, is not up to the pod."""
        found = self._shares.refusal(pod)
        if found is None:
            return ()
        missing: dict[str, int] = {}
        for lack in found.lacks:
            missing[lack.resource] = max(missing.get(lack.resource, 0), lack.missing)
        changes, less = list[fw.Change](), list[str]()
        for resource, amount in missing.items():
            wanted = pod.requests.get(resource, 0)
            lower = lowered_to(pod, resource, wanted - amount) if wanted > amount else ()
            if not lower:
                return (fw.Obstacle(found.message),)
            changes += lower
            less.append(f"{spelled(resource, amount)} {resource}")
        text = f"ask for {' and '.join(less)} less in {askers(pod, changes)}" if changes else ""
        remedies = (fw.Remedy(text, tuple(changes)),) if changes else ()
        return (fw.Obstacle(found.message, remedies),)

    def post_filter(
        self, state: fw.CycleState, pod: fw.Pod, node_to_status: Mapping[str, fw.Status]
    ) -> tuple[fw.PostFilterResult | None, fw.Status | None]:
        """Nominate a node and begin to evict, or say why not. Raises PluginError.

        Pods without quota evict only others without, of lower priority. With DefaultPreemption, too, only those evict
        any that their quota refuses.
        """
        reclaim = self._shares.reclaim(pod)
        if reclaim is None or (self._leaves_nodes and reclaim.fits()):
            return None, WITHOUT_REASON
        try:
            return self._preempt(reclaim, state, pod, node_to_status)
        finally:
            self._handle.metrics.preemption_attempts.inc()

    def _preempt(
        self, reclaim: fw.ShareReclaim, state: fw.CycleState, pod: fw.Pod, node_to_status: Mapping[str, fw.Status]
    ) -> tuple[fw.PostFilterResult | None, fw.Status | None]:
        newest = newest_of(pod, self._handle)
        if self._groups.name_of(newest):
            return None, OF_GROUP
        no_node = None if self._leaves_nodes else fw.PostFilterResult("")
        if self._is_due(newest.uid):
            return no_node, IN_VAIN
        ineligible = self.ineligibility(reclaim, newest, node_to_status)
        if ineligible is not None:
            return None, ineligible
        if not reclaim.helps:
            return no_node, WITHOUT_REASON
        handle = self._handle
        rows = fw.rows_with(fw.Code.UNSCHEDULABLE, node_to_status, handle.nodes)
        if self.kueue_queues and (kind := self._shares.nodes_for(newest)) is not None:
            of_kind, names = self._kinds.names(kind, handle.nodes), handle.nodes.names()
            rows = rows[np.array([names[row] in of_kind for row in rows.tolist()], np.bool_)]
        # The same nodes first for all pods, so that they are not spread; others at each attempt.
        rows = np.roll(rows, -state.attempt * MAX_CANDIDATES)
        run = handle.dry_runs.begin(state, newest)
        search = VictimSearch(newest, reclaim, run, handle, rows, tuple(leaving(handle)))
        if (wait := search.wait(for_quota_alone=self._leaves_nodes)) is not None:
            return None, wait
        found = search.search()
        if found is None:
            return no_node, no_victims(search.refusals, handle.nodes.count)
        return self._evict(newest, found)

    def _evict(self, pod: fw.Pod, found: Found) -> tuple[fw.PostFilterResult, None]:
        name = self._handle.nodes.names()[found.row]
        keeps = self._shares.key_of(pod) is not None  # without quota, as in DefaultPreemption
        self._shares.evicted((pod,), found.victims.pods)
        self._executor.start(Preemptor.of_pod(pod), name, found.victims, keeps=keeps)
        return fw.PostFilterResult(name, found.victims.pods), None

    def may_leave(self, group: fw.PodGroup, pods: Sequence[fw.Pod]) -> Callable[[fw.Pod], bool]:
        """One that leaves anyway, or of a share that may have to give back what the group needs."""
        reclaim, gone = self._reclaim(group, pods), {pod.uid for pod in leaving(self._handle)}

        def may_leave(pod: fw.Pod) -> bool:
            return pod.uid in gone or (reclaim is not None and reclaim.may_give(pod))

        return may_leave

    def pod_group_victims(
        self, group: fw.PodGroup, pods: Sequence[fw.Pod], what_if: fw.GroupWhatIf
    ) -> Generator[None, None, fw.Victims | fw.Status]:
        """Choose those that give back what a group needs, or say why there are none."""
        if not group.may_preempt(pods):
            return NEVER
        begin, budgets = partial(self._reclaim, group, pods), Budgets.of(self._handle)
        return (yield from group_victims(begin, pods, tuple(leaving(self._handle)), budgets, what_if))

    def evict_for_pod_group(self, group: fw.PodGroup, pods: Sequence[fw.Pod], victims: fw.Victims) -> None:
        """Begin to evict them."""
        self._shares.evicted(pods, victims.pods)
        self._executor.start(Preemptor.of_group(group, pods), CLUSTER, victims, keeps=True)

    def _reclaim(self, group: fw.PodGroup, pods: Sequence[fw.Pod]) -> fw.ShareReclaim | None:
        return self._shares.reclaim_for_group(group, self._groups.members(pods[0]))

    def ineligibility(
        self, reclaim: fw.ShareReclaim, pod: fw.Pod, node_to_status: Mapping[str, fw.Status]
    ) -> fw.Status | None:
        """Say why a pod may not preempt; None if it may."""
        is_under_way = self._handle.preemptions.of(pod.uid) is not None

        def is_on_the_way(pods: Collection[fw.Pod]) -> bool:
            return is_under_way or any(each.is_deleting and reclaim.is_leaving_for(each) for each in pods)

        return ineligibility(pod, node_to_status, self._handle.nodes, is_on_the_way)


def _declares_otherwise(pod: fw.Pod, old: Any, new: Any) -> fw.QueueingHint:
    """Kueue writes the status of its objects all the time."""
    is_same = old is not None and new is not None and old.spec == new.spec
    return fw.QueueingHint.SKIP if is_same else fw.QueueingHint.QUEUE


def _evicts(share: fw.DeclaredShare) -> bool:
    return share.within_share != "Never" or share.reclaim != "Never"


def _problems(share: fw.DeclaredShare) -> Iterator[tuple[str, str]]:
    if not share.weight >= 0:
        yield "weight", invalid(share.weight, "must not be negative")
    for name, key in _QUANTITIES:
        try:
            amounts = amounts_in(getattr(share, name))
        except ValueError as error:
            yield key, str(error)
        else:
            for resource, amount in amounts.items():
                if amount > MAX:
                    yield f"{key}[{resource}]", invalid(getattr(share, name)[resource], "must fit into 64 bits")
    try:
        parse_label_selector(share.namespace_selector)
    except ValueError as error:
        yield "namespaceSelector", str(error)


MAX_KEPT: Final = 64
"""Kinds of which it is kept which nodes are of them."""

NO_NODE: Final = frozenset({"(none)"})
"""Cuts off all nodes, one by one, so that each has a reason: no node has such a name."""


class _Found(NamedTuple):
    columns: Sequence[fw.Int32Column]
    in_use: fw.BoolColumn
    names: frozenset[str]


class NodeKinds:
    """Finds the kinds of nodes."""

    def __init__(self) -> None:
        self._kept: dict[fw.NodeKind, _Found] = {}

    def names(self, kind: fw.NodeKind, nodes: fw.NodeColumns) -> frozenset[str]:
        """Return the names of the nodes of a kind, or a name that no node has."""
        labels = kind.labels
        columns, in_use = [nodes.label_codes(label) for label in labels], nodes.in_use
        kept = self._kept.get(kind)
        if kept is not None and np.array_equal(kept.in_use, in_use) and all(map(np.array_equal, kept.columns, columns)):
            return kept.names
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        found = _Found([each.copy() for each in columns], in_use.copy(), _names(kind, labels, columns, nodes))
        self._kept[kind] = found
        return found.names


def _names(
    kind: fw.NodeKind, labels: Sequence[str], columns: Sequence[fw.Int32Column], nodes: fw.NodeColumns
) -> frozenset[str]:
    rows, names = np.flatnonzero(nodes.in_use), nodes.names()
    values = [nodes.label_values(label) for label in labels]
    verdicts: dict[tuple[int, ...], bool] = {}
    found = set()
    for row, *codes in zip(rows.tolist(), *(column[rows].tolist() for column in columns), strict=True):
        verdict = verdicts.get(key := tuple(codes))
        if verdict is None:
            has = {label: of[code] for label, of, code in zip(labels, values, codes, strict=True) if code}
            verdict = verdicts[key] = kind.includes(has)
        if verdict:
            found.add(names[row])
    return frozenset(found) or NO_NODE
