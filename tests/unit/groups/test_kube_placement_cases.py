"""kube-scheduler's own cases of groups that are tried in several placements."""

from typing import Any, ClassVar

import numpy as np
import pytest

from scheduler import framework as fw
from scheduler.config.feature_gates import FeatureGates
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.cycle.steps import in_one_go
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Code
from scheduler.groups.decision import GroupDecision
from scheduler.runtime.profile_spec import PluginRef, Plugins, PluginSet
from scheduler.testing import a_node, a_pod
from tests.conformance.transcribed import Case, cases
from tests.unit.cycle.fakes import PROFILE
from tests.unit.groups.groups import Groups

GATES = FeatureGates(generic_workload=True, topology_aware_workload_scheduling=True)
NODES = ("node1", "node2")


class PlacementPlugin(fw.FilterPlugin, fw.PlacementGeneratePlugin):
    """Generates the placements of a case, and refuses nodes as it says."""

    name: ClassVar[str] = "FakePlacementPlugin"
    case: ClassVar[Case] = {}

    def start(self, handle: fw.Handle) -> None:
        self.nodes = handle.nodes

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return fw.unschedulable() if node.name in self.case.get("refused", ()) else None

    def generate_placements(
        self, state: fw.CycleState, pod: fw.Pod, parent: fw.Placement
    ) -> list[fw.Placement] | fw.Status:
        if "generate_error" in self.case:
            return fw.Status(Code.ERROR, (self.case["generate_error"],))
        found: dict[str, list[str]] = self.case["placements"]
        return [
            fw.Placement(name, np.array([self.nodes.row_of(node) for node in nodes])) for name, nodes in found.items()
        ]


class ScoringPlacementPlugin(PlacementPlugin, fw.PlacementScorePlugin):
    """Scores them, too."""

    name: ClassVar[str] = "FakePlacementPlugin"

    def score_placement(self, state: fw.CycleState, pod: fw.Pod, assignments: fw.PodGroupAssignments) -> int:
        name = assignments.placement.name
        if name in self.case.get("score_errors", {}):
            raise fw.AttemptFailed(self.case["score_errors"][name])
        return int(self.case.get("scores", {}).get(name, 0))


def decided(*plugins: tuple[type[fw.Plugin], int]) -> GroupDecision:
    """Decide about a group of one pod, foo, with these plugins and their weights."""
    enabled = (PluginRef("PrioritySort"), PluginRef("DefaultBinder"), *(PluginRef(each.name, n) for each, n in plugins))
    only = Plugins(multi_point=PluginSet(enabled))
    groups = Groups(*(each for each, _ in plugins), nodes=0, only=only, gates=GATES)
    groups.under_test.see(*map(a_node, NODES))
    groups.create("pg", minimum=None)
    pod = a_pod("foo", group="pg", scheduler_name=PROFILE)
    groups.under_test.see(pod)
    assert groups.engine.pod_groups is not None
    return in_one_go(groups.engine.pod_groups.decide_in_steps(groups.engine.frameworks[PROFILE], [QueuedPod(pod, 0.0)]))


def of_case(kind: type[Any], case: Case, name: str = "FakePlacementPlugin") -> type[fw.Plugin]:
    return type(name, (kind,), {"case": case, "name": name})


@pytest.mark.parametrize("case", cases("placement_algorithm"))
def test_a_group_goes_to_the_placement_that_kube_scheduler_chooses(case: Case) -> None:
    decision = decided((of_case(ScoringPlacementPlugin, case), 1))

    assert (decision.code.label, decision.message) == (case["code"], case.get("message", ""))
    outcomes = [each.decision for each in decision.members]
    if "node" in case:
        assert [each.node_name for each in outcomes if isinstance(each, Placed)] == [case["node"]]
        assert [(each.evaluated_nodes, each.feasible_nodes) for each in outcomes if isinstance(each, Placed)] == [
            (1, 1)
        ]
    elif "pod" in case:
        assert [("Unschedulable", each.message) for each in outcomes if isinstance(each, Unplaced)] == [
            tuple(case["pod"])
        ]
    else:
        assert outcomes == []
    if "plugin" in case:
        assert decision.status is not None
        assert decision.status.plugin == case["plugin"]


@pytest.mark.parametrize("case", cases("placement_algorithm_scoring"))
def test_scores_of_several_plugins_are_weighted(case: Case) -> None:
    scoring = (
        (of_case(Scorer, each, f"FakeScorePlugin{number}"), each["weight"])
        for number, each in enumerate(case["plugins"])
    )

    decision = decided((of_case(PlacementPlugin, case), 0), *scoring)

    (node,) = case["placements"][case["chosen"]]
    assert [each.node_name for each in decision.members] == [node]


class Scorer(fw.PlacementScorePlugin):
    """Scores placements as a case says."""

    name: ClassVar[str] = "FakeScorePlugin"
    case: ClassVar[Case] = {}

    def score_placement(self, state: fw.CycleState, pod: fw.Pod, assignments: fw.PodGroupAssignments) -> int:
        return int(self.case["scores"][assignments.placement.name])
