"""TopologyPlacementGenerator: kube-scheduler's own cases, and the words of its errors."""

from dataclasses import replace

import numpy as np
import pytest

from plugins.topology_placement import TopologyPlacementGenerator
from scheduler import framework as fw
from scheduler.testing import Cluster, a_cluster, a_node, started
from tests.conformance.transcribed import Case, cases
from tests.fakes import a_handle
from tests.unit.plugins.groups import a_member, a_pod_group, groups_of

Labels = dict[str, str]


def labelled(nodes: dict[str, Labels]) -> Cluster:
    return a_cluster(*(a_node(name, labels=labels) for name, labels in nodes.items()))


def placements(
    table: Cluster, key: str | None, parent: list[str], scheduled: dict[str, str] | None = None
) -> dict[str, list[str]]:
    """The names of the nodes by placement, of a group some of whose pods have a node."""
    members = [a_member(pod, node) for pod, node in (scheduled or {}).items()]
    handle = replace(a_handle(table), pod_groups=groups_of([a_pod_group("pg", key)], assigned=members))
    rows = np.array([table.row_of(name) for name in parent])
    found = started(TopologyPlacementGenerator(), handle).generate_placements(
        fw.CycleState(), a_member("unscheduled"), fw.Placement("test-placement", rows)
    )
    assert not isinstance(found, fw.Status)
    return {each.name: [table.names()[row] for row in each.rows] for each in found}


@pytest.mark.parametrize("case", cases("generate_placements"))
def test_placements_are_as_in_kube_scheduler(case: Case) -> None:
    table = labelled(case["nodes"] | case.get("others", {}))
    asked = table, case.get("key"), list(case["nodes"]), case.get("scheduled")

    if "placements" in case:
        assert placements(*asked) == case["placements"]
    else:
        with pytest.raises(fw.AttemptFailed, match="cannot determine domain for already scheduled pods: "):
            placements(*asked)


def test_placements_come_by_name() -> None:
    table = labelled({"n1": {"rack": "b"}, "n2": {"rack": "a"}, "n3": {"rack": "b"}, "n4": {"rack": "aa"}})

    found = placements(table, "rack", ["n4", "n3", "n2", "n1"])

    assert list(found.items()) == [("a", ["n2"]), ("aa", ["n4"]), ("b", ["n3", "n1"])]


def test_an_empty_label_is_a_domain_too() -> None:
    table = labelled({"n1": {"rack": ""}, "n2": {}, "n3": {"rack": "a"}})

    assert placements(table, "rack", ["n1", "n2", "n3"]) == {"": ["n1"], "a": ["n3"]}


@pytest.mark.parametrize(
    ("scheduled", "detail"),
    [
        pytest.param(
            {"p1": "gone"},
            'getting node for pod default/p1: nodeinfo not found for node name "gone"',
            id="on a node that is gone",
        ),
        pytest.param({"p1": "bare"}, "no topology domain found for pod default/p1", id="on a node in no domain"),
        pytest.param(
            {"p1": "n1", "p2": "n2"}, "more than 1 domain found for pod group: a, b", id="on nodes of two domains"
        ),
        pytest.param(
            {"p2": "n2", "p1": "n1"}, "more than 1 domain found for pod group: a, b", id="in the order of names"
        ),
    ],
)
def test_pods_that_are_not_in_one_domain_are_an_error_in_kube_schedulers_words(
    scheduled: dict[str, str], detail: str
) -> None:
    table = labelled({"n1": {"rack": "a"}, "n2": {"rack": "b"}, "bare": {}})

    with pytest.raises(fw.AttemptFailed) as caught:
        placements(table, "rack", ["n1", "n2"], scheduled)
    assert str(caught.value) == f"cannot determine domain for already scheduled pods: {detail}"


def test_a_group_that_is_gone_is_an_error() -> None:
    plugin = started(TopologyPlacementGenerator(), replace(a_handle(), pod_groups=groups_of([])))

    with pytest.raises(fw.AttemptFailed, match=r'^podgroup\.scheduling\.k8s\.io "pg" not found$'):
        plugin.generate_placements(fw.CycleState(), a_member("p"), fw.Placement("", np.arange(0)))
