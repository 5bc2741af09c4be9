"""Pods' requests to NUMA nodes, by container and in sum, and the quality of service that follows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from plugins.contrib.node_resource_topology.topology import MAX_AMOUNT
from scheduler import framework as fw
from scheduler.api.objects import Container, ResourceList, ResourceRequirements
from scheduler.api.pods.requests import CPU, EPHEMERAL_STORAGE, MEMORY
from scheduler.api.quantities.quantity import parse_quantity, to_milli, to_value

Amounts = tuple[tuple[str, int], ...]
"""Resource, amount above 0: thousandths of a core, units or bytes; by name."""

_NATIVE_PREFIX: Final = "kubernetes.io/"

_TOO_MUCH: Final = MAX_AMOUNT + 1
"""No zone has it, and it is an int64 as columns are, whatever a pod asks for."""


class Asked(NamedTuple):
    """The parts of a pod that an answer depends on."""

    init: tuple[Amounts, ...]
    """Init containers that end before the next container starts."""

    sidecars: tuple[Amounts, ...]
    containers: tuple[Amounts, ...]
    whole: Amounts
    """The pod's effective requests."""

    guaranteed: bool
    concerns: bool
    """Whether NUMA nodes matter to it: not to a BestEffort pod without devices."""

    @property
    def resources(self) -> frozenset[str]:
        """The names of all that it asks for."""
        every = (*self.init, *self.sidecars, *self.containers, self.whole)
        return frozenset(name for amounts in every for name, _ in amounts)


def asked(pod: fw.Pod) -> Asked:
    """Return what a pod asks for. Raises ValueError for a quantity that cannot be read."""
    init = pod.spec.init_containers or ()
    containers = pod.spec.containers or ()
    every = (*init, *containers)
    guaranteed, best_effort = _quality(pod, every)
    has_devices = any(not is_native(name) for each in every for name in _requests(each) or ())
    return Asked(
        tuple(_amounts(_requests(each)) for each in init if not each.is_sidecar),
        tuple(_amounts(_requests(each)) for each in init if each.is_sidecar),
        tuple(_amounts(_requests(each)) for each in containers),
        tuple(sorted((name, min(amount, _TOO_MUCH)) for name, amount in pod.requests.items() if amount > 0)),
        guaranteed,
        has_devices or not best_effort,
    )


def is_native(resource: str) -> bool:
    """Rule: k8s.io/kubernetes pkg/apis/core/v1/helper/helpers.go (IsNativeResource)."""
    return "/" not in resource or _NATIVE_PREFIX in resource


def is_numa_affine(resource: str) -> bool:
    """Return whether it is always a NUMA node's. Rule: numaresources.go (isNUMAAffineResource)."""
    return resource in (CPU, MEMORY) or resource.startswith("hugepages-")


def may_be_of_the_host(resource: str) -> bool:
    """Return whether a node may have it without any of its NUMA nodes. Rule: filter.go
    (resourcesAvailableInAnyNUMANodes)."""
    return resource == EPHEMERAL_STORAGE or not is_native(resource)


def _requests(container: Container) -> ResourceList | None:
    return container.resources.requests if container.resources is not None else None


def _amounts(requests: ResourceList | None) -> Amounts:
    """Raises ValueError."""
    found = []
    for name in sorted(requests or ()):
        nanos = parse_quantity((requests or {})[name])
        amount = to_milli(nanos) if name == CPU else to_value(nanos)
        if amount > 0:
            found.append((name, min(amount, _TOO_MUCH)))
    return tuple(found)


def _quality(pod: fw.Pod, containers: Sequence[Container]) -> tuple[bool, bool]:
    """Return whether it is Guaranteed, and whether it is BestEffort.

    Rule: k8s.io/kubernetes pkg/apis/core/v1/helper/qos/qos.go (ComputePodQOS): of cpu and memory only.
    """
    whole = pod.spec.resources
    if whole is not None and (whole.requests or whole.limits):
        return _is_guaranteed([whole]), False
    listed = [each.resources or ResourceRequirements() for each in containers]
    best_effort = not any(_compute(each.requests) or _compute(each.limits) for each in listed)
    return not best_effort and _is_guaranteed(listed), best_effort


def _is_guaranteed(listed: Iterable[ResourceRequirements]) -> bool:
    for each in listed:
        limits, requests = _compute(each.limits), _compute(each.requests)
        if limits.keys() != {CPU, MEMORY} or {**limits, **requests} != limits:
            return False
    return True


def _compute(amounts: ResourceList | None) -> Mapping[str, int]:
    """The cpu and memory of a list that are above 0. Raises ValueError."""
    found = {name: parse_quantity(amounts[name]) for name in (CPU, MEMORY) if amounts and name in amounts}
    return {name: amount for name, amount in found.items() if amount > 0}
