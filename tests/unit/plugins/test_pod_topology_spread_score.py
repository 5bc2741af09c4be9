"""Soft spread constraints: the intent of podtopologyspread/scoring_test.go, with its scores."""

import math

import numpy as np
import pytest

from plugins.pod_topology_spread.scoring import rounded, topology_weight
from scheduler import framework as fw
from scheduler.testing import a_node
from tests.unit.plugins.cluster import a_cluster
from tests.unit.plugins.spread import (
    HOSTNAME,
    WEB,
    ZONE,
    Objects,
    a_constraint,
    a_spread,
    a_spread_pod,
    nodes_in_two_zones,
    nodes_in_zones,
    spread_scores,
    web_pods,
)


@pytest.mark.parametrize(("policy", "expected"), [("Honor", {"a": 100, "x": 50}), ("Ignore", {"a": 60, "x": 100})])
@pytest.mark.parametrize("by_taint", [True, False])
def test_nodes_that_are_not_for_the_pod_count_only_if_the_policy_says_so(
    policy: str, expected: dict[str, int], by_taint: bool
) -> None:
    table = nodes_in_two_zones({"a": 2, "b": 5, "x": 4})
    for name, zone in (("a", "1"), ("b", "1"), ("x", "2")):
        taints = [fw.Taint(key="k", effect="NoSchedule")] if by_taint and name == "b" else []
        disk = "hdd" if name == "b" else "ssd"
        table.set_node(a_node(name, labels={HOSTNAME: name, ZONE: zone, "disk": disk}, taints=taints))
    if by_taint:
        pod = a_spread_pod(a_constraint(soft=True, node_taints_policy=policy))
    else:
        pod = a_spread_pod(a_constraint(soft=True, node_affinity_policy=policy), node_selector={"disk": "ssd"})

    assert spread_scores(a_spread(), pod, table, "ax") == expected


def test_pods_without_soft_constraints_are_skipped() -> None:
    table, state = nodes_in_two_zones({}), fw.CycleState()

    assert a_spread().pre_score(state, a_spread_pod(), table, np.arange(4)) == fw.SKIP
    assert a_spread().pre_score(state, a_spread_pod(a_constraint()), table, np.arange(4)) == fw.SKIP
    with pytest.raises(LookupError, match='reading "PreScorePodTopologySpread"'):
        a_spread().score_nodes(state, a_spread_pod(), table, np.arange(4))


def test_the_systems_default_spreads_over_nodes_also_where_there_are_no_zones() -> None:
    table = nodes_in_zones({"": "abcd"}, {"a": 4, "b": 3, "c": 2, "d": 1})
    plugin = a_spread(Objects().service(WEB))

    assert spread_scores(plugin, a_spread_pod(), table) == {"a": 44, "b": 66, "c": 77, "d": 100}
    assert spread_scores(plugin, a_spread_pod(labels={"app": "db"}), table) == {}


def test_default_constraints_of_the_configuration_ask_for_every_key() -> None:
    table = nodes_in_zones({"1": ("a",), "": ("b",)}, {"a": 2})
    defaults = (a_constraint(HOSTNAME, soft=True, label_selector=None), a_constraint(soft=True, label_selector=None))
    plugin = a_spread(Objects().service(WEB), defaulting_type="List", default_constraints=defaults)

    assert spread_scores(plugin, a_spread_pod(), table) == {"a": 100, "b": 0}


def test_to_the_systems_default_a_zone_without_a_name_is_where_nodes_without_zones_are() -> None:
    nodes = [a_node("a", labels={ZONE: ""}), a_node("b"), a_node("c", labels={ZONE: "1"})]
    table = a_cluster(*nodes, pods={"b": web_pods(3, "b"), "c": web_pods(2, "c")})

    found = spread_scores(a_spread(Objects().service(WEB)), a_spread_pod(), table)

    assert found == {"a": 0, "b": 100, "c": 12}


def test_the_weight_of_a_topology_is_gos_logarithm_to_the_last_bit() -> None:
    # Where C's differs from it by one bit, as printed by Go's strconv.FormatFloat(math.Log(x), 'x', -1, 64).
    for size in range(5000):
        assert topology_weight(size) == pytest.approx(math.log(size + 2), rel=3e-16)
    assert topology_weight(1).hex() == GO_LN_3
    assert topology_weight(12).hex() == GO_LN_14


GO_LN_3 = "0x1.193ea7aad030ap+0"
GO_LN_14 = "0x1.51cca16d7bba8p+1"


def test_halves_are_rounded_up() -> None:
    odd = np.array([0.5, 1.5, 2.5, 0.49999999999999994, 3.0, 2.0**52 + 1, -1.0])

    assert rounded(odd).tolist() == [1, 2, 3, 0, 3, 2**52 + 1, -1]
