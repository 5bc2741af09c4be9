"""The requests of a pod to lower so that it requests less of a resource in all.

A pod asks for the sum of its containers and sidecars, or for the most that an init container needs together with the
sidecars started before it, if that is more; or for its pod-level requests. Its overhead comes on top.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from plugins.shared.remedies import pointer
from scheduler import framework as fw
from scheduler.api.objects import Container, ResourceList, ResourceRequirements
from scheduler.api.pods.requests import CPU, is_extended_resource
from scheduler.api.quantities.quantity import parse_quantity, to_milli, to_value

MAX_NAMED: Final = 3
"""Containers that are named."""


@dataclass(slots=True)
class _Asker:
    """A container, and how much it asks for."""

    path: str
    """Of its resources, as a JSON pointer."""

    before: int
    after: int


def lowered_to(pod: fw.Pod, resource: str, total: int) -> tuple[fw.Change, ...]:
    """Return the changes after which the pod asks for `total` of a resource at most; none if its overhead is more."""
    most = total - _amount(pod.spec.overhead, resource)
    if most < 0:
        return ()
    askers = [*_askers(pod, resource, most)]
    whole = _Asker("/spec/resources", _requested(pod.spec.resources, resource), 0)
    if whole.before:
        whole.after = min(whole.before, most)
        askers.append(whole)
    kinds = ("limits", "requests") if _is_not_overcommitted(resource) else ("requests",)
    return tuple(
        fw.Change("replace", f"{each.path}/{kind}/{pointer(resource)}", _spelled(resource, each.after))
        for each in askers
        if each.after < each.before
        for kind in kinds
    )


def askers(pod: fw.Pod, changes: Sequence[fw.Change]) -> str:
    """Name the containers whose requests are changed: `container web and init container copy`."""
    names = []
    for path in dict.fromkeys(each.path.rpartition("/resources/")[0] for each in changes):
        _, key, place = ("", *path.removeprefix("/spec").split("/")[1:], "", "")[:3]
        if key == "containers":
            names.append(f"container {(pod.spec.containers or ())[int(place)].name}")
        elif key == "initContainers":
            names.append(f"init container {(pod.spec.init_containers or ())[int(place)].name}")
        else:
            names.append("spec.resources")
    more = [f"{len(names) - MAX_NAMED} more"] if len(names) > MAX_NAMED else []
    *others, last = [*names[:MAX_NAMED], *more]
    return f"{', '.join(others)} and {last}" if others else last


def _askers(pod: fw.Pod, resource: str, most: int) -> Iterator[_Asker]:
    """Yield the containers of a pod that asks for `most` at most: those with the largest requests are lowered."""
    containers = [_asker("containers", place, each, resource) for place, each in enumerate(pod.spec.containers or ())]
    sidecars: list[_Asker] = []
    for place, each in enumerate(pod.spec.init_containers or ()):
        asker = _asker("initContainers", place, each, resource)
        if each.is_sidecar:
            sidecars.append(asker)
        else:
            _lower([asker], [asker, *sidecars], most)
            _lower(sidecars, [asker, *sidecars], most)
            yield asker
    _lower(containers, [*containers, *sidecars], most)
    _lower(sidecars, [*containers, *sidecars], most)
    yield from (*containers, *sidecars)


def _lower(some: Sequence[_Asker], together: Sequence[_Asker], most: int) -> None:
    """Lower some of those who ask together, until they ask for `most` at most; the largest requests first."""
    for asker in sorted(some, key=lambda each: each.after, reverse=True):
        excess = sum(each.after for each in together) - most
        asker.after -= max(0, min(excess, asker.after))


def _asker(key: str, place: int, container: Container, resource: str) -> _Asker:
    amount = _requested(container.resources, resource)
    return _Asker(f"/spec/{key}/{place}/resources", amount, amount)


def _requested(resources: ResourceRequirements | None, resource: str) -> int:
    return _amount(resources.requests if resources is not None else None, resource)


def _amount(amounts: ResourceList | None, resource: str) -> int:
    nanos = parse_quantity((amounts or {}).get(resource, "0"))
    return to_milli(nanos) if resource == CPU else to_value(nanos)


def _spelled(resource: str, amount: int) -> str:
    return f"{amount}m" if resource == CPU and amount else str(amount)


def _is_not_overcommitted(resource: str) -> bool:
    """Return whether the limit has to be the request."""
    return is_extended_resource(resource) or resource.startswith("hugepages-")
