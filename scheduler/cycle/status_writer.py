"""The status of objects other than pods, written in the background: groups of pods, and quotas.

    something changes ─► mark ─► write: is its status right? ─no─► SENDING ─answered, refused, given up─► (nothing)
                                                                    │   ▲
                                                                    └───┘ 409: others have changed the object

The right status is worked out again before each try, from the object's newest version: the watch's, or that of our last
answer. One patch of an object is under way at a time. The pods' own statuses, of which there are many more, have a
writer of their own: `kube/writes/status.py`.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

from scheduler.api.versions import is_newer
from scheduler.framework.errors import ApiError
from scheduler.framework.handle import ApiWriter, ObjectLister
from scheduler.process.tasks import Tasks

TRIES: Final = 6
FIRST_WAIT: Final = 0.1
"""Seconds before the second try; each time twice as long."""

MAX_SECONDS: Final = 300.0
"""For the status of one object, with all that becomes of it meanwhile."""

MAX_MARKED: Final = 100_000
"""A replica that does not lead marks, too, and writes once it does; of more, those marked first are left out."""

K = TypeVar("K")

_logger = logging.getLogger(__name__)


class Target(NamedTuple):
    """An object."""

    resource: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class StatusWriter(Generic[K]):
    """Writes the statuses of one kind of objects, each with a key."""

    def __init__(
        self,
        objects: ObjectLister,
        writer: ApiWriter,
        tasks: Tasks,
        target_of: Callable[[K], Target | None],
        status_of: Callable[[K, Any], dict[str, Any] | None],
        *,
        kind: str = "pod group",
    ) -> None:
        """`target_of` returns the object of a key; None if there is none. `kind`: its name in logs and metrics.

        `status_of` returns the fields of its status to write; None if its newest version, which it is given, has them.
        """
        self._objects = objects
        self._writer = writer
        self._target_of = target_of
        self._status_of = status_of
        self._kind = kind
        self._jobs = tasks.jobs(f"{kind} status", MAX_SECONDS)
        self._marked: dict[K, None] = {}
        self._wanted: dict[str, tuple[Target, K]] = {}
        """UID → the status to send next."""
        self._sending: dict[str, K] = {}
        self._answers: dict[str, Any] = {}
        """UID → the answer to the last patch, until the watch has shown as much."""

    def mark(self, key: K) -> None:
        """Have an object's status compared when `write` is called next."""
        self._marked[key] = None
        if len(self._marked) > MAX_MARKED:
            del self._marked[next(iter(self._marked))]

    def write(self) -> None:
        """Begin to write those marked statuses that are not as they should be."""
        marked, self._marked = self._marked, {}
        for key in marked:
            target = self._target_of(key)
            newest = None if target is None else self.newest(target)
            if target is None or newest is None:
                continue
            uid = target.uid
            if uid in self._sending:
                self._wanted[uid] = target, key
            elif self._status_of(key, newest) is not None:
                self._wanted[uid] = target, key
                self._sending[uid] = key
                self._jobs.start(f"status of {target}", self._send(uid), partial(self._ended, uid))

    def pending(self, uid: str) -> K | None:
        """Return the key whose status is to be written last to an object; None if nothing is under way."""
        wanted = self._wanted.get(uid)
        return self._sending.get(uid) if wanted is None else wanted[1]

    def newest(self, target: Target) -> Any | None:
        """Return the newest version of an object that we know; None if it is gone."""
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
        self._sending.pop(uid, None)
        self._wanted.pop(uid, None)

    async def _send(self, uid: str) -> None:
        while (wanted := self._wanted.pop(uid, None)) is not None:
            target, key = wanted
            self._sending[uid] = key
            for failures in range(TRIES):
                newest = self.newest(target)
                status = None if newest is None else self._status_of(key, newest)
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
