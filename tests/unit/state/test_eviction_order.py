"""The order in which pods with a node would be evicted."""

import math
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from scheduler.api.objects import PodStatus
from scheduler.api.pods.importance import importance
from scheduler.api.pods.pod import Pod
from scheduler.state.eviction_order import MAX_NEW, EvictionOrder
from scheduler.testing import a_pod

START = datetime(2026, 1, 1, tzinfo=UTC)


def pod(name: str, priority: int = 0, second: int | None = None) -> Pod:
    start = None if second is None else START + timedelta(seconds=second)
    return a_pod(name, priority=priority, status=PodStatus(start_time=start), node_name="n")


def names(order: EvictionOrder, selector: str = "t", below: float = math.inf) -> list[str]:
    return [each.name for each in order.pods(selector, below)]


def test_low_priority_goes_first_then_what_is_new() -> None:
    order = EvictionOrder([(pod("old", 1, 1), "t"), (pod("new", 1, 2), "t"), (pod("other", 0, 0), "u")])
    order.put(pod("low", 0, 0), "t")
    order.put(pod("assumed", 1), "t")

    assert names(order) == ["low", "assumed", "new", "old"]
    assert names(order, below=1) == ["low"]
    assert names(order, "u") == ["other"]
    assert names(order, "nobody") == []


def test_of_equal_pods_the_smallest_uid_goes_first() -> None:
    order = EvictionOrder((pod(name, 1, 5), "t") for name in ("b", "c", "a"))

    assert names(order) == ["a", "b", "c"]


def test_a_new_version_takes_its_place_and_is_what_is_returned() -> None:
    order = EvictionOrder([(pod("a", 0, 5), "t"), (pod("b"), "t")])
    started = pod("b", 0, 1)

    order.put(started, "t")

    assert names(order) == ["a", "b"]
    assert list(order.pods("t", math.inf))[1] is started
    order.check_invariants()


def test_no_more_of_them_wait_than_are_quickly_placed() -> None:
    order = EvictionOrder(())
    for number in range(MAX_NEW + 1):
        order.put(pod(f"{number}", second=number), "t")
        order.check_invariants()

    assert names(order)[:2] == [f"{MAX_NEW}", f"{MAX_NEW - 1}"]
    order.remove(pod("0").uid)
    assert names(order)[-1] == "1"


CHANGES = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from("tu"), st.integers(0, 2), st.none() | st.integers(0, 3))
)


@given(CHANGES, st.sets(st.sampled_from("abcdef")))
def test_it_is_that_of_importance_whatever_comes_and_goes(
    changes: list[tuple[str, str, int, int | None]], gone: set[str]
) -> None:
    order, there = EvictionOrder(()), dict[str, tuple[Pod, str]]()
    for name, selector, priority, second in changes:
        there[name] = pod(name, priority, second), selector
        order.put(*there[name])
        order.check_invariants()
    for name in gone:
        order.remove(there.pop(name, (pod(name), ""))[0].uid)
    order.check_invariants()

    for selector in "tu":
        found = list(order.pods(selector, math.inf))
        assert {each.name for each in found} == {name for name, (_, of) in there.items() if of == selector}
        assert found == sorted(found, key=importance, reverse=True)
