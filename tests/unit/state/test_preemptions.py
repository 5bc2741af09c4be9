"""Preemptions that are under way: when they begin and end, and for whom others are kept off."""

from collections.abc import Iterable

import msgspec
import pytest

from scheduler.api.pods.pod import Pod
from scheduler.framework.groups.pod_groups import GroupKey
from scheduler.framework.queued import EntityKey
from scheduler.state.nominator import Nominator
from scheduler.state.preemptions import Preemption, Preemptions
from scheduler.testing import a_pod
from tests.fakes import FakeClock

GROUP = GroupKey("team", "PodGroup", "group")


class Stage:
    """Two victims on a node, and a group of two pods for which they go."""

    def __init__(self, *, keeps: bool = True, key: EntityKey = GROUP) -> None:
        self.clock = FakeClock()
        self.victims = [a_pod("v1", node_name="n"), a_pod("v2", node_name="n")]
        self.members = [a_pod("m1"), a_pod("m2")]
        self.pods = {pod.uid: pod for pod in (*self.victims, *self.members)}
        self.activated: list[str] = []
        self.ended: list[Preemption] = []
        self.nominator = Nominator()
        self.preemptions = Preemptions(self.pods, self.nominator, self, self.clock)
        self.preemptions.subscribe(self.ended.append)
        self.preemptions.begin(key, self.members, self.victims, keeps=keeps)
        for each in self.members:
            self.nominator.add(each, "n")
            self.preemptions.failed(each.uid, self.clock())
        self.clock.advance(1)

    def activate(self, uids: Iterable[str]) -> None:
        self.activated += uids

    def gone(self, *pods: Pod) -> None:
        for pod in pods:
            self.pods.pop(pod.uid)
            self.preemptions.gone(pod.uid)
        self.preemptions.check_invariants()

    def fails(self) -> None:
        """All members are tried in vain, now."""
        for each in self.members:
            self.preemptions.failed(each.uid, self.clock())
        self.preemptions.check_invariants()

    @property
    def lives(self) -> bool:
        return self.preemptions.of(GROUP) is not None


def test_while_victims_leave_their_nodes_are_kept_for_the_preemptor() -> None:
    stage = Stage()

    assert set(stage.nominator.kept) == {each.uid for each in stage.members}
    assert set(stage.preemptions.leaving()) == {each.uid for each in stage.victims}


@pytest.mark.parametrize(("priority", "gains"), [(-5, True), (5, False)])
def test_a_preemptor_gains_nothing_where_a_victim_went_for_a_more_important_pod_before(
    priority: int, gains: bool
) -> None:
    stage = Stage()
    before, member = a_pod("before", priority=priority), stage.members[0]
    stage.preemptions.withdraw(GROUP)
    stage.preemptions.begin(before.uid, [before], stage.victims[:1], keeps=False)
    stage.preemptions.begin(GROUP, stage.members, stage.victims, keeps=True)

    stage.gone(stage.victims[0])
    assert stage.nominator.has_gained(member.uid) is gains
    stage.gone(stage.victims[1])
    assert stage.nominator.has_gained(member.uid)


def test_when_the_last_victim_is_gone_all_pods_are_tried_and_it_ends_if_that_is_in_vain() -> None:
    stage = Stage()

    stage.gone(stage.victims[0])
    assert stage.activated == []
    stage.gone(stage.victims[1])

    assert stage.activated == [each.uid for each in stage.members]
    lived = stage.lives
    stage.fails()
    assert (lived, stage.lives) == (True, False)
    assert not stage.nominator.kept
    assert len(stage.ended) == 1


def test_an_attempt_that_began_before_the_last_victim_was_gone_does_not_end_it() -> None:
    stage = Stage()
    began = stage.clock()
    stage.clock.advance(1)
    stage.gone(*stage.victims)

    stage.preemptions.failed(stage.members[0].uid, began)

    assert stage.lives


def test_an_attempt_while_victims_leave_does_not_end_it_if_the_nomination_stays() -> None:
    stage = Stage()

    stage.fails()

    assert stage.lives


def test_it_ends_when_no_pod_is_nominated_any_more() -> None:
    stage = Stage()
    for each in stage.members:
        stage.nominator.delete(each.uid)

    stage.fails()

    assert not stage.lives
    assert len(stage.ended) == 1


def test_it_ends_when_all_its_pods_are_gone() -> None:
    stage = Stage()

    stage.gone(stage.members[0])
    assert stage.lives
    stage.gone(stage.members[1])

    assert not stage.lives


def test_when_the_preemptor_starts_it_ends_and_others_are_not_told() -> None:
    stage = Stage()

    stage.preemptions.placed(stage.members[0].uid)

    assert not stage.lives
    assert stage.ended == []
    stage.preemptions.check_invariants()


def test_a_victim_whose_binding_was_cancelled_is_gone_when_it_is_in_the_queue_again() -> None:
    stage = Stage()

    for each in stage.victims:
        stage.preemptions.failed(each.uid, stage.clock())

    assert stage.activated


@pytest.mark.parametrize(("key", "activated"), [(GROUP, ["m1", "m2"]), ("m1", [])])
def test_one_that_keeps_nothing_holds_nobody_off_and_brings_only_a_group_back(
    key: EntityKey, activated: list[str]
) -> None:
    stage = Stage(keeps=False, key=key)
    assert not stage.lives
    assert not stage.nominator.kept
    assert set(stage.preemptions.leaving()) == {each.uid for each in stage.victims}

    stage.gone(*stage.victims)

    assert stage.activated == [f"default/{name}" for name in activated]
    assert stage.ended == []


def test_another_one_of_the_same_pods_takes_its_place() -> None:
    stage = Stage()

    stage.preemptions.begin(GROUP, stage.members[:1], stage.victims[:1], keeps=True)

    assert set(stage.nominator.kept) == {stage.members[0].uid}
    stage.preemptions.check_invariants()


def test_one_that_counts_on_victims_of_another_is_given_up_only_when_these_are_gone_too() -> None:
    stage = Stage()
    late, victim = a_pod("late"), a_pod("v3", node_name="n")
    stage.pods |= {late.uid: late, victim.uid: victim}
    stage.preemptions.begin(late.uid, [late], [victim], keeps=True)
    stage.nominator.add(late, "n")
    stage.preemptions.failed(late.uid, stage.clock())

    stage.gone(victim)
    assert stage.activated == [late.uid], "it may fit without the others"
    stage.preemptions.failed(late.uid, stage.clock())
    assert stage.preemptions.of(late.uid) is not None

    stage.gone(*stage.victims)
    stage.preemptions.failed(late.uid, stage.clock())

    assert stage.preemptions.of(late.uid) is None


def test_it_counts_no_longer_on_victims_whose_evictions_failed() -> None:
    stage = Stage()
    late, victim = a_pod("late"), a_pod("v3", node_name="n")
    stage.pods |= {late.uid: late, victim.uid: victim}
    stage.preemptions.begin(late.uid, [late], [victim], keeps=True)
    stage.gone(victim)

    stage.preemptions.withdraw(GROUP, victims_stay=True)

    preemption = stage.preemptions.of(late.uid)
    assert preemption is not None
    assert preemption.is_due
    stage.preemptions.check_invariants()


def test_the_attempt_that_begins_it_does_not_end_it_though_all_victims_are_gone_at_once() -> None:
    stage = Stage()
    member, victim = a_pod("m3"), a_pod("v3", node_name="n")
    stage.pods |= {member.uid: member, victim.uid: victim}
    stage.preemptions.begin("other", [member], [victim], keeps=True)
    stage.gone(victim, *stage.victims)

    stage.preemptions.failed(member.uid, stage.clock())
    assert stage.preemptions.of("other") is not None

    stage.preemptions.failed(member.uid, stage.clock())
    assert stage.preemptions.of("other") is None


def test_in_a_replay_it_ends_with_the_nominations_that_the_trace_knows_of() -> None:
    stage = Stage()
    for each in stage.members:
        stage.nominator.delete(each.uid)

    stage.preemptions.end_stale(stage.members[0].uid)

    assert not stage.lives
    assert stage.ended == []


def test_in_a_replay_it_goes_on_while_a_pod_is_nominated() -> None:
    stage = Stage()
    stage.nominator.delete(stage.members[0].uid)

    stage.preemptions.end_stale(stage.members[0].uid)

    assert stage.lives


def test_it_goes_on_if_the_object_of_its_group_is_made_again() -> None:
    stage = Stage()

    stage.preemptions.made_again(GROUP)

    assert stage.lives
    assert set(stage.nominator.kept) == {each.uid for each in stage.members}
    stage.preemptions.check_invariants()


def test_it_ends_with_the_object_of_its_group_if_its_pods_are_being_deleted() -> None:
    stage = Stage()
    for each in stage.members:
        leaving = msgspec.structs.replace(each.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        stage.pods[each.uid] = msgspec.structs.replace(each, metadata=leaving)

    stage.preemptions.made_again(GROUP)

    assert not stage.nominator.kept
    assert [each.key for each in stage.ended] == [GROUP]
