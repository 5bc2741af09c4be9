"""SchedulingGates: pods that are not to be tried yet."""

from plugins.scheduling_gates import SchedulingGates
from scheduler import framework as fw
from scheduler.testing import a_pod
from tests.unit.plugins.hints import wakes


def test_a_pod_without_gates_may_enter_the_queue() -> None:
    assert SchedulingGates().pre_enqueue(a_pod()) is None


def test_a_gated_pod_is_refused_with_the_names_of_its_gates() -> None:
    refusal = SchedulingGates().pre_enqueue(a_pod(gates=["example.com/quota", "wait"]))

    assert refusal == fw.unresolvable("waiting for scheduling gates: [example.com/quota wait]")


def test_only_the_removal_of_the_gates_helps() -> None:
    (registered,) = SchedulingGates().events_to_register()

    assert registered.event == fw.ClusterEvent(fw.TARGET_POD, fw.Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)


def test_only_its_own_gates_matter_to_a_pod() -> None:
    ungated = fw.ClusterEvent(fw.TARGET_POD, fw.Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    gated = a_pod("gated", gates=["wait"])

    assert wakes(SchedulingGates(), gated, ungated, gated, a_pod("gated"))
    assert not wakes(SchedulingGates(), gated, ungated, a_pod("other", gates=["wait"]), a_pod("other"))
