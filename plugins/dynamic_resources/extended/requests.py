"""The extended resources of a pod's containers, as requests of a claim.

Init containers run one after another and before the others, so all of them share one request per resource, for what
the longest-lived devices do not cover: those of sidecars that start later and of containers are idle until then. Rule:
dynamicresources/extendeddynamicresources.go at v1.36.3 (createRequestsAndMappings).
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from scheduler import framework as fw
from scheduler.api.devices import MAX_RESULTS, DeviceRequest, ExactRequest
from scheduler.api.quantities.go_quantity import GoQuantity


class RequestMapping(NamedTuple):
    """The request with the devices for one resource of a container: an entry of the pod's status."""

    container: str
    resource: str
    request: str

    def written(self) -> dict[str, str]:
        """Return the entry as the API has it."""
        return {"containerName": self.container, "resourceName": self.resource, "requestName": self.request}


class ClaimedDevices(NamedTuple):
    """The requests of a claim for extended resources, and the containers that they are for."""

    requests: tuple[DeviceRequest, ...]
    mappings: tuple[RequestMapping, ...]
    """Left out if the requests are for more devices than a claim can have."""


class _Wish(NamedTuple):
    """One resource of one container."""

    place: int
    """Of the container, counted from the first init container."""
    container: str
    lives_long: bool
    amount: int
    request: str
    """The name of a request for it."""


def claimed_devices(pod: fw.Pod, classes: Mapping[str, str]) -> ClaimedDevices:
    """Return what the pod asks for of these resources: `classes` has the name of the DeviceClass for each."""
    wishes: dict[str, list[_Wish]] = {}
    for resource, wish in _wishes(pod, classes):
        wishes.setdefault(resource, []).append(wish)
    requests: list[tuple[str, int, str]] = []
    mappings: list[RequestMapping] = []
    for resource in sorted(wishes):
        found, covered = _requests(wishes[resource])
        requests += [(name, count, classes[resource]) for name, count in found]
        mappings += [RequestMapping(container, resource, request) for container, request in covered]
    return ClaimedDevices(
        tuple(
            DeviceRequest(name=name, exactly=ExactRequest(device_class_name=class_name, count=count))
            for name, count, class_name in sorted(requests)
        ),
        tuple(mappings),
    )


def _wishes(pod: fw.Pod, classes: Mapping[str, str]) -> Iterator[tuple[str, _Wish]]:
    init_containers = pod.spec.init_containers or ()
    for place, container in enumerate((*init_containers, *(pod.spec.containers or ()))):
        written = (container.resources.requests if container.resources is not None else None) or {}
        for index, resource in enumerate(sorted(written)):
            if resource not in classes:
                continue
            amount = GoQuantity.parse(written[resource]).whole()
            if amount:
                lives_long = place >= len(init_containers) or container.is_sidecar
                request = f"container-{place}-request-{index}"
                yield resource, _Wish(place, container.name, lives_long, amount, request)


def _requests(wishes: Sequence[_Wish]) -> tuple[list[tuple[str, int]], list[tuple[str, str]]]:
    """Return name and count of each request for one resource, and container and request of those that get devices."""
    lasting = [wish for wish in wishes if wish.lives_long]
    covered = [(wish.container, wish.request) for wish in lasting]
    too_many = sum(wish.amount for wish in lasting) > MAX_RESULTS  # it will be refused, so the assignment is not read
    places = [wish.place for wish in lasting]
    left = [*accumulate((wish.amount for wish in reversed(lasting)), initial=0)][::-1]
    """The sums of the lasting requests from each one on."""
    shared: tuple[str, int] | None = None
    own: list[tuple[int, str, str]] = []
    """The index in `covered` and the request, of those that need more than the lasting ones."""
    for wish in wishes:
        if wish.lives_long:
            continue
        first = bisect_left(places, wish.place)
        missing = wish.amount - left[first]
        if not too_many:
            reused = 0
            for each in lasting[first:]:
                if reused >= wish.amount:
                    break
                reused += each.amount
                covered.append((wish.container, each.request))
        if missing > 0:
            own.append((len(covered), wish.container, wish.request))
            covered.append((wish.container, wish.request))
            if shared is None or shared[1] < missing:
                shared = wish.request, missing
    if shared is not None:
        for place, container, _ in own:
            covered[place] = container, shared[0]
    requests = [(wish.request, wish.amount) for wish in lasting]
    return requests + ([shared] if shared is not None else []), [] if too_many else covered
