"""An API server in memory for the scheduler of a test: every write takes effect at once."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec.structs import replace

from scheduler.api.pods.pod import Pod
from scheduler.engine.engine import Engine
from scheduler.framework.handle import NO_CREDENTIALS, Access, NoReads

BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of day at which a test begins."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event that was reported, by the scheduler or by a plugin."""

    pod: str
    """Namespace and name."""

    type: str
    reason: str
    action: str
    note: str


class ApiServer:
    """Implements all writers of scheduler.cycle.writers but that of plugins. What changes is shown to the engine."""

    engine: Engine

    def __init__(self) -> None:
        self.bound: list[Pod] = []
        self.evicted: list[Pod] = []
        self.events: list[Event] = []
        self.messages: dict[str, str] = {}
        """UID → why the last attempt failed."""

        self.nominated: dict[str, str] = {}
        """UID → node, for pods that are expected there and not bound yet."""

    async def bind(self, pod: Pod, node_name: str, check: Callable[[], None]) -> str:
        check()
        self.messages.pop(pod.uid, None)
        self.nominated.pop(pod.uid, None)
        self.bound.append(pod)
        self.engine.handlers.pod_changed(pod)
        return ""

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        self.events.append(Event(str(pod), type_, reason, action, note))

    def unschedulable(self, pod: Pod, reason: str, message: str, nominated_node_name: str | None) -> None:
        self.messages[pod.uid] = message
        if nominated_node_name is not None:
            self._set_nomination(pod, nominated_node_name)

    def nominate(self, pod: Pod, node_name: str) -> None:
        self.nominated[pod.uid] = node_name

    def clear_nomination(self, pod: Pod) -> None:
        self._set_nomination(pod, "")

    def forget(self, pod: Pod) -> None:
        """Nothing waits to be sent."""

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        existed = victim.uid in self.engine.pods
        if existed:
            self.evicted.append(victim)
            self.engine.handlers.pod_deleted(victim)
        return existed

    def _set_nomination(self, pod: Pod, node_name: str) -> None:
        self.nominated[pod.uid] = node_name
        if pod.nominated_node_name != node_name:
            asyncio.get_running_loop().call_soon(self._show_nomination, pod.uid, node_name)

    def _show_nomination(self, uid: str, node_name: str) -> None:
        """Report the change as the watch does: a little later, and only of a pod that still waits."""
        newest = self.engine.pods.get(uid)
        if newest is not None and not newest.node_name:
            shown = replace(newest, status=replace(newest.status, nominated_node_name=node_name))
            self.engine.handlers.pod_changed(shown)


class VirtualReader(NoReads):
    """Finds nothing, and goes by the test's clock."""

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=asyncio.get_running_loop().time())


class HttpAnswers(VirtualReader):
    """A `reader` of which a function answers all that is read and posted."""

    def __init__(self, answer: Callable[[str, bytes | None], bytes]) -> None:
        """`answer` gets the URL, and what was posted: None for a read. It raises ApiError for any other status."""
        self._answer = answer

    async def read(self, url: str, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        return self._answer(url, None)

    async def post(self, url: str, body: bytes, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        return self._answer(url, body)
