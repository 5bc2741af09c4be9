"""The condition PodGroupInitiallyScheduled of a group: whether it has its nodes, and if not, why.

Once the condition is True it stays: members that come later and fit nowhere do not change it.

Rule: updatePodGroupCondition in pkg/scheduler/schedule_one_podgroup.go at v1.37.2, which waits for the answer.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from scheduler.api.groups import pod_groups as api
from scheduler.api.wording.text import MAX_MESSAGE, encodable, in_bytes, timestamp
from scheduler.cycle.core import Core
from scheduler.cycle.status_writer import StatusWriter, Target
from scheduler.framework.events import POD_GROUP_V1BETA1
from scheduler.framework.groups.pod_groups import PodGroup


class _Wanted(NamedTuple):
    target: Target
    condition: api.Condition


class GroupConditions:
    """Writes the conditions of groups in the background."""

    def __init__(self, core: Core) -> None:
        self._writer = StatusWriter[_Wanted](
            core.objects, core.writers.api, core.tasks, lambda wanted: wanted.target, self._status
        )
        self._now: Callable[[], float] = time.time

    def set(self, group: PodGroup, *, is_scheduled: bool, reason: str, message: str) -> None:
        """Set the condition, in the background. One that becomes True meanwhile is not replaced."""
        pending = self._writer.pending(group.uid)
        if pending is not None and pending.condition.status == "True" and not is_scheduled:
            return
        is_newest = group.source == POD_GROUP_V1BETA1  # which has another name for it
        condition = api.Condition(
            type=api.POD_GROUP_INITIALLY_SCHEDULED if is_newest else api.POD_GROUP_SCHEDULED,
            status=str(is_scheduled),
            reason=reason,
            message=encodable(in_bytes(message, MAX_MESSAGE)),
        )
        self._writer.mark(_Wanted(Target(group.source, group.namespace, group.name, group.uid), condition))
        self._writer.write()

    def _status(self, wanted: _Wanted, newest: api.PodGroup) -> dict[str, Any] | None:
        """Return the part of the status that sets the condition; None if there is nothing to set."""
        condition, conditions = wanted.condition, list(newest.status.conditions or ())
        place = next((index for index, each in enumerate(conditions) if each.type == condition.type), len(conditions))
        before = conditions[place] if place < len(conditions) else None
        if before is not None and before.status == "True" != condition.status:
            return None
        since = before.last_transition_time if before is not None and before.status == condition.status else None
        changed = msgspec.structs.replace(
            condition,
            observed_generation=newest.metadata.generation,
            last_transition_time=since or timestamp(self._now()),
        )
        if changed == before:
            return None
        conditions[place : place + 1] = [changed]
        return {"conditions": [_written(each) for each in conditions]}


def _written(condition: api.Condition) -> dict[str, Any]:
    """Return a condition as JSON has it: reason and message are required, also where they are empty."""
    return {"message": "", "reason": "", "status": "", **msgspec.to_builtins(condition)}
