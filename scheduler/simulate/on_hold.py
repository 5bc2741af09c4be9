"""The pods of a simulation that Permit plugins hold, and how time passes while they do.

A pod that is allowed or rejected goes on in a task of the engine's. This module only notes which pods were on hold
after a turn, and compares them with those that still are.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final

from scheduler.api.pods.pod import Pod
from scheduler.engine.engine import Engine
from scheduler.framework.plugin import MAX_PERMIT_SECONDS
from scheduler.process.virtual_time import VirtualTimeLoop
from scheduler.runtime.waiting import WaitingPod, WaitingPods
from scheduler.simulate.recording import Result

NOT_BOUND: Final = "its binding has begun, and does not end"
"""The message about a pod that PreBind, Bind or PostBind plugins keep for too long."""


class PodsOnHold:
    """The pods on hold of all profiles."""

    def __init__(self, engine: Engine, event_loop: VirtualTimeLoop, results: Mapping[str, Result]) -> None:
        """`results`: by the UID of the pod."""
        self._engine = engine
        self._event_loop = event_loop
        self._results = results
        self._noted: dict[str, WaitingPod] = {}
        """UID → the newest wait of each pod that was on hold after its turn."""

    def __contains__(self, uid: str) -> bool:
        return self._waiting.get(uid) is not None

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(self._waiting)

    @property
    def _waiting(self) -> WaitingPods:
        framework = next(iter(self._engine.frameworks.values()))
        return framework.handle.waiting_pods  # the same for all

    def note(self, pod: Pod) -> None:
        """Look whether a pod is on hold after its turn."""
        waiting = self._waiting.get(pod.uid)
        if waiting is not None:
            self._noted[pod.uid] = waiting

    def may_make_room(self) -> bool:
        """Return whether pods on hold were rejected, or hold what pods that found no node could have."""
        if any(self._waiting.get(uid) is not each and not self._has_node(uid) for uid, each in self._noted.items()):
            return True
        is_any_refused = any(count for name, count in self._engine.queue.pending_counts().items() if name != "gated")
        return is_any_refused and any(True for _ in self)

    def _has_node(self, uid: str) -> bool:
        result = self._results.get(uid)
        return result is not None and result["node"] is not None

    async def let_time_pass(self) -> None:
        """Let the timers of plugins go off, as long as bindings are under way, for MAX_PERMIT_SECONDS at most.

        Where all that are left are on hold, no time passes beyond the first time-out.
        """
        loop, bindings = self._event_loop, self._engine.loop
        end = loop.time() + MAX_PERMIT_SECONDS
        while bindings.bindings and (seconds := await loop.at_rest()) is not None:
            time_outs = [self._due(waiting) for waiting in self]
            limit = min(time_outs) if time_outs and len(time_outs) == bindings.bindings else end
            if loop.time() + seconds >= limit:
                return
            await asyncio.sleep(seconds)

    def _due(self, waiting: WaitingPod) -> float:
        """When a pod on hold is rejected, in the loop's time."""
        return self._event_loop.time() + min(map(waiting.seconds_left, waiting.pending_plugins), default=0.0)

    async def reject_all(self) -> None:
        """Let time pass until none of the pods on hold now is so any more: at its time-out, or before."""
        for waiting in sorted(self, key=self._due):
            while self._waiting.get(waiting.pod.uid) is waiting:
                await asyncio.sleep(max(0.0, self._due(waiting) - self._event_loop.time()))
                await self._event_loop.at_rest()

    def show(self) -> None:
        """Say in the results which pods wait, where and for what, and of which the binding does not end."""
        for uid, result in self._results.items():
            waiting = self._waiting.get(uid)
            if waiting is not None:
                result |= described(waiting)
            elif self._engine.loop.is_binding(uid):
                result["message"] = NOT_BOUND


def described(waiting: WaitingPod) -> dict[str, Any]:
    """The reason why a pod is on hold: "message", and "permit" as `scheduler.simulate.engine.simulate` says."""
    node = waiting.pod.node_name
    plugins = [
        {
            "plugin": plugin,
            "message": waiting.message_of(plugin),
            "secondsLeft": round(waiting.seconds_left(plugin), 3),
        }
        for plugin in waiting.pending_plugins
    ]
    return {
        "message": f"waits on {node} for the Permit of {waiting}",
        "permit": {"node": node, "plugins": plugins},
    }
