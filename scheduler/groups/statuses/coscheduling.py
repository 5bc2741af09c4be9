"""The status of PodGroups of `scheduling.x-k8s.io`.

    ""──►Pending──pods enough──►Scheduling──the minimum runs or has succeeded──►Running
            ▲                       │                                              │
            └──────too few pods─────┴──────────────────────────────────────────────┘
    from each of them: the minimum has succeeded ──► Finished; one has failed, all others have begun ──► Failed

Rule: pkg/controllers/podgroup_controller.go of scheduler-plugins, whose controller may run at the same time.
"""

from collections.abc import Callable
from itertools import chain
from typing import Any, Final

import msgspec

from scheduler.api.groups import coscheduling, volcano
from scheduler.api.groups.coscheduling import FINAL_PHASES, PodGroup, PodGroupStatus
from scheduler.framework.groups.pod_groups import GroupMembers


class EndedMembers:
    __slots__ = ("failed", "succeeded", "uid")

    def __init__(self, shown: coscheduling.PodGroup | volcano.PodGroup) -> None:
        """`shown`: the group's object."""
        self.uid = shown.metadata.uid
        self.succeeded = shown.status.succeeded
        self.failed = shown.status.failed

    def start_again(self) -> None:
        self.succeeded = self.failed = 0


MAX_OWNERS: Final = 10
"""That are named in a status."""


def coscheduling_status(
    newest: PodGroup, members: GroupMembers, ended: EndedMembers, now: Callable[[], str]
) -> dict[str, Any] | None:
    """Return the status to write; None if it is as it should be."""
    before, status = newest.status, _next(newest, members, ended, now)
    # Newer definitions of the resource do not have the field `scheduled`: then the server leaves it out.
    if (status if before.scheduled else msgspec.structs.replace(status, scheduled=0)) == before:
        return None
    return {"scheduled": 0, "running": 0, "succeeded": 0, "failed": 0, **msgspec.to_builtins(status)}


def _next(newest: PodGroup, members: GroupMembers, ended: EndedMembers, now: Callable[[], str]) -> PodGroupStatus:
    before, minimum = newest.status, max(newest.spec.min_member, 1)
    if before.phase in FINAL_PHASES:
        return before
    succeeded, failed = max(before.succeeded, ended.succeeded), max(before.failed, ended.failed)
    running = sum(pod.status.phase == "Running" for pod in members.scheduled)
    if not members.count and _phase(minimum, 0, succeeded, failed) not in FINAL_PHASES:
        succeeded = failed = 0  # its pods were deleted: others start from the beginning
        ended.start_again()
    has_enough = members.count + succeeded + failed >= minimum
    phase = _phase(minimum, running, succeeded, failed) if has_enough else "Pending"
    has_begun = phase != "Pending"
    return PodGroupStatus(
        phase=phase,
        occupied_by=before.occupied_by or (_owners(members) if has_begun else ""),
        scheduled=members.scheduled_count - len(members.assumed),
        running=running,
        succeeded=succeeded,
        failed=failed,
        schedule_start_time=before.schedule_start_time or (now() if has_begun else None),
    )


def _phase(minimum: int, running: int, succeeded: int, failed: int) -> str:
    if succeeded >= minimum:
        return "Finished"
    if failed and failed + running + succeeded >= minimum:
        return "Failed"
    return "Running" if running + succeeded >= minimum else "Scheduling"


def _owners(members: GroupMembers) -> str:
    """Return the owners of the group's first pod, as the API has them: namespace/name, separated by commas."""
    first = next(chain(members.scheduled, members.unscheduled), None)
    if first is None:
        return ""
    owners = (first.metadata.owner_references or ())[:MAX_OWNERS]
    return ",".join(sorted(f"{first.namespace}/{owner.name}" for owner in owners))
