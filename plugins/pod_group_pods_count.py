"""Prefer the placement in which most pods of a group have a node."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from scheduler import framework as fw

NO_PODS = "no pods from pod group are assigned to any of the candidate placements"


@dataclass
class PodGroupPodsCount(fw.PlacementScorePlugin, fw.NormalizePlacementScorePlugin):
    """Rule: pkg/scheduler/framework/plugins/podgrouppodscount/podgrouppodscount.go at v1.36.3."""

    name: ClassVar[str] = "PodGroupPodsCount"

    def start(self, handle: fw.Handle) -> None:
        self._groups = handle.pod_groups

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """It refuses no pod."""
        return ()

    def score_placement(self, state: fw.CycleState, pod: fw.Pod, assignments: fw.PodGroupAssignments) -> int:
        """Return how many pods of the group have a node then."""
        tree = fw.decided(self._groups, state, pod)
        return (0 if tree is None else tree.members.scheduled_count) + len(assignments.proposed)

    def normalize_placement_score(self, state: fw.CycleState, pod: fw.Pod, scores: fw.Int64Column) -> fw.Int64Column:
        most = int(scores.max())
        if most == 0:
            raise fw.AttemptFailed(NO_PODS)
        return scores * fw.MAX_NODE_SCORE // most
