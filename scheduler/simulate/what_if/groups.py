"""Copies of pods that are scheduled together: each copy is a whole group, with an object of its own."""

from collections.abc import Iterable, Iterator
from itertools import chain, count, islice

import msgspec
from msgspec.structs import replace

from scheduler.api.groups.coscheduling import POD_GROUP_LABEL
from scheduler.api.groups.workloads import GANG_ANNOTATION
from scheduler.api.objects import GroupAnnotations, SchedulingGroup
from scheduler.api.pods.pod import Pod
from scheduler.framework.events import COSCHEDULING_POD_GROUP, POD_GROUP, VOLCANO_POD_GROUP
from scheduler.framework.groups.pod_groups import GroupKey
from scheduler.framework.nodes.resources import parse_resource
from scheduler.groups.apis.annotations import GANG_NAME, NO_ANNOTATIONS
from scheduler.simulate.engine import Simulation
from scheduler.simulate.other_objects import OtherObject, resource_of_label
from scheduler.simulate.what_if.templates import Copy


class GroupCopies:
    def __init__(self, key: GroupKey, size: int, made_of: OtherObject | None, copies: Iterator[Copy]) -> None:
        """`size` pods in each, out of `copies`; `made_of`: the group's object, if it has one."""
        self.size = size
        self._key = key
        self._object = made_of
        self._copies = copies

    def __iter__(self) -> Iterator[tuple[list[Pod], list[OtherObject]]]:
        for number in count(1):
            name = f"{self._key.name}-{number}"
            pods, objects = [], list[OtherObject]()
            for pod, its_objects in islice(self._copies, self.size):
                pods.append(_member_of(pod, self._key.source, name, self.size))
                objects += its_objects
            if self._object is not None:
                metadata = {**self._object.metadata, "name": name, "namespace": self._key.namespace}
                metadata.pop("uid", None)
                objects.append(self._object._replace(content={**self._object.content, "metadata": metadata}))
            yield pods, objects


def group_copies(
    pods: Iterable[Pod],
    objects: Iterable[OtherObject],
    simulation: Simulation,
    first: Copy,
    others: Iterator[Copy],
) -> GroupCopies | None:
    """Return copies of the group of a pod; None if it has none, or one for a single pod.

    `pods` and `objects`: of the cluster, with the original group; `first` and `others`: copies of one of its pods.
    """
    groups = simulation.engine.group_parts.groups
    key, group = groups.key_of(first[0]), groups.of(first[0])
    if key is None or group is None:
        return None
    there = sum(not pod.is_terminated and groups.key_of(pod) == key for pod in pods)
    size = max(there, group.minimum)
    if size < 2:
        return None
    return GroupCopies(key, size, _object_of(key, objects), chain([first], others))


def _object_of(key: GroupKey, objects: Iterable[OtherObject]) -> OtherObject | None:
    if key.source not in (POD_GROUP, COSCHEDULING_POD_GROUP, VOLCANO_POD_GROUP):
        return None
    resource = parse_resource(key.source)
    named = (each for each in objects if each.key[1:] == (key.namespace, key.name))
    return next((each for each in named if resource_of_label(each.label) == resource), None)


def _member_of(pod: Pod, source: str, name: str, size: int) -> Pod:
    """Return the pod as a member of another group of the same kind, and of that size if it has no object."""
    metadata, spec = pod.metadata, pod.spec
    match source:
        case str() if source == POD_GROUP:
            spec = replace(spec, scheduling_group=SchedulingGroup(pod_group_name=name))
        case str() if source == COSCHEDULING_POD_GROUP:
            metadata = replace(metadata, labels={**metadata.labels, POD_GROUP_LABEL: name})
        case _:
            said = metadata.group_annotations or NO_ANNOTATIONS
            metadata = replace(metadata, group_annotations=_named(said, source, name, size))
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec)


def _named(said: GroupAnnotations, source: str, name: str, size: int) -> GroupAnnotations:
    """Return the annotations of a pod whose group has this name."""
    match source:
        case str() if source == VOLCANO_POD_GROUP:
            return replace(said, volcano_group=name)
        case str() if source == GANG_NAME:
            return replace(said, koordinator_gang=name)
        case str() if source == GANG_ANNOTATION:
            # A copy of a workload's group has no workload, so it says itself how many there are.
            return replace(said, group=name, min_available=str(size), gang="")
        case _:
            return replace(said, group=name)
