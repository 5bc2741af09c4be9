"""DynamicResources' obstacles: claims that keep a pod off a node."""

from collections.abc import Iterator, Sequence

from scheduler import framework as fw
from scheduler.api.devices import ResourceClaim


def no_devices(claims: Sequence[ResourceClaim]) -> Sequence[fw.Obstacle]:
    """Too few devices are free for the claims that have none yet; of several, none alone is to blame."""
    wanting = [claim for claim in claims if claim.status.allocation is None]
    if not wanting:
        return ()
    names = " and ".join(f"{claim.metadata.name} ({_classes(claim)})" for claim in wanting)
    return (fw.Obstacle(f"too few free devices for ResourceClaim {names}"),)


def elsewhere(claim: ResourceClaim) -> fw.Obstacle:
    """A claim has devices that the node cannot use."""
    return fw.Obstacle(f"ResourceClaim {claim.metadata.name} has devices that cannot be used on the node")


def _classes(claim: ResourceClaim) -> str:
    names = list(dict.fromkeys(_class_names(claim)))
    return f"class {' or '.join(names)}" if names else "no class"


def _class_names(claim: ResourceClaim) -> Iterator[str]:
    for request in claim.requests:
        if request.exactly is not None:
            yield request.exactly.device_class_name
        yield from (each.device_class_name for each in request.first_available or ())
