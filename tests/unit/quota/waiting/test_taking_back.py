"""Quotas below their minimum take back what others have borrowed: whom that costs, and when nobody is evicted."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from scheduler.api.objects import PodStatus
from scheduler.framework.shares import DeclaredShare
from scheduler.testing import a_node
from tests.fakes import settle
from tests.unit.cycle.fakes import newer
from tests.unit.quota.waiting.shares import START, Sharing
from tests.unit.quota.waiting.test_capacity_scheduling_cases import WITHOUT_DEFAULT_PREEMPTION
from tests.unit.quota.waiting.test_policies import teams


def guarantee(stage: Sharing, **cores: str) -> None:
    """Let the watch show quotas: namespace → the cores that it is guaranteed; each may use four."""
    for namespace, cpu in cores.items():
        stage.quota(namespace, minimum={"cpu": cpu, "memory": "64Gi"}, maximum={"cpu": "4", "memory": "64Gi"})


def borrowing(*nodes: str) -> Sharing:
    """Two quotas of two cores each; `b` uses all four, spread over the nodes."""
    stage = Sharing()
    for name in nodes:
        stage.under_test.see(a_node(name, cpu="64", memory="64Gi"))
    guarantee(stage, a="2", b="2")
    stage.run("b", 4, nodes or ("n",))
    return stage


def borrowing_as_declared(*nodes: str) -> Sharing:
    return teams(*nodes, reclaim="Any")


of_both_kinds = pytest.mark.parametrize("borrowing", [borrowing, borrowing_as_declared], ids=["quotas", "shares"])
Borrowing = Callable[..., Sharing]


@of_both_kinds
async def test_what_is_borrowed_is_given_back_by_the_newest_and_the_pod_starts_when_that_is_gone(
    borrowing: Borrowing,
) -> None:
    stage = borrowing()
    pod = await stage.try_pod("mine")
    assert stage.evicted == ["b/b-3"]
    assert [each.uid for each in stage.engine.nominator.nominated_pods("n")] == [pod.uid]
    victim = stage.leave("b-3")
    await stage.schedule(400)

    await stage.end(victim)

    assert stage.placed == ["b-0", "b-1", "b-2", "mine"]
    assert stage.evicted == ["b/b-3"]


@of_both_kinds
async def test_several_pods_take_no_more_than_is_borrowed(borrowing: Borrowing) -> None:
    stage = borrowing()
    for name in ("first", "second", "third"):
        stage.pod(name)

    await stage.schedule()

    assert sorted(set(stage.evicted)) == ["b/b-2", "b/b-3"]


@of_both_kinds
async def test_what_is_needed_may_be_spread_over_several_nodes(borrowing: Borrowing) -> None:
    stage = borrowing("n1", "n2", "n3", "n4")

    await stage.try_pod("wide", requests={"cpu": "2"})

    assert stage.evicted == ["b/b-2", "b/b-3"]


@of_both_kinds
async def test_nobody_is_evicted_for_a_pod_that_fits_on_no_node_then(borrowing: Borrowing) -> None:
    stage = borrowing()
    stage.pod("elsewhere", node_selector={"no": "such"})

    await stage.try_pod("huge", requests={"cpu": "5"}, priority=100)

    assert stage.evicted == []


@of_both_kinds
async def test_pods_under_a_budget_are_taken_last(borrowing: Borrowing) -> None:
    stage = borrowing()
    stage.protect("b-3", "b")

    await stage.try_pod("mine")

    assert stage.evicted == ["b/b-2"]


async def test_two_that_wait_for_their_victims_are_both_woken_when_these_are_gone() -> None:
    stage = borrowing()
    pods = await stage.try_pods(2)
    for name in set(stage.evicted):
        stage.delete(name)

    await stage.schedule()

    assert {pod.name for pod in pods} <= set(stage.placed)


async def test_a_more_important_pod_does_not_stand_behind_one_like_it_for_which_space_is_kept() -> None:
    stage = Sharing()
    for namespace, cpu in {"a": "2", "b": "1", "c": "2"}.items():
        stage.quota(namespace, minimum={"cpu": cpu, "memory": "64Gi"})
    stage.pods(3, "c", node_name="n", status=PodStatus(start_time=START))
    newest = PodStatus(start_time=START + timedelta(seconds=1))
    large = stage.pod("large", namespace="b", requests={"cpu": "2"}, node_name="n", status=newest)
    for name, namespace, priority in (("other", "b", 0), ("first", "a", 0), ("important", "a", 5)):
        stage.pod(name, namespace=namespace, priority=priority)
        await stage.schedule(0)
    assert stage.evicted == ["b/large"]

    await stage.end(large)

    assert {"first", "important"} <= set(stage.placed)
    assert "other" not in stage.placed


async def test_what_a_pod_has_taken_back_is_not_lost_behind_an_older_one_that_waits() -> None:
    stage = borrowing()
    guarantee(stage, a="0", b="4")
    older = await stage.try_pod("older")
    guarantee(stage, b="2", a="2")
    newer_one = await stage.try_pod("newer")
    assert stage.engine.nominator.node_of(newer_one.uid) == "n"

    for victim in stage.evicted:
        stage.delete(victim)
    await stage.schedule()

    assert stage.placed == ["b-0", "b-1", "b-2", "newer"]
    assert stage.where(older) == "unschedulable"


async def test_a_pod_is_tried_again_once_another_quota_says_that_others_borrow_what_is_guaranteed_to_it() -> None:
    stage = borrowing()
    guarantee(stage, a="0", b="4")
    await stage.try_pod("mine")
    await stage.after_a_look()
    assert stage.evicted == []

    guarantee(stage, b="2", a="2")
    await stage.after_a_look()

    assert stage.evicted == ["b/b-3"]


async def test_a_pod_takes_back_what_is_guaranteed_to_it_behind_one_like_it_for_which_there_is_no_node() -> None:
    stage = borrowing()
    guarantee(stage, a="0", b="4")
    await stage.try_pod("elsewhere", node_selector={"disk": "none"})
    await stage.try_pod("mine")

    guarantee(stage, b="2", a="2")
    await stage.after_a_look()

    assert stage.evicted == ["b/b-3"]


async def test_a_pod_that_will_be_tried_has_what_comes_free_before_a_newer_one_and_evicts_nobody() -> None:
    stage = borrowing()
    guarantee(stage, a="0", b="4")
    older = stage.pod("older")
    stage.clock.advance(1)
    newer_one = await stage.try_pod("newer")
    guarantee(stage, b="2", a="2")
    stage.engine.share_parts.catch_up()
    assert stage.where(older) == "backoff"

    await stage.end("b-3")

    assert stage.placed == ["b-0", "b-1", "b-2", "older"]
    assert stage.where(newer_one) == "unschedulable"
    assert stage.evicted == []


async def test_nobody_is_evicted_before_a_pod_was_tried_that_was_woken_for_the_same_space() -> None:
    stage = Sharing()
    for namespace in ("a", "b", "c"):
        stage.quota(namespace, minimum={"cpu": "2", "memory": "64Gi"})
    borrowers = stage.pods(6, "b", node_name="n")
    woken = stage.pod("woken")
    stage.under_test.see(newer(woken, preemption_policy="Never"))
    await stage.schedule()
    stage.delete(borrowers[0])
    being_tried = stage.begin(woken)

    stage.pod("taking-back", namespace="c")
    await stage.schedule(0)
    assert stage.evicted == []
    await stage.finish(being_tried)
    assert "woken" in stage.placed

    await stage.after_a_look()
    assert len(stage.evicted) == 1


async def test_nobody_is_evicted_because_of_what_a_more_important_pod_has_taken_from_one_that_was_woken() -> None:
    stage = Sharing()
    for namespace, cpu in (("a", "6"), ("b", "2"), ("c", "0")):
        stage.quota(namespace, minimum={"cpu": cpu, "memory": "64Gi"})
    stage.pods(2, "c", node_name="n")
    running = stage.pods(6, node_name="n")
    woken = await stage.try_pod("woken", requests={"cpu": "2"})
    stage.delete(*running[:2])
    being_tried = stage.begin(woken)

    stage.pod("important", priority=5)
    stage.pod("guaranteed", namespace="b")
    await stage.schedule(0)
    await stage.finish(being_tried)

    assert {"important", "guaranteed"} <= set(stage.placed)
    assert stage.evicted == []


async def test_what_victims_have_left_goes_to_their_preemptor_though_more_is_reserved_for_others_than_there_is() -> (
    None
):
    company = DeclaredShare("company", minimum={"cpu": "2"})
    mine = DeclaredShare("mine", "company", minimum={"cpu": "2"}, reclaim="Any", namespaces=("a",))
    others = DeclaredShare("others", "company", namespaces=("b",))
    stage = Sharing(company, mine, others, arguments={"order": "DominantShare"})
    borrowers = stage.pods(4, "b", node_name="n")
    small = await stage.try_pod("small", namespace="b")
    await stage.try_pod("preemptor", requests={"cpu": "3"})
    assert len(stage.evicted) == 3
    stage.engine.queue.activate([small.uid])
    await stage.schedule(0)

    stage.delete(*borrowers)
    assert stage.where(small) == "active"
    stage.pod("important", namespace="b", priority=5)
    await stage.schedule(0)

    assert stage.placed == ["important", "preemptor"]


async def test_a_pod_is_tried_again_once_its_quota_uses_less_than_it_is_guaranteed() -> None:
    stage = borrowing()
    own = [stage.pod(f"own-{number}", node_name="n") for number in range(2)]
    await stage.try_pod("mine")
    await stage.after_a_look()
    assert stage.evicted == []

    stage.delete(own[0])
    await stage.after_a_look()

    assert len(stage.evicted) == 2, "six cores are used, and four may be"


async def test_a_pod_that_its_own_preemption_has_held_back_is_tried_when_that_is_over() -> None:
    stage = Sharing(node=a_node("n1", cpu="1"), only=WITHOUT_DEFAULT_PREEMPTION)
    stage.under_test.see(a_node("n2", cpu="1"))
    low = [stage.pod(f"low-{number}", namespace="free", priority=0, node_name=f"n{number}") for number in (1, 2)]
    may_end = stage.under_test.world.evictions_may_end = asyncio.Event()
    high = [stage.pod(f"high-{number}", namespace="free", priority=9) for number in (1, 2)]
    await stage.schedule()
    nominated = dict(stage.engine.nominator.by_node())
    assert nominated.keys() == {"n1", "n2"}

    stage.delete(low[0])  # the preemptor of the other is held back at this event
    await stage.schedule()
    stage.delete(low[1])
    may_end.set()
    await settle()
    await stage.schedule()

    assert stage.placed == [pod.name for pod in high]


async def test_above_its_minimum_a_pod_takes_the_place_of_a_lower_one_of_its_own_quota() -> None:
    stage = borrowing()
    await stage.try_pod("equal", namespace="b")
    assert stage.evicted == []

    await stage.try_pod("high", namespace="b", priority=10)

    assert stage.evicted == ["b/b-3"]


async def test_pods_under_a_budget_stay_where_their_quota_gives_enough_without_them() -> None:
    stage = borrowing()
    stage.protect("b-2", "b")
    stage.protect("b-3", "b")

    await stage.try_pod("mine", requests={"cpu": "2"})

    assert sorted(stage.evicted) == ["b/b-0", "b/b-1"]


async def test_a_quota_that_has_borrowed_something_else_gives_nothing() -> None:
    """It uses memory of others; the cpu that is asked for is all its own, or that of a third."""
    stage = Sharing()
    stage.quota("a", minimum={"cpu": "2", "memory": "8Gi"})
    stage.quota("b", minimum={"cpu": "2", "memory": "1Gi"})
    stage.quota("c", minimum={"cpu": "0", "memory": "8Gi"})
    stage.pod("of-b", namespace="b", requests={"cpu": "2", "memory": "2Gi"}, node_name="n")
    stage.pod("of-c", namespace="c", requests={"cpu": "2"}, node_name="n")

    await stage.try_pod("mine")

    assert stage.evicted == ["c/of-c"]


async def test_an_eviction_that_fails_is_tried_again() -> None:
    stage = borrowing()
    stage.under_test.world.eviction_refusal = OSError("unreachable")
    stage.pod("mine")
    queued = stage.engine.queue.pop_nowait()
    assert queued is not None
    stage.engine.loop.schedule_one(queued)
    await settle()
    stage.under_test.world.eviction_refusal = None

    await stage.schedule()

    assert stage.evicted[-1] == "b/b-3"
    assert len(stage.evicted) > 1
    victim = stage.running("b-3")
    await stage.end(victim)
    assert "mine" in stage.placed


async def test_default_preemption_evicts_nobody_for_a_pod_above_its_quota() -> None:
    """The free pod is of lower priority, and on a full node; for the quota its end would not help."""
    stage = Sharing(node=a_node("n", cpu="3", memory="64Gi"))
    stage.quota("a", minimum={"cpu": "2"}, maximum={"cpu": "2"})
    stage.pods(2, node_name="n", priority=5)
    stage.pod("free", namespace="free", node_name="n")

    await stage.try_pod("more", priority=5)

    assert stage.evicted == []


async def test_where_both_are_enabled_nodes_are_the_matter_of_default_preemption() -> None:
    stage = Sharing(node=a_node("n", cpu="3", memory="64Gi"))
    stage.quota("a", minimum={"cpu": "8"}, maximum={"cpu": "8"})
    for number in range(3):
        stage.pod(f"free-{number}", namespace="free", node_name="n")

    await stage.try_pod("mine", priority=5)

    assert len(stage.evicted) == 1


async def test_victims_that_leave_for_one_pod_count_for_the_next_and_no_more_go_than_are_missing() -> None:
    stage = borrowing()
    await stage.try_pod("first")
    stage.leave("b-3")

    await stage.try_pod("second")

    assert stage.evicted == ["b/b-2", "b/b-3"]


async def test_a_large_pod_goes_where_a_small_one_would_give_back_enough_quota_but_no_node() -> None:
    stage = Sharing(node=a_node("n", cpu="64", memory="64Gi", unschedulable=True))
    stage.under_test.see(a_node("small", cpu="3", memory="64Gi"))
    for namespace, cpu in (("a", "6"), ("b", "2")):
        stage.quota(namespace, minimum={"cpu": cpu, "memory": "64Gi"})
    stage.pod("away", requests={"cpu": "4"}, node_name="n")
    for number, (name, cpu) in enumerate((("large", "2"), ("late", "1"))):
        started = PodStatus(start_time=START + timedelta(seconds=number))
        stage.pod(name, namespace="b", requests={"cpu": cpu}, node_name="small", status=started)

    await stage.try_pod("mine", requests={"cpu": "2"})

    assert stage.evicted == ["b/large"]


async def test_an_older_pod_that_may_not_evict_does_not_stand_for_one_that_may() -> None:
    stage = borrowing()
    stage.quota("a", minimum={"memory": "64Gi"})
    stage.quota("b", minimum={"cpu": "4", "memory": "64Gi"})
    stage.under_test.see(newer(stage.pod("older"), preemption_policy="Never"))
    newer_one = await stage.try_pod("newer")
    assert stage.evicted == []

    for namespace in ("b", "a"):
        stage.quota(namespace, minimum={"cpu": "2", "memory": "64Gi"})
    await stage.after_a_look()

    assert stage.evicted == ["b/b-3"]
    assert stage.engine.nominator.node_of(newer_one.uid) == "n"


async def test_each_pod_that_was_nominated_before_a_restart_is_tried_once_its_victims_are_gone() -> None:
    stage = Sharing()
    guarantee(stage, a="2", b="2")
    stage.run("a", 4)
    victims = [stage.leave(f"a-{number}") for number in range(2)]
    for name in ("first", "second"):
        stage.pod(name, priority=5, status=PodStatus(nominated_node_name="n"))
    await stage.schedule()

    stage.pods(2, "b", node_name="n")
    stage.delete(*victims)
    for _ in range(3):
        await stage.after_a_look()

    assert stage.evicted == ["a/a-2", "a/a-3"]
