"""Run pods in pairs: the first one waits on its node until the second one has a node, too."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from scheduler import framework as fw


@dataclass
class Partners(fw.PermitPlugin):
    """Hold a pod with the label `example.com/pair` until the other pod of its namespace with that value is placed."""

    name: ClassVar[str] = "Partners"
    label: str = "example.com/pair"
    wait: fw.Duration = fw.Duration(60)

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        return ()  # no event helps a pod that waited in vain: its partner does, in `permit`

    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.PermitWait | None:
        if self.label not in pod.labels:
            return None
        partners = [other for other in self.handle.pods.values() if self._are_partners(pod, other)]
        for partner in partners:
            waiting = self.handle.waiting_pods.get(partner.uid)
            if waiting is not None:
                waiting.allow(self.name)
            if waiting is not None or partner.node_name:
                return None
        # One that waited in vain before this pod came is tried again now.
        state.pods_to_activate.update(partner.uid for partner in partners)
        return fw.PermitWait(self.wait)

    def _are_partners(self, pod: fw.Pod, other: fw.Pod) -> bool:
        return (
            other.uid != pod.uid
            and not other.is_deleting
            and other.namespace == pod.namespace
            and other.labels.get(self.label) == pod.labels[self.label]
        )
