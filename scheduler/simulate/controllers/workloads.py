"""The pods that controllers make of workloads: Deployments, ReplicaSets, StatefulSets, Jobs, ReplicationControllers.

Rules: pkg/controller/{deployment,replicaset,statefulset,job} and controller_utils.go (GetPodFromTemplate) at v1.36.3.
Only pods that are missing are made: those that the files have count for their controller. Where Kubernetes appends
random letters to a name, these are drawn by a hash of it, so that every run chooses the same names and nodes.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any, Final, NamedTuple

import msgspec

from scheduler.api.decoding import Unreadable
from scheduler.api.generated_uids import uid_of
from scheduler.api.pods.pod import Pod
from scheduler.framework.field_errors import required
from scheduler.simulate.controllers.generated_names import MAX_PREFIX, hash_of, random_name, random_names
from scheduler.simulate.files.objects import report
from scheduler.simulate.other_objects import OtherObject

Content = Mapping[str, Any]

MAX_OBJECTS: Final = 100_000
"""Pods and claims that are made of all workloads together: a slip of the finger must not take all memory."""

MAX_BYTES: Final = 256 << 20
"""Of the templates that they are made of, as JSON: a tenth of what the pods take."""


class NewPod(NamedTuple):
    place: str
    """That of the workload."""
    content: dict[str, Any]
    source: OtherObject
    """The workload, as it is written."""


class Expansion(NamedTuple):
    pods: list[NewPod]
    others: list[OtherObject]
    notes: Sequence[str] = ()
    """Notes about pods that are not made, though users may expect them."""


class Allowance:
    """The number of pods and claims that workloads may still create."""

    def __init__(self) -> None:
        self._objects, self._bytes = MAX_OBJECTS, MAX_BYTES

    def take(self, workload: "Workload", number: int) -> None:
        """Count the objects that are made of a workload. Raises Unreadable if they are too many."""
        size = number * len(msgspec.json.encode(workload.template))
        if number > self._objects or size > self._bytes:
            raise Unreadable(
                f"{number:,} pods and claims of {workload}, of a template of {size // number:,} bytes: more than a "
                f"simulation makes of all workloads, {MAX_OBJECTS:,} objects and {MAX_BYTES >> 20} MiB"
            )
        self._objects -= number
        self._bytes -= size


class Owned:
    """The pods and ReplicaSets that the files have, by their controller."""

    def __init__(self, pods: Iterable[Pod], others: Iterable[OtherObject]) -> None:
        self._pods: defaultdict[tuple[str, str, str], list[Pod]] = defaultdict(list)
        self._sets: set[tuple[str, str, str]] = set()
        for pod in pods:
            for owner in pod.metadata.owner_references or ():
                if owner.controller:
                    self._pods[pod.namespace, owner.kind, owner.name].append(pod)
        for obj in others:
            if obj.label == "ReplicaSet (apps/v1)":
                owners = obj.metadata.get("ownerReferences")
                for owner in owners if isinstance(owners, list) else ():
                    if isinstance(owner, Mapping) and owner.get("controller"):
                        self._sets.add((obj.key[1], str(owner.get("kind")), str(owner.get("name"))))

    def pods_of(self, workload: "Workload") -> list[Pod]:
        """Those that run or wait."""
        pods = self._pods.get((workload.namespace, workload.kind, workload.name), ())
        return [pod for pod in pods if not pod.is_terminated and not pod.is_deleting]

    def ended_pods_of(self, workload: "Workload") -> int:
        """How many have succeeded."""
        pods = self._pods.get((workload.namespace, workload.kind, workload.name), ())
        return sum(pod.status.phase == "Succeeded" for pod in pods)

    def has_sets(self, workload: "Workload") -> bool:
        """Return whether a Deployment has its ReplicaSets: then they are what makes pods."""
        return (workload.namespace, workload.kind, workload.name) in self._sets


class Workload:
    def __init__(self, kind: str, version: str, obj: OtherObject, source: OtherObject | None = None) -> None:
        """`source`: what is written, if the object was made of another one. Raises Unreadable."""
        self.kind, self.version, self.place = kind, version, obj.place
        self.source = source or obj
        metadata = part(obj.content, "metadata")
        name = metadata.get("name")
        if not isinstance(name, str) or not name:
            raise Unreadable("metadata.name: Required value")
        self.name = name
        self.namespace = str(metadata.get("namespace") or "default")
        self.uid = str(metadata.get("uid") or uid_of(kind, self.namespace, self.name))
        self.spec = part(obj.content, "spec")
        self.is_new = not metadata.get("resourceVersion")
        self.is_deleting = metadata.get("deletionTimestamp") is not None
        """Then its controller makes no more pods."""

        self._status = part(obj.content, "status")
        self.template = part(self.spec, "template")
        if not isinstance(self.spec.get("template"), Mapping):
            raise Unreadable("spec.template: Required value")

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    def count(self, field: str, default: int) -> int:
        """Return a number of pods. Raises Unreadable."""
        number = self.spec.get(field)
        if number is None:
            return default
        if not isinstance(number, int) or isinstance(number, bool):
            raise Unreadable(f"spec.{field}: expected int, got {type(number).__name__}")
        if number < 0:
            raise Unreadable(f"spec.{field}: Invalid value: {number}: must be greater than or equal to 0")
        if number > MAX_OBJECTS:
            raise Unreadable(f"spec.{field}: {number} pods are more than a simulation makes, which is {MAX_OBJECTS:,}")
        return number

    def has_ended(self) -> bool:
        """Return whether a Job is over: its pods may have been deleted since."""
        conditions = self._status.get("conditions")
        return any(
            isinstance(each, Mapping) and each.get("type") in ("Complete", "Failed") and each.get("status") == "True"
            for each in (conditions if isinstance(conditions, list) else ())
        )

    def succeeded(self) -> int:
        """How many pods of a Job its controller has seen succeed."""
        number = self._status.get("succeeded")
        return number if isinstance(number, int) else 0

    def reference(self) -> dict[str, Any]:
        """The owner of its pods."""
        named = {"apiVersion": self.version, "kind": self.kind, "name": self.name, "uid": self.uid}
        return {**named, "controller": True, "blockOwnerDeletion": True}

    def pod(self, name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> NewPod:
        """Make a pod from the template, with these additional labels and members of its spec."""
        metadata = part(self.template, "metadata")
        kept = {key: metadata[key] for key in ("annotations", "finalizers") if metadata.get(key)}
        own = {
            **kept,
            "name": name,
            "namespace": self.namespace,
            "labels": {**part(metadata, "labels"), **(labels or {})},
            "ownerReferences": [self.reference()],
        }
        content = {"kind": "Pod", "apiVersion": "v1", "metadata": own, "spec": {**part(self.template, "spec"), **spec}}
        return NewPod(self.place, content, self.source)


def path_of_template(obj: OtherObject) -> str:
    """The path of the pod within a workload as it is written, with a dot at its end."""
    if obj.path:
        return re.sub(r"\.(\d+)(?=\.)", r"[\1]", obj.path[1:].replace("/", ".")) + "."
    return "spec.jobTemplate.spec.template." if obj.content.get("kind") == "CronJob" else "spec.template."


def expanded(others: Sequence[OtherObject], owned: Owned, allowance: Allowance, problems: list[str]) -> Expansion:
    """Return the objects that controllers make of all workloads in these, and add errors to `problems`."""
    made = Expansion([], [], notes := list[str]())
    for obj in others:
        controller = CONTROLLERS.get(obj.label)
        if controller is None:
            continue
        kind, version, expand = controller
        try:
            workload = Workload(kind, version, obj)
            if workload.is_deleting:
                continue
            one = expand(workload, owned)
            allowance.take(workload, len(one.pods) + len(one.others))
        except Unreadable as error:
            report(problems, obj.place, f"{error}")
            continue
        made.pods.extend(one.pods)
        made.others.extend(one.others)
        notes.extend(one.notes)
    return made


def more_of(workload: Workload) -> Iterator[Expansion]:
    """Yield the pods of a workload one by one, as if it had no number of replicas, each with its claims.

    Those that are there come as well. Of a Deployment, take the ReplicaSet. Raises Unreadable.
    """
    match workload.kind:
        case "StatefulSet":
            for ordinal in count(_first_ordinal(workload)):
                pod, claims = _with_ordinal(workload, ordinal)
                yield Expansion([pod], claims)
        case "Job" if _is_indexed(workload):
            for index in count():
                yield Expansion([_with_index(workload, index)], [])
        case _:
            labels = _labels_of_job(workload) if workload.kind == "Job" else None
            for name in random_names(f"{workload.name}-", workload.kind):
                yield Expansion([workload.pod(name, labels)], [])


def _replicas(workload: Workload, owned: Owned) -> Expansion:
    missing = workload.count("replicas", 1) - len(owned.pods_of(workload))
    names = islice(random_names(f"{workload.name}-", workload.kind), max(0, missing))
    return Expansion([workload.pod(name) for name in names], [])


def _deployment(workload: Workload, owned: Owned) -> Expansion:
    """Its ReplicaSet, and the pods of that; or nothing, if the files have ReplicaSets of it, or it is paused."""
    if owned.has_sets(workload):
        note = (
            f"{workload.place}: {workload} has ReplicaSets already, which make its pods: what is new in it does not "
            f"count, but to --of deployment/{workload.namespace}/{workload.name}"
        )
        return Expansion([], [], [note] if workload.is_new else [])
    if workload.spec.get("paused") is True:
        return Expansion([], [])
    replica_set = replica_set_of(workload)
    maker = Workload("ReplicaSet", "apps/v1", replica_set, workload.source)
    return Expansion(_replicas(maker, owned).pods, [replica_set])


def replica_set_of(workload: Workload) -> OtherObject:
    """Return the ReplicaSet that is made for a Deployment. Raises Unreadable."""
    label = {"pod-template-hash": hash_of(workload.template)}
    name = f"{workload.name}-{label['pod-template-hash']}"
    selector = part(workload.spec, "selector")
    selector = {**selector, "matchLabels": {**part(selector, "matchLabels"), **label}}
    template_metadata = part(workload.template, "metadata")
    labels = {**part(template_metadata, "labels"), **label}
    template = {**workload.template, "metadata": {**template_metadata, "labels": labels}}
    content = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": workload.namespace,
            "uid": uid_of("ReplicaSet", workload.namespace, name),
            "labels": labels,
            "ownerReferences": [workload.reference()],
        },
        "spec": {"replicas": workload.count("replicas", 1), "selector": selector, "template": template},
    }
    return OtherObject(workload.place, "ReplicaSet (apps/v1)", content)


def _stateful_set(workload: Workload, owned: Owned) -> Expansion:
    there = {pod.name for pod in owned.pods_of(workload)}
    start, replicas = _first_ordinal(workload), workload.count("replicas", 1)
    templates = len(_claim_templates(workload))
    if replicas * templates > MAX_OBJECTS:
        raise Unreadable(f"spec.volumeClaimTemplates: {replicas} pods with {templates} claims each are too many")
    pods, claims = [], []
    for ordinal in range(start, start + replicas):
        pod, its_claims = _with_ordinal(workload, ordinal)
        claims += its_claims
        if f"{workload.name}-{ordinal}" not in there:
            pods.append(pod)
    return Expansion(pods, claims)


def _first_ordinal(workload: Workload) -> int:
    start = part(workload.spec, "ordinals").get("start") or 0
    if not isinstance(start, int) or isinstance(start, bool):
        raise Unreadable(f"spec.ordinals.start: expected int, got {type(start).__name__}")
    if not 0 <= start < 2**31:
        raise Unreadable("spec.ordinals.start: must be greater than or equal to 0, and fit into 32 bits")
    return start


def _claim_templates(workload: Workload) -> list[Any]:
    templates = workload.spec.get("volumeClaimTemplates") or []
    if not isinstance(templates, list):
        raise Unreadable(f"spec.volumeClaimTemplates: expected a list, got {type(templates).__name__}")
    return templates


def _with_ordinal(workload: Workload, ordinal: int) -> tuple[NewPod, list[OtherObject]]:
    """One pod of a StatefulSet, and its claims."""
    name = f"{workload.name}-{ordinal}"
    volumes, claims = [], []
    for template in _claim_templates(workload):
        claim = f"{_name_of(template)}-{name}"
        volumes.append({"name": _name_of(template), "persistentVolumeClaim": {"claimName": claim}})
        claims.append(_claim_of(workload, template, claim))
    replaced = {volume["name"] for volume in volumes}
    own = part(workload.template, "spec").get("volumes") or []
    rest = [each for each in own if not isinstance(each, Mapping) or each.get("name") not in replaced]
    labels = {
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": f"{ordinal}",
        "controller-revision-hash": f"{workload.name}-{hash_of(workload.template)}",
    }
    subdomain = str(workload.spec.get("serviceName") or "")
    return workload.pod(name, labels, hostname=name, subdomain=subdomain, volumes=[*volumes, *rest]), claims


def _claim_of(workload: Workload, template: Content, name: str) -> OtherObject:
    selected = part(part(workload.spec, "selector"), "matchLabels")
    metadata = part(template, "metadata")
    metadata = {
        **metadata,
        "name": name,
        "namespace": workload.namespace,
        "labels": {**part(metadata, "labels"), **selected},
    }
    content = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": metadata, "spec": template.get("spec")}
    return OtherObject(f"{workload.place}: claim {name}", "PersistentVolumeClaim", content)


def _job(workload: Workload, owned: Owned) -> Expansion:
    managed_by = workload.spec.get("managedBy")
    if workload.spec.get("suspend") or managed_by not in (None, _JOB_CONTROLLER) or workload.has_ended():
        return Expansion([], [])
    parallelism = workload.count("parallelism", 1)
    completions = workload.count("completions", 1)
    active = owned.pods_of(workload)
    # Pods that have succeeded may be gone; what the controller has counted may be old.
    succeeded = max(owned.ended_pods_of(workload), workload.succeeded())
    wanted = min(parallelism, completions - succeeded)
    if workload.spec.get("completions") is None and workload.spec.get("parallelism") is not None:
        wanted = 0 if succeeded else parallelism  # the first success is the beginning of the end
    missing = max(0, wanted - len(active))
    if _is_indexed(workload) and workload.spec.get("completions") is None:
        raise Unreadable(f"spec.completions: {required('when completion mode is Indexed')}")
    if not _is_indexed(workload):
        names = islice(random_names(f"{workload.name}-", workload.kind), missing)
        return Expansion([workload.pod(name, _labels_of_job(workload)) for name in names], [])
    taken = {pod.labels.get(_INDEX) for pod in active}
    free = [index for index in range(completions) if f"{index}" not in taken][succeeded:][:missing]
    return Expansion([_with_index(workload, index) for index in free], [])


_JOB_CONTROLLER: Final = "kubernetes.io/job-controller"
_INDEX: Final = "batch.kubernetes.io/job-completion-index"


def _is_indexed(workload: Workload) -> bool:
    return workload.spec.get("completionMode") == "Indexed"


def _labels_of_job(workload: Workload) -> dict[str, str]:
    return {
        f"{prefix}{key}": value
        for key, value in (("controller-uid", workload.uid), ("job-name", workload.name))
        for prefix in ("", "batch.kubernetes.io/")
    }


def _with_index(workload: Workload, index: int) -> NewPod:
    end = f"-{index}-"
    labels = {**_labels_of_job(workload), _INDEX: f"{index}"}
    name = random_name(f"{workload.name[: MAX_PREFIX - len(end)]}{end}", 0, workload.kind)
    return workload.pod(name, labels, hostname=f"{workload.name}-{index}")


CONTROLLERS: Final[Mapping[str, tuple[str, str, Callable[[Workload, Owned], Expansion]]]] = {
    "Deployment (apps/v1)": ("Deployment", "apps/v1", _deployment),
    "ReplicaSet (apps/v1)": ("ReplicaSet", "apps/v1", _replicas),
    "StatefulSet (apps/v1)": ("StatefulSet", "apps/v1", _stateful_set),
    "ReplicationController": ("ReplicationController", "v1", _replicas),
    "Job (batch/v1)": ("Job", "batch/v1", _job),
}
"""Kind and version as objects are counted → both, and what makes the pods that are missing."""


def part(content: Content, name: str) -> Mapping[str, Any]:
    """Return an object within an object, empty if it is not there. Raises Unreadable."""
    found = content.get(name)
    if found is not None and not isinstance(found, Mapping):
        raise Unreadable(f"{name}: expected an object, got {type(found).__name__}")
    return found or {}


def _name_of(template: Any) -> str:
    name = part(template, "metadata").get("name") if isinstance(template, Mapping) else None
    if not isinstance(name, str) or not name:
        raise Unreadable("spec.volumeClaimTemplates: metadata.name: Required value")
    return name
