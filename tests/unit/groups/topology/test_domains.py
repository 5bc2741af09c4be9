"""Levels of a topology and their domains."""

import numpy as np
import pytest

from scheduler.groups.topology.domains import Range, domains_of, range_of
from scheduler.testing import a_node
from tests.unit.groups.topology.clusters import BLOCK, HOST, LEVELS, RACK, by_name, level, racks


def test_nodes_with_the_same_value_are_one_domain_and_those_without_the_label_are_in_none() -> None:
    nodes = racks({"a/r1": 2, "a/r2": 1})
    nodes.set_node(a_node("alone"))

    domains = level(nodes)

    assert by_name(domains, domains.node_counts) == {"r1": 2, "r2": 1}
    assert domains.numbers[nodes.row_of("alone") or -1] == -1


def test_racks_of_the_same_name_in_two_blocks_are_two_domains() -> None:
    nodes = racks({"a/r1": 2, "b/r2": 1})
    nodes.set_node(a_node("other", labels={BLOCK: "b", RACK: "r1"}))

    domains = level(nodes)

    assert by_name(domains, domains.node_counts) == {"a/r1": 2, "b/r1": 1, "r2": 1}


def test_sums_and_counts_are_by_domain() -> None:
    nodes = racks({"a/r1": 2, "a/r2": 1})
    nodes.set_node(a_node("alone"))
    domains = level(nodes)
    alone, first = nodes.row_of("alone"), nodes.row_of("r1-0")
    assert alone is not None
    assert first is not None

    sums = domains.sum(np.full(nodes.size, 2**60, np.int64))

    assert by_name(domains, sums) == {"r1": 2**61, "r2": 2**60}
    assert by_name(domains, domains.count(np.array([first, first, alone]))) == {"r1": 2, "r2": 0}


def test_a_label_that_no_node_has_makes_no_domain() -> None:
    nodes = racks({"a/r1": 2})

    assert [list(each.names) for each in domains_of(nodes, ["example.com/row"])] == [[]]


@pytest.mark.parametrize(
    ("required", "preferred", "expected"),
    [
        pytest.param(RACK, "", Range(LEVELS, 1, 1), id="required"),
        pytest.param("", RACK, Range(LEVELS, 1, -1), id="preferred, then wider ones up to all nodes"),
        pytest.param(BLOCK, HOST, Range(LEVELS, 2, 0), id="preferred, up to the required one"),
        pytest.param(RACK, BLOCK, Range(LEVELS, 1, 1), id="a preferred level that is wider means nothing"),
        pytest.param("x", "", Range(("x",), 0, 0), id="required and not configured"),
        pytest.param("", "x", Range(("x",), 0, -1), id="preferred and not configured"),
        pytest.param(BLOCK, "x", Range((BLOCK, "x"), 1, 0), id="preferred within a configured one"),
        pytest.param("x", RACK, Range(("x", RACK, HOST), 1, 0), id="a configured one within another"),
        pytest.param("x", "y", Range(("x", "y"), 1, 0), id="both not configured"),
        pytest.param("x", "x", Range(("x",), 0, 0), id="both the same"),
    ],
)
def test_the_levels_of_a_group(required: str, preferred: str, expected: Range) -> None:
    assert range_of(LEVELS, required, preferred) == expected
