"""From parsed documents to a cluster: pods and nodes, checked and with the API server's defaults, and other objects.

Each problem is a line with place and field, and all are reported at once:

    nodes.yaml:12: status.allocatable[cpu]: Invalid value: "many": not a quantity such as 500m or 1.5Gi
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from scheduler.api.decoding import Decoder, Unreadable, convert
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
from scheduler.simulate.written import WrittenObject, reworded, written_objects

MAX_PROBLEMS: Final = 100
"""Problems that are told; behind them it says how many more there are."""


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
    if len(problems) > MAX_PROBLEMS:
        problems[MAX_PROBLEMS:] = [f"and {len(problems) - MAX_PROBLEMS} more problems"]
    if problems:
        raise ConfigError(problems)
    return cluster


def cluster_of(documents: Iterable[Document], problems: list[str], needs: Iterable[str] = ()) -> SimulatedCluster:
    """Decode pods and nodes, keep other objects as they are, and add what is wrong to `problems`."""
    kinds = _kinds(frozenset(needs))
    decoded: dict[str, list[Any]] = {"Node": [], "Pod": []}
    others: list[OtherObject] = []
    first_place: dict[tuple[str, str], str] = {}
    for obj in written_objects(documents, problems):
        if obj.label not in kinds:
            others.append(OtherObject(obj.place, obj.label, with_storage_defaults(obj.content())))
            continue
        pod_or_node = _decode(obj, kinds[obj.label], problems)
        if pod_or_node is not None:
            problems += _repeated(obj, pod_or_node, first_place)
            decoded[obj.label].append(pod_or_node)
    return SimulatedCluster(tuple(decoded["Node"]), tuple(decoded["Pod"]), OtherObjects(others))


class _CheckedKind(NamedTuple):
    decoder: Decoder[Any]
    completed: Callable[[Any], Any]
    problems: Callable[[Any], Problems]
    written: type[Any]


def _kinds(needs: frozenset[str]) -> Mapping[str, _CheckedKind]:
    pod = pod_type(needs)
    return {
        "Node": _CheckedKind(Decoder(WrittenNode), completed_node, node_problems, WrittenNode),
        "Pod": _CheckedKind(Decoder(pod), completed_pod, pod_problems, pod),
    }


def _decode(obj: WrittenObject, kind: _CheckedKind, problems: list[str]) -> Pod | Node | None:
    try:
        made: Pod | Node = kind.completed(_decoded(obj, kind))
    except (Unreadable, RecursionError) as error:
        problems.append(f"{obj.place}: {reworded(error)}")
        return None
    wrong = [f"{obj.place}: {path}: {message}" for path, message in kind.problems(made)]
    problems += wrong
    return None if wrong else made


def _decoded(obj: WrittenObject, kind: _CheckedKind) -> Any:
    try:
        return kind.decoder.decode(obj.raw)
    except Unreadable:
        # The API server treats null as absent. Few objects have one where it matters, so they are only removed now.
        return convert(_without_null(obj.content()), kind.written)


def _without_null(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _without_null(item) for key, item in value.items() if item is not None}
        case list():
            return [_without_null(item) for item in value]
        case _:
            return value


def _repeated(obj: WrittenObject, pod_or_node: Pod | Node, first_place: dict[tuple[str, str], str]) -> Iterator[str]:
    name = str(pod_or_node) if isinstance(pod_or_node, Pod) else pod_or_node.name
    for what, identity in (("", name), ("uid ", pod_or_node.metadata.uid)):
        first = first_place.setdefault((obj.label + what, identity), obj.place)
        if first is not obj.place:
            yield f"{obj.place}: {obj.label} {what}{identity} is there twice, first at {first}"
            return
