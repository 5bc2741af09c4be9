"""The pods that operators make of new workloads of their own kinds: JobSets, LeaderWorkerSets, Ray's, Kubeflow's.

    JobSet             ─► Jobs ─► pods
    LeaderWorkerSet    ─► leaders and workers
    RayJob, RayService ─► RayCluster ─► head and workers
    PyTorchJob, MPIJob ─► replicas of each role

A workload that comes from a cluster has its pods already, or Jobs that make them. Names of pods are simpler than in
reality.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from scheduler.api.decoding import Unreadable, convert
from scheduler.api.generated_uids import uid_of
from scheduler.api.groups.workloads import WorkerGroup
from scheduler.api.wording.text import shortened
from scheduler.simulate.controllers.workloads import (
    CONTROLLERS,
    MAX_OBJECTS,
    Allowance,
    Content,
    Expansion,
    NewPod,
    Owned,
    Workload,
    part,
)
from scheduler.simulate.files.objects import report
from scheduler.simulate.other_objects import OtherObject

_JOB: Final = "Job (batch/v1)"
_RAY_CLUSTER: Final = "RayCluster (ray.io/v1)"

_LWS: Final = "leaderworkerset.sigs.k8s.io"

_Made = tuple[Workload, Expansion]
"""A workload, and its pods."""


def operated(others: Iterable[OtherObject], owned: Owned, allowance: Allowance, problems: list[str]) -> Expansion:
    """Return the objects that operators make of the new workloads in these, and add errors to `problems`."""
    made = Expansion([], [])
    for obj in others:
        operator = OPERATORS.get(obj.label)
        if operator is None or obj.metadata.get("resourceVersion"):
            continue
        try:
            if not obj.metadata.get("name"):
                raise Unreadable("metadata.name: Required value")
            if part(obj.content, "spec").get("suspend"):
                continue
            for workload, one in operator(obj, owned):
                allowance.take(workload, len(one.pods) + len(one.others))
                made.pods.extend(one.pods)
                made.others.extend(one.others)
        except Unreadable as error:
            report(problems, obj.place, f"{error}")
    return made


def _job_set(obj: OtherObject, owned: Owned) -> Iterator[_Made]:
    for index, replicated in enumerate(_list(part(obj.content, "spec"), "replicatedJobs")):
        of_job = f"spec.replicatedJobs[{index}]"
        template = part(replicated, "template")
        source = obj._replace(path=f"/spec/replicatedJobs/{index}/template/spec/template")
        for number in range(_count(replicated, "replicas", 1, of_job)):
            job = _job_of(obj, replicated, template, number)
            workload = Workload("Job", "batch/v1", job, source)
            _, _, expand = CONTROLLERS[_JOB]
            one = expand(workload, owned)
            yield workload, one._replace(others=[job, *one.others])


def _job_of(obj: OtherObject, replicated: Content, template: Content, number: int) -> OtherObject:
    name, part_name = str(obj.metadata.get("name")), str(replicated.get("name", ""))
    labels = {
        "jobset.sigs.k8s.io/jobset-name": name,
        "jobset.sigs.k8s.io/replicatedjob-name": part_name,
        "jobset.sigs.k8s.io/job-index": f"{number}",
    }
    spec = part(template, "spec")
    numbers = {"completionMode": "Indexed", "completions": spec.get("completions", spec.get("parallelism", 1))}
    spec = {**numbers, **spec, "template": _labelled(part(spec, "template"), labels)}
    metadata = {**_metadata(obj, f"{name}-{part_name}-{number}"), "labels": labels}
    return OtherObject(obj.place, _JOB, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})


def _leader_worker_set(obj: OtherObject, _: Owned) -> Iterator[_Made]:
    spec, name = part(obj.content, "spec"), str(obj.metadata.get("name"))
    inner = part(spec, "leaderWorkerTemplate")
    size = _count(inner, "size", 1, "spec.leaderWorkerTemplate")
    leader = "leaderTemplate" if inner.get("leaderTemplate") else "workerTemplate"
    for group in range(_count(spec, "replicas", 1, "spec")):
        yield _of_group(obj, leader, name, group, range(min(size, 1)), size)
        yield _of_group(obj, "workerTemplate", f"{name}-{group}", group, range(1, size), size)


def _of_group(obj: OtherObject, role: str, stateful_set: str, group: int, indices: range, size: int) -> _Made:
    """Return the leader of a group, or its workers; `role`: the field that has their template."""
    name, template = str(obj.metadata.get("name")), part(part(part(obj.content, "spec"), "leaderWorkerTemplate"), role)
    labels = {f"{_LWS}/name": name, f"{_LWS}/group-index": f"{group}"}
    spec = {"template": _labelled(template, labels, {f"{_LWS}/size": f"{size}"})}
    content = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": _metadata(obj, stateful_set), "spec": spec}
    made = OtherObject(obj.place, "StatefulSet (apps/v1)", content)
    workload = Workload("StatefulSet", "apps/v1", made, obj._replace(path=f"/spec/leaderWorkerTemplate/{role}"))
    first = f"{name}-{group}"
    pods = [workload.pod(f"{first}-{n}" if n else first, {f"{_LWS}/worker-index": f"{n}"}) for n in indices]
    return workload, Expansion(pods, [made])


def _ray_cluster(obj: OtherObject, _: Owned) -> Iterator[_Made]:
    yield from _ray_pods(obj, obj, "/spec")


def _ray(field: str, obj: OtherObject, _: Owned) -> Iterator[_Made]:
    """Yield a RayCluster, which is written in a field of the spec, and its pods."""
    metadata = _metadata(obj, f"{obj.metadata.get('name')}-cluster")
    spec = part(part(obj.content, "spec"), field)
    content = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": spec}
    cluster = OtherObject(obj.place, _RAY_CLUSTER, content)
    for number, (workload, one) in enumerate(_ray_pods(cluster, obj, f"/spec/{field}")):
        yield workload, one._replace(others=[*one.others, *([] if number else [cluster])])


def _ray_pods(cluster: OtherObject, written: OtherObject, path: str) -> Iterator[_Made]:
    """Yield the head and each group of workers; `path`: that of the cluster's spec as it is written."""
    spec = part(cluster.content, "spec")
    head = part(spec, "headGroupSpec")
    source = written._replace(path=f"{path}/headGroupSpec/template")
    yield _role(cluster, source, head, "head", 1, {"ray.io/node-type": "head"})
    is_scaled = bool(spec.get("enableInTreeAutoscaling"))
    for index, group in enumerate(_list(spec, "workerGroupSpecs")):
        name = str(group.get("groupName", index))
        number = _within(convert(group, WorkerGroup).at_once(is_scaled=is_scaled), f"spec.workerGroupSpecs[{index}]")
        labels = {"ray.io/node-type": "worker", "ray.io/group": name}
        source = written._replace(path=f"{path}/workerGroupSpecs/{index}/template")
        yield _role(cluster, source, group, f"{name}-worker", number, labels)


def _kubeflow(field: str, obj: OtherObject, _: Owned) -> Iterator[_Made]:
    """Yield the pods of all roles, which are written in a field of the spec."""
    spec = part(obj.content, "spec")
    if part(spec, "runPolicy").get("suspend"):
        return
    is_mpi = field == "mpiReplicaSpecs"
    for role, each in part(spec, field).items():
        path = f"spec.{field}[{shortened(str(role), 63)}]"
        if not isinstance(each, Mapping):
            raise Unreadable(f"{path}: expected an object, got {type(each).__name__}")
        number = _count(each, "replicas", 0 if is_mpi and role == "Worker" else 1, path)
        labels = {"training.kubeflow.org/job-name": obj.key[2], "training.kubeflow.org/replica-type": role.lower()}
        source = obj._replace(path=f"/spec/{field}/{role}/template")
        yield _role(obj, source, each, role.lower(), number, labels)


def _role(
    owner: OtherObject, source: OtherObject, written: Content, role: str, number: int, labels: Mapping[str, str]
) -> _Made:
    """Return the pods of one role, which the owner itself controls."""
    content = {"metadata": owner.metadata, "spec": {"template": written.get("template")}}
    workload = Workload(
        str(owner.content.get("kind")),
        str(owner.content.get("apiVersion")),
        OtherObject(owner.place, owner.label, content),
        source,
    )
    pods: list[NewPod] = [workload.pod(f"{workload.name}-{role}-{each}", labels) for each in range(number)]
    return workload, Expansion(pods, [])


def _metadata(owner: OtherObject, name: str) -> dict[str, Any]:
    _, namespace, its_name = owner.key
    kind, version = str(owner.content.get("kind")), str(owner.content.get("apiVersion"))
    uid = str(owner.metadata.get("uid") or uid_of(kind, namespace, its_name))
    reference = {"apiVersion": version, "kind": kind, "name": its_name, "uid": uid, "controller": True}
    return {"name": name, "namespace": namespace, "ownerReferences": [reference]}


def _labelled(template: Content, labels: Mapping[str, str], annotations: Mapping[str, str] | None = None) -> Content:
    metadata = part(template, "metadata")
    added = {
        "labels": {**part(metadata, "labels"), **labels},
        "annotations": {**part(metadata, "annotations"), **(annotations or {})},
    }
    return {**template, "metadata": {**metadata, **added}}


def _list(content: Content, field: str) -> Sequence[Content]:
    """Return a list of objects within the spec. Raises Unreadable."""
    found = content.get(field) or []
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise Unreadable(f"spec.{field}: expected a list of objects")
    return found


def _count(content: Content, field: str, default: int, path: str) -> int:
    """Return a number of pods. Raises Unreadable."""
    number: Any = content.get(field)
    if number is None:
        return default
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise Unreadable(f"{path}.{field}: Invalid value: must be a number of 0 or more")
    return _within(number, f"{path}.{field}")


def _within(number: int, path: str) -> int:
    if number > MAX_OBJECTS:
        raise Unreadable(f"{path}: {number} pods are more than a simulation makes, which is {MAX_OBJECTS:,}")
    return number


OPERATORS: Final[Mapping[str, Callable[[OtherObject, Owned], Iterator[_Made]]]] = {
    "JobSet (jobset.x-k8s.io/v1alpha2)": _job_set,
    "LeaderWorkerSet (leaderworkerset.x-k8s.io/v1)": _leader_worker_set,
    _RAY_CLUSTER: _ray_cluster,
    "RayJob (ray.io/v1)": partial(_ray, "rayClusterSpec"),
    "RayService (ray.io/v1)": partial(_ray, "rayClusterConfig"),
    "MPIJob (kubeflow.org/v2beta1)": partial(_kubeflow, "mpiReplicaSpecs"),
    "PyTorchJob (kubeflow.org/v1)": partial(_kubeflow, "pytorchReplicaSpecs"),
    "TFJob (kubeflow.org/v1)": partial(_kubeflow, "tfReplicaSpecs"),
    "XGBoostJob (kubeflow.org/v1)": partial(_kubeflow, "xgbReplicaSpecs"),
    "PaddleJob (kubeflow.org/v1)": partial(_kubeflow, "paddleReplicaSpecs"),
    "JAXJob (kubeflow.org/v1)": partial(_kubeflow, "jaxReplicaSpecs"),
}
"""Kind and version as objects are counted → what makes the pods."""
