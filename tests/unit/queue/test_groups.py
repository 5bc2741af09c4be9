"""Groups of pods in the queue: one entry each, with its own order, backoff and gate.

Rule: pkg/scheduler/backend/queue at v1.37.2. One difference: a group that was refused waits for an event.
"""

import math

import pytest

from scheduler.api.pods.pod import Pod
from scheduler.framework.events import ASSIGNED_POD_DELETE, ClusterEventWithHint, QueueingHint
from scheduler.framework.plugin import PreEnqueuePlugin
from scheduler.framework.queued import QueuedPod, in_order
from scheduler.framework.status import Code, Status, unresolvable
from tests.fakes import sample
from tests.unit.queue.fakes import (
    FIT,
    GATE,
    NODE_ADD,
    PROFILE,
    VOLUME_ADD,
    VOLUMES,
    Gate,
    Grouped,
    QueueUnderTest,
    a_waiting_pod,
)

ABC = ("a", "b", "c")


def a_member(uid: str, group: str = "g", **fields: object) -> Pod:
    return a_waiting_pod(uid, labels={"group": group}, **fields)  # type: ignore[arg-type]


def a_queue(*uids: str, groups: Grouped | None = None) -> QueueUnderTest:
    """A queue with a gate, and a group of these pods."""
    queue = QueueUnderTest(Gate(), groups=groups or Grouped())
    for uid in uids:
        queue.add(a_member(uid))
    return queue


def test_the_pods_of_a_group_are_popped_as_one() -> None:
    queue = a_queue(*ABC)
    assert [queue.where(uid) for uid in ABC] == ["active"] * 3

    group = queue.pop_group()

    assert [(each.pod.uid, each.attempts) for each in group.members] == [("a", 1), ("b", 1), ("c", 1)]
    assert [queue.where(uid) for uid in ABC] == ["in flight"] * 3
    assert queue.pop_nowait() is None


def test_a_group_has_the_priority_of_its_object_and_the_time_of_its_first_pod() -> None:
    groups = Grouped()
    groups.priorities = {"low": 1, "high": 3}
    queue = a_queue(groups=groups)
    for uid, group in (("a", "low"), ("b", "high"), ("c", "low")):
        queue.add(a_member(uid, group, priority=7))
        queue.clock.advance(1)
    queue.add(a_waiting_pod("alone", priority=2))

    first, second, third = queue.pop_group(), queue.pop_one(), queue.pop_group()

    assert [first.key.name, second.key, third.key.name] == ["high", "alone", "low"]  # type: ignore[union-attr]
    assert third.timestamp == third.created < first.timestamp


def test_a_group_of_another_kind_has_the_priority_of_its_pods() -> None:
    queue = a_queue(groups=Grouped(source="other"))
    queue.add(a_waiting_pod("alone", priority=6))
    queue.add(a_member("a", priority=7))

    assert queue.pop_group().priority == 7


def test_a_group_moves_when_its_object_has_another_priority() -> None:
    queue = a_queue("a", groups=(groups := Grouped()))
    queue.add(a_waiting_pod("alone", priority=2))

    groups.priorities["g"] = 3
    queue.group_changed(groups.key())

    assert queue.pop_group().priority == 3


def test_members_are_tried_by_priority_then_attempts_then_time_then_name() -> None:
    def queued(name: str, priority: int = 0, attempts: int = 0, timestamp: float = 0.0) -> QueuedPod:
        return QueuedPod(a_waiting_pod(name, priority=priority), timestamp, attempts)

    members = [queued("e"), queued("d"), queued("c", timestamp=-1.0), queued("b", attempts=1), queued("a", priority=1)]

    assert [each.pod.uid for each in in_order(members)] == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize("uid", ABC)
def test_one_gated_pod_keeps_the_whole_group_out(uid: str) -> None:
    queue = a_queue()
    for each in ABC:
        queue.add(a_member(each, gates=["g"] if each == uid else []))

    assert [queue.where(each) for each in ABC] == ["gated"] * 3
    assert queue.unschedulable_counts() == {("Gate", "loadmaster"): 1}

    queue.update(a_member(uid, gates=["g"]), a_member(uid))

    assert [queue.where(each) for each in ABC] == ["active"] * 3


def test_a_group_whose_gated_pod_is_deleted_is_tried() -> None:
    queue = a_queue("a", "b")
    queue.add(a_member("c", gates=["g"]))

    queue.delete("c")

    assert [queue.where(each) for each in ABC] == ["active", "active", ""]


class Evictions(PreEnqueuePlugin):
    """Refuses all pods while they wait for their victims, as DefaultPreemption does."""

    name = GATE

    def __init__(self) -> None:
        self.are_under_way = False

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return unresolvable("waiting for the preemption") if self.are_under_way else None


def test_an_event_that_may_open_the_gate_is_asked_of_all_pods_of_the_group() -> None:
    gone = ASSIGNED_POD_DELETE
    skip = ClusterEventWithHint(gone, lambda pod, old, new: QueueingHint.SKIP, lambda pod: None)
    gate = Evictions()
    events = {PROFILE: {FIT: [ClusterEventWithHint(NODE_ADD), ClusterEventWithHint(gone)], GATE: [skip]}}
    queue = QueueUnderTest(gate, groups=Grouped(), events=events)
    queue.add(a_member("a"))
    queue.end(queue.pop_group(), {"a": [FIT]})

    gate.are_under_way = True
    queue.add(a_member("b"))
    queue.move_all(gone, None, None)
    queue.check_invariants()
    assert queue.where("a") == queue.where("b") == "gated"
    gate.are_under_way = False
    queue.move_all(NODE_ADD, None, None)
    assert queue.where("a") == "gated", "the gate has not registered for it"
    queue.move_all(gone, None, None)

    assert queue.where("a") == queue.where("b") == "backoff"


def test_two_gates_have_to_open() -> None:
    queue = a_queue("a")
    for uid in ("b", "c"):
        queue.add(a_member(uid, gates=["g"]))

    queue.update(None, a_member("c"))
    assert queue.where("a") == "gated"
    queue.update(None, a_member("b"))

    assert queue.where("a") == "active"


@pytest.mark.parametrize(
    ("refused", "event", "place"),
    [
        ({"a": [FIT], "b": [FIT], "c": [FIT]}, NODE_ADD, "backoff"),
        ({"a": [FIT], "b": [VOLUMES], "c": []}, VOLUME_ADD, "backoff"),
        ({"a": [FIT], "b": [], "c": []}, VOLUME_ADD, "unschedulable"),
    ],
)
def test_an_event_that_helps_one_pod_moves_the_group(refused: dict[str, list[str]], event: object, place: str) -> None:
    queue = a_queue(*ABC)
    queue.end(queue.pop_group(), refused)
    assert [queue.where(uid) for uid in ABC] == ["unschedulable"] * 3

    queue.move_all(event, None, None)  # type: ignore[arg-type]

    assert [queue.where(uid) for uid in ABC] == [place] * 3


def test_an_event_while_the_group_is_tried_brings_it_back() -> None:
    queue = a_queue("a", "b")
    group = queue.pop_group()
    queue.move_all(NODE_ADD, None, None)

    queue.end(group, {"a": [FIT], "b": [VOLUMES]})

    assert queue.where("a") == queue.where("b") == "backoff"


def test_a_group_that_was_refused_as_a_whole_waits_for_the_events_of_those_plugins() -> None:
    queue = a_queue("a")
    group = queue.pop_group()

    queue.group_tried(group, Code.UNSCHEDULABLE, (VOLUMES,))
    assert queue.where("a") == "unschedulable"
    queue.move_all(NODE_ADD, None, None)
    assert queue.where("a") == "unschedulable"
    queue.move_all(VOLUME_ADD, None, None)

    assert queue.where("a") == "backoff"


@pytest.mark.parametrize("size", [1, 4])
def test_the_longest_backoff_grows_with_the_root_of_the_number_of_pods(size: int) -> None:
    queue = a_queue(*(str(number) for number in range(size)))
    for _ in range(8):
        group = queue.pop_group()
        queue.end(group, {each.pod.uid: [FIT] for each in group.members})
        queue.move_all(NODE_ADD, None, None)
        assert queue.pop_nowait() is None, "a group does not leave early"
        waits = group.backoff_expiration - queue.clock()
        queue.clock.advance(waits + 1)
        queue.flush_backoff_completed()

    assert waits == pytest.approx(10 * math.sqrt(size), abs=1)


def test_after_an_error_a_group_is_tried_again() -> None:
    queue = a_queue("a", "b")

    queue.end(group := queue.pop_group(), {"a": [], "b": []}, Code.ERROR)

    assert (queue.where("a"), group.consecutive_errors_count, group.unschedulable_count) == ("backoff", 1, 0)


def test_pods_that_are_left_after_a_success_are_tried_at_once_in_the_group_s_old_place() -> None:
    queue = a_queue("a", "b")
    group = queue.pop_group()
    queue.clock.advance(5)
    queue.add(a_waiting_pod("alone"))

    queue.end(group, {"b": [FIT]}, Code.SUCCESS)

    assert [each.pod.uid for each in queue.pop_group().members] == ["b"]
    assert group.timestamp == group.created
    assert queue.where("a") == ""


def test_a_pod_that_comes_while_its_group_is_tried_waits_beside_it() -> None:
    queue = a_queue("a")
    group = queue.pop_group()
    queue.add(a_member("b"))
    queue.update(None, a_member("b", version=2))
    assert queue.where("b") == "pending"
    assert queue.pop_nowait() is None
    queue.check_invariants()

    queue.end(group, {}, Code.SUCCESS)

    (member,) = queue.pop_group().members
    assert member.pod.metadata.resource_version == "2"


def test_a_pod_that_comes_brings_a_refused_group_back() -> None:
    queue = a_queue("a")
    queue.end(queue.pop_group(), {"a": [FIT]})
    queue.clock.advance(20)

    queue.add(a_member("b"))

    assert queue.where("a") == queue.where("b") == "active"


def test_pods_wait_beside_a_group_whose_object_is_missing_and_again_when_it_is_deleted() -> None:
    queue = a_queue(*ABC, groups=(groups := Grouped("g")))
    assert [queue.where(uid) for uid in ABC] == ["incomplete"] * 3
    queue.update(None, a_member("a", version=2))
    queue.delete("c")
    queue.check_invariants()

    groups.missing.clear()
    queue.group_changed(groups.key())
    assert [queue.where(uid) for uid in ABC] == ["active", "active", ""]
    queue.check_invariants()

    groups.missing.add("g")
    queue.group_changed(groups.key())
    assert queue.where("a") == queue.where("b") == "incomplete"


def test_a_pod_that_names_another_group_goes_there() -> None:
    queue = a_queue("a", "b")

    queue.update(None, a_member("b", "h"))
    queue.update(None, a_waiting_pod("a"))

    assert queue.pop_group().key.name == "h"  # type: ignore[union-attr]
    assert queue.pop_one().pod.uid == "a"
    assert queue.pop_nowait() is None


def test_a_pod_whose_binding_fails_waits_as_its_group() -> None:
    queue = a_queue("a", "b")
    group = queue.pop_group()
    first, second = group.take_all()
    queue.group_tried(group, Code.SUCCESS)

    queue.fail(first, FIT)
    queue.fail(second, FIT)

    assert queue.where("a") == queue.where("b") == "unschedulable"
    queue.move_all(NODE_ADD, None, None)
    assert queue.where("a") == queue.where("b") == "backoff"


def test_a_deleted_pod_does_not_come_back_to_its_group() -> None:
    queue = a_queue("a", "b")
    group = queue.pop_group()
    first, second = group.take_all()
    queue.fail(first, FIT)
    queue.delete("a")
    queue.fail(second, FIT)

    queue.group_tried(group, Code.UNSCHEDULABLE)

    assert (queue.where("a"), queue.where("b")) == ("", "unschedulable")


def test_a_pod_that_changes_once_it_is_back_and_its_group_is_not_has_the_nomination_of_its_new_version() -> None:
    queue = a_queue("a", "b")
    group = queue.pop_group()
    first, second = group.take_all()
    queue.fail(first, FIT)
    queue.update(first.pod, a_member("a", version=2, nominated="n1"))
    queue.fail(second, FIT)

    queue.group_tried(group, Code.UNSCHEDULABLE)

    assert queue.nominator.node_of("a") == "n1"


def test_a_group_is_woken_by_its_key_or_by_a_pod_of_it() -> None:
    queue = a_queue("a", "b", groups=(groups := Grouped()))
    for key in ("b", groups.key()):
        queue.end(queue.pop_group(), {"a": [FIT], "b": [FIT]})
        queue.clock.advance(20)
        assert queue.is_refused("a")
        assert queue.wake(key, "Woken")
        assert not queue.is_refused("a")

    group = queue.pop_group()
    assert queue.wake(groups.key(), "Woken")
    queue.end(group, {"a": [FIT], "b": [FIT]})
    assert queue.where("a") == "backoff"


def test_a_member_that_comes_while_its_group_is_tried_in_vain_has_it_tried_again_after_its_backoff() -> None:
    queue = a_queue("a")
    group = queue.pop_group()
    queue.add(a_member("b"))

    queue.end(group, {"a": [FIT]})

    assert [queue.where(uid) for uid in "ab"] == ["backoff"] * 2
    queue.clock.advance(20)
    queue.flush_backoff_completed()
    assert queue.pop_group().was_changed


def test_a_group_that_an_event_brings_back_is_the_same_as_before() -> None:
    queue = a_queue("a")
    queue.end(queue.pop_group(), {"a": [FIT]})

    queue.move_all(NODE_ADD, None, None)
    queue.clock.advance(20)
    queue.flush_backoff_completed()

    assert not queue.pop_group().was_changed


def test_groups_are_counted_as_entries_and_by_their_pods() -> None:
    queue = a_queue("a", "b")
    queue.add(a_waiting_pod("alone"))

    assert queue.pending_counts()["active"] == 3
    assert dict(queue.entity_counts()) == {
        (place, kind): int(place == "active")
        for place in ("active", "backoff", "unschedulable", "gated")
        for kind in ("pod", "podgroup")
    }
    name = "scheduler_queue_incoming_pods_total"
    assert sample(queue.metrics, name, queue="active", event="UnscheduledPodAdd") == 3
    assert dict(queue.incoming_entities()) == {("active", "UnscheduledPodAdd", kind): 1 for kind in ("pod", "podgroup")}


def test_when_other_pods_have_groups_those_that_wait_are_regrouped() -> None:
    queue = a_queue("a", "b", groups=(groups := Grouped()))

    groups.are_off = True
    queue.regroup()
    assert [queue.pop_one().pod.uid for _ in range(2)] == ["a", "b"]
    queue.check_invariants()

    for each in queue.in_flight_pods():
        queue.fail(each, FIT)
    groups.are_off = False
    queue.regroup()
    assert len(queue.pop_group().members) == 2


def test_a_repair_keeps_groups_together() -> None:
    queue = a_queue(*ABC)
    queue.end(queue.pop_group(), {"a": [FIT], "b": [FIT], "c": []})

    queue.rebuild()

    assert [queue.where(uid) for uid in ABC] == ["backoff"] * 3


def test_a_group_that_is_not_tried_is_forgotten() -> None:
    queue = a_queue("a", "b")

    queue.drop(queue.pop_group())

    assert sum(queue.pending_counts().values()) == len(queue.in_flight_pods()) == 0
