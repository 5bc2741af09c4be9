"""The groups of `scheduling.volcano.sh`: PodGroup objects as many operators create them for Volcano.

Their pods name them in the annotation `scheduling.k8s.io/group-name`. Minimums of tasks do not count one by one: a
group needs `minMember` pods, or the sum of those if that is more. Queues limit nothing here, but where there are any, a
group whose queue does not exist waits for it, as with Volcano.
"""

from types import MappingProxyType
from typing import Final

from msgspec import structs

from scheduler.api.groups import volcano as api
from scheduler.api.objects import GroupAnnotations
from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import shortened
from scheduler.framework.events import VOLCANO_POD_GROUP, VOLCANO_QUEUE
from scheduler.framework.groups.pod_groups import PodGroup
from scheduler.framework.handle import ObjectLister
from scheduler.groups.apis.annotations import MAX_MEMBERS, MAX_SHOWN, wishes
from scheduler.groups.apis.coscheduling import ObjectGroups, amounts

DEFAULT_QUEUE: Final = "default"


class VolcanoGroups(ObjectGroups):
    def __init__(self, objects: ObjectLister) -> None:
        super().__init__(VOLCANO_POD_GROUP, objects, as_group)

    def name_of(self, pod: Pod) -> str:
        annotations = pod.group_annotations
        return "" if annotations is None else annotations.volcano_group

    def find(self, namespace: str, name: str, pod: Pod, said: GroupAnnotations | None) -> PodGroup | None:
        group = super().find(namespace, name, pod, said)
        found: api.PodGroup | None = self._objects.get(self.source, name, namespace)
        problem = "" if found is None else missing_queue(self._objects, found)
        return structs.replace(group, problem=problem) if group is not None and problem else group


def missing_queue(objects: ObjectLister, podgroup: api.PodGroup) -> str:
    """Say that the queue of a group does not exist; empty if it does, or if the cluster has no queues."""
    queue = podgroup.spec.queue or DEFAULT_QUEUE
    if queue == DEFAULT_QUEUE or not objects.list(VOLCANO_QUEUE) or objects.get(VOLCANO_QUEUE, queue) is not None:
        return ""
    return f'the queue "{shortened(queue, MAX_SHOWN)}" of the PodGroup does not exist'


def minimum_of(podgroup: api.PodGroup) -> int:
    """Return how many pods a group needs."""
    of_tasks = sum(max(0, each) for each in (podgroup.spec.min_task_member or {}).values())
    return min(max(podgroup.spec.min_member, of_tasks), MAX_MEMBERS)


def as_group(podgroup: api.PodGroup, of_pod: GroupAnnotations | None, priority: int) -> PodGroup:
    """Return what a PodGroup object wants, and its pods, which have these annotations and this priority."""
    metadata, minimum = podgroup.metadata, minimum_of(podgroup)
    problem = "" if minimum >= 0 else f"minMember of the PodGroup is {minimum}: must be 0 or more"
    resources, unreadable = amounts(podgroup.spec.min_resources)
    return PodGroup(
        metadata.namespace,
        metadata.name,
        metadata.uid,
        VOLCANO_POD_GROUP,
        minimum=max(0, minimum),
        priority=priority,
        is_ours=True,
        succeeded=podgroup.status.succeeded,
        resources=MappingProxyType(resources),
        **wishes(metadata.group_annotations, of_pod, problem=problem or unreadable),
    )
