"""What the domains lack that come nearest to holding a group."""

import numpy as np

from scheduler.groups.topology.capacity import Capacity
from scheduler.groups.topology.domains import all_nodes
from scheduler.groups.topology.near_misses import NearMiss, near_misses
from tests.unit.groups.topology.clusters import GPU, RACK, level, members, racks

EIGHT_GPUS = {GPU: 8}


def test_a_rack_lacks_two_nodes_with_eight_gpus() -> None:
    nodes = racks({"a/r1": 2, "a/r7": 6}, allocatable={GPU: 8})
    shape = members(nodes, 8, EIGHT_GPUS)

    found = near_misses(nodes, level(nodes), Capacity(nodes, [shape]), 8)

    assert found == [
        NearMiss(RACK, "r7", 6, 8, 6, 0, GPU, lacking_nodes=2, amount_each=8),
        NearMiss(RACK, "r1", 2, 8, 2, 0, GPU, lacking_nodes=6, amount_each=8),
    ]


def test_small_pods_lack_as_many_nodes_as_would_hold_them() -> None:
    nodes = racks({"a/r1": 2}, allocatable={GPU: 8})

    shortly = near_misses(nodes, level(nodes), Capacity(nodes, [members(nodes, 19, {GPU: 1})]), 19)
    largely = near_misses(nodes, level(nodes), Capacity(nodes, [members(nodes, 33, {GPU: 1})]), 33)

    assert [(each.lacking_nodes, each.amount_each) for each in shortly + largely] == [(1, 3), (3, 8)]


def test_nodes_that_refuse_the_members_are_counted() -> None:
    nodes = racks({"a/r1": 2})
    refused = np.zeros(nodes.size, np.bool_)
    refused[:] = True

    found = near_misses(nodes, level(nodes), Capacity(nodes, [members(nodes, 3, refused=refused)]), 3)

    assert found == [NearMiss(RACK, "r1", 0, 3, 2, 2, "", lacking_nodes=3, amount_each=0)]


def test_domains_that_hold_the_group_are_no_near_misses() -> None:
    nodes = racks({"a/r1": 2, "a/r2": 1})

    found = near_misses(nodes, level(nodes), Capacity(nodes, [members(nodes, 8)]), 8)

    assert [each.domain for each in found] == ["r2"]


def test_of_several_shapes_the_one_is_named_of_which_most_do_not_fit() -> None:
    nodes = racks({"a/r1": 2}, allocatable={GPU: 8})
    launcher, workers = members(nodes, 1, {"cpu": 1000}), members(nodes, 4, EIGHT_GPUS)

    (found,) = near_misses(nodes, level(nodes), Capacity(nodes, [workers, launcher]), 5)

    assert (found.fits, found.needed, found.resource, found.lacking_nodes) == (3, 5, GPU, 2)


def test_shapes_that_fit_only_each_by_itself_lack_something_all_the_same() -> None:
    nodes = racks({"a/r1": 1})
    small, large = members(nodes, 2, {"cpu": 1000}), members(nodes, 1, {"cpu": 4000})

    (found,) = near_misses(nodes, level(nodes), Capacity(nodes, [small, large]), 3)

    assert (found.fits, found.resource, found.lacking_nodes) == (2, "cpu", 1)


def test_members_beyond_those_that_are_needed_are_not_missed() -> None:
    nodes = racks({"a/r1": 1, "a/r2": 2})

    (found,) = near_misses(nodes, level(nodes), Capacity(nodes, [members(nodes, 20)]), 6)

    assert (found.domain, found.fits, found.needed, found.lacking_nodes, found.amount_each) == ("r1", 4, 6, 1, 2000)


def test_all_nodes_are_one_domain_for_a_group_without_a_level() -> None:
    nodes = racks({"a/r1": 1, "a/r2": 2})

    (found,) = near_misses(nodes, all_nodes(nodes), Capacity(nodes, [members(nodes, 20)]), 20)

    assert (found.label, found.domain, found.fits, found.lacking_nodes) == ("", "", 12, 2)
