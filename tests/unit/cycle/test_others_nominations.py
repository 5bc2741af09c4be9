"""Waiting pods that are not tried here, of other schedulers or gated, for which room was made on a node."""

from scheduler import framework as fw
from scheduler.api.objects import PodStatus
from scheduler.testing import a_node, a_pod
from tests.unit.cycle.fakes import EngineUnderTest, an_engine, newer


def theirs(priority: int = 10) -> fw.Pod:
    """A waiting pod of another scheduler, nominated to n1 and as large as n1."""
    status = PodStatus(nominated_node_name="n1")
    return a_pod("theirs", requests={"cpu": "4"}, priority=priority, scheduler_name="another", status=status)


def ours() -> fw.Pod:
    return a_pod("ours", requests={"cpu": "1"})


async def an_engine_that_yielded(pod: fw.Pod) -> EngineUnderTest:
    """An engine whose pod did not take the room that was made for `pod`."""
    engine = an_engine()
    await engine.schedule(a_node("n1"), pod, ours())
    assert engine.world.bound == {}
    return engine


async def test_room_that_another_scheduler_made_for_its_pod_is_not_taken() -> None:
    engine = await an_engine_that_yielded(theirs())

    assert "0/1 nodes are available: 1 Insufficient cpu." in engine.world.notes()[0]


async def test_room_that_was_made_for_a_gated_pod_is_not_taken_even_after_a_restart() -> None:
    status = PodStatus(nominated_node_name="n1")

    await an_engine_that_yielded(a_pod("gated", requests={"cpu": "4"}, priority=10, gates=["x"], status=status))


async def test_room_that_was_made_for_a_pod_of_lower_priority_may_be_taken() -> None:
    engine = an_engine()
    await engine.schedule(a_node("n1"), theirs(priority=-1), ours())

    assert engine.world.bound == {"default/ours": "n1"}


async def test_our_pod_is_tried_again_when_the_nomination_ends() -> None:
    engine = await an_engine_that_yielded(theirs())
    engine.see(newer(theirs(), nominated_node_name=""))
    engine.wait(1.0)
    await engine.schedule()

    assert engine.world.bound == {"default/ours": "n1"}


async def test_our_pod_is_tried_again_when_the_nominated_pod_is_gone() -> None:
    engine = await an_engine_that_yielded(theirs())
    engine.handlers.pod_deleted(theirs())
    engine.wait(1.0)
    await engine.schedule()

    assert engine.world.bound == {"default/ours": "n1"}


async def test_a_nominated_pod_that_is_bound_counts_once() -> None:
    engine = await an_engine_that_yielded(theirs())
    engine.see(newer(theirs(), node_name="n1"))

    assert list(engine.nominator.by_node()) == []


def test_a_waiting_pod_of_another_scheduler_without_a_nomination_is_of_no_interest() -> None:
    engine = an_engine()
    engine.see(a_pod("theirs", scheduler_name="another"))

    assert list(engine.nominator.by_node()) == []
    assert engine.where("default/theirs") == ""
