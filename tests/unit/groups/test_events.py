"""What is said of a group that does not fit: one Event in the place of one for each of its pods."""

from typing import NamedTuple

from scheduler.api.pods.pod import Pod
from scheduler.config.feature_gates import FeatureGates
from scheduler.engine.engine import Engine
from scheduler.framework.errors import BindRejected
from scheduler.framework.groups.pod_groups import PodGroup
from tests.fakes import settle
from tests.unit.groups.coscheduling import Coscheduled
from tests.unit.groups.groups import Groups


class GroupEvent(NamedTuple):
    group: str
    member: str
    type: str
    reason: str
    note: str


class GroupEvents:
    """Keeps the Events of groups."""

    def __init__(self, engine: Engine) -> None:
        self.said: list[GroupEvent] = []
        assert engine.group_parts.cycle is not None
        engine.group_parts.cycle._events = self

    def group_event(self, group: PodGroup, member: Pod, type_: str, reason: str, action: str, note: str) -> None:
        self.said.append(GroupEvent(str(group), str(member), type_, reason, note))


TOO_LARGE = "5 pods are needed at once: 4 of 5 fit; 1 does not: Insufficient cpu (on 2 nodes)"


async def test_a_group_of_our_own_rules_has_one_event_and_its_pods_none() -> None:
    groups = Coscheduled()
    events = GroupEvents(groups.engine)
    groups.create(minimum=5)
    groups.pods(5)

    await groups.schedule()

    assert events.said == [GroupEvent("default/g", "default/g-0", "Warning", "FailedScheduling", TOO_LARGE)]
    assert not [event for event in groups.under_test.world.events if event.reason == "FailedScheduling"]


async def test_an_annotated_group_has_one_event_too() -> None:
    groups = Coscheduled()
    events = GroupEvents(groups.engine)
    groups.annotated(5, 5)

    await groups.schedule()

    assert [(event.member, event.note) for event in events.said] == [("default/a-0", TOO_LARGE)]


async def test_a_group_of_kube_scheduler_has_the_event_and_its_pods_have_theirs() -> None:
    groups = Groups(gates=FeatureGates(generic_workload=True))
    events = GroupEvents(groups.engine)
    groups.create(minimum=5)
    groups.pods(5)

    await groups.schedule()

    assert [event.note for event in events.said] == [TOO_LARGE]
    assert len([event for event in groups.under_test.world.events if event.reason == "FailedScheduling"]) == 5


async def test_a_group_that_is_placed_is_not_mentioned() -> None:
    groups = Coscheduled()
    events = GroupEvents(groups.engine)
    groups.create(minimum=3)
    groups.pods(3)

    await groups.schedule()

    assert events.said == []
    assert len(groups.bound) == 3


async def test_a_member_whose_binding_fails_has_an_event_of_its_own() -> None:
    groups = Coscheduled()
    events = GroupEvents(groups.engine)
    groups.create(minimum=1)
    groups.pods(1)
    groups.under_test.world.refusal = BindRejected("the node is full")

    queued = groups.engine.queue.pop_nowait()
    assert queued is not None
    groups.engine.loop.schedule_one(queued)
    await settle()

    assert events.said == []
    assert [event.pod for event in groups.under_test.world.events if event.reason == "FailedScheduling"] == [
        "default/g-0"
    ]
