"""Let a team's pods run only on nodes for which the team has a budget left: a custom resource says so."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from scheduler import framework as fw

BUDGETS = "budgets.v1.example.com"

NO_BUDGET = fw.unresolvable("no budget for the pod's team")
OTHER_POOL = fw.unresolvable("node(s) of a pool that the team's budget is not for")


@dataclass
class TeamBudget(fw.PreFilterPlugin, fw.FilterPlugin):
    """Run a pod with the label `team` in the pool of nodes that the Budget of this name allows."""

    name: ClassVar[str] = "TeamBudget"

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        return (
            fw.on(BUDGETS, fw.Action.ADD | fw.Action.UPDATE, hint=self.is_of_the_same_team, key=_team),
            fw.on(fw.NODE, fw.Action.ADD | fw.Action.UPDATE_NODE_LABEL),
        )

    def is_of_the_same_team(
        self, pod: fw.Pod, old: fw.Unstructured | None, new: fw.Unstructured | None
    ) -> fw.QueueingHint:
        is_ours = new is not None and new.namespace == pod.namespace and new.name == pod.labels.get("team")
        return fw.QueueingHint.QUEUE if is_ours else fw.QueueingHint.SKIP

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        if "team" not in pod.labels:
            return fw.SKIP
        return None if self._pool(pod) else NO_BUDGET

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return None if node.labels.get("pool") == self._pool(pod) else OTHER_POOL

    def _pool(self, pod: fw.Pod) -> str:
        budget = self.handle.objects.get(BUDGETS, pod.labels["team"], pod.namespace)
        return "" if budget is None else budget["spec"]["pool"]


def _team(pod: fw.Pod) -> tuple[str, str | None]:
    """All of the pod that the hint looks at."""
    return pod.namespace, pod.labels.get("team")
