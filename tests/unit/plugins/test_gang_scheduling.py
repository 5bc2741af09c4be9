"""GangScheduling: who may enter the queue, who waits at Permit, what wakes whom.

Cases: gangscheduling_test.go at v1.36.3, 13 of 13.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import pytest

from plugins.gang_scheduling import GangScheduling
from scheduler import framework as fw
from scheduler.api.groups import pod_groups as api
from scheduler.api.objects import ObjectMeta
from scheduler.config.feature_gates import FeatureGates
from scheduler.framework.cycle_state import GroupCycleState
from scheduler.framework.events import POD_GROUP
from scheduler.groups.apis.adapters import AdaptedGroups
from scheduler.groups.apis.kubernetes import VERSIONS
from scheduler.state.objects import ObjectStore
from scheduler.testing import a_pod
from tests.conformance.transcribed import Case, cases
from tests.fakes import a_handle

QUEUE, SKIP = fw.QueueingHint.QUEUE, fw.QueueingHint.SKIP


def a_group(name: str, min_count: int | None = None, namespace: str = "default") -> api.PodGroup:
    gang = None if min_count is None else api.GangPolicy(min_count=min_count)
    return api.PodGroup(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"{namespace}/{name}"),
        spec=api.PodGroupSpec(scheduling_policy=api.SchedulingPolicy(gang=gang)),
    )


PODS = {
    **{name: a_pod(name, namespace="ns1", uid=name, group="pg1") for name in ("p1", "p2", "p3")},
    **{name: a_pod(name, namespace="ns1", uid=name, group="pg2") for name in ("p4", "p5")},
    "basic-pod": a_pod("basic-pod", namespace="ns1", uid="basic-pod", group="pg3"),
    "non-gang": a_pod("non-gang", namespace="ns1", uid="non-gang"),
}
GROUPS = {"pg1": a_group("pg1", 3, "ns1"), "pg2": a_group("pg2", 4, "ns1"), "pg3": a_group("pg3", None, "ns1")}


class Gangs:
    """The plugin, over groups and pods of a test."""

    def __init__(self, groups: Collection[str], pods: Collection[str]) -> None:
        self.objects = objects = ObjectStore()
        objects.watch(VERSIONS)
        for name in groups:
            objects.set(POD_GROUP, GROUPS[name])
        known = AdaptedGroups(objects, FeatureGates(generic_workload=True))
        self.members = known.members_by_group
        for name in pods:
            self.members.see(PODS[name])
        self.activated: list[str] = []
        self.handle = replace(a_handle(), pod_groups=known, activator=self)
        self.plugin = GangScheduling()
        self.plugin.start(self.handle)

    def activate(self, uids: Iterable[str]) -> None:
        self.activated += uids

    def permit(self, name: str) -> Any:
        """Assume a pod and ask about it; hold it if the plugin says so."""
        pod = PODS[name].bound_to("some-node")
        self.members.assume(pod)
        answer = self.plugin.permit(fw.CycleState(), pod, "some-node")
        if isinstance(answer, fw.PermitWait):
            self.handle.waiting_pods.add(pod, {self.plugin.name: answer})
        return answer


def hint_between(pod: fw.Pod, new: fw.Pod) -> fw.QueueingHint:
    """The hint for a pod when another one has come, where their groups exist."""
    gangs = Gangs((), ())
    for each in (pod, new):
        if each.spec.scheduling_group is not None:
            gangs.objects.set(POD_GROUP, a_group(each.spec.scheduling_group.pod_group_name, None, each.namespace))
    return gangs.plugin.hint_after_pod_change(pod, None, new)


@pytest.mark.parametrize(
    ("new", "hint"),
    [
        pytest.param(a_pod("q", group="pg"), QUEUE, id="the same group"),
        pytest.param(a_pod("q", namespace="foo", group="pg"), SKIP, id="another namespace"),
        pytest.param(a_pod("q", group="pg2"), SKIP, id="another name"),
    ],
)
def test_a_pod_that_comes_wakes_those_of_its_group(new: fw.Pod, hint: fw.QueueingHint) -> None:
    assert hint_between(a_pod("p", group="pg"), new) is hint


@pytest.mark.parametrize("case", cases("matching_scheduling_group"))
def test_pods_of_one_group_are_those_of_kube_scheduler(case: Case) -> None:
    first, second = (
        a_pod(name, namespace=namespace, group=group) for name, namespace, group in (case["first"], case["second"])
    )

    assert hint_between(first, second) is (QUEUE if case["match"] else SKIP)


@pytest.mark.parametrize(
    ("group", "hint"),
    [
        pytest.param(a_group("pg", 1), QUEUE, id="the pod's group"),
        pytest.param(a_group("pg2", 1), SKIP, id="another name"),
        pytest.param(a_group("pg", 1, "ns2"), SKIP, id="another namespace"),
    ],
)
def test_a_group_that_comes_wakes_its_pods(group: Any, hint: fw.QueueingHint) -> None:
    assert Gangs((), ()).plugin.hint_after_group_change(a_pod("p", group="pg"), None, group) is hint


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [(3, 2, QUEUE), (3, 3, SKIP), (2, 3, SKIP), (None, 1, SKIP), (2, None, SKIP)],
)
def test_a_group_that_changes_wakes_its_pods_only_if_it_needs_fewer(
    before: int | None, after: int | None, hint: fw.QueueingHint
) -> None:
    old, new = a_group("pg", before), a_group("pg", after)

    assert Gangs((), ()).plugin.hint_after_group_change(a_pod("p", group="pg"), old, new) is hint


@pytest.mark.parametrize("name", ["non-gang", "basic-pod"])
def test_a_pod_without_a_gang_waits_for_nothing(name: str) -> None:
    gangs = Gangs(GROUPS, [name])

    assert gangs.plugin.pre_enqueue(PODS[name]) is None
    assert gangs.permit(name) is None


@pytest.mark.parametrize(
    ("groups", "pods", "message"),
    [
        pytest.param(
            (),
            ("p1", "p2", "p3", "p4", "p5"),
            'waiting for pods\'s pod group "pg1" to appear in scheduling queue',
            id="no group",
        ),
        pytest.param(
            ("pg1", "pg2"),
            ("p1", "p2", "p4", "p5"),
            "waiting for minCount pods from a gang to appear in scheduling queue",
            id="too few pods",
        ),
    ],
)
def test_a_pod_of_an_incomplete_gang_is_kept_out(groups: Collection[str], pods: Collection[str], message: str) -> None:
    assert Gangs(groups, pods).plugin.pre_enqueue(PODS["p1"]) == fw.unresolvable(message)


async def test_a_pod_waits_at_permit_and_wakes_those_without_a_node() -> None:
    gangs = Gangs(("pg1", "pg2"), ("p1", "p2", "p3", "p4", "p5"))
    assert gangs.plugin.pre_enqueue(PODS["p1"]) is None
    for name in ("p4", "p5"):
        assert isinstance(gangs.permit(name), fw.PermitWait)

    answer = gangs.permit("p1")

    assert answer == fw.PermitWait(300.0, "waiting for minCount pods from a gang to be scheduled")
    assert gangs.activated[-2:] == ["p2", "p3"]


async def test_the_pod_that_completes_the_gang_lets_all_go() -> None:
    gangs = Gangs(("pg1", "pg2"), ("p1", "p2", "p3", "p4", "p5"))
    for name in ("p2", "p3", "p4", "p5"):
        assert isinstance(gangs.permit(name), fw.PermitWait)

    assert gangs.permit("p1") is None

    held = {name: gangs.handle.waiting_pods.get(name) for name in ("p2", "p3", "p4", "p5")}
    assert {name for name, waiting in held.items() if waiting and not waiting.pending_plugins} == {"p2", "p3"}


def test_a_group_that_is_gone_at_permit_fails_the_attempt() -> None:
    with pytest.raises(fw.AttemptFailed, match=r'failed to get podGroup ns1/pg1: .* "pg1" not found'):
        Gangs((), ("p1",)).permit("p1")


@pytest.mark.parametrize(
    ("remaining", "status"),
    [
        pytest.param(2, fw.wait("minCount (3) is not yet satisfied: 1 scheduled, 2 remaining"), id="may be enough"),
        pytest.param(1, fw.unschedulable("minCount (3) cannot be satisfied: 1 scheduled, 1 remaining"), id="too few"),
    ],
)
def test_whether_a_gang_can_have_enough_members_is_known_before_all_are_tried(
    remaining: int, status: fw.Status
) -> None:
    progress = fw.PlacementProgress(scheduled=1, remaining=remaining)

    assert Gangs(("pg1",), ()).plugin.incomplete(3, progress) == status


def test_pods_are_not_woken_as_long_as_more_are_missing() -> None:
    gangs = Gangs(("pg1",), ("p1", "p2"))
    assert gangs.plugin.hint_after_pod_change(PODS["p1"], None, PODS["p2"]) is SKIP

    gangs.members.see(PODS["p3"])

    assert gangs.plugin.hint_after_pod_change(PODS["p1"], None, PODS["p3"]) is QUEUE


def test_in_a_group_cycle_nobody_is_woken_as_all_are_tried_already() -> None:
    gangs = Gangs(("pg1",), ("p1", "p2", "p3"))
    pod = PODS["p1"].bound_to("some-node")
    gangs.members.assume(pod)

    answer = gangs.plugin.permit(GroupCycleState(), pod, "some-node")

    assert isinstance(answer, fw.PermitWait)
    assert gangs.activated == []
