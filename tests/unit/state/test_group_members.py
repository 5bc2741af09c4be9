"""The members of a group, as the cache and the watch report them.

Cases: podgroupstate_test.go at v1.36.3 (4 tests).
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from scheduler.api.pods.pod import Pod
from scheduler.framework.groups.pod_groups import GroupKey
from scheduler.state.group_members import Members, MembersByGroup
from scheduler.testing import a_pod

NOON: Final = datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp()


def key_of(pod: Pod) -> GroupKey | None:
    group = pod.spec.scheduling_group
    return None if group is None else GroupKey(pod.namespace, "test", group.pod_group_name)


def test_counts_follow_each_change_and_ignore_what_cannot_be() -> None:
    members = Members()
    one, two, bound, stranger = a_pod("p1"), a_pod("p2"), a_pod("p3", node_name="n"), a_pod("p4")
    assert (members.count, members.scheduled_count) == (0, 0)

    members.see(one)
    members.see(two)
    members.assign(bound)
    assert (members.count, members.scheduled_count) == (3, 1)
    members.assume(one)
    assert (members.count, members.scheduled_count) == (3, 2)
    members.assume(bound)
    members.assume(stranger)
    members.forget(bound.uid)
    assert (members.count, members.scheduled_count) == (3, 2)
    members.forget(one.uid)
    members.forget(one.uid)
    assert (members.count, members.scheduled_count) == (3, 1)
    members.assume(two)
    members.forget(stranger.uid)
    assert (members.count, members.scheduled_count) == (3, 2)


def test_scheduled_are_those_with_a_node_in_the_version_that_has_it() -> None:
    members = Members()
    assigned, waiting, assumed = a_pod("p3", node_name="node1"), a_pod("p1"), a_pod("p2").bound_to("node2")
    for pod in (a_pod("p2"), waiting):
        members.see(pod)
    members.assign(assigned)

    members.assume(assumed)

    assert list(members.scheduled) == [assigned, assumed]


def test_groups_of_one_name_in_two_namespaces_are_two_and_known_as_long_as_they_have_members() -> None:
    groups, p = MembersByGroup(key_of), a_pod("p", namespace="a", group="g")

    groups.see(p)
    groups.see(a_pod("q", namespace="b", group="g"))

    assert [pod.name for pod in groups.of(GroupKey("b", "test", "g")).unscheduled] == ["q"]
    assert groups.of(GroupKey("c", "test", "g")).count == groups.of(None).count == 0
    groups.remove(p)
    assert list(groups.groups()) == [GroupKey("b", "test", "g")]


def test_the_oldest_group_of_which_no_pod_has_a_node_is_known() -> None:
    groups = MembersByGroup(key_of)

    def member(name: str, group: str, minute: int, gates: Sequence[str] = ()) -> Pod:
        pod = a_pod(name, group=group, gates=gates)
        at = f"2026-01-31T12:{minute:02}:00Z"
        return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, creation_timestamp=at))

    placed, waits = member("p1", "placed", 1), member("w1", "waits", 3)
    for pod in (
        placed,
        member("g1", "gated", 2, gates=["example.com/later"]),
        waits,
        member("w2", "waits", 5),
        member("l1", "later", 9),
    ):
        groups.see(pod)
    groups.assign(placed.bound_to("n"))

    assert groups.waiting_since(now=2e9) == NOON + 3 * 60
    groups.assign(waits.bound_to("n"))
    assert groups.waiting_since(now=2e9) == NOON + 9 * 60
    assert MembersByGroup(key_of).waiting_since(now=2e9) == 2e9


def test_a_pod_without_a_controller_that_succeeds_as_the_last_member_does_not_count_for_those_that_come_later() -> None:
    members, leaving, last = Members(), a_pod("p1", node_name="n"), a_pod("p2", node_name="n")
    members.assign(leaving)
    members.assign(last)
    members.let_go(leaving)

    members.remove(last.uid)
    members.note_success(last)
    members.see(a_pod("p3"))

    assert members.succeeded_count == 0
