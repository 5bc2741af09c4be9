"""PodGroups of scheduling.volcano.sh/v1beta1, which come from Volcano; pods name theirs in an annotation."""

from collections.abc import Mapping
from typing import Final

import msgspec

from scheduler.api.objects import GroupedMeta, ResourceList, Wire

UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULED: Final = "Scheduled"
"""Types of conditions."""


class PodGroupSpec(Wire, frozen=True):
    min_member: int = 0
    min_task_member: Mapping[str, int] | None = None
    queue: str = ""
    min_resources: ResourceList | None = None


class Condition(Wire, frozen=True):
    """With all of its fields, as it is also written."""

    type: str = ""
    status: str = ""
    transition_id: str = msgspec.field(default="", name="transitionID")
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(Wire, frozen=True):
    """As it is also written."""

    phase: str = ""
    conditions: tuple[Condition, ...] | None = None
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroup(Wire, frozen=True):
    metadata: GroupedMeta = GroupedMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
