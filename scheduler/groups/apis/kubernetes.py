"""The groups of `scheduling.k8s.io`: PodGroup objects, which pods name in `spec.schedulingGroup.podGroupName`.

Kubernetes 1.37 serves them as v1beta1, 1.36 as v1alpha2. Both are watched, so an upgrade of the API server needs no
restart. The rules are those of 1.37 for both.
"""

import logging
from typing import Final

from scheduler.api.groups import pod_groups as api
from scheduler.api.objects import GroupAnnotations
from scheduler.api.pods.pod import Pod
from scheduler.framework.events import COMPOSITE_POD_GROUP, POD_GROUP, POD_GROUP_V1BETA1
from scheduler.framework.groups.pod_groups import LOWER, PodGroup
from scheduler.framework.handle import ObjectLister
from scheduler.framework.nodes.resources import ApiResource, parse_resource
from scheduler.process.reporting import Said

VERSIONS: Final = (POD_GROUP_V1BETA1, POD_GROUP)
"""The resources that the groups are read from: a cluster serves one of them."""

MAX_REMEMBERED: Final = 1000

_logger = logging.getLogger(__name__)


def as_group(podgroup: api.PodGroup, source: str = POD_GROUP, *, has_policy: bool = False) -> PodGroup:
    """Return what a PodGroup object wants; `source`: the resource that it is read from.

    `has_policy`: whether it has a preemption policy of its own, the default one if the object has none.
    """
    metadata, spec = podgroup.metadata, podgroup.spec
    gang, constraints = spec.scheduling_policy.gang, spec.scheduling_constraints
    topology = () if constraints is None else constraints.topology or ()
    return PodGroup(
        metadata.namespace,
        metadata.name,
        metadata.uid,
        source,
        minimum=0 if gang is None else gang.min_count,
        minimum_groups=max(1, 0 if gang is None else gang.min_group_count) if source == COMPOSITE_POD_GROUP else 0,
        priority=spec.priority or 0,
        preemption_policy=spec.preemption_policy or LOWER if has_policy else "",
        topology_keys=tuple([each.key for each in topology]),
        has_constraints=constraints is not None,
        is_disrupted_together=_is_disrupted_together(spec.disruption_mode),
        claims=spec.resource_claims or (),
    )


def _is_disrupted_together(mode: str | api.DisruptionMode | None) -> bool:
    return mode.all is not None if isinstance(mode, api.DisruptionMode) else mode == api.TOGETHER


class KubernetesGroups:
    """Implements Adapter."""

    source: Final = POD_GROUP

    def __init__(self, objects: ObjectLister, *, have_policies: bool = False, have_parents: bool = False) -> None:
        self._objects = objects
        self._have_policies = have_policies
        self._have_parents = have_parents
        self._versions = VERSIONS
        """The one that a group was found in last comes first."""
        self._ignored = Said[str](MAX_REMEMBERED)
        """By UID of a group: the fields of it that are ignored."""
        self._newest: tuple[api.PodGroup, PodGroup] | None = None
        """The object that was found last, and the group: all members of it ask one after the other."""

    @staticmethod
    def name_of(pod: Pod) -> str:
        group = pod.spec.scheduling_group  # asked several times for each member: without a call
        return "" if group is None else group.pod_group_name

    def find(self, namespace: str, name: str, pod: Pod, said: GroupAnnotations | None) -> PodGroup | None:
        for source in self._versions:
            found: api.PodGroup | None = self._objects.get(source, name, namespace)
            if found is not None:
                if source is not self._versions[0]:
                    self._versions = self._versions[::-1]
                if self._newest is None or self._newest[0] is not found:
                    self._log_ignored(found)
                    self._newest = found, as_group(found, source, has_policy=self._have_policies)
                return self._newest[1]
        return None

    def _log_ignored(self, found: api.PodGroup) -> None:
        metadata, spec = found.metadata, found.spec
        fields = {
            "parentCompositePodGroupName": "" if self._have_parents else spec.parent_composite_pod_group_name,
            "preemptionPolicy": "" if self._have_policies else spec.preemption_policy,
        }
        ignored = ", ".join([name for name, value in fields.items() if value])
        if ignored and self._ignored.is_new(metadata.uid, ignored):
            extra = {"podGroup": f"{metadata.namespace}/{metadata.name}", "fields": ignored}
            _logger.warning("Fields of a pod group are ignored", extra=extra)


def resources(
    *, have_parents: bool
) -> tuple[dict[str, ApiResource], dict[str, frozenset[str]], frozenset[tuple[ApiResource, str, tuple[str, ...]]]]:
    """Return what is watched, the parts of it that are read (all), and what is written: the groups' status."""
    watched = {source: parse_resource(source) for source in VERSIONS}
    of_groups = {COMPOSITE_POD_GROUP: parse_resource(COMPOSITE_POD_GROUP)} if have_parents else {}
    # One is read to know what became of a patch whose answer was lost.
    written = [(each, *how) for each in watched.values() for how in (("", ("get",)), ("status", ("patch",)))]
    return watched | of_groups, {}, frozenset(written)
