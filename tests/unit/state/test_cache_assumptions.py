"""Pods that the cache assumes on a node: until they are confirmed, forgotten, or their time is up."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from scheduler.api.pods.pod import Pod
from scheduler.framework.nodes.nodes import Aspect
from scheduler.testing import a_node, a_pod
from tests.unit.state.caches import CacheUnderTest, on

# Assumptions.


def test_an_assumed_pod_counts_on_its_node() -> None:
    cache = CacheUnderTest()
    pod = on("n1")

    cache.assume(pod)

    assert cache.cpu() == {"n1": 1000, "n2": 0}
    assert cache.get("p") is pod
    assert cache.is_assumed("p")
    assert list(cache.assumed_pods()) == [pod]
    assert cache.sizes() == {"assumed_pods": 1, "nodes": 2, "pods": 1}


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_a_pod_that_is_assumed_cannot_be_assumed_again(node: str) -> None:
    cache = CacheUnderTest()
    cache.assume(on("n1"))

    with pytest.raises(ValueError, match="default/p is in the cache already"):
        cache.assume(on(node))

    assert cache.cpu() == {"n1": 1000, "n2": 0}


def test_a_pod_that_is_bound_cannot_be_assumed() -> None:
    cache = CacheUnderTest()
    cache.confirm(on("n1"))

    with pytest.raises(ValueError, match="already"):
        cache.assume(on("n2"))

    assert not cache.is_assumed("p")
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


def test_a_forgotten_pod_is_unknown_and_may_be_assumed_again() -> None:
    cache = CacheUnderTest()
    cache.assume(on("n1"))

    forgotten = cache.forget(on("n1"))
    left = cache.get("p")
    cache.assume(on("n2"))

    assert forgotten
    assert left is None
    assert cache.cpu() == {"n1": 0, "n2": 1000}


def test_there_is_nothing_to_forget_of_an_unknown_pod() -> None:
    cache = CacheUnderTest()

    assert not cache.forget(on("n1"))


def test_a_confirmed_pod_cannot_be_forgotten() -> None:
    cache = CacheUnderTest()
    cache.assume(on("n1"))
    cache.confirm(on("n1"))

    forgotten = cache.forget(on("n1"))

    assert not forgotten
    assert cache.cpu() == {"n1": 1000, "n2": 0}


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


def test_an_assumed_pod_does_not_expire_while_its_binding_runs() -> None:
    cache = CacheUnderTest(ttl=30)
    cache.assume(on("n1"))

    cache.clock.advance(1000)

    assert cache.expire() == []
    assert cache.is_assumed("p")


def test_only_those_expire_whose_time_is_up() -> None:
    cache = CacheUnderTest(ttl=30)
    pods = [on("n1", uid) for uid in "abc"]
    for pod in pods:
        cache.assume(pod)
    cache.finish_binding(pods[0])
    cache.clock.advance(20)
    cache.finish_binding(pods[1])

    cache.clock.advance(10)
    first = cache.expire()
    cache.clock.advance(20)
    second = cache.expire()

    assert first == [pods[0]]
    assert second == [pods[1]]
    assert cache.cpu()["n1"] == 1000


def test_a_confirmed_pod_never_expires() -> None:
    cache = CacheUnderTest(ttl=30)
    cache.assume(on("n1"))
    cache.finish_binding(on("n1"))
    cache.confirm(on("n1"))

    cache.clock.advance(1000)

    assert cache.expire() == []
    assert cache.cpu()["n1"] == 1000


def test_a_binding_that_ends_after_the_watch_has_confirmed_starts_no_clock() -> None:
    cache = CacheUnderTest(ttl=30)
    cache.assume(on("n1"))
    cache.confirm(on("n1"))
    cache.finish_binding(on("n1"))

    cache.clock.advance(1000)

    assert cache.expire() == []
    assert not cache.is_assumed("p")


def test_a_binding_that_ends_of_an_unknown_pod_is_ignored() -> None:
    cache = CacheUnderTest(ttl=30)

    cache.finish_binding(on("n1"))

    assert cache.get("p") is None


def test_a_pod_that_expired_may_still_be_confirmed() -> None:
    cache = CacheUnderTest(ttl=30)
    cache.assume(on("n1"))
    cache.finish_binding(on("n1"))
    cache.clock.advance(30)
    cache.expire()

    old = cache.confirm(on("n1"))

    assert old is None
    assert cache.cpu()["n1"] == 1000


def test_a_pod_that_is_assumed_once_more_gets_its_full_time() -> None:
    cache = CacheUnderTest(ttl=30)
    cache.assume(on("n1"))
    cache.finish_binding(on("n1"))
    cache.clock.advance(20)
    cache.forget(on("n1"))
    cache.assume(on("n2"))

    cache.clock.advance(20)

    assert cache.expire() == []
    assert cache.is_assumed("p")


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
