"""The objects of a node except its pods, and those like them for a new node.

CSINode                       how many volumes it takes
ResourceSlices                its devices, in pools of its own
NodeResourceTopology          its NUMA nodes: all of them free, if their size is known
NodeMetrics                   how busy it is: not at all, as it will be measured before anything runs there

A new node does not have storage that is on one node only, by a PersistentVolume or a CSIStorageCapacity.
"""

from collections.abc import Mapping
from typing import Any, Final

from scheduler.framework.nodes.resources import ApiResource

_SLICES: Final = ("resource.k8s.io", "resourceslices")
_TOPOLOGIES: Final = ("topology.node.k8s.io", "noderesourcetopologies")
_METRICS: Final = ("metrics.k8s.io", "nodes")
_NAMED_BY_NODE: Final = (("storage.k8s.io", "csinodes"), _TOPOLOGIES, _METRICS)
"""Resources whose objects have the name of their node: group and plural."""


def belong_to_nodes(resource: ApiResource) -> bool:
    """Return whether objects of this resource belong to a node each."""
    return _key(resource) in (*_NAMED_BY_NODE, _SLICES)


def is_of_node(resource: ApiResource, content: Mapping[str, Any], node: str) -> bool:
    """Return whether an object, as parsed JSON, belongs to the node."""
    if _key(resource) in _NAMED_BY_NODE:
        return bool(part(content, "metadata").get("name") == node)
    return _key(resource) == _SLICES and part(content, "spec").get("nodeName") == node


def renamed(resource: ApiResource, content: Mapping[str, Any], like: str, name: str) -> dict[str, Any]:
    """Return an object like that of the node `like`, for a new node of this name. It has no UID."""
    metadata = {key: value for key, value in part(content, "metadata").items() if key != "uid"}
    made: dict[str, Any] = {**content, "metadata": {**metadata, "name": name}}
    match _key(resource):
        case key if key == _SLICES:
            spec = part(content, "spec")
            pool = part(spec, "pool")
            of_node = f"{pool.get('name') or like}-{name}"
            made["spec"] = {**spec, "nodeName": name, "pool": {**pool, "name": of_node}}
            made["metadata"]["name"] = f"{metadata.get('name')}-{name}"
        case key if key == _METRICS:
            made["usage"] = dict.fromkeys(part(content, "usage"), "0")
        case key if key == _TOPOLOGIES:
            made["zones"] = [_free(zone) for zone in listed(content.get("zones"))]
    return made


def listed(found: Any) -> list[Any]:
    """Return a list as it is, and none for anything else."""
    return found if isinstance(found, list) else []


def part(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object within another one; an empty one for anything else."""
    found = content.get(name)
    return found if isinstance(found, Mapping) else {}


def _key(resource: ApiResource) -> tuple[str, str]:
    return resource.group, resource.plural


def _free(zone: Any) -> Any:
    """A NUMA node of which nothing is taken. An agent writes its size, too, which a snapshot keeps."""
    if not isinstance(zone, Mapping):
        return zone
    resources = [
        {**each, "available": each["allocatable"]} if isinstance(each, Mapping) and "allocatable" in each else each
        for each in listed(zone.get("resources"))
    ]
    return {**zone, "resources": resources}
