"""Hard spread constraints: the intent of podtopologyspread/filtering_test.go."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from plugins.pod_topology_spread.plugin import NO_DOMAIN, UNEVEN
from scheduler import framework as fw
from scheduler.api.objects import LabelSelector, LabelSelectorRequirement, TopologySpreadConstraint
from scheduler.api.pods.tolerations import COMPARISONS
from scheduler.testing import a_node, a_requirement, a_term, required
from tests.unit.plugins.cluster import a_cluster, refusals
from tests.unit.plugins.spread import (
    HOSTNAME,
    WEB,
    ZONE,
    Objects,
    a_constraint,
    a_spread,
    a_spread_pod,
    feasible,
    nodes_in_two_zones,
    nodes_in_zones,
    web_pods,
)

ALL = ["a", "b", "x", "y"]
EVERYTHING = LabelSelector()


@pytest.mark.parametrize(
    ("constraint", "pods", "expected"),
    [
        pytest.param(a_constraint("rack"), {}, [], id="a key that no node has"),
        pytest.param(a_constraint(label_selector=EVERYTHING), {"a": 5}, ALL, id="a selector of everything counts none"),
        pytest.param(
            a_constraint(HOSTNAME, max_skew=2, min_domains=5),
            {"a": 2, "b": 1, "x": 1, "y": 1},
            ["b", "x", "y"],
            id="fewer domains than minDomains",
        ),
        pytest.param(a_constraint("rack", min_domains=0), {}, [], id="no domain, and none asked for"),
        pytest.param(a_constraint(max_skew=2**31 - 1), {"a": 90}, ALL, id="the largest skew"),
    ],
)
def test_a_domain_may_have_so_many_more_pods_than_the_emptiest(
    constraint: TopologySpreadConstraint, pods: Mapping[str, int], expected: list[str]
) -> None:
    assert feasible(a_spread(), a_spread_pod(constraint), nodes_in_two_zones(pods)) == expected


def test_the_first_constraint_that_refuses_a_node_says_why() -> None:
    table = nodes_in_zones({"1": ("a",), "2": ("b",), "": ("x",)}, {"a": 1})
    pod = a_spread_pod(a_constraint(HOSTNAME), a_constraint(ZONE))

    assert refusals(a_spread(table=table), pod, table) == {"a": UNEVEN, "x": NO_DOMAIN}
    assert UNEVEN.code is fw.Code.UNSCHEDULABLE
    assert NO_DOMAIN.code is fw.Code.UNSCHEDULABLE_AND_UNRESOLVABLE


HONOR_AFFINITY = {"node_affinity_policy": "Honor"}
IGNORE_AFFINITY = {"node_affinity_policy": "Ignore"}
HONOR_TAINTS = {"node_taints_policy": "Honor"}
IGNORE_TAINTS = {"node_taints_policy": "Ignore"}


@pytest.mark.parametrize(
    ("policies", "expected"),
    [({}, ["a", "b", "y"]), (HONOR_AFFINITY, ["a", "b", "y"]), (IGNORE_AFFINITY, ["y"])],
)
@pytest.mark.parametrize("by_selector", [True, False])
def test_nodes_that_the_pod_does_not_select_count_only_if_the_policy_says_so(
    policies: Mapping[str, Any], expected: list[str], by_selector: bool
) -> None:
    disks = {"a": "ssd", "b": "ssd", "x": "ssd", "y": "hdd"}
    nodes = [a_node(name, labels={HOSTNAME: name, "disk": disk}) for name, disk in disks.items()]
    table = a_cluster(*nodes, pods={name: web_pods(n, name) for name, n in (("a", 1), ("b", 1), ("x", 2))})
    affinity = required(a_term(a_requirement("disk", "In", "ssd")))
    selecting: dict[str, Any] = {"node_selector": {"disk": "ssd"}} if by_selector else {"node_affinity": affinity}
    pod = a_spread_pod(a_constraint(HOSTNAME, **policies), **selecting)

    assert feasible(a_spread(), pod, table) == expected


@pytest.mark.parametrize(
    ("policies", "tolerations", "expected"),
    [
        ({}, (), ["y"]),
        (IGNORE_TAINTS, (), ["y"]),
        (HONOR_TAINTS, (), ["a", "b", "y"]),
        (HONOR_TAINTS, (fw.Toleration(operator="Exists"),), ["y"]),
    ],
)
def test_nodes_with_taints_count_unless_the_policy_honours_them(
    policies: Mapping[str, Any], tolerations: tuple[fw.Toleration, ...], expected: list[str]
) -> None:
    tainted = a_node("y", labels={HOSTNAME: "y"}, taints=[fw.Taint(key="k", effect="NoExecute")])
    preferred = a_node("a", labels={HOSTNAME: "a"}, taints=[fw.Taint(key="k", effect="PreferNoSchedule")])
    nodes = [preferred, *(a_node(name, labels={HOSTNAME: name}) for name in "bx"), tainted]
    table = a_cluster(*nodes, pods={name: web_pods(n, name) for name, n in (("a", 1), ("b", 1), ("x", 2))})
    pod = a_spread_pod(a_constraint(HOSTNAME, **policies), tolerations=tolerations)

    assert feasible(a_spread(), pod, table) == expected


@pytest.mark.parametrize(("gates", "expected"), [((), ["b", "y"]), ((COMPARISONS,), ["y"])])
def test_with_its_gate_a_toleration_compares_numbers(gates: tuple[str, ...], expected: list[str]) -> None:
    tainted = a_node("y", labels={HOSTNAME: "y"}, taints=[fw.Taint(key="k", value="5", effect="NoExecute")])
    table = a_cluster(a_node("b", labels={HOSTNAME: "b"}), tainted, pods={"b": web_pods(1, "b")})
    above = fw.Toleration(key="k", operator="Gt", value="3")
    pod = a_spread_pod(a_constraint(HOSTNAME, node_taints_policy="Honor"), tolerations=(above,))
    plugin = a_spread(table=table)
    plugin.start(dataclasses.replace(plugin.handle, feature_gates=frozenset(gates)))

    assert feasible(plugin, pod, table) == expected


def test_what_is_left_out_follows_the_nodes() -> None:
    table = nodes_in_two_zones({"x": 1})
    plugin = a_spread(table=table)
    pod = a_spread_pod(a_constraint(HOSTNAME, node_taints_policy="Honor"), node_selector={ZONE: "2"})
    assert feasible(plugin, pod, table) == ["a", "b", "y"]

    table.set_node(a_node("y", labels={HOSTNAME: "y", ZONE: "2"}, taints=[fw.Taint(key="k", effect="NoSchedule")]))

    assert feasible(plugin, pod, table) == ALL

    table.set_node(a_node("b", labels={HOSTNAME: "b", ZONE: "2"}))

    assert feasible(plugin, pod, table) == ["a", "b", "y"]


@pytest.mark.parametrize(
    ("keys", "selector", "expected"),
    [
        (("version",), LabelSelector(match_labels=WEB), ["a", "b"]),
        (("version",), LabelSelector(), ["a", "b"]),
        (("version",), None, ALL),
        (("absent",), LabelSelector(match_labels=WEB), ["x", "y"]),
    ],
)
def test_match_label_keys_take_over_the_pods_own_values(
    keys: tuple[str, ...], selector: LabelSelector | None, expected: list[str]
) -> None:
    table = nodes_in_two_zones({"a": 3, "b": 1})
    for i in range(2):
        table.add_pod("x", a_spread_pod(name=f"new-{i}", labels={**WEB, "version": "2"}))
    constraint = a_constraint(label_selector=selector, match_label_keys=keys)

    assert feasible(a_spread(), a_spread_pod(constraint, labels={**WEB, "version": "2"}), table) == expected


def test_pods_without_hard_constraints_are_skipped() -> None:
    table, state = nodes_in_two_zones({}), fw.CycleState()

    assert a_spread().pre_filter(state, a_spread_pod(), table) == fw.SKIP
    assert a_spread().pre_filter(state, a_spread_pod(a_constraint(soft=True)), table) == fw.SKIP
    with pytest.raises(LookupError, match='reading "PreFilterPodTopologySpread"'):
        a_spread().filter_nodes(state, a_spread_pod(), table, np.arange(4))


def test_a_selector_that_is_not_valid_is_an_error() -> None:
    odd = LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Near"),))
    pod = a_spread_pod(a_constraint(label_selector=odd), a_constraint(soft=True, label_selector=odd))
    why = '"Near" is not a valid label selector operator'
    table = nodes_in_two_zones({})

    with pytest.raises(ValueError, match=f"^get constraints from pod: obtaining pod's hard .* constraints: {why}"):
        a_spread().pre_filter(fw.CycleState(), pod, table)
    with pytest.raises(ValueError, match=f"^calculating preScoreState: obtaining pod's soft .* constraints: {why}"):
        a_spread().pre_score(fw.CycleState(), pod, table, np.arange(4))


DEFAULTS: Mapping[str, Any] = {"defaulting_type": "List", "default_constraints": (a_constraint(label_selector=None),)}


def test_default_constraints_are_for_pods_that_a_service_selects() -> None:
    table = nodes_in_two_zones({"a": 1})
    plugin = a_spread(Objects().service(WEB), **DEFAULTS)

    assert feasible(plugin, a_spread_pod(), table) == ["x", "y"]
    assert feasible(plugin, a_spread_pod(labels={"app": "db"}), table) == ALL
    assert feasible(plugin, a_spread_pod(namespace="team"), table) == ALL
    assert feasible(a_spread(Objects(), **DEFAULTS), a_spread_pod(), table) == ALL


def test_a_pod_with_constraints_has_no_default_ones() -> None:
    plugin = a_spread(Objects().service(WEB), **DEFAULTS)
    table = nodes_in_two_zones({"a": 1})

    assert feasible(plugin, a_spread_pod(a_constraint(soft=True)), table) == ALL
