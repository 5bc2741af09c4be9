"""What NodeResourcesFit says of a node that is too small or too full, and how much less would fit there."""

from collections.abc import Iterable, Iterator

from plugins.node_resources.fit_dry_run import Compared
from plugins.shared.remedies import pointer
from scheduler import framework as fw
from scheduler.api.objects import Container
from scheduler.api.quantity import parse_quantity, to_milli, to_value
from scheduler.api.requests import CPU, is_extended_resource
from scheduler.api.spelling import spelled


def fit_obstacles(pod: fw.Pod, compared: Iterable[Compared], node: fw.NodeInfo) -> Iterator[fw.Obstacle]:
    """Yield what is insufficient on a node, each with how much is missing."""
    allowed = node.allocatable.get("pods", 0)
    if len(node.pods) >= allowed:
        yield fw.Obstacle(f"all {allowed} pods that it may have are there")
    for _, name, wanted, by_devices in compared:
        capacity = node.allocatable.get(name, 0)
        free = capacity - node.requested.get(name, 0)
        if free >= wanted or (by_devices and not capacity):
            continue
        if not capacity and is_extended_resource(name):
            yield fw.Obstacle(f"has no {name}")
        else:
            missing = wanted - max(free, 0)
            remedies = (_less(pod, name, missing),) if free > 0 else ()
            yield fw.Obstacle(f"short of {name}", remedies, fw.Shortage(name, missing, wanted))


def _less(pod: fw.Pod, resource: str, missing: int) -> fw.Remedy:
    """Lower the requests of the containers that ask for most, until that much less is asked for."""
    changes = []
    by_amount = sorted(enumerate(pod.spec.containers or ()), key=lambda each: _amount(each[1], resource), reverse=True)
    left = missing
    for place, container in by_amount:
        amount = _amount(container, resource)
        if left <= 0 or amount <= 0:
            break
        lower = max(amount - left, 0)
        left -= amount - lower
        text = f"{lower}m" if resource == CPU else str(lower)
        kinds = ("limits", "requests") if is_extended_resource(resource) else ("requests",)
        path = f"/spec/containers/{place}/resources"
        changes += [fw.Change("replace", f"{path}/{kind}/{pointer(resource)}", text) for kind in kinds]
    return fw.Remedy(f"ask for {spelled(resource, missing)} {resource} less", tuple(changes))


def _amount(container: Container, resource: str) -> int:
    resources = container.resources
    text = (resources.requests or {}).get(resource, "0") if resources is not None else "0"
    nanos = parse_quantity(text)
    return to_milli(nanos) if resource == CPU else to_value(nanos)
