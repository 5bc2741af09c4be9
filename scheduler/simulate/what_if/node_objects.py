"""The objects that a node has besides its pods, and those like them for a new one.

CSINode                       how many volumes it takes
ResourceSlices                its devices, in pools of its own
NodeResourceTopology          its NUMA nodes: all of them free, as far as their size is written
NodeMetrics                   how busy it is: not at all, as it will be measured before anything runs there
PersistentVolume,             storage that is on one node only: a new one has none
CSIStorageCapacity
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from scheduler.api.labels import HOSTNAME
from scheduler.api.objects import Node
from scheduler.simulate.objects import OtherObject

_TOPOLOGY: Final = "NodeResourceTopology (topology.node.k8s.io/"
_METRICS: Final = "NodeMetrics (metrics.k8s.io/"
_NAMED_BY_NODE: Final = ("CSINode (storage.k8s.io/v1)", _TOPOLOGY, _METRICS)
"""How the labels of objects begin that have the name of their node."""

_SLICE: Final = "ResourceSlice (resource.k8s.io/v1)"
_VOLUME: Final = "PersistentVolume"
_CAPACITY: Final = "CSIStorageCapacity (storage.k8s.io/v1)"


def names_of(node: Node) -> tuple[str, str]:
    """Return the name of a node, and its name as a host."""
    return node.name, node.labels.get(HOSTNAME, node.name)


def objects_of(node: Node, others: Iterable[OtherObject]) -> list[OtherObject]:
    """Return those that a node like it has, too."""
    return [obj for obj in others if _is_of(obj, node.name)]


def renamed(obj: OtherObject, like: str, name: str) -> OtherObject:
    """Return one like it for a new node of this name."""
    metadata = {key: value for key, value in obj.metadata.items() if key != "uid"}
    content: dict[str, Any] = {**obj.content, "metadata": {**metadata, "name": name}}
    if obj.label == _SLICE:
        spec = _part(content, "spec")
        pool = _part(spec, "pool")
        of_node = f"{pool.get('name') or like}-{name}"
        content["spec"] = {**spec, "nodeName": name, "pool": {**pool, "name": of_node}}
        content["metadata"]["name"] = f"{metadata.get('name')}-{name}"
    elif obj.label.startswith(_METRICS):
        content["usage"] = dict.fromkeys(_part(content, "usage"), "0")
    elif obj.label.startswith(_TOPOLOGY):
        content["zones"] = [_free(zone) for zone in _listed(content.get("zones"))]
    return obj._replace(content=content)


def on_it_alone(node: Node, others: Iterable[OtherObject]) -> Counter[str]:
    """Return the number of objects that are storage on this node only, by kind."""
    names = names_of(node)
    return Counter(obj.label.partition(" ")[0] for obj in others if _is_storage_on(obj, names))


def _is_of(obj: OtherObject, node: str) -> bool:
    if obj.label.startswith(_NAMED_BY_NODE):
        return obj.metadata.get("name") == node
    return obj.label == _SLICE and _part(obj.content, "spec").get("nodeName") == node


def _free(zone: Any) -> Any:
    """A NUMA node of which nothing is taken. An agent writes its size, too, which a snapshot keeps."""
    if not isinstance(zone, Mapping):
        return zone
    resources = [
        {**each, "available": each["allocatable"]} if isinstance(each, Mapping) and "allocatable" in each else each
        for each in _listed(zone.get("resources"))
    ]
    return {**zone, "resources": resources}


def _is_storage_on(obj: OtherObject, names: tuple[str, str]) -> bool:
    if obj.label == _CAPACITY:
        labels = _part(_part(obj.content, "nodeTopology"), "matchLabels")
        return any(value in names for value in labels.values())
    if obj.label != _VOLUME:
        return False
    required = _part(_part(_part(obj.content, "spec"), "nodeAffinity"), "required")
    terms = _listed(required.get("nodeSelectorTerms"))
    return bool(terms) and all(any(_is_for(each, names) for each in _requirements(term)) for term in terms)


def _requirements(term: Any) -> Iterator[Any]:
    if isinstance(term, Mapping):
        for name in ("matchExpressions", "matchFields"):
            yield from _listed(term.get(name))


def _is_for(requirement: Any, names: tuple[str, str]) -> bool:
    if not isinstance(requirement, Mapping) or requirement.get("operator") != "In":
        return False
    values = _listed(requirement.get("values"))
    return len(values) == 1 and values[0] in names


def _listed(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _part(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = content.get(name)
    return found if isinstance(found, Mapping) else {}
