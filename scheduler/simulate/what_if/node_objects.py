"""Storage that is on one node only: a new node like it has none."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from scheduler.api.objects import Node
from scheduler.simulate.objects import OtherObject
from scheduler.state.new_nodes import names_of
from scheduler.state.node_objects import listed, part

_VOLUME: Final = "PersistentVolume"
_CAPACITY: Final = "CSIStorageCapacity (storage.k8s.io/v1)"


def on_it_alone(node: Node, others: Iterable[OtherObject]) -> Counter[str]:
    """Return the number of objects that are storage on this node only, by kind."""
    names = names_of(node)
    return Counter(obj.label.partition(" ")[0] for obj in others if _is_storage_on(obj, names))


def _is_storage_on(obj: OtherObject, names: tuple[str, str]) -> bool:
    if obj.label == _CAPACITY:
        labels = part(part(obj.content, "nodeTopology"), "matchLabels")
        return any(value in names for value in labels.values())
    if obj.label != _VOLUME:
        return False
    required = part(part(part(obj.content, "spec"), "nodeAffinity"), "required")
    terms = listed(required.get("nodeSelectorTerms"))
    return bool(terms) and all(any(_is_for(each, names) for each in _requirements(term)) for term in terms)


def _requirements(term: Any) -> Iterator[Any]:
    if isinstance(term, Mapping):
        for name in ("matchExpressions", "matchFields"):
            yield from listed(term.get(name))


def _is_for(requirement: Any, names: tuple[str, str]) -> bool:
    if not isinstance(requirement, Mapping) or requirement.get("operator") != "In":
        return False
    values = listed(requirement.get("values"))
    return len(values) == 1 and values[0] in names
