"""All or nothing: no pod of a gang is bound before its minimum of pods have nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from scheduler import framework as fw

PERMIT_SECONDS: Final = 300.0
"""How long pods that have a node wait for the others of their gang."""

TOO_FEW_PODS: Final = fw.unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
TOO_FEW_PLACED: Final = fw.PermitWait(PERMIT_SECONDS, "waiting for minCount pods from a gang to be scheduled")


@dataclass
class GangScheduling(fw.PreEnqueuePlugin, fw.PermitPlugin):
    """Rule: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go at v1.36.3."""

    name: ClassVar[str] = "GangScheduling"

    def start(self, handle: fw.Handle) -> None:
        self._handle = handle
        self._groups = handle.pod_groups

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        return (
            fw.on(fw.POD, fw.Action.ADD, self.hint_after_pod_add, self._key),
            fw.on(fw.POD_GROUP, fw.Action.ADD, self.hint_after_group_add, self._key),
        )

    def pre_enqueue(self, pod: fw.Pod) -> fw.Status | None:
        """Refuse a pod whose group does not exist, or has too few pods."""
        name = self._groups.name_of(pod)
        if not name:
            return None
        group = self._groups.of(pod)
        if group is None:
            return fw.unresolvable(f'waiting for pods\'s pod group "{name}" to appear in scheduling queue')
        return TOO_FEW_PODS if self._groups.members(pod).count < group.minimum else None

    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | fw.PermitWait | None:
        """Let a pod wait until its gang is complete; the one that completes it lets all of them go."""
        name = self._groups.name_of(pod)
        if not name:
            return None
        group = self._groups.of(pod)
        if group is None:
            raise fw.AttemptFailed(
                f'failed to get podGroup {pod.namespace}/{name}: podgroup.scheduling.k8s.io "{name}" not found'
            )
        if not group.minimum:
            return None
        members = self._groups.members(pod)
        if members.scheduled_count < group.minimum:
            if not state.is_of_group_cycle:
                self._handle.activator.activate([other.uid for other in members.unscheduled])
            return TOO_FEW_PLACED
        for uid in members.assumed:
            waiting = self._handle.waiting_pods.get(uid)
            if waiting is not None:
                waiting.allow(self.name)
        return None

    def hint_after_pod_add(self, pod: fw.Pod, old: fw.Pod | None, new: fw.Pod) -> fw.QueueingHint:
        """Another pod of the group may be the one that is missing.

        As long as more are missing, PreEnqueue would refuse each of the pods again: it is not asked about all of them.
        """
        is_fellow = bool(self._groups.name_of(pod)) and self._key(pod) == self._key(new)
        return _queue_if(is_fellow and self.pre_enqueue(pod) is None)

    def hint_after_group_add(self, pod: fw.Pod, old: object, new: fw.Unstructured) -> fw.QueueingHint:
        """The group may be the pod's."""
        return _queue_if(self._key(pod) == (new.metadata.namespace, new.metadata.name))

    def _key(self, pod: fw.Pod) -> tuple[str, str]:
        return pod.namespace, self._groups.name_of(pod)


def _queue_if(helps: bool) -> fw.QueueingHint:
    return fw.QueueingHint.QUEUE if helps else fw.QueueingHint.SKIP
