"""Guards the hot path: what a pod costs, in counted work. If a change is worth it: `make counted WRITE=1`."""

from pathlib import Path

import numpy as np
import pytest

from tests.bench.arrays import counting_arrays
from tests.bench.counted import ALLOWED, WORKLOADS, count, exceeded, limit, recorded, table, write

pytestmark = pytest.mark.usefixtures("frozen_again")

REPEATABLE = ("Python calls", "C calls", "numpy calls", "arrays", "array KiB", "API calls")


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_pod_costs_no_more_than_was_recorded(workload: str) -> None:
    assert exceeded(count(workload), recorded()[workload]) == []


def test_the_counts_are_the_same_from_run_to_run_and_do_not_grow_with_the_pods() -> None:
    first, again = (count("plain", nodes=100, pods=20) for _ in range(2))
    later = count("plain", nodes=100, running=400, pods=20)

    assert [first[what] for what in REPEATABLE] == [again[what] for what in REPEATABLE]
    assert [what for what in REPEATABLE if later[what] > limit(what, first[what])] == []


@pytest.mark.parametrize("workload", WORKLOADS)
def test_twice_the_nodes_need_as_many_calls_and_no_more_than_twice_the_bytes(workload: str) -> None:
    few, many = (count(workload, nodes=nodes, running=10, pods=20) for nodes in (500, 1_000))

    calls = [what for what in REPEATABLE if what != "array KiB"]
    assert [what for what in calls if many[what] > limit(what, few[what])] == []
    assert many["array KiB"] <= limit("array KiB", 2 * few["array KiB"])


def test_every_way_to_make_an_array_is_counted_and_writing_into_one_is_not() -> None:
    with counting_arrays() as made:
        one = np.arange(1000, dtype=np.int64)
        two = one + one
        two += one
        part = two[:10]
        three = np.zeros(10, dtype=np.int64)
    four = part + three

    assert (made.count, made.bytes) == (3, 16_080)
    assert four.sum() == 3 * sum(range(10))


def test_what_is_above_the_limit_is_told_with_both_figures() -> None:
    before = {"C calls": 100.0, "API calls": 2.0}

    assert exceeded({"C calls": 110.0, "API calls": 2.0}, before) == []
    assert exceeded({"C calls": 111.0, "API calls": 2.5}, before) == [
        "C calls: 111.00 a pod, recorded were 100.00, allowed are 110.00",
        "API calls: 2.50 a pod, recorded were 2.00, allowed are 2.00",
    ]
    assert exceeded({"arrays": 1.0}, {}) == ["arrays: never recorded"]


def test_what_was_recorded_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "counts.json"
    assert recorded(file) == {}

    write({"plain": {"C calls": 1.0}}, file)

    assert recorded(file) == {"plain": {"C calls": 1.0}}


def test_the_table_shows_the_ratio_to_what_is_recorded() -> None:
    found = {"plain": dict.fromkeys(ALLOWED, 110.0)}

    assert "110.0 (1.10)" in table(found, {"plain": dict.fromkeys(ALLOWED, 100.0)})
    assert "(" not in table(found, {})


def test_every_workload_and_every_count_is_recorded() -> None:
    assert {name: list(counts) for name, counts in recorded().items()} == {name: list(ALLOWED) for name in WORKLOADS}
