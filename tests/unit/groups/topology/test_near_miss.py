"""What the domain lacks that comes nearest to holding a group."""

import numpy as np
import pytest

from scheduler.groups.topology.capacity import Capacity, NearMiss, Shape, nearest_miss
from scheduler.groups.topology.domains import Domains, all_nodes
from scheduler.state.nodes.node_table import NodeTable
from tests.unit.groups.topology.clusters import GPU, RACK, level, members, racks

EIGHT_GPUS = {GPU: 8}


def nearest(nodes: NodeTable, needed: int, *shapes: Shape, domains: Domains | None = None) -> NearMiss:
    found = nearest_miss(nodes, domains or level(nodes), Capacity(nodes, shapes), needed)
    assert found is not None
    return found


def test_a_rack_lacks_two_nodes_with_eight_gpus() -> None:
    nodes = racks({"a/r1": 2, "a/r7": 6}, allocatable={GPU: 8})

    found = nearest(nodes, 8, members(nodes, 8, EIGHT_GPUS))

    assert found == NearMiss(RACK, "r7", 6, 8, 6, 0, GPU, lacking_nodes=2, amount_each=8)


@pytest.mark.parametrize(("pods", "lacking_nodes", "amount_each"), [(19, 1, 3), (33, 3, 8)])
def test_small_pods_lack_as_many_nodes_as_would_hold_them(pods: int, lacking_nodes: int, amount_each: int) -> None:
    nodes = racks({"a/r1": 2}, allocatable={GPU: 8})

    found = nearest(nodes, pods, members(nodes, pods, {GPU: 1}))

    assert (found.lacking_nodes, found.amount_each) == (lacking_nodes, amount_each)


def test_nodes_that_refuse_the_members_are_counted() -> None:
    nodes = racks({"a/r1": 2})

    found = nearest(nodes, 3, members(nodes, 3, refused=np.ones(nodes.size, np.bool_)))

    assert found == NearMiss(RACK, "r1", 0, 3, 2, 2, "", lacking_nodes=3, amount_each=0)


def test_a_domain_that_holds_the_group_is_no_near_miss() -> None:
    nodes = racks({"a/r1": 2, "a/r2": 1})

    assert nearest(nodes, 8, members(nodes, 8)).domain == "r2"
    assert nearest_miss(nodes, level(nodes), Capacity(nodes, [members(nodes, 4)]), 4) is None


def test_of_several_shapes_the_one_is_named_of_which_most_do_not_fit() -> None:
    nodes = racks({"a/r1": 2}, allocatable={GPU: 8})

    found = nearest(nodes, 5, members(nodes, 4, EIGHT_GPUS), members(nodes, 1, {"cpu": 1000}))

    assert (found.fits, found.needed, found.resource, found.lacking_nodes) == (3, 5, GPU, 2)


def test_shapes_that_fit_only_each_by_itself_lack_something_all_the_same() -> None:
    nodes = racks({"a/r1": 1})

    found = nearest(nodes, 3, members(nodes, 2, {"cpu": 1000}), members(nodes, 1, {"cpu": 4000}))

    assert (found.fits, found.resource, found.lacking_nodes) == (2, "cpu", 1)


def test_members_beyond_those_that_are_needed_are_not_missed() -> None:
    nodes = racks({"a/r1": 1, "a/r2": 2})

    found = nearest(nodes, 6, members(nodes, 20))

    assert (found.domain, found.fits, found.needed, found.lacking_nodes, found.amount_each) == ("r1", 4, 6, 1, 2000)


def test_all_nodes_are_one_domain_for_a_group_without_a_level() -> None:
    nodes = racks({"a/r1": 1, "a/r2": 2})

    found = nearest(nodes, 20, members(nodes, 20), domains=all_nodes(nodes))

    assert (found.label, found.domain, found.fits, found.lacking_nodes) == ("", "", 12, 2)
