"""PodTopologySpread against a plain reading of the rules, node by node, on random clusters and in what-ifs."""

import math
import random
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pytest

from plugins.pod_topology_spread.constraints import SpreadConstraint, parse_constraints
from scheduler import framework as fw
from scheduler.api.objects import LabelSelector, TopologySpreadConstraint
from scheduler.api.pods.tolerations import first_untolerated
from scheduler.api.selectors import pod_selects
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_node
from tests.unit.plugins.cluster import a_cluster
from tests.unit.plugins.spread import HOSTNAME, ZONE, a_constraint, a_spread, a_spread_pod

KEYS = (HOSTNAME, ZONE, ZONE, "row")
APPS = ("web", "db")


def a_random_cluster(dice: random.Random) -> NodeTable:
    nodes = []
    for i in range(dice.randint(1, 9)):
        values = {
            HOSTNAME: f"n{i}",
            ZONE: dice.choice("123"),
            "row": dice.choice(("", "1", "2")),
            "disk": dice.choice("sh"),
        }
        labels = {key: value for key, value in values.items() if dice.random() < 0.85}
        taints = [fw.Taint(key="k", effect="NoSchedule")] if dice.random() < 0.2 else []
        nodes.append(a_node(f"n{i}", labels=labels, taints=taints))
    table = a_cluster(*nodes)
    for i in range(dice.randint(0, 25)):
        table.add_pod(dice.choice(nodes).name if dice.random() < 0.95 else "gone", a_random_pod(dice, f"p{i}"))
    if len(nodes) > 2 and dice.random() < 0.3:
        table.remove_node("n1")
    return table


def a_random_pod(dice: random.Random, name: str, constraints: Sequence[TopologySpreadConstraint] = ()) -> fw.Pod:
    return a_spread_pod(
        *constraints,
        name=name,
        namespace=dice.choice(("default", "default", "team")),
        labels=dice.choice((None, {"app": "web"}, {"app": "web"}, {"app": "db"})),
        deleting=dice.random() < 0.1,
        node_selector={"disk": "s"} if dice.random() < 0.3 else None,
        tolerations=[fw.Toleration(operator="Exists")] if dice.random() < 0.3 else (),
    )


def some_constraints(dice: random.Random) -> list[TopologySpreadConstraint]:
    selectors = (None, LabelSelector(), *(LabelSelector(match_labels={"app": app}) for app in APPS))
    return [
        a_constraint(
            dice.choice(KEYS),
            soft=dice.random() < 0.4,
            max_skew=dice.choice((1, 1, 2, 4)),
            label_selector=dice.choice(selectors[2:]) if dice.random() < 0.85 else dice.choice(selectors),
            min_domains=dice.choice((None, None, 1, 2, 3, 5)),
            node_affinity_policy=dice.choice((None, "Honor", "Ignore")),
            node_taints_policy=dice.choice((None, "Honor", "Ignore")),
        )
        for _ in range(dice.choice((1, 1, 2, 3)))
    ]


def nodes_of(table: NodeTable) -> Iterator[fw.NodeInfo]:
    return (table.info(row) for row in np.flatnonzero(table.in_use).tolist())


def has_keys(node: fw.NodeInfo, constraints: Iterable[SpreadConstraint]) -> bool:
    return all(constraint.topology_key in node.labels for constraint in constraints)


def counts(constraint: SpreadConstraint, pod: fw.Pod, node: fw.NodeInfo) -> bool:
    if constraint.honors_affinity and not pod_selects(pod, node.labels, node.name):
        return False
    return not constraint.honors_taints or first_untolerated(node.taints, pod.spec.tolerations) is None


def matching(constraint: SpreadConstraint, pod: fw.Pod, node: fw.NodeInfo) -> int:
    if constraint.selector.is_everything:
        return 0
    return sum(
        not other.is_deleting and other.namespace == pod.namespace and constraint.selector.matches(other.labels)
        for other in node.pods
    )


class PlainFilter:
    """Counts in dicts, as kube-scheduler does."""

    def __init__(self, constraints: Sequence[SpreadConstraint], pod: fw.Pod, table: NodeTable) -> None:
        self.constraints, self.pod = constraints, pod
        self.domains: list[dict[str, int]] = [{} for _ in constraints]
        for node in nodes_of(table):
            if has_keys(node, constraints):
                for domains, constraint in zip(self.domains, constraints, strict=True):
                    if counts(constraint, pod, node):
                        value = node.labels[constraint.topology_key]
                        domains[value] = domains.get(value, 0) + matching(constraint, pod, node)

    def change(self, other: fw.Pod, node: fw.NodeInfo, pods: int) -> None:
        if other.namespace == self.pod.namespace and has_keys(node, self.constraints):
            for domains, constraint in zip(self.domains, self.constraints, strict=True):
                if constraint.selector.matches(other.labels) and counts(constraint, self.pod, node):
                    domains[node.labels[constraint.topology_key]] += pods

    def code(self, node: fw.NodeInfo) -> int:
        for domains, constraint in zip(self.domains, self.constraints, strict=True):
            value = node.labels.get(constraint.topology_key)
            if value is None:
                return 2
            fewest = 0 if len(domains) < constraint.min_domains else min(domains.values())
            self_match = constraint.selector.matches(self.pod.labels)
            if domains.get(value, 0) + self_match - fewest > constraint.max_skew:
                return 1
        return 0


def plain_scores(
    constraints: Sequence[SpreadConstraint], pod: fw.Pod, table: NodeTable, feasible: Sequence[fw.NodeInfo]
) -> list[int]:
    rated = [node for node in feasible if has_keys(node, constraints)]
    raw: dict[str, float] = {}
    for node in rated:
        raw[node.name] = 0.0
        for constraint in constraints:
            key = constraint.topology_key
            size = len(rated if key == HOSTNAME else {each.labels[key] for each in rated})
            alike = [node] if key == HOSTNAME else [
                each
                for each in nodes_of(table)
                if has_keys(each, constraints)
                and each.labels[key] == node.labels[key]
                and counts(constraint, pod, each)
            ]  # fmt: skip
            pods = sum(matching(constraint, pod, each) for each in alike)
            raw[node.name] += pods * math.log(size + 2) + constraint.max_skew - 1
    whole = {name: math.floor(score + 0.5) for name, score in raw.items()}
    highest, lowest = max(whole.values(), default=0), min(whole.values(), default=0)
    return [
        0 if node.name not in whole else 100 * (highest + lowest - whole[node.name]) // highest if highest else 100
        for node in feasible
    ]


@pytest.mark.parametrize("seed", range(60))
def test_filter_says_what_the_rules_say_of_each_node(seed: int) -> None:
    dice = random.Random(seed)
    table = a_random_cluster(dice)
    plugin = a_spread(table=table)
    for i in range(8):
        pod = a_random_pod(dice, f"new-{i}", some_constraints(dice))
        hard = parse_constraints(pod.spec.topology_spread_constraints or (), pod.labels, "DoNotSchedule")
        state, rows = fw.CycleState(), np.flatnonzero(table.in_use)
        if plugin.pre_filter(state, pod, table) == fw.SKIP:
            assert not hard
            continue
        codes = plugin.filter_nodes(state, pod, table, rows)

        assert codes is not None
        plain = PlainFilter(hard, pod, table)
        assert codes.tolist() == [plain.code(node) for node in nodes_of(table)]


@pytest.mark.parametrize("seed", range(60))
def test_a_what_if_counts_what_comes_and_goes_and_leaves_the_rest_alone(seed: int) -> None:
    dice = random.Random(seed)
    table = a_random_cluster(dice)
    plugin = a_spread(table=table)
    pod = a_random_pod(dice, "new", [*some_constraints(dice), a_constraint(ZONE)])
    hard = parse_constraints(pod.spec.topology_spread_constraints or (), pod.labels, "DoNotSchedule")
    rows = np.flatnonzero(table.in_use)
    before = fw.CycleState()
    plugin.pre_filter(before, pod, table)
    untouched = plugin.filter_nodes(before, pod, table, rows)
    assert untouched is not None
    several = dice.random() < 0.3
    for node in nodes_of(table):
        state, plain = before.clone(), PlainFilter(hard, pod, table)
        for i in range(6):
            where = dice.choice(list(nodes_of(table))) if several else node
            if where.pods and dice.random() < 0.5:
                other = dice.choice(list(where.pods))
                plugin.remove_pod(state, pod, other, where)
                plain.change(other, where, -1)
            else:
                other = a_random_pod(dice, f"other-{i}")
                plugin.add_pod(state, pod, other, where)
                plain.change(other, where, 1)

            all_codes = plugin.filter_nodes(state, pod, table, rows)
            alone = plugin.filter_nodes(state, pod, table, np.array([node.row]))
            assert all_codes is not None
            assert alone is not None
            assert all_codes.tolist() == [plain.code(each) for each in nodes_of(table)]
            assert alone.tolist() == [plain.code(node)]
    again = plugin.filter_nodes(before, pod, table, rows)
    assert again is not None
    assert again.tolist() == untouched.tolist()


@pytest.mark.parametrize("seed", range(60))
def test_score_says_what_the_rules_say_of_each_node(seed: int) -> None:
    dice = random.Random(seed)
    table = a_random_cluster(dice)
    plugin = a_spread(table=table)
    for i in range(8):
        pod = a_random_pod(dice, f"new-{i}", some_constraints(dice))
        soft = parse_constraints(pod.spec.topology_spread_constraints or (), pod.labels, "ScheduleAnyway")
        feasible = [node for node in nodes_of(table) if dice.random() < 0.8] or list(nodes_of(table))
        state, rows = fw.CycleState(), np.array([node.row for node in feasible])
        if plugin.pre_score(state, pod, table, rows) == fw.SKIP:
            assert not soft
            continue
        raw = plugin.score_nodes(state, pod, table, rows)
        assert raw is not None

        assert plugin.normalize_score(state, pod, raw).tolist() == plain_scores(soft, pod, table, feasible)
