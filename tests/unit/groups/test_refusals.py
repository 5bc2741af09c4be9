"""What is said of a group that is not tried at all: one Event for each reason, at the group."""

from typing import Any

import pytest

from scheduler.api.groups.coscheduling import POD_GROUP_LABEL
from scheduler.api.objects import OwnerReference
from scheduler.groups.refusals import MAX_EVENTS_OF_NAMESPACE
from scheduler.testing import a_pod
from tests.unit.cycle.fakes import PROFILE, an_engine, newer
from tests.unit.groups.coscheduling import Coscheduled


class Stage(Coscheduled):
    """With the Events of groups that are refused."""

    def __init__(self) -> None:
        super().__init__()
        self.events = self.under_test.world.group_events
        self.refusals = self.engine.group_parts.refusals
        self.refusals._is_running = True

    def look(self) -> list[tuple[str, str]]:
        """Let time enough pass; return the group and the text of each new Event."""
        before = len(self.events)
        for _ in range(2):
            self.refusals.report()
        return [(event.of, event.note) for event in self.events[before:]]


def test_a_pod_that_does_not_count_as_it_is_for_another_scheduler_is_named() -> None:
    stage = Stage()
    pods = stage.create(minimum=3, pods=2)
    few = "cannot find enough sibling pods, current pods number: 2, minMember of group: 3"
    assert stage.look() == [("default/g", few)]
    stage.engine.handlers.pod_deleted(pods[1])
    assert stage.look() == []

    stage.see(["launcher"], labels={POD_GROUP_LABEL: "g"}, scheduler_name="other")
    stage.pods(2)

    assert stage.look() == [("default/g", f"{few}; launcher is for the scheduler 'other'")]
    stage.pods(2)
    assert stage.look() == []


def test_a_group_whose_pods_have_just_begun_to_come_says_nothing() -> None:
    stage = Stage()
    stage.create(minimum=3, pods=2)
    stage.refusals.report()
    stage.pods(1, first=2)

    said = stage.look()

    assert said == []


def test_pods_that_wait_for_a_group_that_is_not_there_have_one_event() -> None:
    stage = Stage()
    pods = stage.pods(3)

    waiting = ("default/g", 'waiting for the PodGroup "g" of the pod to appear')
    assert stage.look() == [waiting]
    assert stage.events[0].member == str(pods[0])
    stage.create(minimum=3)
    assert stage.look() == []

    stage.delete()

    assert stage.look() == [waiting]


def test_another_reason_is_another_event() -> None:
    stage = Stage()
    stage.create(minimum=0, pods=3)
    first = stage.look()

    stage.create(minimum=4)

    assert [note for _, note in first] == ["minMember of the PodGroup is 0: must be 1 or more"]
    assert [note for _, note in stage.look()] == [
        "cannot find enough sibling pods, current pods number: 3, minMember of group: 4"
    ]


def test_pods_behind_scheduling_gates_are_not_reported() -> None:
    stage = Stage()
    stage.create(minimum=3)
    stage.pods(3, gates=("example.com/wait",))

    assert stage.look() == []


def test_a_namespace_of_thousands_of_groups_does_not_keep_others_from_being_reported() -> None:
    stage = Stage()
    for number in range(1_000):
        stage.annotated(1, 2, group=f"many-{number}")
    annotations = {"loadmaster.dev/pod-group": "one", "loadmaster.dev/pod-group-min-available": "2"}
    stage.under_test.see(a_pod("one-0", namespace="quiet", annotations=annotations, scheduler_name=PROFILE))

    groups = [group for group, _ in stage.look()]

    assert len(groups) == MAX_EVENTS_OF_NAMESPACE + 1
    assert groups[-1] == "quiet/one"
    stage.refusals.report()
    assert len(stage.events) == 2 * MAX_EVENTS_OF_NAMESPACE + 1


def test_a_replica_that_does_not_lead_reports_and_remembers_nothing() -> None:
    stage = Stage()
    stage.refusals._is_running = False
    stage.pods(3)

    assert stage.look() == []
    assert not stage.refusals._marked


@pytest.mark.parametrize(
    "named", [{"labels": {POD_GROUP_LABEL: "g"}}, {"annotations": {"loadmaster.dev/gang": "owner"}, "owner": "train"}]
)
async def test_a_group_that_no_profile_keeps_together_has_one_event(
    named: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    under_test = an_engine()
    owners = (OwnerReference(kind="Job", name=named.pop("owner"), controller=True),) if "owner" in named else ()

    for number in range(3):
        pod = a_pod(f"g-{number}", scheduler_name=PROFILE, **named)
        under_test.see(newer(pod, owner_references=owners))
        under_test.engine.group_parts.ignored.report()

    (event,) = under_test.world.events
    assert (event.pod, event.reason) == ("default/g-0", "PodGroupIgnored")
    assert [record.message for record in caplog.records] == ["No profile keeps a pod group together"]
