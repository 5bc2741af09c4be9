"""The binding cycle of a pod that has its node: plugins from Reserve to PostBind, and how they are undone.

    reserve: Reserve ─► Permit ─► [HELD ─► end_hold] ─► prepare: PreBind ─► Bind ─► BOUND
                │          │                  │                     │        │
                └──────────┴──────────────────┴─────────────────────┴────────┴──► unreserve

The scheduling loop takes each step when the one before has succeeded, a replay when it was taken in the trace.

Rule: pkg/scheduler/schedule_one.go at v1.36.3 (prepareForBindingCycle, bindingCycle).
"""

from dataclasses import dataclass, field

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.framework.status import Status
from scheduler.runtime.framework import Framework


@dataclass(slots=True, eq=False)
class BindingCycle:
    """One pod on its way to its node."""

    framework: Framework
    state: CycleState
    pod: Pod
    """The assumed pod: the queued one with its node."""
    node_name: str
    is_held: bool = field(default=False, init=False)
    """Whether it waits for Permit plugins."""
    is_bound: bool = field(default=False, init=False)

    def reserve(self) -> Status | None:
        """Run Reserve and Permit; return a refusal. Raises PluginError."""
        framework, state, pod = self.framework, self.state, self.pod
        refusal = framework.run_reserve(state, pod, self.node_name)
        if refusal is not None:
            return refusal
        holds, refusal = framework.run_permit(state, pod, self.node_name)
        if holds and refusal is None:
            framework.handle.waiting_pods.add(pod, holds)
            self.is_held = True
        return refusal

    def end_hold(self) -> None:
        """Permit plugins keep the pod waiting no longer."""
        self.is_held = False
        self.framework.handle.waiting_pods.remove(self.pod.uid)

    async def prepare(self) -> Status | None:
        """Run PreBind, which preemption may cancel; return a refusal. Raises SchedulerError."""
        pre_bind = self.framework.run_pre_bind(self.state, self.pod, self.node_name)
        return await self.framework.handle.pods_in_pre_bind.run(self.pod.uid, pre_bind)

    def unreserve(self) -> list[PluginError]:
        """Run Unreserve; return what went wrong."""
        return self.framework.run_unreserve(self.state, self.pod, self.node_name)
