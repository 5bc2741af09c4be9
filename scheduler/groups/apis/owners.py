"""Groups that their owner describes: the workload that replicates a pod knows how many of them run at once.

    loadmaster.dev/gang: owner              a workload, or each group of a LeaderWorkerSet
    loadmaster.dev/gang: replicated-job     each replicated job of a JobSet
    loadmaster.dev/gang: none               no group, whatever the namespace or the profile says

It is an annotation of the pod template, a label of the namespace, or follows from `gangs.kinds` of the profile; the
first one present counts. How many pods start together follows the workload when it is scaled. A pod whose template says
nothing is never refused for that: if its workload cannot start as a whole, it starts alone.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from scheduler.api.decoding import Unreadable, convert
from scheduler.api.groups.coscheduling import POD_GROUP_LABEL
from scheduler.api.groups.owners import controller_of
from scheduler.api.groups.workloads import (
    GANG_ANNOTATION,
    JOB_SET,
    KIND_OF,
    LEADER_WORKER_SET,
    REPLICATED_JOB,
    WORKLOADS,
    JobSet,
    Size,
    WorkloadKind,
)
from scheduler.api.objects import GroupAnnotations
from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import shortened
from scheduler.config.defaults import COSCHEDULING
from scheduler.framework.groups.pod_groups import GroupKey, GroupObject, PodGroup
from scheduler.framework.handle import ObjectLister
from scheduler.groups.apis.annotations import (
    MAX_MEMBERS,
    MAX_SHOWN,
    NO_ANNOTATIONS,
    POD_GROUP_ANNOTATION,
    whole_number,
    without_object,
)

OWNER: Final = "owner"
NONE: Final = "none"

_ASKED: Final = f"{GANG_ANNOTATION}: "

MAX_KEPT: Final = 10_000
"""Sizes that are kept as they were read last."""

_SET_OF_JOB: Final = "jobset.sigs.k8s.io/jobset-name"
_REPLICATED_JOB_OF: Final = "jobset.sigs.k8s.io/replicatedjob-name"
_NAME_OF_SET: Final = "leaderworkerset.sigs.k8s.io/name"
_GROUP_INDEX: Final = "leaderworkerset.sigs.k8s.io/group-index"
_SIZE: Final = "leaderworkerset.sigs.k8s.io/size"
_OPERATOR: Final = "training.kubeflow.org/operator-name"
_JOB_OF_OPERATOR: Final = "training.kubeflow.org/job-name"
_MPI_OPERATOR: Final = "mpi-operator"


class ProfileGangs(NamedTuple):
    """The kinds of workloads that a profile knows."""

    kinds: frozenset[str] = frozenset()
    """Those that are gangs anyway."""

    watched: frozenset[str] = frozenset()
    """Those of which gangs can be made."""


class GangDefaults:
    """The value that counts for pods whose template says nothing, kept up to date by `GroupParts`.

    The namespace's label counts for the kinds of workloads that the profile watches; without it, `gangs.kinds` of the
    profile say of which kinds all are gangs.
    """

    def __init__(self) -> None:
        self._profiles: Mapping[str, ProfileGangs] = {}
        self._labels: dict[str, str] = {}
        """Namespace with the label → its value."""

    def use(self, profiles: Mapping[str, ProfileGangs]) -> bool:
        """Take over what profiles say; return whether it is something else."""
        before, self._profiles = self._profiles, dict(profiles)
        return before != self._profiles

    def label(self, namespace: str, value: str) -> bool:
        """Take over a namespace's label, empty for none; return whether it is another one."""
        before = self._labels.pop(namespace, "")
        if value:
            self._labels[namespace] = value
        return before != value

    def of(self, pod: Pod) -> tuple[str, Collection[str]]:
        """Return the value that counts for a pod, and the kinds of workloads for which it does; none for no value."""
        profile = self._profiles.get(pod.spec.scheduler_name)
        if profile is None or not (profile.kinds or self._labels):
            return "", ()
        label = self._labels.get(pod.metadata.namespace)
        if label is None:
            return OWNER, profile.kinds
        return label, profile.watched if label in (OWNER, REPLICATED_JOB) else ()


class Workload(NamedTuple):
    """The workload that a pod belongs to, or the part of it that is a gang."""

    kind: str
    name: str
    part: str = ""
    """A replicated job, or the index of a group; empty for all of it."""

    def __str__(self) -> str:
        """Name the group."""
        return "/".join(filter(None, (self.kind.lower(), self.name, self.part)))


class OwnedGroups:
    """Implements Adapter."""

    source: Final = GANG_ANNOTATION

    def __init__(self, objects: ObjectLister, defaults: GangDefaults) -> None:
        self._objects = objects
        self._defaults = defaults
        self._sizes: dict[tuple[str, str], tuple[Any, Size]] = {}
        """UID of an object, and a part of it → the object, and its size."""

    def name_of(self, pod: Pod) -> str:
        annotations = pod.group_annotations
        if annotations is not None and annotations.gang:
            return gang_of(pod)
        gang = self._default(pod)
        return str(workload_of(pod, gang)) if gang else ""

    def _default(self, pod: Pod) -> str:
        """Return what counts as the annotation of a pod that does not have it; empty for none."""
        gang, kinds = self._defaults.of(pod)
        return gang if kinds and workload_of(pod, gang).kind in kinds else ""

    def find(self, namespace: str, name: str, pod: Pod, said: GroupAnnotations | None) -> PodGroup | None:
        annotations = said or NO_ANNOTATIONS
        gang, owner = annotations.gang or self._default(pod), None
        workload = workload_of(pod, gang)
        if annotations.gang and (problem := _misused(gang, workload)):
            size = Size(0, problem)
        elif workload.kind == LEADER_WORKER_SET:
            size = Size(whole_number(annotations.leader_worker_size))
            if not size.minimum:
                size = Size(0, f"the annotation {_SIZE} is no number of pods from 1 to {MAX_MEMBERS}")
        else:
            kind = WORKLOADS.get(workload.kind)
            if kind is None:  # a default that holds no longer
                return None
            try:
                found = self._objects.get(kind.resource, workload.name, namespace)
            except LookupError:
                text = f"no {workload.kind} is watched, see `workloads` of the arguments of {COSCHEDULING}"
                size = Size(0, f"{_ASKED}{text}")
            else:
                if found is None:
                    return None
                owner = GroupObject(kind.api_version, workload.kind, found.metadata.name, found.metadata.uid)
                size = self._size(kind, found, workload.part)
        if size.problem and not annotations.gang:
            size = Size(1)
        fields = {"minimum": size.minimum, "owner": owner, "has_live_minimum": workload.kind == "Job"}
        return without_object(self.source, namespace, name, pod, annotations, size.problem, **fields)

    def _size(self, kind: WorkloadKind, found: Any, part: str) -> Size:
        key = found.metadata.uid, part
        kept = self._sizes.get(key)
        if kept is not None and kept[0] is found:
            return kept[1]
        if len(self._sizes) >= MAX_KEPT:
            self._sizes.clear()
        try:
            size = kind.size_of(convert(found.content, kind.struct), part)
        except Unreadable as error:
            size = Size(0, f"its owner cannot be read: {error}")
        self._sizes[key] = found, size
        return size


def gang_of(pod: Pod) -> str:
    """Return the name of the group that a pod is to start with by its annotation; empty without that."""
    annotations = pod.group_annotations
    if annotations is None or annotations.gang in ("", NONE):
        return ""
    return str(workload_of(pod, annotations.gang))


def workload_of(pod: Pod, gang: str) -> Workload:
    """Return the workload that a pod belongs to; of no kind that has gangs if there is none."""
    labels, controller = pod.labels, controller_of(pod)
    if controller is None:
        return Workload("Pod", pod.name)
    if (name := labels.get(_NAME_OF_SET)) and _GROUP_INDEX in labels:
        return Workload(LEADER_WORKER_SET, name, labels[_GROUP_INDEX])
    if controller.kind == "Job" and (name := labels.get(_SET_OF_JOB)):
        return Workload("JobSet", name, labels.get(_REPLICATED_JOB_OF, "") if gang == REPLICATED_JOB else "")
    if controller.kind == "Job" and labels.get(_OPERATOR) == _MPI_OPERATOR and (name := labels.get(_JOB_OF_OPERATOR)):
        return Workload("MPIJob", name)  # its launcher
    return Workload(controller.kind, controller.name)


def _misused(gang: str, workload: Workload) -> str:
    """Say why the annotation means nothing for a pod of this workload; empty if it does."""
    if gang not in (OWNER, REPLICATED_JOB):
        said = shortened(gang, MAX_SHOWN)
        return f'the annotation {GANG_ANNOTATION} is "{said}", not "{OWNER}" or "{REPLICATED_JOB}"'
    if gang == REPLICATED_JOB and workload.kind != "JobSet":
        return f"{_ASKED}{REPLICATED_JOB} is for pods of JobSets, this one is of a {workload.kind}"
    if workload.kind in WORKLOADS or workload.kind == LEADER_WORKER_SET:
        return ""
    what = "has no owner" if workload.kind == "Pod" else f"is of a {shortened(workload.kind, MAX_SHOWN)}"
    kinds = [f"{each}s" for each in (LEADER_WORKER_SET, *WORKLOADS)]
    return (
        f"{_ASKED}{OWNER} is for pods of {', '.join(kinds[:-1])} and {kinds[-1]}, this one {what}: name its group by "
        f"the annotation {POD_GROUP_ANNOTATION}"
    )


def groups_of(resource: str, owner: Any) -> Iterator[GroupKey]:
    """Yield the keys of the groups that an object may describe."""
    kind = KIND_OF[resource]
    namespace, name = owner.metadata.namespace, owner.metadata.name
    yield GroupKey(namespace, GANG_ANNOTATION, str(Workload(kind, name)))
    if resource == JOB_SET:
        with suppress(Unreadable):
            for each in convert(owner.content, JobSet).spec.replicated_jobs or ():
                yield GroupKey(namespace, GANG_ANNOTATION, str(Workload(kind, name, each.name)))


def named_by(pod: Pod) -> str:
    """Return the group that a pod names; empty if it names none."""
    return next(iter(named_groups(pod)), "")


def named_groups(pod: Pod) -> list[str]:
    """Return the groups that a pod names, each once: there should be one."""
    label, said = pod.labels.get(POD_GROUP_LABEL, ""), pod.group_annotations
    if said is None:
        return [label] if label else []
    names = dict.fromkeys((label, said.group, said.volcano_group, said.koordinator_gang, gang_of(pod)))
    return [name for name in names if name]
