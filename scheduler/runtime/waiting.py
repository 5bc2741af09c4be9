"""Pods that Permit plugins hold between their reservation and their binding.

add ──► WAITING ──allow by every plugin that holds it──► allowed
           ├─────reject by any plugin─────────────────► rejected
           ├─────preempt──────────────────────────────► preempted: an error, so that it is soon tried again
           └─────a plugin's timeout runs out──────────► rejected by that plugin

The pod that completes a gang of thousands lets all of them go at once. Their bindings begin a few at a time: else the
event loop would do nothing else for as long as it takes to begin them all.
"""

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

from scheduler.api.pods.pod import Pod
from scheduler.api.read_only import read_only_attribute
from scheduler.framework.duration import Duration
from scheduler.framework.plugin import MAX_PERMIT_SECONDS, PermitWait
from scheduler.framework.status import Code, Status, unschedulable
from scheduler.runtime.guards.return_values import bounded

ENDS_IN_A_TURN: Final = 50
"""Pods whose wait ends in one turn of the event loop: their bindings begin then, 0.1 ms each."""


class WaitingPod:
    """Implements framework.handle.WaitingPod. Its outcome is a future: None for allowed, else the refusal."""

    def __init__(self, pod: Pod, holds: Mapping[str, PermitWait], ends: "_Ends | None" = None) -> None:
        """`holds`: for how long and for what each plugin holds the pod. Needs a running event loop."""
        loop = asyncio.get_running_loop()
        self._pod = pod
        self._ends = ends or _Ends()
        self._has_ended = False
        self._outcome: asyncio.Future[Status | None] = loop.create_future()
        self._messages = {plugin: hold.message for plugin, hold in holds.items()}
        self._timers = {
            plugin: loop.call_later(seconds := min(hold.timeout, MAX_PERMIT_SECONDS), self._time_out, plugin, seconds)
            for plugin, hold in holds.items()
        }

    pod: Pod = read_only_attribute("_pod")

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        return tuple(self._timers)

    def message_of(self, plugin: str) -> str:
        return self._messages[plugin] if plugin in self._timers else ""

    def seconds_left(self, plugin: str) -> float:
        timer = self._timers.get(plugin)
        return 0.0 if timer is None else timer.when() - asyncio.get_running_loop().time()

    def __str__(self) -> str:
        """The plugins that still hold the pod, with what for and how long: `Gang: 2 of 3 pods (30s left)`."""
        return ", ".join(
            f"{plugin}{message and f': {message}'} ({Duration(round(self.seconds_left(plugin)))} left)"
            for plugin in self._timers
            for message in (self.message_of(plugin),)
        )

    def allow(self, plugin: str) -> None:
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
        if not self._timers and not self._has_ended:
            self._has_ended = True
            self._ends.note(self._outcome, None)

    def reject(self, plugin: str, message: str) -> bool:
        return self._end(bounded(unschedulable(message)).by(plugin))

    def _time_out(self, plugin: str, seconds: float) -> None:
        self.reject(plugin, f"rejected due to timeout after waiting {Duration(seconds)} at plugin {plugin}")

    def preempt(self, plugin: str, message: str) -> bool:
        return self._end(bounded(Status(Code.ERROR, (message,), plugin)))

    def _end(self, status: Status) -> bool:
        for timer in self._timers.values():
            timer.cancel()
        if self._has_ended or self._outcome.done():
            return False
        self._has_ended = True
        self._ends.note(self._outcome, status)
        return True

    async def outcome(self) -> Status | None:
        """Wait for the end: None if the pod may be bound; a status of the code ERROR if it was preempted."""
        return await self._outcome


class _Ends:
    """Wakes those who wait for an outcome, a few in each turn of the event loop, in the order of the outcomes."""

    def __init__(self) -> None:
        self._left: deque[tuple[asyncio.Future[Status | None], Status | None]] = deque()
        self._woken = 0
        """How many were woken in this turn."""

    def note(self, future: asyncio.Future[Status | None], outcome: Status | None) -> None:
        if not self._woken and not self._left:
            future.get_loop().call_soon(self._next_turn)
        self._left.append((future, outcome))
        self._go_on()

    def _go_on(self) -> None:
        while self._left and self._woken < ENDS_IN_A_TURN:
            future, outcome = self._left.popleft()
            self._woken += 1
            if not future.done():
                future.set_result(outcome)

    def _next_turn(self) -> None:
        self._woken = 0
        if self._left:
            self._left[0][0].get_loop().call_soon(self._next_turn)
            self._go_on()


class WaitingPods:
    """Implements framework.handle.WaitingPods, by UID."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}
        self._ends = _Ends()

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(tuple(self._pods.values()))

    def add(self, pod: Pod, holds: Mapping[str, PermitWait]) -> WaitingPod:
        waiting = self._pods[pod.uid] = WaitingPod(pod, holds, self._ends)
        return waiting

    def get(self, uid: str) -> WaitingPod | None:
        return self._pods.get(uid)

    def remove(self, uid: str) -> None:
        self._pods.pop(uid, None)

    def reject(self, uid: str, message: str = "removed") -> bool:
        waiting = self._pods.get(uid)
        return waiting is not None and waiting.reject("", message)
