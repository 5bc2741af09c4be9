"""All or nothing, for whatever API has the groups: no pod of a gang is bound before its minimum of pods have nodes.

PreEnqueue: is the group there, and has it enough pods? ─► PlacementFeasible: would enough pods have nodes?
    ─► Permit: wait until they have
"""

from abc import abstractmethod
from collections.abc import Callable
from operator import attrgetter

from scheduler import framework as fw

_scheduled_count = attrgetter("scheduled_count")


class Gangs(fw.PreEnqueuePlugin, fw.PlacementFeasiblePlugin):
    """The base of plugins that hold back the pods of incomplete gangs.

    Rule: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go at v1.37.2.
    """

    def start(self, handle: fw.Handle) -> None:
        self._handle = handle
        self._groups = handle.pod_groups

    @abstractmethod
    def keeps_together(self, key: fw.GroupKey) -> bool:
        """Return whether this plugin keeps that group together."""

    @abstractmethod
    def absent(self, key: fw.GroupKey) -> str:
        """Say that a pod waits for its group, which does not exist."""

    @abstractmethod
    def not_found(self, key: fw.GroupKey) -> str:
        """Say that a group does not exist, as the API does."""

    def count(self, members: fw.GroupMembers) -> int:
        """Return how many pods of a group may be tried."""
        return members.count

    @abstractmethod
    def too_few_pods(self, group: fw.PodGroup, count: int) -> fw.Status:
        """Say that a group has that many pods only."""

    @abstractmethod
    def too_few_placed(self, group: fw.PodGroup) -> fw.PermitWait:
        """Let a pod with a node wait for the others of its group."""

    def pre_enqueue(self, pod: fw.Pod) -> fw.Status | None:
        """Refuse a pod whose group does not exist, has too few pods, or cannot be understood."""
        key = self.key(pod)
        if key is None:
            return None
        group = self._groups.of(pod)
        if group is None:
            return fw.unresolvable(self.absent(key))
        if group.problem:
            return fw.unresolvable(group.problem)
        count = self.count(self._groups.members(pod))
        return self.too_few_pods(group, count) if count < group.minimum else None

    def placement_feasible(self, state: fw.CycleState, pod: fw.Pod, progress: fw.PlacementProgress) -> fw.Status | None:
        """Wait until pods enough would have nodes."""
        tree = fw.decided(self._groups, state, pod)
        if tree is None or not self.keeps_together(tree.key):
            return None
        minimum = tree.group.minimum_groups or tree.group.minimum or 1
        return None if progress.scheduled >= minimum else self.incomplete(minimum, progress)

    def incomplete(self, minimum: int, progress: fw.PlacementProgress) -> fw.Status:
        """Say that fewer pods than the minimum would have nodes so far."""
        return fw.wait()

    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | fw.PermitWait | None:
        """Let a pod wait until its gang is complete; the one that completes it lets all of them go."""
        key = self._groups.key_of(pod)
        if key is None or not self.keeps_together(key):
            return None
        tree = self._groups.tree_of(pod)
        if tree is None:
            raise fw.AttemptFailed(self.gone(key))
        if not (tree.group.minimum_groups or tree.group.minimum):
            return None
        members = tree.members
        if not self.is_complete(tree, _scheduled_count):
            if not state.is_of_group_cycle:
                self._handle.activator.activate([other.uid for other in members.unscheduled])
            return self.too_few_placed(tree.group)
        if len(self._handle.waiting_pods):  # every member that comes after the minimum comes by here
            for uid in members.assumed:
                waiting = self._handle.waiting_pods.get(uid)
                if waiting is not None:
                    waiting.allow(self.name)
        return None

    def gone(self, key: fw.GroupKey) -> str:
        """Return what is said at Permit of a pod whose group does not exist."""
        return f"failed to get podGroup {key}: {self.not_found(key)}"

    def is_complete(self, tree: fw.GroupTree, count: Callable[[fw.GroupMembers], int]) -> bool:
        """Return whether a group has pods enough, of those that are counted; or groups enough that have."""
        if not tree.group.minimum_groups:
            return count(tree.members) >= (tree.group.minimum or 1)
        return sum([self.is_complete(each, count) for each in tree.children]) >= tree.group.minimum_groups

    def key(self, pod: fw.Pod) -> fw.GroupKey | None:
        """Return the group of a pod, if this plugin keeps it together."""
        key = self._groups.key_of(pod)
        return key if key is not None and self.keeps_together(key) else None
