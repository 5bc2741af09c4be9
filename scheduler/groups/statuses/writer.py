"""Keeps the statuses of PodGroups up to date while this replica leads: those of `scheduling.x-k8s.io`
(`coscheduling.py`) and Volcano's (`volcano.py`).

A pod or an object that changes marks its group; once a second the marked ones are compared, and written if they differ.
A pod that has ended leaves the watch, which does not show how it ended: it is read once more, and counted. Pods that
ended before this process began are in the status that it found; for groups without an object, pods that succeeded are
listed once.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import timestamp
from scheduler.cycle.core import Core
from scheduler.cycle.status_writer import StatusWriter, Target
from scheduler.cycle.writers import EndedPods, PodReader
from scheduler.framework.errors import ClusterError
from scheduler.framework.events import COSCHEDULING_POD_GROUP, POD_GROUP, VOLCANO_POD_GROUP
from scheduler.framework.groups.pod_groups import GroupKey, GroupMembers
from scheduler.groups.apis.volcano import missing_queue
from scheduler.groups.statuses.coscheduling import EndedMembers, coscheduling_status
from scheduler.groups.statuses.volcano import volcano_status
from scheduler.process.reporting import Due
from scheduler.state.group_members import MembersByGroup

PAUSE: Final = 1.0
"""Seconds from a change to the status."""

MAX_ENDINGS: Final = 10_000
"""Pods that have ended, which are read; of more, the first are not counted."""

Status: TypeAlias = Callable[[Any, GroupMembers, EndedMembers, Callable[[], str]], dict[str, Any] | None]
"""The status to write of an object; None if it is as it should be."""

_logger = logging.getLogger(__name__)


class GroupStatuses:
    """Writes the statuses of these PodGroups."""

    def __init__(self, core: Core, members: MembersByGroup) -> None:
        self._objects = core.objects
        self._members = members
        self._writer = StatusWriter[GroupKey](core.objects, core.writers.api, core.tasks, self._target, self._status)
        self._due = Due(PAUSE)
        self._now: Callable[[], float] = time.time
        self._drawn: Mapping[str, Status] = {
            COSCHEDULING_POD_GROUP: coscheduling_status,
            VOLCANO_POD_GROUP: partial(volcano_status, partial(missing_queue, core.objects)),
        }
        """Resource → its status."""
        self._ended: dict[GroupKey, EndedMembers] = {}
        self._endings: dict[str, tuple[GroupKey, Pod]] = {}
        """UID → a pod that has ended somehow."""

    def mark(self, key: GroupKey) -> None:
        """Compare the status of a group soon: something about it has changed."""
        if key.source in self._drawn:
            self._writer.mark(key)
            self._due.soon()

    def group_changed(self, source: str, old: Any, new: Any) -> None:
        """An object of this resource was added, changed or removed."""
        metadata = (new or old).metadata
        key = GroupKey(metadata.namespace, source, metadata.name)
        ended = self._ended.get(key)
        if ended is not None and (new is None or ended.uid != metadata.uid):
            del self._ended[key]
        if new is not None:
            if key not in self._ended:
                self._ended[key] = EndedMembers(new)
            self.mark(key)

    def pod_ended(self, key: GroupKey, pod: Pod) -> None:
        """A pod of a group has succeeded or failed, or is gone."""
        if pod.is_terminated:
            self._count(key, pod, pod.status.phase)
        elif pod.node_name and not pod.is_deleting:
            self._endings[pod.uid] = key, pod.reference
            if len(self._endings) > MAX_ENDINGS:
                del self._endings[next(iter(self._endings))]
            self._due.soon()
        self.mark(key)

    async def run(self, reader: EndedPods, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Read and write for ever. What was marked before this replica leads, is written then."""
        await self.read_earlier(reader)
        while True:
            await self._due.wait(sleep)
            await self.read(reader)
            self.write()

    async def read_earlier(self, reader: EndedPods) -> None:
        """Find out which pods of groups succeeded before this process began, if there are groups of our own rules."""
        if all(key.source == POD_GROUP for key in self._members.groups()):
            return
        try:
            async for pod in reader.succeeded():
                self._members.note_earlier_success(pod)
        except ClusterError as error:
            _logger.warning("Which pods of groups have succeeded is not known", extra={"err": str(error)})

    async def read(self, reader: PodReader) -> None:
        """Find out how pods have ended."""
        while self._endings:
            uid = next(iter(self._endings))
            key, pod = self._endings.pop(uid)
            try:
                ending = await reader.ending(pod)
            except ClusterError as error:
                _logger.debug("It is not known how a pod has ended", extra={"pod": str(pod), "err": str(error)})
                continue
            if ending is not None:
                self._count(key, pod, ending.phase)

    def _count(self, key: GroupKey, pod: Pod, phase: str) -> None:
        ended, has_succeeded = self._ended.get(key), phase == "Succeeded"
        if ended is not None:
            ended.succeeded += has_succeeded
            ended.failed += phase == "Failed"
            self.mark(key)
        if has_succeeded and not pod.is_deleting:
            self._members.note_success(key, pod)

    def write(self) -> None:
        """Begin to write what has changed."""
        self._writer.write()

    def _target(self, key: GroupKey) -> Target | None:
        try:
            shown = self._objects.get(key.source, key.name, key.namespace)
        except LookupError:  # no profile has such groups any more
            return None
        return None if shown is None else Target(key.source, key.namespace, key.name, shown.metadata.uid)

    def _status(self, key: GroupKey, newest: Any) -> dict[str, Any] | None:
        """Return the status to write; None if it is as it should be."""
        ended = self._ended.setdefault(key, EndedMembers(newest))
        return self._drawn[key.source](newest, self._members.of(key), ended, lambda: timestamp(self._now()))
