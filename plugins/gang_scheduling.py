"""All or nothing for the groups of `scheduling.k8s.io`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from plugins.shared.gangs import Gangs
from scheduler import framework as fw
from scheduler.api.groups.pod_groups import PodGroup

COMPOSITE: Final = "CompositePodGroup"
"""The feature gate for groups of groups."""

OF_KUBERNETES: Final = (fw.POD_GROUP, fw.COMPOSITE_POD_GROUP)

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
            *self._events_of_composites(),
        )

    def _events_of_composites(self) -> Iterator[fw.ClusterEventWithHint]:
        if COMPOSITE in self._handle.feature_gates:
            yield fw.on(fw.COMPOSITE_POD_GROUP, fw.Action.ADD, self.hint_after_composite_group_added, self.key)

    def keeps_together(self, key: fw.GroupKey) -> bool:
        return key.source in OF_KUBERNETES

    def absent(self, key: fw.GroupKey) -> str:
        return f'waiting for pods\'s pod group "{key.name}" to appear in scheduling queue'

    def not_found(self, key: fw.GroupKey) -> str:
        return f'podgroup.scheduling.k8s.io "{key.name}" not found'

    def too_few_pods(self, group: fw.PodGroup, count: int) -> fw.Status:
        return TOO_FEW_PODS

    def too_few_placed(self, group: fw.PodGroup) -> fw.PermitWait:
        return fw.PermitWait(PERMIT_SECONDS, _too_few(group)) if group.minimum_groups else TOO_FEW_PLACED

    def pre_enqueue(self, pod: fw.Pod) -> fw.Status | None:
        """Refuse a pod whose tree of groups is not there, or has too few pods."""
        key = self.key(pod)
        if key is None or COMPOSITE not in self._handle.feature_gates:
            return super().pre_enqueue(pod)
        tree = self._groups.tree_of(pod)
        if tree is None:
            return fw.unresolvable(self.gone(key))
        if self.is_complete(tree, self.count):
            return None
        return fw.unresolvable(_too_few(tree.group)) if tree.is_composite else TOO_FEW_PODS

    def gone(self, key: fw.GroupKey) -> str:
        if COMPOSITE not in self._handle.feature_gates:
            return super().gone(key)
        return f"failed to build hierarchy snapshot: {self._groups.tree_problem(key)}"

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
        return _queue_if(self.is_together(pod, self.key(new)) and self.pre_enqueue(pod) is None)

    def hint_after_group_change(self, pod: fw.Pod, old: PodGroup | None, new: PodGroup) -> fw.QueueingHint:
        """The group may be the pod's, and has come, or needs fewer pods."""
        changed = fw.GroupKey(new.metadata.namespace, fw.POD_GROUP, new.metadata.name)
        return _queue_if(self.is_together(pod, changed) and (old is None or _needs_fewer(old, new)))

    def hint_after_composite_group_added(self, pod: fw.Pod, old: PodGroup | None, new: PodGroup) -> fw.QueueingHint:
        """The group may be one above that of the pod."""
        added = fw.GroupKey(new.metadata.namespace, fw.COMPOSITE_POD_GROUP, new.metadata.name)
        return _queue_if(self.is_together(pod, added))

    def is_together(self, pod: fw.Pod, other: fw.GroupKey | None) -> bool:
        """Return whether a pod is tried together with those of another group, or this is its own."""
        key = self.key(pod)
        return key is not None and other is not None and self._groups.root_key(key) == self._groups.root_key(other)


def _needs_fewer(old: PodGroup, new: PodGroup) -> bool:
    before, after = old.spec.scheduling_policy.gang, new.spec.scheduling_policy.gang
    return before is not None and after is not None and after.min_count < before.min_count


def _too_few(root: fw.PodGroup) -> str:
    return f'waiting for composite pod group "{root.name}" tree to meet quorum'


def _queue_if(helps: bool) -> fw.QueueingHint:
    return fw.QueueingHint.QUEUE if helps else fw.QueueingHint.SKIP
