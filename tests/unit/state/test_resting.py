"""Nodes at rest in the node table."""

from scheduler.api.objects import Taint
from scheduler.state.cache import Cache
from scheduler.testing import a_node
from tests.fakes import FakeClock, Metrics


def a_cache() -> Cache:
    return Cache(Metrics(), FakeClock())


def taints(cache: Cache) -> list[str]:
    node = cache.table.node("n1")
    assert node is not None
    return [taint.key for taint in node.taints]


def test_a_node_at_rest_has_one_more_taint_until_its_rest_ends() -> None:
    cache = a_cache()
    cache.set_node(a_node("n1", taints=[Taint("own", "", "NoSchedule")]))

    cache.rest("n1")
    cache.rest("n1")
    assert taints(cache) == ["own", "loadmaster/rejected-a-pod"]

    cache.end_rest("n1")
    assert taints(cache) == ["own"]
    cache.check_invariants()


def test_a_new_version_of_a_node_at_rest_is_at_rest() -> None:
    cache = a_cache()
    cache.set_node(a_node("n1"))
    cache.rest("n1")

    cache.set_node(a_node("n1", taints=[Taint("new", "", "NoSchedule")]))

    assert taints(cache) == ["new", "loadmaster/rejected-a-pod"]


def test_a_node_that_is_not_there_does_not_rest_when_it_comes() -> None:
    cache = a_cache()
    cache.rest("n1")
    cache.end_rest("n2")
    cache.set_node(a_node("n1"))

    assert taints(cache) == []
