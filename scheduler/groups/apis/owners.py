"""Groups that their owner describes: the workload that replicates a pod knows how many of them run at once.

    loadmaster.dev/gang: owner              a Job, a JobSet, a StatefulSet, or each group of a LeaderWorkerSet
    loadmaster.dev/gang: replicated-job     each replicated job of a JobSet

The annotation is one line of the pod template. How many pods start together follows the workload when it is scaled.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from scheduler.api.decoding import Unreadable, convert
from scheduler.api.objects import GroupAnnotations
from scheduler.api.owners import controller_of
from scheduler.api.pod import Pod
from scheduler.api.text import shortened
from scheduler.api.workloads import GANG_ANNOTATION, JOB, JOB_SET, Job, JobSet, JobSpec, StatefulSet
from scheduler.config.defaults import COSCHEDULING
from scheduler.framework.handle import ObjectLister
from scheduler.framework.pod_groups import GroupKey, GroupObject, PodGroup
from scheduler.framework.resources import STATEFUL_SET
from scheduler.groups.apis.annotations import MAX_MEMBERS, NO_ANNOTATIONS, POD_GROUP_ANNOTATION, whole_number, wishes

OWNER: Final = "owner"
REPLICATED_JOB: Final = "replicated-job"
_ASKED: Final = f"{GANG_ANNOTATION}: "

MAX_SHOWN: Final = 63
"""Characters of an annotation."""

MAX_KEPT: Final = 10_000
"""Sizes that are kept as they were read last."""

_SET_OF_JOB: Final = "jobset.sigs.k8s.io/jobset-name"
_REPLICATED_JOB_OF: Final = "jobset.sigs.k8s.io/replicatedjob-name"
_LEADER_WORKER_SET: Final = "leaderworkerset.sigs.k8s.io/name"
_GROUP_INDEX: Final = "leaderworkerset.sigs.k8s.io/group-index"
_SIZE: Final = "leaderworkerset.sigs.k8s.io/size"


class Size(NamedTuple):
    """How many pods of a workload start together, or why they cannot."""

    minimum: int
    problem: str = ""


class Workload(NamedTuple):
    """The workload that a pod belongs to, or the part of it that is a gang."""

    kind: str
    name: str
    part: str = ""
    """A replicated job, or the index of a group; empty for all of it."""

    def __str__(self) -> str:
        """Name the group."""
        return "/".join(filter(None, (self.kind.lower(), self.name, self.part)))


@dataclass(frozen=True)
class _Kind:
    """A kind of workload whose objects are read."""

    api_version: str
    resource: str
    struct: type[Any]
    size_of: Callable[[Any, str], Size]
    """Object and part → its size."""


class OwnedGroups:
    """Implements Adapter."""

    source: Final = GANG_ANNOTATION

    def __init__(self, objects: ObjectLister) -> None:
        self._objects = objects
        self._sizes: dict[tuple[str, str], tuple[Any, Size]] = {}
        """UID of an object, and a part of it → the object, and its size."""

    def name_of(self, pod: Pod) -> str:
        return gang_of(pod)

    def find(self, namespace: str, name: str, pod: Pod, said: GroupAnnotations | None) -> PodGroup | None:
        annotations = said or NO_ANNOTATIONS
        workload, owner = workload_of(pod, annotations.gang), None
        problem = _misused(annotations.gang, workload)
        if problem:
            size = Size(0, problem)
        elif workload.kind == "LeaderWorkerSet":
            size = Size(whole_number(annotations.leader_worker_size))
            if not size.minimum:
                size = Size(0, f"the annotation {_SIZE} is no number of pods from 1 to {MAX_MEMBERS}")
        else:
            kind = _KINDS[workload.kind]
            try:
                found = self._objects.get(kind.resource, workload.name, namespace)
            except LookupError:
                size = Size(
                    0, f"{_ASKED}no {workload.kind} is watched, see `workloads` of the arguments of {COSCHEDULING}"
                )
            else:
                if found is None:
                    return None
                owner = GroupObject(kind.api_version, workload.kind, found.metadata.name, found.metadata.uid)
                size = self._size(kind, found, workload.part)
        return PodGroup(
            namespace,
            name,
            f"{namespace}/{name}",  # no object has such a one
            self.source,
            minimum=size.minimum,
            priority=pod.priority,
            is_ours=True,
            owner=owner,
            has_live_minimum=True,
            **{"problem": size.problem, **wishes(annotations, problem=size.problem)},
        )

    def _size(self, kind: _Kind, found: Any, part: str) -> Size:
        key = found.metadata.uid, part
        kept = self._sizes.get(key)
        if kept is not None and kept[0] is found:
            return kept[1]
        if len(self._sizes) >= MAX_KEPT:
            self._sizes.clear()
        try:
            size = kind.size_of(_read(found, kind.struct), part)
        except Unreadable as error:
            size = Size(0, f"its owner cannot be read: {error}")
        self._sizes[key] = found, size
        return size


def gang_of(pod: Pod) -> str:
    """Return the name of the group that a pod is to start with by its annotation; empty without that."""
    annotations = pod.group_annotations
    return "" if annotations is None or not annotations.gang else str(workload_of(pod, annotations.gang))


def workload_of(pod: Pod, gang: str) -> Workload:
    """Return the workload that a pod belongs to; of no kind that has gangs if there is none."""
    labels, controller = pod.labels, controller_of(pod)
    if controller is None:
        return Workload("Pod", pod.name)
    if (name := labels.get(_LEADER_WORKER_SET)) and _GROUP_INDEX in labels:
        return Workload("LeaderWorkerSet", name, labels[_GROUP_INDEX])
    if controller.kind == "Job" and (name := labels.get(_SET_OF_JOB)):
        return Workload("JobSet", name, labels.get(_REPLICATED_JOB_OF, "") if gang == REPLICATED_JOB else "")
    return Workload(controller.kind, controller.name)


def _misused(gang: str, workload: Workload) -> str:
    """Say why the annotation means nothing for a pod of this workload; empty if it does."""
    if gang not in (OWNER, REPLICATED_JOB):
        return (
            f'the annotation {GANG_ANNOTATION} is "{shortened(gang, MAX_SHOWN)}", not "{OWNER}" or "{REPLICATED_JOB}"'
        )
    if gang == REPLICATED_JOB and workload.kind != "JobSet":
        return f"{_ASKED}{REPLICATED_JOB} is for pods of JobSets, this one is of a {workload.kind}"
    if workload.kind in _KINDS or workload.kind == "LeaderWorkerSet":
        return ""
    what = "has no owner" if workload.kind == "Pod" else f"is of a {workload.kind}"
    return (
        f"{_ASKED}{OWNER} is for pods of Jobs, JobSets, LeaderWorkerSets and StatefulSets, this one {what}: name its "
        f"group by the annotation {POD_GROUP_ANNOTATION}"
    )


def groups_of(resource: str, owner: Any) -> Iterator[GroupKey]:
    """Yield the keys of the groups that an object may describe."""
    kind = next(name for name, each in _KINDS.items() if each.resource == resource)
    namespace, name = owner.metadata.namespace, owner.metadata.name
    yield GroupKey(namespace, GANG_ANNOTATION, str(Workload(kind, name)))
    if resource == JOB_SET:
        with suppress(Unreadable):
            for each in _read(owner, JobSet).spec.replicated_jobs or ():
                yield GroupKey(namespace, GANG_ANNOTATION, str(Workload(kind, name, each.name)))


def _size_of_job(job: Job, _: str) -> Size:
    return Size(_at_once(job.spec, job.status.succeeded))


def _at_once(spec: JobSpec, succeeded: int = 0) -> int:
    """Return how many pods of a Job run at once: its parallelism, or what is left of its completions."""
    parallelism = 1 if spec.parallelism is None else max(0, spec.parallelism)
    return parallelism if spec.completions is None else min(parallelism, max(0, spec.completions - succeeded))


def _size_of_job_set(job_set: JobSet, part: str) -> Size:
    """Return that of all its jobs which have not succeeded, or of one of its replicated jobs."""
    jobs = [each for each in job_set.spec.replicated_jobs or () if part in ("", each.name)]
    policy = job_set.spec.startup_policy
    in_order = policy is not None and policy.startup_policy_order == "InOrder"
    if not part and len(jobs) > 1 and (in_order or any(each.depends_on for each in jobs)):
        return Size(
            0,
            "the replicated jobs of its JobSet start one after the other (startupPolicy InOrder or dependsOn), so they "
            f"cannot start together: {GANG_ANNOTATION}: {REPLICATED_JOB} starts each of them as a whole",
        )
    succeeded = {each.name: each.succeeded for each in job_set.status.replicated_jobs_status or ()}
    return Size(
        sum(max(0, each.replicas - succeeded.get(each.name, 0)) * _at_once(each.template.spec) for each in jobs)
    )


def _size_of_stateful_set(stateful_set: StatefulSet, _: str) -> Size:
    spec = stateful_set.spec
    replicas = 1 if spec.replicas is None else max(0, spec.replicas)
    if replicas > 1 and spec.pod_management_policy != "Parallel":
        return Size(
            0,
            "its StatefulSet creates one pod after the other, so they cannot start together: podManagementPolicy must "
            "be Parallel",
        )
    return Size(replicas)


def _read(found: Any, struct: type[Any]) -> Any:
    return convert(found.content, struct)


_KINDS: Final[Mapping[str, _Kind]] = {
    "Job": _Kind("batch/v1", JOB, Job, _size_of_job),
    "JobSet": _Kind("jobset.x-k8s.io/v1alpha2", JOB_SET, JobSet, _size_of_job_set),
    "StatefulSet": _Kind("apps/v1", STATEFUL_SET, StatefulSet, _size_of_stateful_set),
}
