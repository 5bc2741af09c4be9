"""In which order the nodes of a domain are filled."""

import numpy as np
import pytest

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.nodes.columns import BoolColumn
from scheduler.groups.topology.domains import domains_of
from scheduler.groups.topology.filling import NO_RANK, RANKS, Filling, parts_of, rank_of
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_pod
from tests.unit.groups.topology.clusters import LEVELS, capacity, racks


def parts(nodes: NodeTable, wanted: int, running: tuple[str, ...] = (), levels: slice = slice(1, 2)) -> list[str]:
    """Return the parts that are filled, by the names of their nodes."""
    there = np.zeros(nodes.size, np.int64)
    for name in running:
        there[nodes.row_of(name) or 0] += 1
    narrower = domains_of(nodes, LEVELS)[levels]
    found = parts_of(np.flatnonzero(nodes.in_use), narrower, capacity(nodes, wanted).on_rows, wanted, there)
    return ["+".join(sorted(nodes.names()[row] for row in part)) for part in found]


def test_without_narrower_levels_there_is_one_part() -> None:
    assert parts(racks({"a/r1": 1, "a/r2": 1}), 3, levels=slice(3, None)) == ["r1-0+r2-0"]


def test_large_domains_are_filled_first_and_the_last_one_is_the_smallest_that_holds_the_rest() -> None:
    nodes = racks({"a/r1": 1, "a/r2": 3, "a/r3": 2, "a/r4": 2}, {"r4-0": 1})

    assert parts(nodes, 4) == ["r1-0"]
    assert parts(nodes, 7) == ["r4-0+r4-1"]
    assert parts(nodes, 16) == ["r2-0+r2-1+r2-2", "r1-0"]
    assert parts(nodes, 19) == ["r2-0+r2-1+r2-2", "r4-0+r4-1"]


def test_domains_in_which_members_run_are_filled_first() -> None:
    nodes = racks({"a/r1": 1, "a/r2": 3, "a/r3": 2})

    assert parts(nodes, 5, running=("r1-0",)) == ["r1-0", "r3-0+r3-1"]


def test_each_part_is_filled_by_the_next_level_in_turn() -> None:
    nodes = racks({"a/r1": 1, "a/r2": 2}, {"r2-0": 1})

    assert parts(nodes, 9, levels=slice(1, 3)) == ["r2-1", "r2-0", "r1-0"]


def test_full_nodes_and_those_without_the_label_are_no_part() -> None:
    nodes = racks({"a/r1": 1, "a/r2": 1}, {"r2-0": 4})

    assert parts(nodes, 9) == ["r1-0"]


class Schedule:
    """Takes members where there is space, and keeps which nodes it was asked about."""

    def __init__(self, *full: int) -> None:
        self.full = set(full)
        self.asked: list[list[int]] = []

    def __call__(
        self,
        state: CycleState,
        pod: Pod,
        attempt: int,
        *,
        runs_post_filter: bool = True,
        placement: BoolColumn | None = None,
    ) -> Placed | Unplaced:
        rows = [] if placement is None else np.flatnonzero(placement).tolist()
        assert runs_post_filter == (placement is None), "others are evicted only if no part takes a member"
        self.asked.append(rows)
        free = [row for row in rows if row not in self.full]
        return Placed(f"n{free[0]}", 1, 1) if free else Unplaced("full")


def a_filling(may_fail: int = 3) -> Filling:
    kinds = {"w0": "worker", "w1": "worker", "launcher": "launcher"}
    return Filling([np.array([0, 1]), np.array([3])], 4, None, kinds, may_fail)


def place(filling: Filling, schedule: Schedule, name: str) -> None:
    filling.schedule(schedule, CycleState(), a_pod(name, uid=name), 1)


def test_a_part_that_refused_a_member_is_not_asked_again_for_that_kind() -> None:
    filling, schedule = a_filling(), Schedule(0, 1, 3)

    for name in ("w0", "w1", "launcher"):
        place(filling, schedule, name)

    assert schedule.asked == [[0, 1], [3], [], [], [0, 1], [3], []]


def test_a_part_that_takes_a_member_stays_the_one_for_the_next() -> None:
    filling, schedule = a_filling(), Schedule(0)

    for name in ("w0", "w1"):
        place(filling, schedule, name)

    assert schedule.asked == [[0, 1], [0, 1]]


def test_once_too_few_can_fit_the_others_are_not_tried() -> None:
    filling, schedule = a_filling(may_fail=1), Schedule(0, 1, 3)

    for name in ("w0", "w1", "launcher"):
        place(filling, schedule, name)

    assert schedule.asked == [[0, 1], [3], [], []]


@pytest.mark.parametrize("key", RANKS)
def test_a_rank_is_read_from_the_labels_of_jobs_and_stateful_sets(key: str) -> None:
    assert rank_of(a_pod(labels={key: "12"})) == 12


@pytest.mark.parametrize("text", ["", "-1", "x", "1.5", "²", "1" * 5000])
def test_what_is_no_rank_comes_last(text: str) -> None:
    assert rank_of(a_pod(labels={RANKS[0]: text})) == NO_RANK
