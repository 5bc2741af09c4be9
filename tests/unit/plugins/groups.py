"""Groups of pods for tests of plugins."""

from collections.abc import Iterable

from scheduler.api.groups import pod_groups as api
from scheduler.api.objects import ObjectMeta
from scheduler.api.pods.pod import Pod
from scheduler.config.feature_gates import FeatureGates
from scheduler.framework.events import POD_GROUP, POD_GROUP_V1BETA1
from scheduler.groups.apis.adapters import AdaptedGroups
from scheduler.state.objects import ObjectStore
from scheduler.testing import a_pod


def a_pod_group(name: str = "pg", topology_key: str | None = None) -> api.PodGroup:
    """A group, whose pods are to be in one domain of `topology_key`."""
    topology = None if topology_key is None else (api.TopologyConstraint(key=topology_key),)
    return api.PodGroup(
        metadata=ObjectMeta(name=name, namespace="default", uid=name),
        spec=api.PodGroupSpec(scheduling_constraints=api.SchedulingConstraints(topology=topology)),
    )


def groups_of(
    podgroups: Iterable[api.PodGroup], *, assigned: Iterable[Pod] = (), assumed: Iterable[Pod] = ()
) -> AdaptedGroups:
    """The groups, with these members."""
    objects = ObjectStore()
    objects.watch([POD_GROUP, POD_GROUP_V1BETA1])
    for each in podgroups:
        objects.set(POD_GROUP, each)
    groups = AdaptedGroups(objects, FeatureGates(generic_workload=True))
    for pod in assigned:
        groups.members_by_group.assign(pod)
    for pod in assumed:
        groups.members_by_group.see(pod)
        groups.members_by_group.assume(pod)
    return groups


def a_member(name: str, node: str = "", group: str = "pg") -> Pod:
    return a_pod(name, group=group, node_name=node)
