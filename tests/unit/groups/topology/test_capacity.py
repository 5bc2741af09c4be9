"""How many members of a group fit where, by columns."""

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.api.pods.requests import PODS
from scheduler.groups.topology.capacity import Capacity, Shape
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_node
from tests.unit.groups.topology.clusters import RACK, by_name, capacity, level, members, racks


def fits(nodes: NodeTable, *shapes: Shape) -> dict[str, int]:
    return by_name(level(nodes), Capacity(nodes, shapes).fits(level(nodes)))


def test_members_fit_by_what_is_free_on_each_node_and_not_in_sum() -> None:
    nodes = racks({"a/r1": 2, "a/r2": 2}, {"r1-0": 1})

    assert fits(nodes, members(nodes, 9, {"cpu": 3000})) == {"r1": 2, "r2": 2}
    assert fits(nodes, members(nodes, 9, {"cpu": 4000})) == {"r1": 1, "r2": 2}


def test_the_number_of_pods_is_a_resource_too() -> None:
    nodes = racks({"a/r1": 1}, {"r1-0": 1}, pods=3)

    assert fits(nodes, members(nodes, 9, {"cpu": 10})) == {"r1": 2}


def test_a_node_that_is_overcommitted_takes_none() -> None:
    nodes = racks({"a/r1": 1}, {"r1-0": 7})

    assert fits(nodes, members(nodes, 9)) == {"r1": 0}


def test_only_rows_within_count() -> None:
    nodes = racks({"a/r1": 1, "a/r2": 1})
    domains = level(nodes)

    limited = Capacity(nodes, [members(nodes, 9)], domains.rows(list(domains.names).index("r2")))

    assert by_name(domains, limited.fits(domains)) == {"r1": 0, "r2": 4}
    assert by_name(domains, limited.in_domains(domains)) == {"r1": 0, "r2": 4}


def test_the_tightest_resource_is_named_and_one_that_few_nodes_have_before_others() -> None:
    nodes = racks({"a/r1": 1, "a/r2": 1}, {"r1-0": 4}, allocatable={"nvidia.com/gpu": 8})
    shape = members(nodes, 4, {"cpu": 1000, "nvidia.com/gpu": 4})
    domains, found = level(nodes), Capacity(nodes, [shape])

    tightest = {name: found.tightest(shape, domains.rows(at)) for at, name in enumerate(domains.names)}

    assert tightest == {"r1": "cpu", "r2": "nvidia.com/gpu"}


@st.composite
def clusters(draw: st.DrawFn) -> tuple[NodeTable, list[dict[str, Any]]]:
    nodes = NodeTable()
    for number in range(draw(st.integers(1, 6))):
        cpu, memory, pods, rack = (draw(st.integers(0, most)) for most in (6, 6, 5, 2))
        nodes.set_node(a_node(f"n{number}", cpu=cpu, memory=memory, pods=pods, labels={RACK: f"r{rack}"}))
    demand = st.fixed_dictionaries({"cpu": st.integers(0, 3), "memory": st.integers(0, 3)})
    return nodes, draw(st.lists(demand, min_size=1, max_size=8))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters())
def test_never_do_fewer_fit_than_really_do(drawn: tuple[NodeTable, list[dict[str, Any]]]) -> None:
    nodes, demands = drawn
    distinct = {tuple(sorted(each.items())) for each in demands}
    shapes = [
        Shape(
            sum(tuple(sorted(each.items())) == key for each in demands),
            {PODS: 1, **{name: amount * (1000 if name == "cpu" else 1) for name, amount in key if amount}},
            nodes.in_use,
            nodes.in_use,
        )
        for key in sorted(distinct)
    ]
    domains = level(nodes)
    bound = Capacity(nodes, shapes).fits(domains)

    for number in range(len(domains.names)):
        left = {
            row: {"cpu": nodes.allocatable("cpu").item(row) // 1000, "memory": nodes.allocatable("memory").item(row)}
            | {PODS: nodes.allowed_pods.item(row)}
            for row in np.flatnonzero(domains.rows(number)).tolist()
        }
        placed = 0
        for demand in sorted(demands, key=lambda each: sum(each.values())):
            for free in left.values():
                if all(free[name] >= amount for name, amount in {PODS: 1, **demand}.items()):
                    for name, amount in {PODS: 1, **demand}.items():
                        free[name] -= amount
                    placed += 1
                    break
        assert bound[number] >= placed


def test_about_how_much_space_is_left_counts_beyond_the_members() -> None:
    nodes = racks({"a/r1": 2}, {"r1-0": 1})

    assert by_name(level(nodes), capacity(nodes, 2).in_domains(level(nodes))) == {"r1": 7}
