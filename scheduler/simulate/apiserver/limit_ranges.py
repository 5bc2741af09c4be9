"""A LimitRange: what it gives the containers of a new pod, and what it refuses.

Rules: plugin/pkg/admission/limitranger/admission.go and SetDefaults_LimitRangeItem at v1.36.3.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from scheduler.api.decoding import Unreadable, convert
from scheduler.api.objects import Container, ResourceList, ResourceRequirements, Wire
from scheduler.api.pods.requests import pod_limits, pod_requests
from scheduler.api.quantities.go_quantity import INT64_MAX, GoQuantity
from scheduler.api.quantities.quantity import NANO, parse_quantity


class LimitRangeItem(Wire, frozen=True):
    type: str = ""
    max: ResourceList | None = None
    min: ResourceList | None = None
    default: ResourceList | None = None
    default_request: ResourceList | None = None
    max_limit_request_ratio: ResourceList | None = None


class _Spec(msgspec.Struct):
    limits: tuple[LimitRangeItem, ...] | None = None


class LimitRange:
    def __init__(self, name: str, content: Mapping[str, Any]) -> None:
        """Raises Unreadable."""
        self.name = name
        items = convert(content.get("spec") or {}, _Spec).limits or ()
        for item in items:
            for amounts in (item.max, item.min, item.default, item.default_request, item.max_limit_request_ratio):
                for resource, text in (amounts or {}).items():
                    try:
                        parse_quantity(text)
                    except ValueError as error:
                        raise Unreadable(f"spec.limits: {resource}: {error}") from error
        self._of_containers: Final = [_completed(item) for item in items if item.type == "Container"]
        self._of_pods: Final = [item for item in items if item.type == "Pod"]

    def with_defaults(self, pod: Any) -> Any:
        """Return the pod with the requests and limits that its containers lack."""
        limits: dict[str, Any] = {}
        requests: dict[str, Any] = {}
        for item in self._of_containers:
            limits |= item.default or {}
            requests |= item.default_request or {}
        if not limits and not requests:
            return pod
        spec = pod.spec
        changed = replace(
            spec,
            containers=_with(spec.containers, requests, limits),
            init_containers=_with(spec.init_containers, requests, limits),
        )
        return replace(pod, spec=changed)

    def problems(self, pod: Any) -> Iterator[str]:
        spec = pod.spec
        for item in self._of_containers:
            for container in (*(spec.containers or ()), *(spec.init_containers or ())):
                resources = container.resources or ResourceRequirements()
                yield from _problems("Container", item, _written(resources.requests), _written(resources.limits))
        for item in self._of_pods:
            bare = replace(spec, overhead=None)
            yield from _problems("Pod", item, _summed(pod_requests(bare, None)), _summed(pod_limits(bare)))


def _completed(item: LimitRangeItem) -> LimitRangeItem:
    default = {**(item.max or {}), **(item.default or {})}
    request = {**(item.min or {}), **default, **(item.default_request or {})}
    return replace(item, default=default, default_request=request)


def _with(
    containers: Sequence[Container] | None, requests: dict[str, Any], limits: dict[str, Any]
) -> tuple[Container, ...] | None:
    if containers is None:
        return None
    done = []
    for container in containers:
        own = container.resources or ResourceRequirements()
        resources = replace(own, requests={**requests, **(own.requests or {})}, limits={**limits, **(own.limits or {})})
        done.append(replace(container, resources=resources))
    return tuple(done)


Amounts = Mapping[str, tuple[int, str]]
"""Resource → amount in billionths, and as it is shown."""


def _written(resources: ResourceList | None) -> Amounts:
    return {name: (parse_quantity(text), str(text)) for name, text in (resources or {}).items()}


def _summed(totals: Mapping[str, int | GoQuantity]) -> Amounts:
    return {
        name: (amount, f"{amount / NANO:g}" if amount % NANO else f"{amount // NANO}")
        for name, amount in totals.items()
        if isinstance(amount, int)
    }


def _problems(what: str, item: LimitRangeItem, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, (least, shown) in _written(item.min).items():
        yield from _below(f"minimum {name} usage per {what} is {shown}", name, least, requests, limits)
    for name, (most, shown) in _written(item.max).items():
        yield from _above(f"maximum {name} usage per {what} is {shown}", name, most, requests, limits)
    for name, (ratio, shown) in _written(item.max_limit_request_ratio).items():
        start = f"{name} max limit to request ratio per {what} is {shown}, but"
        request, limit = requests.get(name, (0, ""))[0], limits.get(name, (0, ""))[0]
        if not request:
            yield f"{start} no request is specified or request is 0"
        elif not limit:
            yield f"{start} no limit is specified or limit is 0"
        elif limit * NANO > request * ratio:
            yield f"{start} provided ratio is {min(limit, INT64_MAX * NANO) / request:f}"


def _below(start: str, name: str, least: int, requests: Amounts, limits: Amounts) -> Iterator[str]:
    if name not in requests:
        yield f"{start}.  No request is specified"
    elif requests[name][0] < least:
        yield f"{start}, but request is {requests[name][1]}"
    elif name in limits and limits[name][0] < least:
        yield f"{start}, but limit is {limits[name][1]}"


def _above(start: str, name: str, most: int, requests: Amounts, limits: Amounts) -> Iterator[str]:
    if name not in limits:
        yield f"{start}.  No limit is specified"
    elif limits[name][0] > most:
        yield f"{start}, but limit is {limits[name][1]}"
    elif name in requests and requests[name][0] > most:
        yield f"{start}, but request is {requests[name][1]}"
