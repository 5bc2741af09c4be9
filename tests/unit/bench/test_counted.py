"""Guards the hot path: what a pod costs, in counted work. If a change is worth it: `make counted WRITE=1`."""

import pytest

from tests.bench.counted import ALLOWED, WORKLOADS, count, exceeded, limit, recorded

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


def test_every_workload_and_every_count_is_recorded() -> None:
    assert {name: list(counts) for name, counts in recorded().items()} == {name: list(ALLOWED) for name in WORKLOADS}
