"""The condition PodGroupScheduled of a group: whether it has its nodes, and if not, why.

    (nothing) ──set──► SENDING ──answered, refused, or tried too often──► (nothing)
                        │   ▲
                        └───┘ 409: others have changed the group; once the watch has shown that, again

One patch of a group is under way at a time, and only the newest condition is sent, if it differs. Once the condition is
True it stays: members that come later and fit nowhere do not change it.

Rule: updatePodGroupCondition in pkg/scheduler/schedule_one_podgroup.go at v1.36.3, which waits for the answer instead.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import msgspec

from scheduler.api import pod_groups as api
from scheduler.api.text import MAX_MESSAGE, encodable, in_bytes
from scheduler.api.versions import is_newer
from scheduler.framework.errors import ApiError
from scheduler.framework.events import POD_GROUP_V1BETA1
from scheduler.framework.handle import ApiWriter, ObjectLister
from scheduler.framework.pod_groups import PodGroup
from scheduler.process.tasks import Tasks

TRIES: Final = 6
FIRST_WAIT: Final = 0.1
"""Seconds before the second try; each time twice as long."""

MAX_SECONDS: Final = 300.0
"""For the condition of one group, with all that become of it meanwhile."""

TYPES: Final = {POD_GROUP_V1BETA1: api.POD_GROUP_INITIALLY_SCHEDULED}
"""The resource of a group → the type of its condition, where it has another name."""

_logger = logging.getLogger(__name__)


class GroupConditions:
    """Writes the conditions of groups in the background."""

    def __init__(
        self, objects: ObjectLister, writer: ApiWriter, tasks: Tasks, now: Callable[[], float] = time.time
    ) -> None:
        """`now`: seconds since 1970."""
        self._objects = objects
        self._writer = writer
        self._jobs = tasks.jobs("pod group status", MAX_SECONDS)
        self._now = now
        self._wanted: dict[str, tuple[PodGroup, api.Condition]] = {}
        """UID → what is to be sent next."""
        self._sending: set[str] = set()
        self._answers: dict[str, api.PodGroup] = {}
        """UID → the answer to the last patch, until the watch has shown as much."""

    def set(self, group: PodGroup, *, is_scheduled: bool, reason: str, message: str) -> None:
        """Set the condition, in the background."""
        condition = api.Condition(
            type=TYPES.get(group.source, api.POD_GROUP_SCHEDULED),
            status=str(is_scheduled),
            reason=reason,
            message=encodable(in_bytes(message, MAX_MESSAGE)),
        )
        self._wanted[group.uid] = group, condition
        if group.uid not in self._sending:
            self._sending.add(group.uid)
            self._jobs.start(f"condition of {group}", self._send(group.uid), partial(self._ended, group.uid))

    def _ended(self, uid: str, error: BaseException | None) -> None:
        self._sending.discard(uid)
        self._wanted.pop(uid, None)

    async def _send(self, uid: str) -> None:
        while (wanted := self._wanted.pop(uid, None)) is not None:
            group, condition = wanted
            for failures in range(TRIES):
                patch = self._patch(group, condition)
                if patch is None or uid in self._wanted:
                    break
                try:
                    answer = await self._writer.patch(group.source, group.name, group.namespace, patch, "status")
                except ApiError as error:
                    if error.status != 409:
                        fields = {"podGroup": str(group), "err": str(error)}
                        level = logging.WARNING if error.status else logging.DEBUG
                        _logger.log(level, "The condition of a pod group was not set", extra=fields)
                        break
                    await asyncio.sleep(FIRST_WAIT * 2**failures)
                else:
                    self._answers[uid] = answer
                    break

    def _newest(self, group: PodGroup) -> api.PodGroup | None:
        """Return the group's object as it is now, as far as we know; None if it is gone."""
        shown: api.PodGroup | None = self._objects.get(group.source, group.name, group.namespace)
        answer = self._answers.get(group.uid)
        if shown is None or shown.metadata.uid != group.uid:
            self._answers.pop(group.uid, None)
            return None
        if answer is not None and is_newer(answer.metadata.resource_version, shown.metadata.resource_version):
            return answer
        self._answers.pop(group.uid, None)
        return shown

    def _patch(self, group: PodGroup, condition: api.Condition) -> dict[str, Any] | None:
        """Return the JSON merge patch that sets the condition; None if there is nothing to set."""
        newest = self._newest(group)
        if newest is None:
            return None
        conditions = list(newest.status.conditions or ())
        place = next((index for index, each in enumerate(conditions) if each.type == condition.type), len(conditions))
        before = conditions[place] if place < len(conditions) else None
        if before is not None and before.status == "True" != condition.status:
            return None
        since = before.last_transition_time if before is not None and before.status == condition.status else None
        changed = msgspec.structs.replace(
            condition,
            observed_generation=newest.metadata.generation,
            last_transition_time=since or datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        if changed == before:
            return None
        conditions[place : place + 1] = [changed]
        return {
            "metadata": {"uid": group.uid, "resourceVersion": newest.metadata.resource_version},
            "status": {"conditions": [_written(each) for each in conditions]},
        }


def _written(condition: api.Condition) -> dict[str, Any]:
    """Return a condition as JSON has it: reason and message are required, also where they are empty."""
    return {"message": "", "reason": "", "status": "", **msgspec.to_builtins(condition)}
