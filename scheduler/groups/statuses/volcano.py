"""The status of Volcano's PodGroups, for groups that have pods of our profiles; the others are Volcano's.

    Pending──queue exists──►Inqueue──the minimum has nodes──►Running──all that ran have ended──►Completed
                               ▲                                │ some run, others have no node
                               └──────── none runs ────── Unknown

The condition Scheduled is True once the minimum has nodes, and Unschedulable until then.

Rule: jobStatus in pkg/scheduler/framework/session.go of Volcano, and its plugin gang for the conditions.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from scheduler.api.groups import volcano as api
from scheduler.framework.groups.pod_groups import GroupMembers
from scheduler.groups.apis.volcano import minimum_of
from scheduler.groups.statuses.coscheduling import EndedMembers

READY: Final = "tasks in gang are ready to be scheduled"
TOO_FEW: Final = "NotEnoughTasks"
NO_SPACE: Final = "NotEnoughResources"


def volcano_status(
    problem_of: Callable[[api.PodGroup], str],
    newest: api.PodGroup,
    members: GroupMembers,
    ended: EndedMembers,
    now: Callable[[], str],
) -> dict[str, Any] | None:
    """Return the status to write; None if it is as it should be.

    `problem_of` says what keeps all pods of a group from being tried.
    """
    before, problem = newest.status, problem_of(newest)
    succeeded, failed = max(before.succeeded, ended.succeeded), max(before.failed, ended.failed)
    if not members.count and succeeded + failed <= before.succeeded + before.failed:
        return None  # none of its pods is ours, or nothing has ended since
    running = sum(pod.status.phase == "Running" for pod in members.scheduled)
    placed = members.scheduled_count + succeeded + failed
    is_ready = not problem and placed >= max(1, minimum_of(newest))
    phase = _phase(is_ready=is_ready, running=running, placed=members.scheduled_count, problem=problem)
    wanted = _condition(newest, members, problem, is_ready=is_ready)
    status = api.PodGroupStatus(
        phase=phase,
        conditions=_with(before.conditions or (), wanted, now),
        running=running,
        succeeded=succeeded,
        failed=failed,
    )
    if status == before:
        return None
    return {"running": 0, "succeeded": 0, "failed": 0, **msgspec.to_builtins(status)}


def _phase(*, is_ready: bool, running: int, placed: int, problem: str) -> str:
    if is_ready:
        return "Running" if placed else "Completed"
    if running:
        return "Unknown"
    return "Pending" if problem else "Inqueue"


def _condition(newest: api.PodGroup, members: GroupMembers, problem: str, *, is_ready: bool) -> api.Condition:
    if is_ready:
        return api.Condition(type=api.SCHEDULED, status="True", reason=READY)
    waiting, minimum = len(members.unscheduled), minimum_of(newest)
    why = problem or f"pod group is not ready, {waiting} Pending, {minimum} minAvailable"
    reason = TOO_FEW if members.count < minimum else NO_SPACE
    message = f"{waiting}/{members.count} tasks in gang unschedulable: {why}"
    return api.Condition(type=api.UNSCHEDULABLE, status="True", reason=reason, message=message)


def _with(
    before: tuple[api.Condition, ...], wanted: api.Condition, now: Callable[[], str]
) -> tuple[api.Condition, ...]:
    """Return the conditions with this one in its place; the one that it excludes is False from then on."""
    kept = {each.type: each for each in before}
    former = kept.get(wanted.type)
    since = former.last_transition_time if former is not None and former.status == "True" else None
    excluded = kept.get(api.UNSCHEDULABLE if wanted.type == api.SCHEDULED else api.SCHEDULED)
    if excluded is not None and excluded.status == "True":
        kept[excluded.type] = msgspec.structs.replace(excluded, status="False", last_transition_time=now())
    transition = "" if former is None else former.transition_id
    kept[wanted.type] = msgspec.structs.replace(wanted, last_transition_time=since or now(), transition_id=transition)
    return tuple(kept.values())
