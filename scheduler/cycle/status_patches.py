"""Patches of the status of objects, in the background: those of groups of pods and of quotas.

    (nothing) ──want──► SENDING ──answered, refused, or tried too often──► (nothing)
                         │   ▲
                         └───┘ 409: others have changed the object; once the watch has shown that, again

One patch of an object is under way at a time, and only what is wanted last is sent, if it differs.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from scheduler.api.versions import is_newer
from scheduler.framework.errors import ApiError
from scheduler.framework.handle import ApiWriter, ObjectLister
from scheduler.process.tasks import Tasks

TRIES: Final = 6
FIRST_WAIT: Final = 0.1
"""Seconds before the second try; each time twice as long."""

MAX_SECONDS: Final = 300.0
"""For the status of one object, with all that becomes of it meanwhile."""

StatusOf: TypeAlias = Callable[[Any], dict[str, Any] | None]
"""The newest version of an object → the fields of its status to write, or None if there is nothing to write."""

_logger = logging.getLogger(__name__)


class Target(NamedTuple):
    """An object."""

    resource: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class StatusPatches:
    """Writes statuses."""

    def __init__(self, objects: ObjectLister, writer: ApiWriter, tasks: Tasks, kind: str = "pod group") -> None:
        """`kind`: what the objects are, for logs and metrics."""
        self._objects = objects
        self._writer = writer
        self._kind = kind
        self._jobs = tasks.jobs(f"{kind} status", MAX_SECONDS)
        self._wanted: dict[str, tuple[Target, StatusOf]] = {}
        """UID → what is to be sent next."""
        self._sending: set[str] = set()
        self._answers: dict[str, Any] = {}
        """UID → the answer to the last patch, until the watch has shown as much."""

    def want(self, target: Target, status_of: StatusOf) -> None:
        """Write what `status_of` returns, in the background."""
        self._wanted[target.uid] = target, status_of
        if target.uid not in self._sending:
            self._sending.add(target.uid)
            self._jobs.start(f"status of {target}", self._send(target.uid), partial(self._ended, target.uid))

    def newest(self, target: Target) -> Any | None:
        """Return an object as it is now, as far as we know; None if it is gone."""
        shown = self._objects.get(target.resource, target.name, target.namespace)
        answer = self._answers.get(target.uid)
        if shown is None or shown.metadata.uid != target.uid:
            self._answers.pop(target.uid, None)
            return None
        if answer is not None and is_newer(answer.metadata.resource_version, shown.metadata.resource_version):
            return answer
        self._answers.pop(target.uid, None)
        return shown

    def _ended(self, uid: str, error: BaseException | None) -> None:
        self._sending.discard(uid)
        self._wanted.pop(uid, None)

    async def _send(self, uid: str) -> None:
        while (wanted := self._wanted.pop(uid, None)) is not None:
            target, status_of = wanted
            for failures in range(TRIES):
                newest = self.newest(target)
                status = None if newest is None else status_of(newest)
                if newest is None or status is None or uid in self._wanted:
                    break
                metadata = {"uid": uid, "resourceVersion": newest.metadata.resource_version}
                patch = {"metadata": metadata, "status": status}
                try:
                    answer = await self._writer.patch(target.resource, target.name, target.namespace, patch, "status")
                except ApiError as error:
                    if error.status != 409:
                        fields = {"kind": self._kind, "object": str(target), "err": str(error)}
                        level = logging.WARNING if error.status else logging.DEBUG
                        _logger.log(level, "The status of an object was not set", extra=fields)
                        break
                    await asyncio.sleep(FIRST_WAIT * 2**failures)
                else:
                    self._answers[uid] = answer
                    break
