"""scheduling.k8s.io, reduced to what scheduling reads: PodGroups, whose pods are to be scheduled together.

CompositePodGroups of v1alpha3 consist of these or of each other; they are read into the same structs.
"""

from typing import Any, Final

from scheduler.api.objects import ApiObject, PodResourceClaim, Wire
from scheduler.api.objects import Condition as Condition

POD_GROUP_SCHEDULED: Final = "PodGroupScheduled"
"""The condition that says whether a group has its nodes."""
POD_GROUP_INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"
"""The same in v1beta1."""

TOGETHER: Final = "PodGroup"
"""The `disruptionMode` of a group that is evicted as a whole, in v1alpha2."""


class GangPolicy(Wire, frozen=True):
    min_count: int = 0
    min_group_count: int = 0
    """Of a CompositePodGroup, in the place of `min_count`."""


class SchedulingPolicy(Wire, frozen=True):
    """A gang, or, without one, pods that are only tried together."""

    gang: GangPolicy | None = None


class TopologyConstraint(Wire, frozen=True):
    key: str = ""


class SchedulingConstraints(Wire, frozen=True):
    topology: tuple[TopologyConstraint, ...] | None = None


class DisruptionMode(Wire, frozen=True):
    """The `disruptionMode` of v1beta1: one of its fields is set."""

    all: dict[str, Any] | None = None


class PodGroupSpec(Wire, frozen=True):
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: str | DisruptionMode | None = None
    priority: int | None = None
    parent_composite_pod_group_name: str | None = None
    """Of v1beta1, as are the next ones."""
    preemption_policy: str | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None


class PodGroupStatus(Wire, frozen=True):
    conditions: tuple[Condition, ...] | None = None


class PodGroup(ApiObject, frozen=True):
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
