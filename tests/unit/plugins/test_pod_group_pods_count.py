"""PodGroupPodsCount: kube-scheduler's own cases."""

from dataclasses import replace

import numpy as np
import pytest

from plugins.pod_group_pods_count import PodGroupPodsCount
from scheduler import framework as fw
from scheduler.testing import started
from tests.conformance.transcribed import Case, cases
from tests.fakes import a_handle
from tests.unit.plugins.groups import a_member, a_pod_group, groups_of


@pytest.mark.parametrize("case", cases("pod_group_pods_count_score"))
def test_a_placement_scores_by_the_pods_that_have_a_node_then(case: Case) -> None:
    members = [a_member(f"p{number}", "n") for number in range(case["assigned"] + case["assumed"])]
    groups = groups_of([a_pod_group()], assigned=members[: case["assigned"]], assumed=members[case["assigned"] :])
    plugin = started(PodGroupPodsCount(), replace(a_handle(), pod_groups=groups))
    proposed = [fw.ProposedAssignment(a_member(f"new{number}"), "n") for number in range(case["proposed"])]

    found = plugin.score_placement(
        fw.CycleState(), a_member("p-new"), fw.PodGroupAssignments(fw.Placement("", np.arange(1)), proposed)
    )

    assert found == case["score"]


@pytest.mark.parametrize("case", cases("pod_group_pods_count_normalize"))
def test_scores_are_scaled_by_the_highest(case: Case) -> None:
    scores = np.array(case["scores"])

    def normalized() -> fw.Int64Column:
        return PodGroupPodsCount().normalize_placement_score(fw.CycleState(), a_member("p"), scores)

    if "error" in case:
        with pytest.raises(fw.AttemptFailed, match=case["error"]):
            normalized()
    else:
        assert normalized().tolist() == case["normalized"]
