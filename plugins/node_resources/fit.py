"""Keep pods off nodes with too few resources left, and prefer nodes by how full they are."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Final

import numpy as np

from plugins.deferred_pod_scheduling import after_growth, node_of_resize
from plugins.dynamic_resources.allocation.device_counts import DeviceCounts, device_counts, objects_read
from plugins.dynamic_resources.extended.resources import ExtendedResources, extended_resources_of
from plugins.node_resources.fit_dry_run import TOO_MANY_PODS, UNRESOLVABLE, Compared, FitSimulator
from plugins.node_resources.fit_hints import (
    FitHints,
    after_device_class_event,
    compared_amounts,
    counted_resources,
    named_resources,
)
from plugins.node_resources.fit_requests import fit_requests
from plugins.node_resources.lower_requests import askers, lowered_to
from plugins.node_resources.scoring import (
    DEFAULT_RESOURCES,
    MAX_WEIGHT,
    ResourceSpec,
    Scorer,
    least_allocated,
    most_allocated,
    requested_to_capacity_ratio,
    score_resources,
    usages_of_placement,
    with_defaults,
)
from plugins.shared.column_math import Amount, amounts, any_of
from plugins.shared.shapes import UtilizationShapePoint, problems_of_shape
from scheduler import framework as fw
from scheduler.api.labels import label_key_problems
from scheduler.api.pods.requests import (
    CPU,
    DEFAULT_REQUESTS,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    PodResources,
    is_extended_resource,
    pod_requests,
    reports_resources,
    requests_of,
    to_amounts,
)
from scheduler.api.pods.resize import running_of
from scheduler.api.wording.spelling import spelled
from scheduler.framework.field_errors import forbidden, invalid, not_supported, required

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"

_STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)

_COMPARED = "PreFilterNodeResourcesFit"
_ADDED = "PreScoreNodeResourcesFit"

RESIZES: Final = "InPlacePodVerticalScalingSchedulerPreemption"
"""The feature gate of preemption for deferred resizes."""

_FIRST_RESOURCE = 2
_LAST_RESOURCE = 30


@dataclass(frozen=True, slots=True)
class RequestedToCapacityRatio:
    """The best utilization of a node, as a line through points of rising utilization."""

    shape: tuple[UtilizationShapePoint, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """The resources that count in the score, and whether empty or full nodes are preferred."""

    type: str = ""
    """LeastAllocated, MostAllocated or RequestedToCapacityRatio. A strategy that is configured must name it."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    """None given means cpu and memory, with weight 1 each."""

    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None
    """For the strategy of that name, and only for it."""


class _LastRequests:
    """The requests that Filter compared and Score added last.

    Consecutive pods of one spec have the same `resources`, unless a kubelet reports what they have.
    """

    __slots__ = ("added", "added_for", "compared", "compared_for", "era")

    def __init__(self) -> None:
        self.compared: tuple[Compared, ...] = ()
        self.compared_for: PodResources | None = None
        self.added: tuple[int, ...] = ()
        self.added_for: PodResources | None = None
        self.era: object = None
        """Of the DeviceClasses."""


@dataclass
class NodeResourcesFit(
    fw.PreFilterPlugin,
    fw.DryRunFilter,
    fw.PreScorePlugin,
    fw.ScoreNodesPlugin,
    fw.SignPlugin,
    fw.PlacementScorePlugin,
    fw.DemandPlugin,
    fw.ExplainPlugin,
):
    """Filter: the pod's requests fit into what is free on the node. Score: by `scoring_strategy`.

    PlacementScore: the fuller a group of pods makes the nodes of a placement, the better, by any strategy's resources.
    Rule: noderesources/fit.go and resource_allocation.go at v1.36.3. Amounts are thousandths of a core, units or
    bytes. Scoring neither counts requests of the pod as a whole nor resizes in progress, as kube-scheduler's does not.
    """

    name: ClassVar[str] = "NodeResourcesFit"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.ALLOCATABLE | fw.Aspect.REQUESTED
    signs_spec: ClassVar[bool] = True
    filters_resizes: ClassVar[bool] = True
    signs_despite_objects: ClassVar[str] = (
        "stored answers are forgotten when DeviceClasses begin or cease to stand for a resource, and pods whose score "
        "depends on devices are not signed"
    )

    ignored_resources: tuple[str, ...] = ()
    """Extended resources that Filter ignores."""

    ignored_resource_groups: tuple[str, ...] = ()
    """Extended resources with one of these prefixes before the slash; Filter ignores them."""

    scoring_strategy: ScoringStrategy = ScoringStrategy(LEAST_ALLOCATED)

    def __post_init__(self) -> None:
        strategy = self.scoring_strategy
        self.scoring_strategy = replace(strategy, resources=with_defaults(strategy.resources))
        self._scorer = _scorer_of(strategy)
        self._scored = tuple(each.name for each in self.scoring_strategy.resources)
        vars(self)["reads"] = objects_read(self._scored)  # Score counts devices only for an extended resource
        self._last = _LastRequests()
        self._extended = ExtendedResources()
        self._devices: DeviceCounts | None = None
        self._has_resizes = False

    def start(self, handle: fw.Handle) -> None:
        self._nodes = handle.nodes
        self._extended = extended_resources_of(handle)
        self._devices = device_counts(handle, self._scored)
        self._has_resizes = RESIZES in handle.feature_gates

    def problems(self) -> list[tuple[str, str]]:
        """Return each problem of the arguments, with its place.

        Rule: apis/config/validation/validation_pluginargs.go (ValidateNodeResourcesFitArgs) at v1.36.3.
        """
        return [*self._problems_of_ignored(), *_problems_of_strategy(self.scoring_strategy)]

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Rule: fit.go (EventsToRegister)."""
        hints = FitHints(self._extended, self._is_ignored)
        grows = fw.Action.UPDATE_POD_SCALE_UP
        of_resizes = (fw.on(fw.ASSIGNED_POD, grows, after_growth, node_of_resize),) if self._has_resizes else ()
        return (
            *of_resizes,
            fw.on(fw.ASSIGNED_POD, fw.Action.DELETE, hints.after_pod_event, counted_resources),
            fw.on(fw.NODE, fw.Action.ADD | fw.Action.UPDATE_NODE_ALLOCATABLE, hints.after_node_event, compared_amounts),
            fw.on(fw.DEVICE_CLASS, fw.Action.ADD | fw.Action.UPDATE, after_device_class_event, named_resources),
            fw.on(fw.ASSIGNED_POD, fw.Action.UPDATE_POD_SCALE_DOWN, hints.after_pod_event, counted_resources),
            fw.on(fw.TARGET_POD, fw.Action.UPDATE_POD_SCALE_DOWN, hints.after_pod_event, counted_resources),
        )

    def sign(self, pod: fw.Pod) -> Hashable | None:
        """The amounts that Filter compares, and those that Score adds, if it counts no devices."""
        if pod.is_resize:
            return None
        if self._devices is not None and self._extended.classes_of(pod).keys() & self._devices.resources:
            return None
        return frozenset(fit_requests(pod).items()), self._scoring_requests(pod)

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        """Store the requests that Filter compares."""
        if pod.is_resize:
            state.write(_COMPARED, tuple(self._compared_for_resize(running_of(pod))))
            return None
        resources, last = pod.resources, self._last
        if last.compared_for is not resources or last.era is not self._extended.era:
            last.era = self._extended.era
            last.compared_for, last.compared = resources, tuple(self._compared(fit_requests(pod)))
        state.write(_COMPARED, last.compared)
        return None

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        """Return for each of `rows` the bits of insufficient resources. Raises LookupError if `pre_filter` was not run.

        Rule: fit.go (fitsRequest).
        """
        codes: Amount = 0
        full = amounts(nodes.pod_count, rows) >= amounts(nodes.allowed_pods, rows)
        if any_of(full):
            codes = full * TOO_MANY_PODS
        for bit, name, amount, by_devices in _compared_of(state):
            capacity = amounts(nodes.allocatable(name), rows)
            short = capacity - amounts(nodes.requested(name), rows) < amount
            if by_devices:
                short = short & (capacity > 0)
            if any_of(short):
                codes = codes | short * bit | (short & (capacity < amount)) * UNRESOLVABLE
        if isinstance(codes, int):
            return np.full(len(rows), codes, np.int32) if codes else None
        return codes.astype(np.int32)

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        """Name all resources that are insufficient. Rule: fit.go (Filter)."""
        reasons = ["Too many pods"] if code & TOO_MANY_PODS else []
        reasons += (f"Insufficient {name}" for bit, name, _, _ in _compared_of(state) if code & bit)
        return fw.unresolvable(*reasons) if code & UNRESOLVABLE else fw.unschedulable(*reasons)

    def demand(self, pod: fw.Pod) -> Mapping[str, int]:
        """Return what Filter compares, without what devices may serve instead."""
        compared = self._compared(fit_requests(pod))
        return {PODS: 1, **{each.name: each.amount for each in compared if not each.by_devices}}

    def obstacles(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> Sequence[fw.Obstacle]:
        """The insufficient resources, and how much of each is missing."""
        return list(fit_obstacles(pod, _compared_of(state), node))

    def simulator(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> FitSimulator:
        """Simulate nodes in plain integers."""
        return FitSimulator(_compared_of(state), nodes)

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.Status | None:
        """Store the requests that Score adds. Score computes them itself where PreScore is disabled."""
        resources, last = pod.resources, self._last
        if last.added_for is not resources:
            last.added_for, last.added = resources, self._scoring_requests(pod)
        state.write(_ADDED, last.added)
        return None

    def score_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int64Column | None:
        """Return the score of each of `rows`, 0 to 100."""
        resources = self.scoring_strategy.resources
        requests = state.get(_ADDED, tuple) or self._scoring_requests(pod)
        return score_resources(resources, requests, nodes, rows, self._scorer, self._devices, non_zero=True)

    def score_placement(self, state: fw.CycleState, pod: fw.Pod, assignments: fw.PodGroupAssignments) -> int:
        """Return how full all nodes of the placement together are then, 0 to 100. Rule: fit.go (ScorePlacement)."""
        resources, rows = self.scoring_strategy.resources, assignments.placement.rows
        pods = np.array([self._scoring_requests(each.pod) for each in assignments.proposed], np.int64)
        requests = pods.reshape(-1, len(resources)).sum(axis=0).tolist()
        score = most_allocated(usages_of_placement(resources, requests, self._nodes, rows))
        return score if isinstance(score, int) else score.item()

    def _compared_for_resize(self, running: fw.Pod) -> Iterator[Compared]:
        """The resources that a resized pod asks for: enough as long as no more than all is taken, for the node counts
        its requests. Rule: adjustDeltasToAccomodateCacheDiscrepancy."""
        return (each._replace(amount=0) for each in self._compared(fit_requests(running)))

    def _compared(self, requests: Mapping[str, int]) -> Iterator[Compared]:
        """Each resource that Filter compares.

        There are 29 bits: if a pod requests more resources, the rest share the last bit.
        """
        bit, by_devices = _FIRST_RESOURCE, self._extended.chosen
        for name in (CPU, MEMORY, EPHEMERAL_STORAGE, *sorted(requests.keys() - _NATIVE)):
            amount = requests.get(name, 0)
            if amount > 0 and not self._is_ignored(name):
                yield Compared(1 << bit, name, amount, name in by_devices)
                bit = min(bit + 1, _LAST_RESOURCE)

    def _is_ignored(self, name: str) -> bool:
        if not (self.ignored_resources or self.ignored_resource_groups) or not is_extended_resource(name):
            return False
        return name in self.ignored_resources or name.partition("/")[0] in self.ignored_resource_groups

    def _scoring_requests(self, pod: fw.Pod) -> tuple[int, ...]:
        """The pod's amount of each resource that counts in the score. Rule: calculatePodResourceRequest."""
        if pod.spec.resources is None and not reports_resources(pod.status):
            resources = pod.resources  # already computed, and equal: there is nothing to leave out
            requests = {**requests_of(resources), CPU: resources.non_zero_cpu, MEMORY: resources.non_zero_memory}
        else:
            requests = to_amounts(pod_requests(pod.spec, None, missing=DEFAULT_REQUESTS, pod_level=False))
        return tuple([requests.get(resource.name, 0) for resource in self.scoring_strategy.resources])

    def _problems_of_ignored(self) -> Iterator[tuple[str, str]]:
        for i, name in enumerate(self.ignored_resources):
            for problem in label_key_problems(name):
                yield f"ignoredResources[{i}]", invalid(name, problem)
        for i, group in enumerate(self.ignored_resource_groups):
            path = f"ignoredResourceGroups[{i}]"
            if "/" in group:
                yield path, invalid(group, "resource group name can't contain '/'")
            for problem in label_key_problems(group):
                yield path, invalid(group, problem)


_NATIVE = frozenset((CPU, MEMORY, EPHEMERAL_STORAGE))


def _compared_of(state: fw.CycleState) -> tuple[Compared, ...]:
    return state.read(_COMPARED, tuple, 'error reading "{key}" from cycleState: not found')


def _scorer_of(strategy: ScoringStrategy) -> Scorer:
    if strategy.requested_to_capacity_ratio is not None:
        return partial(requested_to_capacity_ratio, strategy.requested_to_capacity_ratio.shape)
    return most_allocated if strategy.type == MOST_ALLOCATED else least_allocated


def _problems_of_strategy(strategy: ScoringStrategy) -> Iterator[tuple[str, str]]:
    if strategy.type not in _STRATEGIES:
        yield "scoringStrategy.type", not_supported(strategy.type, _STRATEGIES)
    for i, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= MAX_WEIGHT:
            detail = f"resource weight of {resource.name} not in valid range (0, {MAX_WEIGHT}]"
            yield f"scoringStrategy.resources[{i}].weight", invalid(resource.weight, detail)
    ratio = strategy.requested_to_capacity_ratio
    path = "scoringStrategy.requestedToCapacityRatio"
    if strategy.type != REQUESTED_TO_CAPACITY_RATIO:
        if ratio is not None:
            yield path, forbidden("must be nil when type is not RequestedToCapacityRatio")
    elif ratio is None:
        yield path, required("must be specified when type is RequestedToCapacityRatio")
    else:
        yield from problems_of_shape(ratio.shape, f"{path}.shape")


def fit_obstacles(pod: fw.Pod, compared: Iterable[Compared], node: fw.NodeInfo) -> Iterator[fw.Obstacle]:
    """Yield the insufficient resources of a node, each with the missing amount."""
    allowed = node.allocatable.get("pods", 0)
    if len(node.pods) > allowed:
        yield fw.Obstacle(f"has {len(node.pods)} pods, and may have {allowed}")
    elif len(node.pods) == allowed:
        yield fw.Obstacle(f"all {allowed} pods that it may have are there")
    for _, name, wanted, by_devices in compared:
        capacity = node.allocatable.get(name, 0)
        free = capacity - node.requested.get(name, 0)
        if free >= wanted or (by_devices and not capacity):
            continue
        remedies = tuple(_less(pod, name, wanted, max(free, 0)))
        if not capacity and is_extended_resource(name):
            yield fw.Obstacle(f"has no {name}", remedies)
        else:
            shortage = fw.Shortage(name, wanted - free, wanted, max(0, wanted - capacity))
            yield fw.Obstacle(f"short of {name}", remedies, shortage)


def _less(pod: fw.Pod, resource: str, wanted: int, free: int) -> Iterator[fw.Remedy]:
    """Request the free amount. A pod can do without an extended resource, but hardly without cpu or memory."""
    if not free and not is_extended_resource(resource):
        return
    changes = lowered_to(pod, resource, free)
    if changes:
        less = f"ask for {spelled(resource, wanted - free)} {resource} less in"
        yield fw.Remedy(f"{less if free else f'drop the request for {resource} of'} {askers(pod, changes)}", changes)
