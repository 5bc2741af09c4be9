"""NodeResourcesFit's obstacles: a node that is too small or too full, and how much less would fit there."""

from collections.abc import Iterable, Iterator

from plugins.node_resources.fit_dry_run import Compared
from plugins.node_resources.lower_requests import askers, lowered_to
from scheduler import framework as fw
from scheduler.api.pods.requests import is_extended_resource
from scheduler.api.wording.spelling import spelled


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
