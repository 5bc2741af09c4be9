"""Which domain a group is tried in first, and which next."""

import numpy as np
import pytest

from scheduler.groups.topology.capacity import Capacity, Shape, Shapes
from scheduler.groups.topology.domains import domains_of, range_of
from scheduler.groups.topology.levels import Candidate, Outlook, candidates
from scheduler.state.nodes.node_table import NodeTable
from tests.unit.groups.topology.clusters import BLOCK, LEVELS, RACK, members, racks


def tried(
    nodes: NodeTable,
    shape: Shape,
    required: str = "",
    preferred: str = "",
    needed: int | None = None,
    running: tuple[str, ...] = (),
) -> list[Candidate]:
    levels = range_of(LEVELS, required, preferred)
    rows = np.array([nodes.row_of(name) or 0 for name in running], np.intp)
    capacity, needed = Capacity(nodes, [shape]), shape.count if needed is None else needed
    outlook = Outlook(
        levels, domains_of(nodes, levels.labels), Shapes([shape], {}, frozenset()), capacity, needed, rows
    )
    return list(candidates(outlook))


def names(found: list[Candidate]) -> list[str]:
    return [each.name for each in found]


def test_the_fullest_domain_that_holds_the_group_is_first() -> None:
    nodes = racks({"a/r1": 2, "a/r2": 2, "b/r3": 2}, {"r2-0": 2, "r3-0": 3})

    assert names(tried(nodes, members(nodes, 6), required=RACK)) == ["r2", "r1"]


def test_of_equally_full_ones_that_with_fewer_nodes_is_first_and_then_the_first_by_name() -> None:
    nodes = racks({"a/r1": 3, "a/r2": 2, "b/r3": 2}, {"r1-0": 4})

    assert names(tried(nodes, members(nodes, 6), required=RACK)) == ["r2", "r3", "r1"]


def test_a_preferred_level_is_tried_first_and_then_wider_ones_and_all_nodes() -> None:
    nodes = racks({"a/r1": 2, "a/r2": 1, "b/r3": 2})

    assert names(tried(nodes, members(nodes, 8), preferred=RACK)) == ["r1", "r3", "b", "a", ""]
    assert names(tried(nodes, members(nodes, 12), preferred=RACK)) == ["a", ""]
    assert names(tried(nodes, members(nodes, 99), preferred=RACK)) == [""]


def test_a_required_level_is_the_last() -> None:
    nodes = racks({"a/r1": 2, "a/r2": 1, "b/r3": 2})

    assert names(tried(nodes, members(nodes, 12), required=BLOCK, preferred=RACK)) == ["a"]
    assert names(tried(nodes, members(nodes, 99), required=BLOCK, preferred=RACK)) == []


def test_domains_that_hold_what_is_needed_but_not_all_come_after_the_others_the_largest_first() -> None:
    nodes = racks({"a/r1": 1, "a/r2": 2, "b/r3": 3})

    found = tried(nodes, members(nodes, 12), required=RACK, needed=6)

    assert [(each.name, each.fits) for each in found] == [("r3", 12), ("r2", 8)]


def test_where_members_run_is_first() -> None:
    nodes = racks({"a/r1": 2, "a/r2": 2, "b/r3": 2}, {"r1-0": 3})

    assert names(tried(nodes, members(nodes, 1), preferred=RACK, running=("r2-0", "r3-1", "r3-1")))[:3] == [
        "r3",
        "r2",
        "r1",
    ]


def test_domains_whose_nodes_take_members_now_are_before_those_that_may_only_do_so_in_the_end() -> None:
    nodes = racks({"a/r1": 2, "a/r2": 2}, {"r1-0": 3})
    shape = members(nodes, 4)
    not_now = np.array([name.startswith("r1") for name in nodes.names()[: nodes.size]])

    found = tried(nodes, Shape(4, shape.demand, shape.possible, shape.possible & ~not_now), required=RACK)

    assert names(found) == ["r2", "r1"]


@pytest.mark.parametrize("needed", [0, 1])
def test_a_label_that_no_node_has_gives_nothing_to_try(needed: int) -> None:
    nodes = racks({"a/r1": 2})

    assert tried(nodes, members(nodes, 1), required="example.com/row", needed=needed) == []
