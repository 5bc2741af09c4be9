"""What is said of a group that does not fit: one Event in the place of one for each of its pods."""

from scheduler.framework.errors import BindRejected
from tests.fakes import GroupEvent, settle
from tests.unit.groups.coscheduling import Coscheduled
from tests.unit.groups.groups import Grouping, Groups


def said(groups: Grouping) -> list[GroupEvent]:
    return groups.under_test.world.group_events


TOO_LARGE = "5 pods are needed at once: 4 of 5 fit; 1 does not: Insufficient cpu (on 2 nodes)"


async def test_a_group_of_our_own_rules_has_one_event_and_its_pods_none() -> None:
    groups = Coscheduled()

    await groups.try_group(minimum=5, pods=5)

    assert said(groups) == [GroupEvent("default/g", "default/g-0", "Warning", "FailedScheduling", TOO_LARGE)]
    assert not [event for event in groups.under_test.world.events if event.reason == "FailedScheduling"]


async def test_a_group_of_kube_scheduler_has_the_event_and_its_pods_have_theirs() -> None:
    groups = Groups()

    await groups.try_group(minimum=5, pods=5)

    assert [event.note for event in said(groups)] == [TOO_LARGE]
    assert len([event for event in groups.under_test.world.events if event.reason == "FailedScheduling"]) == 5


async def test_a_group_that_is_placed_is_not_mentioned() -> None:
    groups = Coscheduled()

    await groups.try_group(minimum=3, pods=3)

    assert said(groups) == []
    assert len(groups.bound) == 3


async def test_a_member_whose_binding_fails_has_an_event_of_its_own() -> None:
    groups = Coscheduled()
    groups.create(minimum=1, pods=1)
    groups.under_test.world.refusal = BindRejected("the node is full")

    queued = groups.engine.queue.pop_nowait()
    assert queued is not None
    groups.engine.loop.schedule_one(queued)
    await settle()

    assert said(groups) == []
    assert [event.pod for event in groups.under_test.world.events if event.reason == "FailedScheduling"] == [
        "default/g-0"
    ]
