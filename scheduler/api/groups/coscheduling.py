"""PodGroups of scheduling.x-k8s.io/v1alpha1, which come from scheduler-plugins; pods name theirs in a label."""

from typing import Final

from scheduler.api.objects import GroupedMeta, ResourceList, Wire

POD_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
"""The label of pods that names their group."""

FINAL_PHASES: Final = ("Finished", "Failed")
"""Phases that a group does not leave; pods that come after that start from the beginning."""


class PodGroupSpec(Wire, frozen=True):
    min_member: int = 0
    min_resources: ResourceList | None = None
    schedule_timeout_seconds: int | None = None


class PodGroupStatus(Wire, frozen=True):
    """As it is also written."""

    phase: str = ""
    occupied_by: str = ""
    scheduled: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: str | None = None


class PodGroup(Wire, frozen=True):
    metadata: GroupedMeta = GroupedMeta()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
