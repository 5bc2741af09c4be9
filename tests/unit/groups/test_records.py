"""The sentences about decisions on groups."""

from scheduler.cycle.algorithm import Unplaced
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Code, Status
from scheduler.groups.decision import GroupDecision, GroupPreemption, MemberOutcome
from scheduler.groups.records import sentence
from scheduler.testing import a_pod


def test_a_pod_that_is_evicted_for_several_members_is_counted_once() -> None:
    victims = [a_pod(name, node_name="n") for name in ("v1", "v2", "v3")]
    members = []
    for chosen in (victims[:2], victims[1:]):
        unplaced = Unplaced("no", nominated_node_name="n", victims=chosen)
        members.append(MemberOutcome(QueuedPod(a_pod("m"), 0.0), CycleState(), unplaced, node_name="n"))
    decision = GroupDecision(members, Status(Code.UNSCHEDULABLE, ("no",)), preemption=GroupPreemption(Code.SUCCESS))

    assert sentence(2, decision, 2).endswith("; it waits until 3 pods are evicted for it")


def test_a_group_that_evicts_no_further_pods_waits_until_those_before_are_gone() -> None:
    member = MemberOutcome(QueuedPod(a_pod("m"), 0.0), CycleState(), Unplaced("no"))
    decision = GroupDecision([member], Status(Code.UNSCHEDULABLE, ("no",)), preemption=GroupPreemption(Code.SUCCESS))

    assert sentence(2, decision, 2).endswith("; it waits until pods are gone that were evicted before")
