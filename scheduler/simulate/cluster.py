"""From parsed documents to a cluster: pods and nodes, checked and with the API server's defaults, and other objects.

Each problem is a line with place and field, and all are reported at once:

    nodes.yaml:12: status.allocatable[cpu]: Invalid value: "many": not a quantity such as 500m or 1.5Gi
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from scheduler.api.decoding import Unreadable
from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.config.documents import Document
from scheduler.files.memory import check_memory
from scheduler.framework.errors import ConfigError
from scheduler.process.progress import SILENT, Progress
from scheduler.simulate.apiserver.creation import USED, Creation
from scheduler.simulate.apiserver.defaults import (
    ServerPod,
    WrittenNode,
    completed_node,
    completed_pod,
    server_pod,
    with_storage_defaults,
)
from scheduler.simulate.apiserver.validation import node_problems, pod_problems
from scheduler.simulate.controllers.operators import OPERATORS
from scheduler.simulate.files.field_lines import Texts
from scheduler.simulate.files.manifests import read_documents
from scheduler.simulate.files.objects import WrittenObject, as_written, decoded, report, reworded, written_objects
from scheduler.simulate.files.unknown_fields import unknown_fields
from scheduler.simulate.missing import Missing
from scheduler.simulate.other_objects import OtherObject, OtherObjects, Source, newest
from scheduler.snapshots.header import header_of

MAX_PROBLEMS: Final = 100
"""The number of problems that are printed; a last line counts the others."""


MAX_LINE: Final = 900
"""The number of characters of a problem that are printed: keys and values may be as long as the file. Its end says
most."""

OBJECTS_PER_CHECK: Final = 1000
"""After so many objects it is looked how much memory is left."""

MAX_NOTED: Final = 10
"""Lines of a kind that are noted: unknown fields, and objects of a cluster or a snapshot that cannot be read."""


@dataclass(frozen=True, slots=True)
class SimulatedCluster:
    """The objects of some files, in their order; pods that controllers make come last."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    others: OtherObjects = field(default_factory=OtherObjects)
    notes: tuple[str, ...] = ()
    """Reasons why the simulation may differ from the cluster."""

    creation: Creation | None = None
    """Objects that create further pods."""

    written: Mapping[tuple[str, str], Source] = field(default_factory=dict)
    """Namespace and name of a pod without a node → the object in which it is written."""


STORED: Final = "the cluster's "
"""How the places of objects of a running cluster begin."""


def read_cluster(
    paths: Iterable[str],
    *,
    raw_pods: bool = False,
    strict: bool = True,
    stored: Iterable[Document] = (),
    progress: Progress = SILENT,
) -> SimulatedCluster:
    """Read the objects in files, directories and standard input. Raises ConfigError with all problems.

    `raw_pods`: pods are kept as JSON, too, for plugins that read it. `strict`: unknown fields are problems. `stored`:
    objects of a running cluster; what the API server has accepted is not validated: one that cannot be read costs
    itself, and is noted.
    """
    problems, notes = list[str](), list[str]()
    texts, snapshots = Texts(), _Snapshots()
    documents = snapshots.seen(read_documents(paths, problems, notes, texts, progress), problems)
    cluster = cluster_of(documents, problems, notes, raw_pods=raw_pods, strict=strict, stored=stored, progress=progress)
    problems = [problem for problem in map(_cut, problems) if not problem.startswith(STORED)]
    problems, of_snapshots = snapshots.separated(problems)
    if problems:
        printed, more = texts.with_lines(problems[:MAX_PROBLEMS]), len(problems) - MAX_PROBLEMS
        raise ConfigError([*printed, f"and {more} more problems"] if more > 0 else printed)
    notes = [*_summed_up(notes, "files"), *of_snapshots]
    return replace(cluster, notes=(*notes, *texts.with_lines(map(_cut, cluster.notes))))


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE // 2]}…{line[-MAX_LINE // 2 :]}"


def cluster_of(
    documents: Iterable[Document],
    problems: list[str],
    notes: list[str] | None = None,
    *,
    raw_pods: bool = False,
    strict: bool = True,
    stored: Iterable[Document] = (),
    progress: Progress = SILENT,
) -> SimulatedCluster:
    """Decode pods and nodes, and create what controllers would.

    Add errors to `problems`, and files of a directory that are no objects to `notes`.
    """
    notes = [] if notes is None else notes
    reading = _Reading(problems, raw_pods=raw_pods, strict=strict)
    for obj in _within_memory(written_objects(stored, problems, notes)):
        reading.take(obj)
        progress.done += 1
    for obj in _within_memory(written_objects(documents, problems, notes)):
        reading.look_for_unknown_fields(obj)
        reading.take(obj)
        progress.done += 1
    progress.doing("creating pods")
    return reading.cluster()


def _within_memory(objects: Iterable[WrittenObject]) -> Iterator[WrittenObject]:
    """Yield the objects. Raises MemoryError once there is little memory left."""
    for number, obj in enumerate(objects):
        if not number % OBJECTS_PER_CHECK:
            check_memory()
        yield obj


class _Snapshots:
    """Snapshots among the files. An error within one costs the object alone, as an API server accepted it."""

    def __init__(self) -> None:
        self._places: list[str] = []
        self._notes: list[str] = []

    def seen(self, documents: Iterable[Document], problems: list[str]) -> Iterator[Document]:
        """Pass documents on, except snapshots that cannot be read, for which a problem is added to `problems`."""
        for document in as_written(documents):
            header = header_of(document.value)
            if header is not None:
                if header.problem:
                    problems.append(f"{document.place}: {header.problem}")
                    continue
                self._places.append(f"{document.place}: items[")
                self._notes += (f"{document.place}: {note}" for note in header.notes)
            yield document

    def separated(self, problems: list[str]) -> tuple[list[str], list[str]]:
        """Return those problems that are errors, and notes."""
        places = tuple(self._places)
        noted = [problem for problem in problems if places and problem.startswith(places)]
        wrong = [problem for problem in problems if not (places and problem.startswith(places))]
        return wrong, [*self._notes, *_summed_up(noted, "problems within snapshots")]


class _Reading:
    def __init__(self, problems: list[str], *, raw_pods: bool, strict: bool) -> None:
        self._problems = problems
        self._unknown = problems if strict else list[str]()
        self._raw_pods = raw_pods
        self._nodes: list[Node] = []
        self._pods: list[Pod] = []
        self._new: list[tuple[str, ServerPod]] = []
        self._others: list[OtherObject] = []
        self._written: dict[tuple[str, str], Source] = {}
        self._first_place: dict[tuple[str, str], str] = {}

    def look_for_unknown_fields(self, obj: WrittenObject) -> None:
        """Look for fields that objects of its kind do not have. Unreadable objects are reported by `take`."""
        with suppress(Unreadable, RecursionError):
            self._unknown += (f"{obj.place}: {problem}" for problem in unknown_fields(obj))

    def take(self, obj: WrittenObject) -> None:
        """Decode a pod or a node; keep others as they are."""
        try:
            match obj.label:
                case "Node":
                    self._take_node(obj)
                case "Pod":
                    self._take_pod(obj)
                case label:
                    self._others.append(OtherObject(obj.place, label, with_storage_defaults(obj.content())))
        except (Unreadable, RecursionError) as error:
            report(self._problems, obj.place, reworded(error))

    def _take_node(self, obj: WrittenObject) -> None:
        node = completed_node(decoded(obj.raw, WrittenNode))
        wrong = [f"{obj.place}: {path}: {message}" for path, message in node_problems(node)]
        self._problems += wrong
        if not wrong:
            self._note_place(obj.place, "Node", node.name, node.metadata.uid)
            self._nodes.append(node)

    def _take_pod(self, obj: WrittenObject) -> None:
        pod = server_pod(obj.raw, keeps_raw=self._raw_pods)
        if not pod.node_name:
            self._written[pod.namespace or "default", pod.name] = obj.raw
        if not pod.metadata.resource_version:
            self._new.append((obj.place, pod))
            return
        pod = completed_pod(pod)
        wrong = [f"{obj.place}: {path}: {message}" for path, message in pod_problems(pod)]
        self._problems += wrong
        if not wrong:
            self._note_place(obj.place, "Pod", str(pod), pod.uid)
            self._pods.append(pod)

    def cluster(self) -> SimulatedCluster:
        """Return all of it, with what the API server and controllers add."""
        missing = Missing()
        newest_others, replaced = newest(self._others)
        created = Creation(self._new, self._pods, self._nodes, newest_others, self._problems, raw_pods=self._raw_pods)
        created.missing(missing)
        for place, pod in created.pods:
            self._note_place(place, "Pod", str(pod), pod.uid)
        pods = (*self._pods, *(pod for _, pod in created.pods))
        missing.look(pods, created.others)
        if self._pods:  # as dumped from a cluster
            missing.look_for_kinds(self._others)
        others = OtherObjects(created.others, USED.union(OPERATORS))
        notes = [] if self._unknown is self._problems else _summed_up(self._unknown, "unknown fields")
        notes += _summed_up([each for each in self._problems if each.startswith(STORED)], "objects that cannot be read")
        notes += (*_summed_up(replaced, "replaced objects"), *created.notes, *created.volumes.notes(), *missing.notes())
        written = {**created.sources, **self._written}
        return SimulatedCluster(tuple(self._nodes), pods, others, tuple(notes), created, written)

    def _note_place(self, place: str, kind: str, name: str, uid: str) -> None:
        for what, identity in (("", name), ("uid ", uid)):
            first = self._first_place.setdefault((kind + what, identity), place)
            if first is not place:
                self._problems.append(f"{place}: {kind} {what}{identity} is there twice, first at {first}")
                return


def _summed_up(lines: list[str], what: str) -> list[str]:
    rest = [f"and {len(lines) - MAX_NOTED} more {what}"] if len(lines) > MAX_NOTED else []
    return lines[:MAX_NOTED] + rest
