"""A pod's requests to a node: resources as kube-scheduler counts them, and host ports.

Rules: k8s.io/component-helpers resource/helpers.go (PodRequests), pkg/scheduler/framework/types.go (Resource,
CalculateResource) and pkg/scheduler/util (GetHostPorts), all at v1.37.2 with their feature gates at the defaults.
"""

import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from scheduler.api.objects import Container, ContainerStatus, PodSpec, PodStatus, ResourceList, ResourceRequirements
from scheduler.api.pods.device_amounts import Read, Totals, add, device_amounts
from scheduler.api.quantities.go_quantity import GoQuantity
from scheduler.api.quantities.quantity import NANO, PLAIN_MAX, is_plain, parse_quantity, to_milli, to_value, value_of
from scheduler.api.read_only import ReadOnlyStruct, unguarded

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"

DEFAULT_MILLI_CPU: Final = 100
"""Thousandths of a core that scoring assumes for a container without a cpu request."""

DEFAULT_MEMORY: Final = 200 * 1024 * 1024
"""Bytes that scoring assumes for a container without a memory request."""

DEFAULT_REQUESTS: Final[Mapping[str, str]] = {CPU: f"{DEFAULT_MILLI_CPU}m", MEMORY: str(DEFAULT_MEMORY)}
"""The requests that scoring assumes for a container without requests for cpu or memory."""

overhead_of: Final = unguarded(PodSpec, "overhead")
_requests_of: Final = unguarded(ResourceRequirements, "requests")
"""As they are stored: they are read for each pod that comes."""

_MILLI: Final = NANO // 1000
"""Billionths in a thousandth."""

_Source: TypeAlias = Callable[[Container], ResourceList | None]


class HostPort(NamedTuple):
    """A port that a pod takes on its node. An empty `ip` means every address, as 0.0.0.0 does."""

    ip: str
    protocol: str
    port: int


class PodResources(ReadOnlyStruct, frozen=True, gc=False):
    """Amounts of one pod: cpu in thousandths of a core, all others in units or bytes."""

    requests: Mapping[str, int]
    """The requests that Filter counts. Resources that scheduling does not know are left out."""

    non_zero_cpu: int
    """cpu for scoring: containers without a request count DEFAULT_MILLI_CPU."""

    non_zero_memory: int
    """Memory for scoring: containers without a request count DEFAULT_MEMORY."""

    overflown: frozenset[str] = frozenset()
    """Those of `requests` of which Go's int64 overflowed: negative, or 0 though something is asked for."""


requests_of: Final = unguarded(PodResources, "requests")
"""The requests as they are stored, for the engine: they are read whenever a pod is counted."""


def resources_of(spec: PodSpec, status: PodStatus) -> PodResources:
    """Return the amounts with which a pod counts on its node, resizes in progress included.

    Raises ValueError for a quantity that cannot be read.
    """
    requests = pod_requests(spec, status)
    missing = DEFAULT_REQUESTS
    if _has_pod_level_requests(spec):
        missing = {name: amount for name, amount in DEFAULT_REQUESTS.items() if name not in requests}
    elif _names_all(spec, missing) and not reports_resources(status):
        missing = {}
    non_zero = pod_requests(spec, status, missing=missing) if missing else requests
    amounts = to_amounts(requests)
    overflown = []
    for name, amount in amounts.items():
        if amount <= 0 and requests[name]:
            overflown.append(name)
    return PodResources(
        amounts,
        to_milli(non_zero.get(CPU, 0)),
        to_value(non_zero.get(MEMORY, 0)),
        frozenset(overflown) if overflown else _NOTHING,
    )


def pod_requests(
    spec: PodSpec,
    status: PodStatus | None,
    *,
    missing: Mapping[str, str] | None = None,
    pod_level: bool = True,
) -> Totals:
    """Return a pod's requests, overhead included: for `to_amounts`.

    With a `status`, a resize in progress counts with the largest of what is asked, allocated and actuated in all.
    `missing` stands in for resources that a container does not name. `pod_level` says whether requests of the
    pod as a whole replace the sum of its containers. Raises ValueError for a quantity that cannot be read.
    """
    requests = _pod_requests(spec, status, missing, pod_level, parse_quantity)
    for amount in requests.values():
        if not 0 <= amount <= PLAIN_MAX:
            return _pod_requests(spec, status, missing, pod_level, GoQuantity.parse)
    return requests


def _pod_requests(
    spec: PodSpec, status: PodStatus | None, missing: Mapping[str, str] | None, pod_level: bool, read: Read
) -> Totals:
    stand_in = _parsed(missing, read)
    requests = _container_requests(spec, status, stand_in, read)
    if pod_level and spec.resources is not None and spec.resources.requests and _has_pod_level_requests(spec):
        of_pod = _parsed(spec.resources.requests, read)
        if status is not None and status.resources is not None:
            of_pod = {} if _is_resize_infeasible(status) else of_pod
            _raise_to(of_pod, _parsed(status.resources.requests, read))
            _raise_to(of_pod, _parsed(status.allocated_resources, read))
        requests |= {name: amount for name, amount in of_pod.items() if is_pod_level_resource(name)}
    if overhead := overhead_of(spec):
        add(requests, _parsed(overhead, read))
    return requests


def pod_limits(spec: PodSpec) -> Totals:
    """Return what a pod may use at most, overhead included where there is a limit: for `to_amounts`.

    Raises ValueError for a quantity that cannot be read.
    """
    limits = _pod_limits(spec, parse_quantity)
    if all(map(is_plain, limits.values())):
        return limits
    return _pod_limits(spec, GoQuantity.parse)


def container_requests(spec: PodSpec, status: PodStatus) -> Totals:
    """Return what the containers of a pod ask for, with what it takes by devices, in billionths.

    Raises ValueError for a quantity that cannot be read.
    """
    return _container_requests(spec, status, {}, parse_quantity)


def container_limits(spec: PodSpec, read: Read = parse_quantity) -> Totals:
    """Return the limits of the containers of a pod. Raises ValueError for a quantity that cannot be read."""
    return _summed(spec, lambda container: _parsed(container.resources.limits if container.resources else None, read))


def _pod_limits(spec: PodSpec, read: Read) -> Totals:
    limits = container_limits(spec, read)
    of_pod = spec.resources
    if of_pod is not None and any(map(is_pod_level_resource, (*(of_pod.requests or ()), *(of_pod.limits or ())))):
        limits |= {name: amount for name, amount in _parsed(of_pod.limits, read).items() if is_pod_level_resource(name)}
    for name, amount in _parsed(spec.overhead, read).items():
        if limits.get(name):
            limits[name] = limits[name] + amount
    return limits


def to_amounts(totals: Totals) -> dict[str, int]:
    """Return the resources that scheduling counts, cpu in thousandths, others in units, each rounded up."""
    counted = {name: amount for name, amount in totals.items() if name in _NATIVE or is_scalar_resource(name)}
    for name, amount in counted.items():
        if amount.__class__ is GoQuantity:
            return {name: amount.milli() if name == CPU else amount.value() for name, amount in counted.items()}
        counted[name] = -(-amount // (_MILLI if name == CPU else NANO))
    return counted


def allocatable_of(resources: ResourceList | None) -> dict[str, int]:
    """Return a node's allocatable amounts, `pods` included. Raises ValueError for an unreadable quantity."""
    parsed = _parsed(resources, parse_quantity)
    if not all(map(is_plain, parsed.values())):
        parsed = _parsed(resources, GoQuantity.parse)
    amounts = to_amounts(parsed)
    if resources and PODS in resources:
        amounts[PODS] = value_of(resources[PODS])
    return amounts


def host_ports_of(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the host ports of sidecars, then of containers, in their order."""
    if not spec.init_containers and not any(c.ports for c in spec.containers or ()):
        return ()
    running = [c for c in spec.init_containers or () if c.is_sidecar] + list(spec.containers or ())
    return tuple(
        HostPort(port.host_ip, port.protocol or "TCP", port.host_port)
        for container in running
        for port in container.ports or ()
        if port.host_port > 0
    )


@lru_cache(maxsize=4096)
def is_extended_resource(name: str) -> bool:
    """Return whether `name` is a resource that a device plugin or an administrator advertises."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    domain, _, short = f"requests.{name}".partition("/")
    return bool(_QUALIFIED_NAME.fullmatch(short)) and len(domain) <= 253 and bool(_SUBDOMAIN.fullmatch(domain))


@lru_cache(maxsize=4096)
def is_scalar_resource(name: str) -> bool:
    """Return whether scheduling counts `name`, in addition to cpu, memory, ephemeral storage and the number of pods."""
    return (
        is_extended_resource(name) or name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name
    )


_NATIVE = frozenset((CPU, MEMORY, EPHEMERAL_STORAGE))
_NOTHING: frozenset[str] = frozenset()
_QUALIFIED_NAME = re.compile(r"(?=.{1,63}$)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def _container_requests(spec: PodSpec, status: PodStatus | None, missing: Totals, read: Read) -> Totals:
    """Rule: AggregateContainerRequests."""

    def total(source: _Source) -> Totals:
        return _summed(spec, lambda container: {**missing, **_parsed(source(container), read)})

    if status is None or not reports_resources(status):
        return total(_asked)
    of_devices = device_amounts(status, read)

    def with_devices(source: _Source) -> Totals:
        found = total(source)
        add(found, of_devices)
        return found

    reported = _Reported(status)
    largest = {} if reported.is_infeasible else with_devices(_asked)
    of_pod = status.resources
    if of_pod is not None and of_pod.requests is not None and status.allocated_resources is not None:
        _raise_to(largest, _parsed(of_pod.requests, read))
        _raise_to(largest, _parsed(status.allocated_resources, read))
    elif not reported.is_as_asked(spec):
        _raise_to(largest, total(reported.actuated))
        _raise_to(largest, with_devices(reported.allocated))
    return largest


def _asked(container: Container) -> ResourceList | None:
    return _requests_of(container.resources) if container.resources is not None else None


class _Reported:
    """The requests of containers as a kubelet reports them. Those of an infeasible resize do not count."""

    __slots__ = ("_statuses", "is_infeasible")

    def __init__(self, status: PodStatus) -> None:
        self.is_infeasible = _is_resize_infeasible(status)
        self._statuses = _statuses_by_name(status)

    def actuated(self, container: Container) -> ResourceList | None:
        status = self._statuses.get(container.name)
        if status is not None and status.resources is not None and status.resources.requests is not None:
            return status.resources.requests
        return self.allocated(container)

    def allocated(self, container: Container) -> ResourceList | None:
        status = self._statuses.get(container.name)
        if status is not None and status.allocated_resources is not None:
            return status.allocated_resources
        return None if self.is_infeasible else _asked(container)

    def is_as_asked(self, spec: PodSpec) -> bool:
        """Return whether all reported amounts are the requested ones, written in the same way: nearly always."""
        return not self.is_infeasible and all(
            self.actuated(container) == self.allocated(container) == _asked(container)
            for container in (*(spec.containers or ()), *(spec.init_containers or ()))
        )


def _summed(spec: PodSpec, amounts_of: Callable[[Container], Totals]) -> Totals:
    """Sum the containers; then raise the sum to what startup needs, when init containers run one after another.

    An init container runs alongside the sidecars that were started before it:
    https://github.com/kubernetes/enhancements/tree/master/keps/sig-node/753-sidecar-containers
    """
    total: Totals = {}
    for container in spec.containers or ():
        add(total, amounts_of(container))
    if not spec.init_containers:
        return total
    sidecars: Totals = {}
    peak: Totals = {}
    for container in spec.init_containers:
        wanted = amounts_of(container)
        if container.is_sidecar:
            add(total, wanted)
            add(sidecars, wanted)
            at_once = {name: sidecars[name] for name in wanted}
        else:
            at_once = dict(wanted)
            add(at_once, {name: sidecars[name] for name in wanted if name in sidecars})
        # For all other resources the peak has at least the sidecars already.
        _raise_to(peak, at_once)
    _raise_to(total, peak)
    return total


def _statuses_by_name(status: PodStatus) -> dict[str, ContainerStatus]:
    every = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    return {reported.name: reported for reported in reversed(every)}


def _is_resize_infeasible(status: PodStatus) -> bool:
    for condition in status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def reports_resources(status: PodStatus) -> bool:
    """Return whether the status can change what a pod asks for: its kubelet has reported what it has, or it takes
    resources by devices."""
    return bool(
        status.container_statuses
        or status.init_container_statuses
        or status.resources
        or status.node_allocatable_resource_claim_statuses
        or (status.conditions and _is_resize_infeasible(status))
    )


def _names_all(spec: PodSpec, names: Collection[str]) -> bool:
    """Return whether each container asks for all of these, if only for none of it."""
    for containers in (spec.containers or (), spec.init_containers or ()):
        for container in containers:
            requests = _requests_of(container.resources) if container.resources is not None else None
            if requests is None:
                return False
            for name in names:
                if name not in requests:
                    return False
    return True


def _has_pod_level_requests(spec: PodSpec) -> bool:
    return spec.resources is not None and any(map(is_pod_level_resource, spec.resources.requests or ()))


def is_pod_level_resource(name: str) -> bool:
    """Return whether a pod as a whole can ask for it."""
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _parsed(resources: Mapping[str, str | int | float] | None, read: Read) -> Totals:
    if not resources:
        return {}
    try:
        return {name: read(text) for name, text in resources.items()}
    except ValueError as error:
        raise ValueError(f"resources {resources}: {error}") from error


def _raise_to(total: Totals, other: Totals) -> None:
    for name, amount in other.items():
        if name not in total:
            total[name] = amount
        elif isinstance(amount, GoQuantity):
            total[name] = total[name].raised_to(amount)
        elif amount > total[name]:
            total[name] = amount
