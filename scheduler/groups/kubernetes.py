"""The groups of `scheduling.k8s.io`: PodGroup objects, which pods name in `spec.schedulingGroup.podGroupName`."""

from typing import Final, TypeAlias

from scheduler.api import pod_groups as api
from scheduler.api.pod import Pod
from scheduler.framework.events import POD_GROUP
from scheduler.framework.handle import ObjectLister
from scheduler.framework.pod_groups import PodGroup
from scheduler.framework.resources import ApiResource, parse_resource

Written: TypeAlias = tuple[ApiResource, str, tuple[str, ...]]
"""Resource, subresource, verbs."""


def name_of(pod: Pod) -> str:
    """Return the name of a pod's group; empty for a pod without."""
    group = pod.spec.scheduling_group
    return "" if group is None else group.pod_group_name


def as_group(podgroup: api.PodGroup) -> PodGroup:
    """Return what a PodGroup object wants."""
    metadata, spec = podgroup.metadata, podgroup.spec
    gang, constraints = spec.scheduling_policy.gang, spec.scheduling_constraints
    topology = () if constraints is None else constraints.topology or ()
    return PodGroup(
        metadata.namespace,
        metadata.name,
        metadata.uid,
        POD_GROUP,
        minimum=0 if gang is None else gang.min_count,
        priority=spec.priority or 0,
        topology_keys=tuple([each.key for each in topology]),
        has_constraints=constraints is not None,
        is_disrupted_together=spec.disruption_mode == api.TOGETHER,
    )


class KubernetesGroups:
    """Implements Adapter."""

    source: Final = POD_GROUP

    def __init__(self, objects: ObjectLister) -> None:
        self._objects = objects

    def name_of(self, pod: Pod) -> str:
        return name_of(pod)

    def find(self, namespace: str, name: str, pod: Pod) -> PodGroup | None:
        found = self._objects.get(POD_GROUP, name, namespace)
        return None if found is None else as_group(found)

    def resources(self) -> tuple[dict[str, ApiResource], dict[str, frozenset[str]], frozenset[Written]]:
        """Return what is watched, the parts of it that are read (all), and what is written: the groups' status."""
        resource = parse_resource(POD_GROUP)
        # One is read to know what became of a patch whose answer was lost.
        return {POD_GROUP: resource}, {}, frozenset({(resource, "", ("get",)), (resource, "status", ("patch",))})
