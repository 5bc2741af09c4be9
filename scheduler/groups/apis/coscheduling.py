"""The groups of `scheduling.x-k8s.io`: PodGroup objects of scheduler-plugins; pods name theirs in a label."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

from scheduler.api.groups import coscheduling as api
from scheduler.api.objects import GroupAnnotations, ResourceList
from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import allocatable_of
from scheduler.api.wording.text import shortened
from scheduler.framework.events import COSCHEDULING_POD_GROUP
from scheduler.framework.groups.pod_groups import PodGroup
from scheduler.framework.handle import ObjectLister
from scheduler.groups.apis.annotations import wishes

MAX_RESOURCES: Final = 100
"""That a group names: each of them costs time."""

MAX_SHOWN: Final = 200
"""Characters of what cannot be read."""

MAX_KEPT: Final = 10_000
"""Groups that are kept as they were read last."""


class ObjectGroups:
    """Groups that have an object each, kept as they were read last. Implements Adapter, except for `name_of`."""

    def __init__(
        self, source: str, objects: ObjectLister, as_group: Callable[[Any, GroupAnnotations | None, int], PodGroup]
    ) -> None:
        """`as_group`: an object, the annotations of a pod of it, and the pod's priority → the group."""
        self.source: Final = source
        self._objects = objects
        self._as_group = as_group
        self._kept: dict[str, tuple[Any, GroupAnnotations | None, PodGroup]] = {}
        """UID → the object, the annotations of a pod of it, and the group that they make."""

    def find(self, namespace: str, name: str, pod: Pod, said: GroupAnnotations | None) -> PodGroup | None:
        found: Any = self._objects.get(self.source, name, namespace)
        if found is None:
            return None
        uid = found.metadata.uid
        kept = self._kept.get(uid)
        if kept is not None and kept[0] is found and kept[1] == said and kept[2].priority == pod.priority:
            return kept[2]
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        group = self._as_group(found, said, pod.priority)
        self._kept[uid] = found, said, group
        return group


class CoschedulingGroups(ObjectGroups):
    def __init__(self, objects: ObjectLister) -> None:
        super().__init__(COSCHEDULING_POD_GROUP, objects, as_group)

    def name_of(self, pod: Pod) -> str:
        return pod.labels.get(api.POD_GROUP_LABEL, "")


def as_group(podgroup: api.PodGroup, of_pod: GroupAnnotations | None, priority: int) -> PodGroup:
    """Return what a PodGroup object wants, and its pods, which have these annotations and this priority."""
    metadata, spec = podgroup.metadata, podgroup.spec
    problem = "" if spec.min_member > 0 else f"minMember of the PodGroup is {spec.min_member}: must be 1 or more"
    resources, unreadable = amounts(spec.min_resources)
    return PodGroup(
        metadata.namespace,
        metadata.name,
        metadata.uid,
        COSCHEDULING_POD_GROUP,
        minimum=max(0, spec.min_member),
        priority=priority,
        is_ours=True,
        succeeded=0 if podgroup.status.phase in api.FINAL_PHASES else podgroup.status.succeeded,
        resources=MappingProxyType(resources),
        timeout_seconds=float(max(0, spec.schedule_timeout_seconds or 0)),
        **wishes(metadata.group_annotations, of_pod, problem=problem or unreadable),
    )


def amounts(resources: ResourceList | None) -> tuple[dict[str, int], str]:
    """Read the resources that a group needs; return them, and their problems."""
    wanted = resources or {}
    try:
        if len(wanted) > MAX_RESOURCES:
            raise ValueError(f"it has {len(wanted)} resources, must have at most {MAX_RESOURCES}")
        return allocatable_of(wanted), ""
    except ValueError as error:
        return {}, f"minResources of the PodGroup cannot be read: {shortened(str(error), MAX_SHOWN)}"
