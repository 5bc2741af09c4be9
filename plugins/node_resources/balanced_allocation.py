"""Prefer nodes whose resource usage the pod balances."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from plugins.dynamic_resources.allocation.device_counts import DeviceCounts, device_counts, objects_read
from plugins.dynamic_resources.extended.resources import ExtendedResources, extended_resources_of
from plugins.node_resources.fit_requests import without_devices
from plugins.node_resources.scoring import DEFAULT_RESOURCES, ResourceSpec, Usage, score_resources, with_defaults
from plugins.shared.column_math import Amount, quotient
from scheduler import framework as fw
from scheduler.framework.field_errors import duplicate, invalid

Share: TypeAlias = float | npt.NDArray[np.float64]
"""How much of a resource is requested, on one node or on an array of nodes: 0 to 1."""


@dataclass
class NodeResourcesBalancedAllocation(fw.PreScorePlugin, fw.ScoreNodesPlugin, fw.SignPlugin):
    """Score: how much the pod lowers the standard deviation of the shares of its resources that are requested.

    50 if it unbalances a balanced node, 75 if it changes nothing, 100 if it balances an unbalanced one.
    Rule: noderesources/balanced_allocation.go at v1.36.3.
    """

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.ALLOCATABLE | fw.Aspect.REQUESTED
    signs_spec: ClassVar[bool] = True
    signs_despite_objects: ClassVar[str] = "pods whose score depends on devices are not signed"

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    """The resources to balance. Each weight must be 1; none given means cpu and memory."""

    def __post_init__(self) -> None:
        self.resources = with_defaults(self.resources)
        self._names = tuple(each.name for each in self.resources)
        vars(self)["reads"] = objects_read(self._names)  # devices are counted only for an extended resource
        self._extended = ExtendedResources()
        self._devices: DeviceCounts | None = None

    def start(self, handle: fw.Handle) -> None:
        self._devices = device_counts(handle, self._names)
        if self._devices is not None:
            self._extended = extended_resources_of(handle)

    def problems(self) -> list[tuple[str, str]]:
        """Return each problem of the arguments, with its place.

        Rule: validation_pluginargs.go (ValidateNodeResourcesBalancedAllocationArgs) at v1.36.3.
        """
        problems: list[tuple[str, str]] = []
        seen: set[str] = set()
        for i, resource in enumerate(self.resources):
            if resource.name in seen:
                problems.append((f"resources[{i}].name", duplicate(resource.name)))
            seen.add(resource.name)
            if resource.weight != 1:
                problems.append((f"resources[{i}].weight", invalid(resource.weight, "must be 1")))
        return problems

    def sign(self, pod: fw.Pod) -> Hashable | None:
        """The amounts that Score adds, if it counts no devices."""
        if self._devices is not None and self._extended.classes_of(pod).keys() & self._devices.resources:
            return None
        return self._requests(pod)

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.Status | None:
        """Skip pods that request none of the resources: otherwise they would all go to the same node."""
        return None if any(self._requests(pod)) else fw.SKIP

    def concerns_score(self, pod: fw.Pod) -> bool:
        return any(self._requests(pod))

    def score_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int64Column | None:
        """Return the score of each of `rows`, 50 to 100. Rule: balanced_allocation.go (balancedResourceScorer)."""
        requests = self._requests(pod)
        if not any(requests):
            return None
        return score_resources(self.resources, requests, nodes, rows, _balance, self._devices, non_zero=False)

    def _requests(self, pod: fw.Pod) -> tuple[int, ...]:
        has_devices = pod.status.node_allocatable_resource_claim_statuses
        requests = without_devices(pod) if has_devices else pod.requests
        return tuple([requests.get(resource.name, 0) for resource in self.resources])


def _balance(usages: Sequence[Usage]) -> Amount:
    """Rule: balanced_allocation.go (balancedResourceScorer)."""
    without_pod = _evenness([_share(usage.allocated, usage.capacity) for usage in usages])
    with_pod = _evenness([_share(usage.allocated + usage.request, usage.capacity) for usage in usages])
    half = fw.MAX_NODE_SCORE // 2
    return half + quotient(half + with_pod - without_pod, 2)


def _share(requested: Amount, capacity: Amount) -> Share:
    share = requested / capacity
    return min(share, 1.0) if isinstance(share, float) else np.minimum(share, 1.0)


def _evenness(shares: Sequence[Share]) -> Amount:
    """Return 100 for equal shares, less the more they deviate.

    Rule: balanced_allocation.go (balancedResourceScore). The float operations and their order are kube-scheduler's.
    """
    score = (1 - _deviation(shares)) * fw.MAX_NODE_SCORE
    if isinstance(score, float):
        return int(score)
    with np.errstate(invalid="ignore"):  # amounts that overflow: a score beyond an int64 is the smallest one, as in Go
        return score.astype(np.int64)


def _deviation(shares: Sequence[Share]) -> Share:
    if len(shares) < 2:
        return 0.0
    if len(shares) == 2:
        half = (shares[0] - shares[1]) / 2
        return abs(half) if isinstance(half, float) else np.abs(half)
    mean = _sum(shares) / len(shares)
    distances: list[Share] = [share - mean for share in shares]
    variance = _sum([distance * distance for distance in distances]) / len(shares)
    return math.sqrt(variance) if isinstance(variance, float) else np.sqrt(variance)


def _sum(shares: Sequence[Share]) -> Share:
    # Not `sum`: since Python 3.12 that is more exact than Go.
    total: Share = 0.0
    for share in shares:
        total = total + share
    return total
