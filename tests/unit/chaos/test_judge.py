"""The judge's opinion, constraint by constraint."""

from typing import Any

import pytest

from tests.chaos.judge import Judge, quantity, total
from tests.chaos.load import BUDGET, spread, terms
from tests.controlplane import a_node, a_pod
from tests.controlplane.client import Object

DB = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
NODES = [
    a_node("n1", cpu="1", memory="1Gi", pods="2", zone="a", labels={"disk": "ssd"}),
    a_node("n2", cpu="1", memory="1Gi", pods="2", zone="b", taints=[DB]),
    a_node("n3", cpu="1", memory="1Gi", pods="2", zone="b", unschedulable=True),
]
OPEN = a_node("n4", cpu="1", memory="1Gi", pods="2", zone="b")


def pod(name: str = "web", node: str = "", *, app: str = "web", priority: int = 0, **wishes: Any) -> Object:
    spec: dict[str, Any] = {"priority": priority, **({"nodeName": node} if node else {})}
    return a_pod(name, "chaos", cpu=wishes.pop("cpu", "500m"), memory="1Mi", labels={"app": app}, **spec, **wishes)


def where(one: Object, *others: Object, nodes: list[Object] | None = None) -> list[str]:
    return [*Judge(nodes or [*NODES, OPEN], others).feasible(one)]


def test_a_plain_pod_goes_to_the_nodes_that_are_open() -> None:
    assert where(pod()) == ["n1", "n4"]


def test_a_toleration_opens_the_node_with_its_taint() -> None:
    tolerates = {"key": "dedicated", "operator": "Equal", "value": "db", "effect": "NoSchedule"}

    assert where(pod(tolerations=[tolerates])) == ["n1", "n2", "n4"]
    assert where(pod(tolerations=[{**tolerates, "value": "web"}])) == ["n1", "n4"]
    assert where(pod(tolerations=[{"operator": "Exists"}])) == ["n1", "n2", "n3", "n4"]


def test_a_node_selector_leaves_the_nodes_with_the_label() -> None:
    assert where(pod(nodeSelector={"disk": "ssd"})) == ["n1"]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([pod("a", "n1", cpu="500m")], ["n1", "n4"]),
        ([pod("a", "n1", cpu="501m")], ["n4"]),
        ([pod("a", "n1", cpu="1m"), pod("b", "n1", cpu="1m")], ["n4"]),
    ],
    ids=["just enough", "too little CPU", "too many pods"],
)
def test_a_pod_needs_room(others: list[Object], expected: list[str]) -> None:
    assert where(pod(), *others) == expected


def test_pods_of_lower_priority_make_room_and_others_do_not() -> None:
    filling = [pod("a", "n1", cpu="1"), pod("b", "n4", cpu="1", priority=10)]

    assert where(pod(priority=5), *filling) == ["n1"]
    assert where(pod(priority=0), *filling) == []


def test_what_forbids_a_node_to_a_pod_is_not_preempted() -> None:
    assert where(pod(priority=5, nodeSelector={"disk": "none"}), pod("a", "n1")) == []


def test_anti_affinity_keeps_pods_apart_in_both_directions() -> None:
    lonely = pod("a", "n1", app="alone", affinity={"podAntiAffinity": terms("web", "kubernetes.io/hostname")})

    assert where(pod(), lonely) == ["n4"]
    assert where({**lonely, "spec": {**lonely["spec"], "nodeName": ""}}, pod("b", "n4", cpu="1m")) == ["n1"]


def test_affinity_draws_to_a_zone_and_the_first_of_its_kind_goes_anywhere() -> None:
    near = pod(app="near", affinity={"podAffinity": terms("near", "topology.kubernetes.io/zone")})
    follows = pod(app="other", affinity={"podAffinity": terms("near", "topology.kubernetes.io/zone")})

    assert where(near) == ["n1", "n4"]
    assert where(near, pod("first", "n2", app="near")) == ["n4"]
    assert where(follows) == []


def test_spreading_fills_the_zone_with_the_fewest() -> None:
    even = pod(app="even", topologySpreadConstraints=[spread("even")])

    assert where(even) == ["n1", "n4"]
    assert where(even, pod("first", "n1", app="even")) == ["n4"]
    assert where(even, pod("first", "n1", app="even"), pod("second", "n2", app="even")) == ["n1", "n4"]


def test_a_team_runs_in_the_pool_of_its_budget_and_nowhere_without_one() -> None:
    nodes = [a_node("n1"), a_node("n2", labels={"pool": "team"})]
    ours = a_pod("web", "chaos", labels={"team": "red"})

    assert [*Judge(nodes, [], [BUDGET]).feasible(ours)] == ["n2"]
    assert [*Judge(nodes, [], []).feasible(ours)] == []


def test_quantities_are_thousandths() -> None:
    assert [quantity(text) for text in ("1500m", "2", "1k", "1Ki")] == [1500, 2000, 1_000_000, 1_024_000]
    assert total([pod(), pod()]) == {"cpu": 1000, "memory": 2 * 1024 * 1024 * 1000, "pods": 2000}
