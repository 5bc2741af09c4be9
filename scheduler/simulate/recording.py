"""The writes of a simulated scheduler: they take effect at once, and the outcome of each pod is recorded."""

from collections.abc import Callable
from typing import Any

from scheduler.api.pods.pod import Pod
from scheduler.cycle.writers import NoWriters
from scheduler.runtime.guards.plugin_faults import Fault

Result = dict[str, Any]
"""One pod of the JSON document: see `scheduler.simulate.engine.simulate`."""


class RecordingWriters(NoWriters):
    """All writers of a simulation: they take effect at once, and record the outcome of each pod."""

    bound: Callable[[Pod], None]

    def __init__(self, *, shows_evictions: bool = True) -> None:
        """`shows_evictions`: whether disruption budgets count the pods that would be evicted for earlier pods."""
        self.results: dict[str, Result] = {}
        self._shows_evictions = shows_evictions

    def fault(self, pod: Pod, fault: Fault, trace: str) -> None:
        if pod.uid in self.results:
            self.results[pod.uid]["fault"] = {
                "plugin": fault.plugin,
                "extensionPoint": fault.point,
                "type": fault.kind,
                "at": fault.place,
                "traceback": trace,
            }

    async def bind(self, pod: Pod, node_name: str, check: Callable[[], None]) -> str:
        self.results[pod.uid]["node"] = node_name
        self.results[pod.uid]["message"] = ""
        self.bound(pod)
        return ""

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        if reason == "FailedScheduling" and pod.uid in self.results:
            self.results[pod.uid]["message"] = note

    def unschedulable(self, pod: Pod, reason: str, message: str, nominated_node_name: str | None) -> None:
        self.results[pod.uid]["message"] = message
        self.results[pod.uid]["nominatedNode"] = nominated_node_name or None

    def nominate(self, pod: Pod, node_name: str) -> None:
        self.results[pod.uid]["nominatedNode"] = node_name

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        """Only record which pod would be evicted: it stays on its node."""
        self.results[preemptor.uid]["victims"].append(str(victim))
        return self._shows_evictions
