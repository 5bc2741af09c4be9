"""What the cache makes of facts and assumptions, apart from what its random life says (test_cache_model)."""

import sys
from collections.abc import Callable
from types import FrameType

import msgspec
import pytest

from scheduler.api.objects import ContainerPort
from scheduler.api.pods.pod import Pod
from scheduler.framework.nodes.nodes import Aspect
from scheduler.testing import a_node, a_pod
from tests.unit.state.caches import CacheUnderTest, on

# Facts about pods.


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


def test_an_unreadable_pod_can_move_and_go() -> None:
    cache = CacheUnderTest()
    cache.confirm(on("n1", cpu="lots"))

    cache.confirm(on("n2", cpu="heaps"))
    pod_count = cache.table.pod_count.tolist()
    cache.remove("p")

    assert pod_count == [0, 1]
    assert cache.cpu() == {"n1": 0, "n2": 0}
    assert cache.counted("watch_errors", resource="pods", reason="quantity") == 2


# Assumptions.


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_a_pod_that_is_assumed_cannot_be_assumed_again(node: str) -> None:
    cache = CacheUnderTest()
    cache.assume(on("n1"))

    with pytest.raises(ValueError, match="default/p is in the cache already"):
        cache.assume(on(node))

    assert cache.cpu() == {"n1": 1000, "n2": 0}


def a_cache_with_a_pod_left(node: str) -> tuple[CacheUnderTest, Pod]:
    """A what-if has left it in the table, and another pod came to its node since."""
    cache, tried = CacheUnderTest(), on(node)
    cache.assume(tried, is_what_if=True)
    cache.leave(tried)
    cache.confirm(a_pod("later", uid="later", node_name=node))
    return cache, tried


def test_a_pod_that_a_what_if_has_left_is_assumed_without_being_counted_again() -> None:
    cache, tried = a_cache_with_a_pod_left("n1")
    log = cache.table.change_log(Aspect.REQUESTED)
    before = log.position
    pod = tried.bound_to("n1")

    cache.assume(pod)

    assert log.position == before
    assert not cache.what_ifs
    assert [each.name for each in cache.table.pods_on("n1")] == ["later", "p"]
    assert cache.get("p") is pod
    assert cache.cpu() == {"n1": 1000, "n2": 0}


@pytest.mark.parametrize("pod", [on("n1", cpu="2"), on("n2", cpu="2")], ids=["another version", "another node"])
def test_a_pod_that_a_what_if_has_left_otherwise_is_counted_as_it_is_assumed(pod: Pod) -> None:
    cache, _ = a_cache_with_a_pod_left("n1")

    cache.assume(pod)

    assert not cache.what_ifs
    assert cache.get("p") is pod
    assert cache.cpu() == {"n1": 0, "n2": 0} | {pod.node_name: 2000}


@pytest.mark.parametrize(
    "happen",
    [
        pytest.param(lambda cache: cache.forget_left(), id="it is not wanted"),
        pytest.param(lambda cache: cache.set_node(a_node("more")), id="a node comes"),
        pytest.param(lambda cache: cache.remove_node("n2"), id="a node goes"),
        pytest.param(lambda cache: cache.forget(on("n1")), id="it is forgotten"),
        pytest.param(lambda cache: cache.remove("p"), id="it is deleted"),
    ],
)
def test_a_pod_that_a_what_if_has_left_counts_no_longer(happen: Callable[[CacheUnderTest], object]) -> None:
    cache, tried = a_cache_with_a_pod_left("n1")

    happen(cache)

    assert cache.get("p") is None
    assert cache.cpu()["n1"] == 0
    cache.assume(tried)
    assert cache.is_assumed("p")
    assert not cache.what_ifs


def test_a_pod_that_is_still_tried_out_cannot_be_assumed_nor_is_it_forgotten_with_those_left() -> None:
    cache, tried = CacheUnderTest(), on("n1")
    cache.assume(tried, is_what_if=True)

    cache.forget_left()

    with pytest.raises(ValueError, match="already"):
        cache.assume(tried)
    assert list(cache.what_ifs) == ["p"]


# Time.


def test_without_a_ttl_an_assumed_pod_waits_for_ever() -> None:
    cache = CacheUnderTest(ttl=0)
    cache.assume(on("n1"))
    cache.finish_binding(on("n1"))

    cache.clock.advance(1e9)
    expired = cache.expire()

    assert expired == []
    assert cache.is_assumed("p")
    assert cache.cpu()["n1"] == 1000


def test_an_assumed_pod_expires_when_its_ttl_has_passed_since_the_binding_ended() -> None:
    cache = CacheUnderTest(ttl=30)
    pod = on("n1")
    cache.assume(pod)
    cache.clock.advance(100)
    cache.finish_binding(pod)

    cache.clock.advance(29)
    early = cache.expire()
    cache.clock.advance(1)
    late = cache.expire()

    assert early == []
    assert late == [pod]
    assert cache.get("p") is None
    assert cache.cpu() == {"n1": 0, "n2": 0}
    assert cache.counted("assumed_pods_expired") == 1


def test_looking_for_what_expires_looks_at_nothing_else() -> None:
    cache = CacheUnderTest(ttl=30.0)
    for number in range(100):
        cache.confirm(on("n1", f"p{number}", cpu="1m"))
    cache.assume(on("n2", "late"))
    cache.finish_binding(on("n2", "late"))
    looked_at: list[str] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            looked_at.append(frame.f_code.co_name)

    sys.setprofile(profile)
    cache.expire()
    sys.setprofile(None)

    assert looked_at == ["expire", "__call__"]
    cache.check_invariants()


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
