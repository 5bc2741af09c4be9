"""From parsed documents to a cluster: pods and nodes, checked and with the API server's defaults, and other objects.

Each problem is a line with place and field, and all are reported at once:

    nodes.yaml:12: status.allocatable[cpu]: Invalid value: "many": not a quantity such as 500m or 1.5Gi
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from scheduler.api.decoding import Unreadable, convert
from scheduler.api.needs import pod_type
from scheduler.api.objects import Node
from scheduler.api.pod import Pod
from scheduler.config.documents import Document
from scheduler.framework.errors import ConfigError
from scheduler.simulate.checks import Problems, node_problems, pod_problems
from scheduler.simulate.defaults import WrittenNode, completed_node, completed_pod
from scheduler.simulate.files import read_documents
from scheduler.simulate.objects import OtherObject, OtherObjects
from scheduler.simulate.storage_defaults import with_storage_defaults


@dataclass(frozen=True, slots=True)
class SimulatedCluster:
    """The objects of some files, in their order."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    others: OtherObjects = field(default_factory=OtherObjects)


def read_cluster(paths: Iterable[str], needs: Iterable[str] = ()) -> SimulatedCluster:
    """Read the objects in files, directories and standard input. Raises ConfigError with all problems.

    `needs`: what plugins read of pods, besides what scheduling reads.
    """
    problems: list[str] = []
    cluster = cluster_of(read_documents(paths, problems), problems, needs)
    if problems:
        raise ConfigError(problems)
    return cluster


def cluster_of(documents: Iterable[Document], problems: list[str], needs: Iterable[str] = ()) -> SimulatedCluster:
    """Decode pods and nodes, keep other objects as they are, and add what is wrong to `problems`."""
    kinds = _kinds(frozenset(needs))
    decoded: dict[str, list[Any]] = {"Node": [], "Pod": []}
    others: list[OtherObject] = []
    first_place: dict[tuple[str, str], str] = {}
    for obj in _objects(documents, problems):
        if obj.kind not in kinds:
            others.append(OtherObject(obj.place, obj.kind, with_storage_defaults(obj.value)))
            continue
        pod_or_node = _decode(obj, kinds[obj.kind], problems)
        if pod_or_node is not None:
            problems += _repeated(obj, pod_or_node, first_place)
            decoded[obj.kind].append(pod_or_node)
    return SimulatedCluster(tuple(decoded["Node"]), tuple(decoded["Pod"]), OtherObjects(others))


class _Object(NamedTuple):
    place: str
    kind: str
    value: Mapping[str, Any]


class _CheckedKind(NamedTuple):
    written: type[Any]
    completed: Callable[[Any], Any]
    problems: Callable[[Any], Problems]


def _kinds(needs: frozenset[str]) -> Mapping[str, _CheckedKind]:
    return {
        "Node": _CheckedKind(WrittenNode, completed_node, node_problems),
        "Pod": _CheckedKind(pod_type(needs), completed_pod, pod_problems),
    }


def _objects(documents: Iterable[Document], problems: list[str]) -> Iterator[_Object]:
    """Yield the objects, and the items of lists; the items of a PodList need not say that they are pods."""
    for place, value in ((document.place, document.value) for document in documents):
        kind = value.get("kind") if isinstance(value, Mapping) else None
        if not isinstance(kind, str) or not kind:
            problems.append(f"{place}: not a Kubernetes object: it has no kind")
        elif kind.endswith("List"):
            items = [] if value.get("items") is None else value["items"]
            if not isinstance(items, list):
                problems.append(f"{place}: items: expected a list")
                continue
            common = _common_to_items(kind, value)
            yield from _objects(
                (Document(f"{place}: items[{i}]", _with_common(common, item)) for i, item in enumerate(items)),
                problems,
            )
        elif value.get("apiVersion", "v1") == "v1":
            yield _Object(place, kind, value)
        else:
            yield _Object(place, f"{kind} ({value['apiVersion']})", value)


def _common_to_items(kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a typed list says of all its items; a plain List says nothing."""
    item_kind = kind.removesuffix("List")
    version = {"apiVersion": value["apiVersion"]} if "apiVersion" in value else {}
    return {"kind": item_kind, **version} if item_kind else {}


def _with_common(common: Mapping[str, Any], item: Any) -> Any:
    return {**common, **item} if common and isinstance(item, Mapping) else item


def _decode(obj: _Object, kind: _CheckedKind, problems: list[str]) -> Pod | Node | None:
    try:
        made: Pod | Node = kind.completed(_convert(obj.value, kind.written))
    except (Unreadable, RecursionError) as error:
        problems.append(f"{obj.place}: {_reworded(error)}")
        return None
    wrong = [f"{obj.place}: {path}: {message}" for path, message in kind.problems(made)]
    problems += wrong
    return None if wrong else made


def _convert(value: Any, kind: type[Any]) -> Any:
    try:
        return convert(value, kind)
    except Unreadable:
        # The API server treats null as absent. Few objects have one where it matters, so they are only removed now.
        return convert(_without_null(value), kind)


def _without_null(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _without_null(item) for key, item in value.items() if item is not None}
        case list():
            return [_without_null(item) for item in value]
        case _:
            return value


_PATH: Final = re.compile(r"(.*) - at (?:`key` in )?`\$\.?(.*)`")


def _reworded(error: Unreadable | RecursionError) -> str:
    """msgspec: Expected `int`, got `str` - at `$.spec.priority`."""
    text = str(Unreadable(error))
    match = _PATH.fullmatch(text)
    message, path = (match[1], match[2]) if match else (text, "")
    message = message[:1].lower() + message[1:].replace("`", "")
    return f"{path}: {message}" if path else message


def _repeated(obj: _Object, pod_or_node: Pod | Node, first_place: dict[tuple[str, str], str]) -> Iterator[str]:
    name = str(pod_or_node) if isinstance(pod_or_node, Pod) else pod_or_node.name
    for what, identity in (("", name), ("uid ", pod_or_node.metadata.uid)):
        first = first_place.setdefault((obj.kind + what, identity), obj.place)
        if first is not obj.place:
            yield f"{obj.place}: {obj.kind} {what}{identity} is there twice, first at {first}"
            return
