"""What the cache makes of facts about pods and nodes."""

import msgspec
import pytest

from scheduler.api.objects import ContainerPort
from scheduler.testing import a_node, a_pod
from tests.unit.state.caches import CacheUnderTest, on

# Facts about pods.


def test_a_pod_that_another_scheduler_bound_is_counted() -> None:
    cache = CacheUnderTest()

    old = cache.confirm(on("n2"))

    assert old is None
    assert not cache.is_assumed("p")
    assert cache.cpu() == {"n1": 0, "n2": 1000}


def test_a_confirmed_assumption_is_counted_once_in_the_newest_version() -> None:
    cache = CacheUnderTest()
    ours, theirs = on("n1"), on("n1")
    cache.assume(ours)

    old = cache.confirm(theirs)

    assert old is ours
    assert cache.get("p") is theirs
    assert not cache.is_assumed("p")
    assert cache.sizes() == {"assumed_pods": 0, "nodes": 2, "pods": 1}
    assert cache.cpu() == {"n1": 1000, "n2": 0}
    assert cache.counted("cache_corrections", kind="other_node") == 0


@pytest.mark.parametrize("confirmed_before", [False, True])
def test_a_pod_that_is_bound_to_another_node_than_believed_moves(confirmed_before: bool) -> None:
    cache = CacheUnderTest(ttl=30)
    ours = on("n1")
    cache.assume(ours)
    cache.finish_binding(ours)
    if confirmed_before:
        cache.confirm(ours)

    old = cache.confirm(on("n2", cpu="2"))
    cache.clock.advance(1000)

    assert old is ours
    assert cache.expire() == []
    assert cache.cpu() == {"n1": 0, "n2": 2000}
    assert cache.counted("cache_corrections", kind="other_node") == 1


def test_the_same_news_twice_changes_nothing() -> None:
    cache = CacheUnderTest()
    pod = on("n1")
    cache.confirm(pod)

    old = cache.confirm(pod)

    assert old is pod
    assert cache.cpu() == {"n1": 1000, "n2": 0}


def test_a_resize_in_a_new_version_is_counted() -> None:
    cache = CacheUnderTest()
    cache.confirm(on("n1", cpu="1"))

    cache.confirm(on("n1", cpu="1500m"))

    assert cache.cpu() == {"n1": 1500, "n2": 0}


def test_a_removed_pod_is_unknown_whatever_it_was() -> None:
    cache = CacheUnderTest(ttl=30)
    assumed, expiring, confirmed = (on("n1", uid) for uid in "abc")
    for pod in (assumed, expiring, confirmed):
        cache.assume(pod)
    cache.finish_binding(expiring)
    cache.confirm(confirmed)

    removed = [cache.remove(uid) for uid in "abc"]
    cache.clock.advance(1000)

    assert removed == [assumed, expiring, confirmed]
    assert cache.expire() == []
    assert cache.sizes() == {"assumed_pods": 0, "nodes": 2, "pods": 0}
    assert cache.cpu() == {"n1": 0, "n2": 0}


def test_removing_an_unknown_pod_does_nothing() -> None:
    cache = CacheUnderTest()
    cache.confirm(on("n1"))
    cache.remove("p")

    assert cache.remove("p") is None
    assert cache.cpu() == {"n1": 0, "n2": 0}


# Quantities that cannot be read.


def test_a_pod_with_an_unreadable_quantity_is_counted_without_its_requests() -> None:
    cache = CacheUnderTest()
    pod = a_pod("p", node_name="n1", requests={"cpu": "lots", "memory": "1Gi"}, ports=[ContainerPort(host_port=80)])

    cache.confirm(pod)

    assert cache.cpu()["n1"] == 0
    assert cache.table.pod_count.tolist() == [1, 0]
    assert cache.table.requested("memory").tolist() == [0, 0]
    assert cache.table.host_ports.keys() == {("TCP", 80)}
    assert cache.counted("watch_errors", resource="pods", reason="quantity") == 1


def test_a_pod_that_becomes_unreadable_loses_its_requests_and_gets_them_back() -> None:
    cache = CacheUnderTest()
    cache.assume(on("n1"))

    cache.confirm(on("n1", cpu="lots"))
    meanwhile = cache.cpu()["n1"]
    cache.confirm(on("n1", cpu="2"))

    assert meanwhile == 0
    assert cache.cpu()["n1"] == 2000


def test_an_unreadable_pod_can_move_and_go() -> None:
    cache = CacheUnderTest()
    cache.confirm(on("n1", cpu="lots"))

    cache.confirm(on("n2", cpu="heaps"))
    pod_count = cache.table.pod_count.tolist()
    cache.remove("p")

    assert pod_count == [0, 1]
    assert cache.cpu() == {"n1": 0, "n2": 0}
    assert cache.counted("watch_errors", resource="pods", reason="quantity") == 2


# Nodes.


def test_a_node_is_handed_back_in_its_version_before() -> None:
    cache = CacheUnderTest()
    first, second = a_node("n3"), a_node("n3", cpu="8")

    answers = [cache.set_node(first), cache.set_node(second), cache.remove_node("n3"), cache.remove_node("n3")]

    assert answers == [None, first, second, None]
    assert cache.table.node_names() == ["n1", "n2"]


def test_an_unreadable_version_of_a_node_is_refused_and_the_one_before_stays() -> None:
    cache = CacheUnderTest()
    before = cache.table.node("n1")

    with pytest.raises(ValueError, match="lots"):
        cache.set_node(a_node("n1", cpu="lots"))

    assert cache.table.node("n1") is before
    cache.check_invariants()


def test_pods_outlive_their_node_and_are_there_when_it_comes_back() -> None:
    cache = CacheUnderTest()
    cache.assume(on("n1"))
    cache.confirm(on("n1", "q"))

    cache.remove_node("n1")
    sizes = cache.sizes()
    cache.set_node(a_node("n1"))

    assert sizes == {"assumed_pods": 1, "nodes": 1, "pods": 2}
    assert cache.cpu() == {"n1": 2000, "n2": 0}


def test_a_pod_may_arrive_before_its_node() -> None:
    cache = CacheUnderTest()

    cache.confirm(on("n3"))
    cache.set_node(a_node("n3"))

    assert cache.cpu() == {"n1": 0, "n2": 0, "n3": 1000}


def test_a_pod_may_move_between_nodes_that_were_never_seen() -> None:
    cache = CacheUnderTest()
    cache.confirm(on("n3"))

    cache.confirm(on("n4"))
    cache.remove("p")

    assert cache.cpu() == {"n1": 0, "n2": 0, "": 0}
    assert cache.table.node_names() == ["n1", "n2"]


# The invariants themselves.


def test_a_pod_that_is_counted_behind_our_back_is_noticed() -> None:
    cache = CacheUnderTest()

    cache.table.add_pod("n1", on("n1"))

    with pytest.raises(AssertionError, match="1 pods counted, 0 known"):
        cache.check_invariants()


def test_a_pod_on_another_node_than_it_says_is_noticed() -> None:
    cache = CacheUnderTest()
    pod = on("n1")
    cache.assume(pod)

    cache.table.remove_pod("n1", pod)
    cache.table.add_pod("n2", msgspec.structs.replace(pod))

    with pytest.raises(AssertionError, match="default/p"):
        cache.check_invariants()
