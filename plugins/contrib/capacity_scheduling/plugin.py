"""Keeps pods within their shares of the cluster: ElasticQuota of scheduler-plugins, Kueue's queues, or a tree in the
arguments.

    PreFilter: is there space in the pod's share? ─no─► it waits for its share ─► PreEnqueue: is there space now?
                                                  ─yes► on which nodes, if the quota is for some nodes only

A profile that has this plugin has shares. What they are, what is used of them and whom it wakes when there is more, is
kept by the engine: `handle.shares`. Usage is that of all pods with a node, no matter who placed them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from plugins.contrib.capacity_scheduling.node_kinds import NodeKinds
from plugins.node_resources.lower_requests import lowered_to
from scheduler import framework as fw
from scheduler.api.label_selectors import parse_label_selector
from scheduler.api.requests import allocatable_of
from scheduler.api.spelling import spelled
from scheduler.framework.field_errors import duplicate, invalid, required

_QUANTITIES: Final = (
    ("minimum", "minimum"),
    ("maximum", "maximum"),
    ("borrowing_limit", "borrowingLimit"),
    ("lending_limit", "lendingLimit"),
)
_OF_KUEUE: Final = (fw.CLUSTER_QUEUE, fw.LOCAL_QUEUE, fw.COHORT, fw.RESOURCE_FLAVOR)


@dataclass
class CapacityScheduling(fw.PreEnqueuePlugin, fw.PreFilterPlugin, fw.ExplainPlugin):
    """Rule for elastic quotas, and texts: pkg/capacityscheduling of scheduler-plugins."""

    name: ClassVar[str] = "CapacityScheduling"
    reads: ClassVar[Sequence[str]] = (fw.ELASTIC_QUOTA, fw.ELASTIC_QUOTA_SIGS, fw.NAMESPACE, *_OF_KUEUE)
    parts: ClassVar[Mapping[str, Sequence[str]]] = {fw.NAMESPACE: ()}
    writes: ClassVar[Sequence[fw.Write]] = tuple(
        write
        for resource in (fw.ELASTIC_QUOTA, fw.ELASTIC_QUOTA_SIGS)
        for write in (fw.Write(resource, ("get",)), fw.Write(resource, ("patch",), "status"))
    )

    elastic_quotas: bool = True
    """Whether the pods of a namespace with an ElasticQuota count against that."""

    shares: Sequence[fw.DeclaredShare] = ()
    """Further shares, which count first. A pod belongs to the first that it matches."""

    kueue_queues: bool = False
    """Whether pods of Kueue's LocalQueues count against their ClusterQueues. Pods that Kueue manages are refused."""

    def __post_init__(self) -> None:
        self._kinds = NodeKinds()
        # What is not asked for is not watched.
        quotas = (*((fw.ELASTIC_QUOTA, fw.ELASTIC_QUOTA_SIGS) if self.elastic_quotas else ()), fw.NAMESPACE)
        self.reads = (*quotas, *(_OF_KUEUE if self.kueue_queues else ()))  # type: ignore[misc]
        if not self.elastic_quotas:
            self.writes = ()  # type: ignore[misc]

    def problems(self) -> Iterator[tuple[str, str]]:
        names = set[str]()
        for number, share in enumerate(self.shares):
            at = f"shares[{number}]"
            if not share.name:
                yield f"{at}.name", required()
            elif share.name in names:
                yield f"{at}.name", duplicate(share.name)
            names.add(share.name)
            if not share.weight >= 0:
                yield f"{at}.weight", invalid(share.weight, "must not be negative")
            for field, key in _QUANTITIES:
                try:
                    allocatable_of(getattr(share, field))
                except ValueError as error:
                    yield f"{at}.{key}", str(error)
            try:
                parse_label_selector(share.namespace_selector)
            except ValueError as error:
                yield f"{at}.namespaceSelector", str(error)

    def start(self, handle: fw.Handle) -> None:
        self._shares = handle.shares

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """The pod's own updates, and nodes of its flavors: what frees space in its share wakes it by itself."""
        own = fw.on(fw.UNSCHEDULABLE_POD, fw.Action.UPDATE)
        return (own, fw.on(fw.NODE, fw.Action.ADD | fw.Action.UPDATE_NODE_LABEL)) if self.kueue_queues else (own,)

    def pre_enqueue(self, pod: fw.Pod) -> fw.Status | None:
        """Keep a pod out that PreFilter has refused, as long as there is no space; each is refused there once."""
        refusal = self._shares.refusal_while_waiting(pod)
        return None if refusal is None else fw.unresolvable(refusal.message)

    def pre_filter(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns
    ) -> fw.PreFilterResult | fw.Status | None:
        """Refuse a pod for which there is no space in its share. No eviction on a single node is a remedy for that."""
        refusal = self._shares.refusal(pod)
        if refusal is not None:
            return fw.unresolvable(refusal.message)
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
        remedies = (fw.Remedy(f"ask for {' and '.join(less)} less", tuple(changes)),) if changes else ()
        return (fw.Obstacle(found.message, remedies),)
