"""Objects in cluster files that are neither pods nor nodes, for the plugins that look them up or read them.

A file names a kind, a plugin a resource; no file has the plural. It is guessed as kubectl does, which is right for all
built-in kinds and for nearly all custom ones.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from scheduler.api.decoding import Decoder, Unreadable, convert, reread
from scheduler.api.groups.workloads import KIND_OF
from scheduler.api.pods.pod import Pod
from scheduler.api.unstructured import unstructured_hook
from scheduler.explain.changes import WrittenPod
from scheduler.framework.errors import ApiError, ConfigError
from scheduler.framework.events import (
    COMPOSITE_POD_GROUP,
    COSCHEDULING_POD_GROUP,
    CSI_STORAGE_CAPACITY,
    ELASTIC_QUOTA,
    ELASTIC_QUOTA_SIGS,
    LOCAL_QUEUE,
    PERSISTENT_VOLUME_CLAIM,
    POD_GROUP,
    POD_GROUP_V1BETA1,
    RESOURCE_CLAIM,
    VOLCANO_POD_GROUP,
)
from scheduler.framework.handle import NO_CREDENTIALS, Access
from scheduler.framework.nodes.resources import (
    POD_DISRUPTION_BUDGET,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    ApiResource,
    struct_of,
)
from scheduler.simulate.files.objects import reworded

_IN_DEFAULT: Final = frozenset(
    {
        PERSISTENT_VOLUME_CLAIM,
        SERVICE,
        REPLICATION_CONTROLLER,
        REPLICA_SET,
        *KIND_OF,
        POD_DISRUPTION_BUDGET,
        CSI_STORAGE_CAPACITY,
        RESOURCE_CLAIM,
        POD_GROUP,
        COSCHEDULING_POD_GROUP,
        VOLCANO_POD_GROUP,
        LOCAL_QUEUE,
        POD_GROUP_V1BETA1,
        COMPOSITE_POD_GROUP,
        ELASTIC_QUOTA,
        ELASTIC_QUOTA_SIGS,
    }
)
"""Namespaced resources: `default` where a file names no namespace. Custom ones may be namespaced or not."""


class OtherObject(NamedTuple):
    place: str
    label: str
    """Its name where objects are counted: `Service`, `Budget (example.com/v1)`."""
    content: Mapping[str, Any]
    path: str = ""
    """The JSON pointer of a template of pods, if it is not where objects of its kind have theirs."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Empty if it is none."""
        found = self.content.get("metadata")
        return found if isinstance(found, Mapping) else {}

    @property
    def key(self) -> tuple[str, str, str]:
        """Label, namespace and name; the namespace is `default` where none is written."""
        metadata = self.metadata
        return self.label, str(metadata.get("namespace") or "default"), str(metadata.get("name"))


class OtherObjects:
    """All such objects that have not been taken."""

    def __init__(self, objects: Iterable[OtherObject] = (), used: frozenset[str] = frozenset()) -> None:
        """`used`: labels of objects that count even if no plugin takes them."""
        self._used = used
        self._left: defaultdict[ApiResource, list[OtherObject]] = defaultdict(list)
        self.add(objects)

    def add(self, objects: Iterable[OtherObject]) -> None:
        for obj in objects:
            self._left[_resource_of(obj.content)].append(obj)

    def mapped(self, change: Callable[[OtherObject], OtherObject]) -> "OtherObjects":
        return OtherObjects(map(change, self), self._used)

    def __iter__(self) -> Iterator[OtherObject]:
        return (obj for objects in self._left.values() for obj in objects)

    def left_out(self) -> Iterator[OtherObject]:
        return (obj for obj in self if obj.label not in self._used)

    def take(self, watched: Mapping[str, ApiResource]) -> list[tuple[str, Any]]:
        """Return event resource and object for each object of a watched resource.

        Raises ConfigError with every object that cannot be read.
        """
        problems: list[str] = []
        taken = []
        for name, resource in watched.items():
            for obj in self._left.pop(resource, ()):
                try:
                    taken.append((name, _decode(name, obj.content)))
                except Unreadable as error:
                    problems.append(f"{obj.place}: {reworded(error)}")
        if problems:
            raise ConfigError(problems)
        return taken

    def taken(self, resource: ApiResource) -> list[Mapping[str, Any]]:
        """Return the objects of a resource as they are written, for what reads them without watching them."""
        return [obj.content for obj in self._left.pop(resource, ())]

    def newest(self) -> datetime | None:
        """Return when the newest of these objects that have a `timestamp` was measured; None if none has."""
        found = [
            time
            for objects in self._left.values()
            for obj in objects
            if (time := _time(obj.content.get("timestamp"))) is not None
        ]
        return max(found, default=None)


def newest(objects: Iterable[OtherObject]) -> tuple[Sequence[OtherObject], list[str]]:
    """Return each object once, and a note for each that another one in the files replaces.

    One in a file counts instead of the cluster's, and of two in files the later one.
    """
    found: dict[object, OtherObject] = {}
    notes = []
    for number, obj in enumerate(objects):
        before = found.get(obj.key)
        if not obj.metadata.get("name"):
            found[number] = obj
        elif before is None or (_is_stored(before) and not _is_stored(obj)):
            found[obj.key] = obj
        elif _is_stored(before) or not _is_stored(obj):
            found[obj.key] = obj
            notes.append(f"{obj.place}: {named(obj)} replaces that of {before.place}")
    return list(found.values()), notes


def named(obj: OtherObject) -> str:
    """Deployment shop/web."""
    label, _, name = obj.key
    namespace = obj.metadata.get("namespace")
    return f"{label.partition(' ')[0]} {f'{namespace}/' if namespace else ''}{name}"


def _is_stored(obj: OtherObject) -> bool:
    return bool(obj.metadata.get("resourceVersion"))


def _time(written: Any) -> datetime | None:
    """Read a time with its zone; None for anything else."""
    try:
        time = convert(written, datetime)
    except Unreadable:
        return None
    return time if time.tzinfo is not None else None


def _decode(name: str, content: Mapping[str, Any]) -> Any:
    """Decode an object, filling in what the API server would: a namespace, a UID."""
    metadata = content.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("name"):
        raise Unreadable("metadata.name: Required value")
    defaults = {"namespace": "default"} if name in _IN_DEFAULT else {}
    metadata = defaults | {key: value for key, value in metadata.items() if value is not None}
    uid = f"{name}/{metadata.get('namespace', '')}/{metadata['name']}"
    whole = {**content, "metadata": {"uid": uid, **metadata}}
    return reread(whole, struct_of(name), unstructured_hook)


def _resource_of(content: Mapping[str, Any]) -> ApiResource:
    group, _, version = str(content.get("apiVersion", "v1")).rpartition("/")
    kind = str(content["kind"])
    return ApiResource(group, version, _ODD_PLURALS.get((group, kind)) or guessed_plural(kind))


_ODD_PLURALS: Final = {("metrics.k8s.io", "NodeMetrics"): "nodes", ("metrics.k8s.io", "PodMetrics"): "pods"}


def resource_of_label(label: str) -> ApiResource:
    """Return the resource of objects that are counted as `Service` or `Budget (example.com/v1)`."""
    kind, _, version = label.partition(" ")
    return _resource_of({"kind": kind, "apiVersion": version.strip("()") or "v1"})


def guessed_plural(kind: str) -> str:
    """StorageClass → storageclasses. Rule: apimachinery's meta.UnsafeGuessKindToResource."""
    singular = kind.lower()
    if singular.endswith("endpoints"):
        return singular
    if singular.endswith("s"):
        return singular + "es"
    if singular.endswith("y"):
        return singular[:-1] + "ies"
    return singular + "s"


Source = msgspec.Raw | OtherObject
"""A pod as JSON, or a workload."""

_mapping: Final = Decoder[dict[str, Any]](dict[str, Any]).decode
_PATHS: Final[Mapping[str, str]] = {"CronJob": "/spec/jobTemplate/spec/template"}
_PATH: Final = "/spec/template"


def written_pod(pod: Pod, source: Source | None) -> WrittenPod | None:
    """Return where the pod is written; None for no source: then it is written nowhere else."""
    if source is None:
        return None
    if isinstance(source, OtherObject):
        return of_workload(source)
    return WrittenPod("Pod", pod.namespace, pod.name, _mapping(source))


def of_workload(obj: OtherObject) -> WrittenPod:
    """Return the template of a workload."""
    label, namespace, name = obj.key
    kind = label.partition(" ")[0]
    path = obj.path or _PATHS.get(kind, _PATH)
    content: Any = obj.content
    for key in path.split("/")[1:]:
        content = content[int(key)] if isinstance(content, list) else content[key]
    return WrittenPod(kind, namespace, name, content, path)


class SimulatedReader:
    """Implements framework.handle.Reader: `/apis/<group>/<version>/<plural>` is a list of its objects in the files."""

    def __init__(self, others: OtherObjects) -> None:
        self._others = others
        self._newest = others.newest()
        self._read: dict[ApiResource, list[Mapping[str, Any]]] = {}

    def now(self) -> datetime:
        """Return when the newest data were measured, so that old files give the same answers as when they were new."""
        return self._newest or datetime.now(UTC)

    async def read(self, url: str, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        """Raises ApiError for what no file has."""
        parts = url.split("/")
        if len(parts) != 5 or parts[:2] != ["", "apis"]:
            raise ApiError(0, f"a simulation asks nobody, so not {url} either")
        _, _, group, version, plural = parts
        resource = ApiResource(group, version, plural)
        if resource not in self._read:
            self._read[resource] = self._others.taken(resource)
        if not self._read[resource]:
            raise ApiError(404, f"the files have no {plural} of {group}/{version}")
        return msgspec.json.encode({"items": self._read[resource]})

    async def post(self, url: str, body: bytes, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        """Raises ApiError: a simulation changes nothing."""
        raise ApiError(0, f"a simulation posts nothing, so nothing to {url} either")
