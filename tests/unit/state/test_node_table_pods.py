"""How the table counts pods, and that it notices when it has miscounted."""

import pytest

from scheduler.api.objects import ContainerPort
from scheduler.testing import a_node, a_pod
from tests.unit.state.tables import GPU, MOST, a_table, everything

# Pods.


def test_requests_add_up_and_go_again() -> None:
    table = a_table(a_node("a"))
    first = a_pod("p", requests={"cpu": "1", "memory": "1Gi", GPU: "1"})
    second = a_pod("q", requests={"cpu": "500m"})

    table.add_pod("a", first)
    table.add_pod("a", second)
    full = dict(table.info(0).requested)
    table.remove_pod("a", first)

    table.check_invariants()
    assert full == {"cpu": 1500, "memory": 2**30, GPU: 1}
    assert table.info(0).requested == {"cpu": 500}
    assert table.pod_count.tolist() == [1]


def test_scoring_counts_something_for_a_pod_that_asks_for_nothing() -> None:
    table = a_table(a_node("a"))

    table.add_pod("a", a_pod())

    table.check_invariants()
    assert table.requested("cpu").tolist() == [0]
    assert table.non_zero_requested("cpu").tolist() == [100]
    assert table.non_zero_requested("memory").tolist() == [200 * 2**20]


def test_a_pod_is_not_counted_twice_on_one_node() -> None:
    table = a_table(a_node("a"))
    table.add_pod("a", a_pod(requests={"cpu": "1"}))
    before = everything(table)

    with pytest.raises(ValueError, match="already"):
        table.add_pod("a", a_pod(requests={"cpu": "1"}))

    assert everything(table) == before


def test_an_unreadable_pod_changes_nothing() -> None:
    table = a_table(a_node("a"))
    before = everything(table)

    with pytest.raises(ValueError, match="lots"):
        table.add_pod("a", a_pod(requests={"cpu": "lots"}))
    with pytest.raises(ValueError, match="lots"):
        table.add_pod("stranger", a_pod(requests={"cpu": "lots"}))

    assert everything(table) == before
    assert table.size == 1


def test_sums_wrap_around_as_in_go_and_come_back() -> None:
    table = a_table(a_node("a"))
    pods = [a_pod(name, requests={"memory": str(MOST)}) for name in ("p", "q", "r")]
    sums = []

    for pod in pods:
        table.add_pod("a", pod)
        table.check_invariants()
        sums.append(table.requested("memory").item(0))
    for pod in pods[:2]:
        table.remove_pod("a", pod)
        table.check_invariants()
        sums.append(table.requested("memory").item(0))

    assert sums == [MOST, -2, MOST - 2, -2, MOST]
    assert table.non_zero_requested("memory").tolist() == [MOST]


def test_a_new_version_that_asks_for_the_same_takes_the_place_of_the_old_one() -> None:
    table = a_table(a_node("a"))
    old, new = a_pod(requests={"cpu": "1"}), a_pod(requests={"cpu": "1"}, labels={"app": "web"})
    table.add_pod("a", old)

    table.replace_pod("a", old, new)

    table.check_invariants()
    assert list(table.pods_on("a")) == [new]
    assert table.requested("cpu").tolist() == [1000]


@pytest.mark.parametrize("on_placeholder", [False, True])
def test_a_new_version_that_asks_for_something_else_is_counted_again(on_placeholder: bool) -> None:
    table = a_table(*([] if on_placeholder else [a_node("a")]))
    old = a_pod(requests={"cpu": "1"}, ports=[ContainerPort(host_port=80)])
    new = a_pod(requests={"cpu": "3", GPU: "1"}, ports=[ContainerPort(host_port=81)])
    table.add_pod("a", old)

    table.replace_pod("a", old, new)

    table.check_invariants()
    assert list(table.pods_on("a")) == [new]
    assert table.requested("cpu").tolist() == [3000]
    assert table.requested(GPU).tolist() == [1]
    assert table.host_ports.keys() == {("TCP", 81)}


def test_a_new_version_that_cannot_be_read_leaves_the_old_one_counted() -> None:
    table = a_table(a_node("a"))
    old = a_pod(requests={"cpu": "1"})
    table.add_pod("a", old)
    before = everything(table)

    with pytest.raises(ValueError, match="lots"):
        table.replace_pod("a", old, a_pod(requests={"cpu": "lots"}))

    assert everything(table) == before


# The invariants themselves.


def test_a_wrong_sum_is_noticed() -> None:
    table = a_table(a_node("a"))
    table.add_pod("a", a_pod(requests={"cpu": "1"}))

    table._amounts.requested["cpu"].values[0] = 7

    with pytest.raises(AssertionError, match="cpu"):
        table.check_invariants()


def test_a_forgotten_pod_is_noticed() -> None:
    table = a_table(a_node("a"))

    table._pod_count.values[0] += 1

    with pytest.raises(AssertionError, match="a"):
        table.check_invariants()
