"""Keep pods out of the queue until their scheduling gates are removed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from plugins.shared.queueing import any_pod, queue_if_itself
from scheduler import framework as fw


@dataclass(frozen=True, slots=True)
class SchedulingGates(fw.PreEnqueuePlugin, fw.ExplainPlugin):
    """PreEnqueue: reject pods with `spec.schedulingGates`.

    Rule: schedulinggates/scheduling_gates.go at v1.37.2.
    """

    name: ClassVar[str] = "SchedulingGates"

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Rule: scheduling_gates.go (EventsToRegister)."""
        return (fw.on(fw.TARGET_POD, fw.Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, queue_if_itself, any_pod),)

    def pre_enqueue(self, pod: fw.Pod) -> fw.Status | None:
        """Reject a gated pod, naming its gates."""
        if not pod.spec.scheduling_gates:
            return None
        gates = " ".join(gate.name for gate in pod.spec.scheduling_gates)
        return fw.unresolvable(f"waiting for scheduling gates: [{gates}]")

    def obstacles_anywhere(self, state: fw.CycleState, pod: fw.Pod, refusal: fw.Status) -> Sequence[fw.Obstacle]:
        return [fw.Obstacle(f"scheduling gate {gate.name}") for gate in pod.spec.scheduling_gates or ()]
