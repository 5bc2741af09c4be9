"""Keep pods off nodes whose kubelet would not find a NUMA node for them, and prefer nodes by their NUMA nodes."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

import numpy as np

from plugins.contrib.node_resource_topology import alignment
from plugins.contrib.node_resource_topology.beliefs import PLUGIN, Beliefs, User
from plugins.contrib.node_resource_topology.least_numa import least_numa_score
from plugins.contrib.node_resource_topology.requests import Asked, asked
from plugins.contrib.node_resource_topology.strategies import (
    Strategy,
    balanced_allocation,
    least_allocated,
    most_allocated,
    scores,
)
from plugins.contrib.node_resource_topology.topology import RESOURCE
from scheduler import framework as fw
from scheduler.framework.field_errors import forbidden, invalid

_RESYNC_SECONDS: Final = 60.0

_STRATEGIES: Final[dict[str, Strategy]] = {
    "LeastAllocated": least_allocated,
    "MostAllocated": most_allocated,
    "BalancedAllocation": balanced_allocation,
}


@dataclass(frozen=True, slots=True)
class ResourceWeight:
    """The weight of a resource for LeastAllocated and MostAllocated."""

    name: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """The strategy by which nodes are scored."""

    type: Literal["LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes"] = "LeastAllocated"
    resources: tuple[ResourceWeight, ...] = ()
    """All others count 1."""


@dataclass(frozen=True, slots=True)
class CacheArguments:
    """Of the over-reserve cache."""

    foreign_pods_detect: Literal["All", "None", "OnlyExclusiveResources"] = "All"
    """Which pods of other schedulers put a node in doubt."""


@dataclass
class NodeResourceTopologyMatch(
    fw.PreFilterPlugin, fw.FilterNodesPlugin, fw.ScoreNodesPlugin, fw.ReservePlugin, fw.PostBindPlugin, fw.SignPlugin
):
    """Filter: for kubelets with the policy single-numa-node. Score: how well the zones suit the pod.

    Rule: pkg/noderesourcetopology of scheduler-plugins.
    """

    aspects: ClassVar[fw.Aspect] = fw.Aspect.ALLOCATABLE | fw.Aspect.EXTERNAL
    signs_spec: ClassVar[bool] = True
    signs_despite_objects: ClassVar[str] = "what changes in its objects is marked, node by node"

    name: ClassVar[str] = "NodeResourceTopologyMatch"
    reads: ClassVar[Sequence[str]] = (RESOURCE,)

    scoring_strategy: ScoringStrategy = ScoringStrategy()
    cache_resync_period_seconds: int = 0
    """0: objects count as they come, and nothing is reserved."""

    discard_reserved_nodes: bool = False
    """Refuse a node for as long as a pod is on its way to it. Instead of the over-reserve cache."""

    cache: CacheArguments = field(default_factory=CacheArguments)

    def __post_init__(self) -> None:
        self._weights = {each.name: each.weight for each in self.scoring_strategy.resources}
        self._repetition: fw.Repetition | None = None
        self._user: User | None = None

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.cache_resync_period_seconds < 0:
            yield "cacheResyncPeriodSeconds", invalid(self.cache_resync_period_seconds, "must not be negative")
        if self.cache_resync_period_seconds > 0 and self.discard_reserved_nodes:
            yield "discardReservedNodes", forbidden("has its own way, without cacheResyncPeriodSeconds")
        for position, each in enumerate(self.scoring_strategy.resources):
            if not 1 <= each.weight <= 100:
                path = f"scoringStrategy.resources[{position}].weight"
                yield path, invalid(each.weight, "not in valid range [1, 100]")

    def start(self, handle: fw.Handle) -> None:
        self._handle = handle
        self._beliefs = handle.shared.get(Beliefs, lambda: Beliefs(handle))
        over_reserves = self.cache_resync_period_seconds > 0
        foreign_pods = self.cache.foreign_pods_detect
        self._user = User(handle.profile_name, over_reserves, self.discard_reserved_nodes, foreign_pods)
        self._beliefs.join(self._user)
        if over_reserves:
            pause = float(self.cache_resync_period_seconds)
            self._repetition = handle.tasks.repeat(self.name, _RESYNC_SECONDS, pause, self._resync)
        handle.columns.mark()  # these arguments change what other profiles go by

    def stop(self) -> None:
        if self._repetition is not None:
            self._repetition.stop()
        if self._user is not None:
            self._beliefs.leave(self._user)
            self._user = None

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Rule: plugin.go (EventsToRegister)."""
        return (
            fw.on(fw.POD, fw.Action.DELETE),
            fw.on(fw.NODE, fw.Action.ADD | fw.Action.UPDATE_NODE_ALLOCATABLE),
            fw.on(RESOURCE, fw.Action.ADD | fw.Action.UPDATE),
        )

    def sign(self, pod: fw.Pod) -> Hashable | None:
        """Return what the pod asks for. What is left in the zones is marked as it changes: beliefs.py."""
        return asked(pod)

    def concerns(self, pod: fw.Pod) -> bool:
        return asked(pod).concerns

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        wanted = asked(pod)
        if not wanted.concerns:
            return fw.SKIP
        state.write(PLUGIN, wanted)
        self._beliefs.is_tried(pod.uid)
        return None

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        wanted = state.get(PLUGIN, Asked) or asked(pod)
        if not wanted.concerns:
            return None
        allocatable = {name: nodes.allocatable(name)[rows] for name in wanted.resources}
        found = alignment.codes(wanted, self._beliefs.zones(rows, wanted), allocatable)
        refused = rows[found != alignment.ALIGNED]
        if not len(refused):
            return None
        names = nodes.names()
        self._beliefs.refused(names[row] for row in refused.tolist())
        return found

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return alignment.REASONS[code]

    def score_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int64Column | None:
        """Return the score of each of `rows`; 100 for pods that are not Guaranteed. Rule: score.go (Score)."""
        wanted = state.get(PLUGIN, Asked) or asked(pod)
        if not wanted.guaranteed:
            return np.full(len(rows), fw.MAX_NODE_SCORE, np.int64)
        strategy = _STRATEGIES.get(self.scoring_strategy.type)
        if strategy is not None:
            return scores(strategy, wanted, self._beliefs.zones(rows, wanted), self._weights)
        names = nodes.names()
        return np.array([self._least_numa(wanted, names[row]) for row in rows.tolist()], np.int64)

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        self._beliefs.reserve(node_name, pod.uid, asked(pod).whole)
        return None

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        self._beliefs.unreserve(node_name, pod.uid)

    async def post_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        self._beliefs.bound(node_name, pod.uid)

    def _least_numa(self, wanted: Asked, node: str) -> int:
        topology = self._beliefs.topology(node)
        if topology is None or not self._beliefs.is_valid(node):
            return fw.MIN_NODE_SCORE
        return least_numa_score(wanted, topology)

    async def _resync(self) -> None:
        self._beliefs.resync()
