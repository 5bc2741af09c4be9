"""Compares what a pod takes from its node, through devices and containers, with what is free there.

The devices that it gets differ between nodes, so it is compared here, where they are known. Rule:
dynamicresources/nodeallocatabledynamicresources.go at v1.37.2.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from plugins.dynamic_resources.allocation.pools import DevicesError
from plugins.dynamic_resources.amounts.statuses import AmountsOfClaims
from plugins.dynamic_resources.claim_state import ClaimState
from plugins.dynamic_resources.gates import DeviceGates
from plugins.dynamic_resources.pod_claims import is_reserved
from scheduler import framework as fw
from scheduler.api.objects import ClaimAmounts, PodSpec, PodStatus
from scheduler.api.pods.device_amounts import Totals, amounts_of_container, device_amounts
from scheduler.api.pods.requests import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    container_limits,
    container_requests,
    is_pod_level_resource,
    pod_requests,
    to_amounts,
)
from scheduler.api.quantities.quantity import parse_quantity

_NATIVE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
_HUGE_PAGES: Final = "hugepages-"


def refusal_of_sharing(pod: fw.Pod, claim_state: ClaimState, index: int, gates: DeviceGates) -> fw.Status | None:
    """Return why the pod cannot use an allocated claim that stands for resources of its node, as others use it."""
    claim = claim_state.claims[index]
    is_of_others = claim.status.reserved_for and not is_reserved(pod, claim, gates)
    if index not in claim_state.shared and not is_of_others:
        return None
    why = "has a mapped device and cannot be shared across pods"
    return fw.unresolvable(f"node allocatable resource claim {claim.metadata.name} {why}")


def refuse(
    amounts: AmountsOfClaims, pod: fw.Pod, claim_state: ClaimState, rows: fw.Rows, codes: fw.Int32Column
) -> None:
    """Write the code of a refusal for each of `rows` that has the devices, and not enough of all else.

    Raises DevicesError.
    """
    places = np.flatnonzero(codes == 0)
    for found, among in amounts.by_amounts(pod, claim_state, rows[places]):
        demand = claim_state.demands.get(found)
        if demand is None:
            demand = claim_state.demands[found] = _demand(pod.spec, found)
        those = places[among]
        if isinstance(demand, fw.Status):
            codes[those] = claim_state.code_of(demand)
            continue
        for refusal, here in _insufficient(demand, claim_state.nodes, rows[those]):
            codes[those[here]] = claim_state.code_of(refusal)


def _demand(spec: PodSpec, found: tuple[ClaimAmounts, ...]) -> fw.Status | Mapping[str, int]:
    """Return what a pod takes by containers and devices, or why it cannot have that. Raises DevicesError."""
    status = PodStatus(node_allocatable_resource_claim_statuses=found)
    try:
        return _too_small(spec, status) or to_amounts(pod_requests(spec, status))
    except ValueError as error:
        raise DevicesError(str(error)) from error


def _insufficient(
    requests: Mapping[str, int], nodes: fw.NodeColumns, rows: fw.Rows
) -> Iterator[tuple[fw.Status, fw.BoolColumn]]:
    """Yield each refusal, with the part of `rows` that it is for. Rule: nodeFitsResources."""
    huge_pages = sorted(name for name in requests if name.startswith(_HUGE_PAGES))
    compared = [name for name in (*_NATIVE, *huge_pages) if requests.get(name, 0) > 0 or name in huge_pages]
    short = np.zeros((len(compared) + 1, len(rows)), np.bool_)
    for i, name in enumerate(compared):
        capacity = nodes.allocatable(name)[rows]
        short[i] = requests[name] > capacity - nodes.requested(name)[rows]
        short[-1] |= requests[name] > capacity
    for kind in np.unique(short[:, short.any(axis=0)], axis=1).T:
        reasons = [f"Insufficient {name}" for name, is_short in zip(compared, kind, strict=False) if is_short]
        if reasons:
            refusal = fw.unresolvable(*reasons) if kind[-1] else fw.unschedulable(*reasons)
            yield refusal, (short == kind[:, None]).all(axis=0)


def _too_small(spec: PodSpec, status: PodStatus) -> fw.Status | None:
    """Return why the pod as a whole has less than its containers and devices need.

    Rule: validatePodLevelResourcesCoverDRA.
    """
    of_pod = spec.resources
    if of_pod is None:
        return None
    if of_pod.requests:
        needed = container_requests(spec, status)
        for name, text in sorted(of_pod.requests.items()):
            if is_pod_level_resource(name) and needed.get(name, 0) > parse_quantity(text):
                return _not_covered("request", name, "the aggregated container and node-allocatable DRA requests")
    limits = {name: parse_quantity(text) for name, text in (of_pod.limits or {}).items()}
    return _limits_too_small(spec, status, limits) if limits else None


def _limits_too_small(spec: PodSpec, status: PodStatus, limits: Totals) -> fw.Status | None:
    of_devices, of_containers = device_amounts(status, parse_quantity), container_limits(spec)
    for name in sorted(limits):
        if name.startswith(_HUGE_PAGES) and of_devices.get(name, 0) + of_containers.get(name, 0) > limits[name]:
            return _not_covered("limit", name, "the aggregated container and node-allocatable DRA limits")
    for container in spec.containers or ():
        own = amounts_of_container(status, container.name, parse_quantity)
        for name, text in sorted(((container.resources.limits if container.resources else None) or {}).items()):
            if name.startswith(_HUGE_PAGES) or name not in limits:
                continue
            if parse_quantity(text) + own.get(name, 0) > limits[name]:
                return _not_covered("limit", name, f"the limit and DRA overhead for container {container.name}")
    return None


def _not_covered(kind: str, name: str, needed: str) -> fw.Status:
    return fw.unresolvable(f"pod level {kind} for {name} is insufficient to cover {needed}")
