"""All or nothing for the groups of `scheduling.k8s.io`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from plugins.shared.gangs import Gangs
from scheduler import framework as fw
from scheduler.api.pod_groups import PodGroup

PERMIT_SECONDS: Final = 300.0
"""How long pods that have a node wait for the others of their gang."""

TOO_FEW_PODS: Final = fw.unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
TOO_FEW_PLACED: Final = fw.PermitWait(PERMIT_SECONDS, "waiting for minCount pods from a gang to be scheduled")


@dataclass
class GangScheduling(Gangs):
    """Rule: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go at v1.37.2."""

    name: ClassVar[str] = "GangScheduling"

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        return (
            fw.on(fw.UNSCHEDULED_POD, fw.Action.ADD, self.hint_after_pod_change, self.key),
            fw.on(fw.ASSIGNED_POD, fw.Action.ADD, self.hint_after_pod_change, self.key),
            fw.on(fw.POD_GROUP, fw.Action.ADD, self.hint_after_group_change, self.key),
            fw.on(fw.POD_GROUP_V1BETA1, fw.Action.ADD | fw.Action.UPDATE, self.hint_after_group_change, self.key),
        )

    def keeps_together(self, key: fw.GroupKey) -> bool:
        return key.source == fw.POD_GROUP

    def absent(self, key: fw.GroupKey) -> str:
        return f'waiting for pods\'s pod group "{key.name}" to appear in scheduling queue'

    def not_found(self, key: fw.GroupKey) -> str:
        return f'podgroup.scheduling.k8s.io "{key.name}" not found'

    def too_few_pods(self, group: fw.PodGroup, count: int) -> fw.Status:
        return TOO_FEW_PODS

    def too_few_placed(self, group: fw.PodGroup) -> fw.PermitWait:
        return TOO_FEW_PLACED

    def incomplete(self, minimum: int, progress: fw.PlacementProgress) -> fw.Status:
        scheduled, remaining = progress.scheduled, progress.remaining
        so_far = f": {scheduled} scheduled, {remaining} remaining"
        if scheduled + remaining < minimum:
            return fw.unschedulable(f"minCount ({minimum}) cannot be satisfied{so_far}")
        return fw.wait(f"minCount ({minimum}) is not yet satisfied{so_far}")

    def hint_after_pod_change(self, pod: fw.Pod, old: fw.Pod | None, new: fw.Pod) -> fw.QueueingHint:
        """Another pod of the group may be the one that is missing.

        As long as more are missing, PreEnqueue would refuse each of the pods again: it is not asked about all of them.
        """
        key = self.key(pod)
        return _queue_if(key is not None and key == self.key(new) and self.pre_enqueue(pod) is None)

    def hint_after_group_change(self, pod: fw.Pod, old: PodGroup | None, new: PodGroup) -> fw.QueueingHint:
        """The group may be the pod's, and has come, or needs fewer pods."""
        key = self.key(pod)
        is_its = key is not None and (key.namespace, key.name) == (new.metadata.namespace, new.metadata.name)
        return _queue_if(is_its and (old is None or _needs_fewer(old, new)))


def _needs_fewer(old: PodGroup, new: PodGroup) -> bool:
    before, after = old.spec.scheduling_policy.gang, new.spec.scheduling_policy.gang
    return before is not None and after is not None and after.min_count < before.min_count


def _queue_if(helps: bool) -> fw.QueueingHint:
    return fw.QueueingHint.QUEUE if helps else fw.QueueingHint.SKIP
