"""Which group nodes are reserved for, which nodes, and how a reservation ends."""

import msgspec
import pytest

from scheduler import framework as fw
from scheduler.api.objects import PodCondition, PodStatus
from scheduler.framework.events import POD_GROUP
from scheduler.groups.reservations.keeper import PATIENCE
from scheduler.testing import a_node
from tests.unit.cycle.fakes import newer
from tests.unit.groups.reservations.stage import START, WAIT, Stage


async def test_a_group_that_has_waited_for_long_has_as_many_nodes_reserved_as_it_needs() -> None:
    stage = Stage(nodes=4, full=4)
    stage.annotated(2, 2, requests={"cpu": "2"})

    await stage.schedule()
    await stage.wait(WAIT - 1)
    before = stage.reserved
    await stage.wait(2)

    assert before == {}
    assert len(stage.reserved) == 2
    assert set(stage.reserved.values()) == {2000}
    assert stage.under_test.count("loadmaster_podgroup_reserved_nodes") == 2


async def test_a_group_that_falls_below_its_minimum_waits_for_nodes_from_then_on() -> None:
    stage = Stage(nodes=1)
    running, _ = stage.annotated(2, 1, requests={"cpu": "2"})
    await stage.schedule()
    stage.end(newer(running, node_name="n0"))
    stage.fill("n0")

    await stage.wait(20)
    await stage.wait(WAIT + 1)

    assert stage.reserved == {"n0": 2000}


async def test_a_group_that_fits_gets_no_reservation() -> None:
    stage = Stage()

    await stage.waiting_long(2, 2)

    assert sorted(stage.bound) == ["a-0", "a-1"]
    assert stage.reserved == {}


async def test_nodes_that_free_up_are_kept_for_the_group_until_it_is_placed() -> None:
    stage = Stage()
    first, second = stage.fill("n0", "n1")
    await stage.waiting_long(2, 2, requests={"cpu": "2"})

    stage.end(first)
    stage.small("late-comer")
    await stage.wait(20)
    while_it_waited = dict(stage.bound)
    stage.end(second)
    await stage.wait(20)

    assert while_it_waited == {}
    assert sorted(stage.bound) == ["a-0", "a-1"]
    assert stage.reserved == {}
    assert stage.ends == {"placed": 1}


async def test_without_reservations_small_pods_take_what_the_group_waits_for() -> None:
    stage = Stage()
    stage.use(seconds=0)
    first, _ = stage.fill("n0", "n1")
    await stage.waiting_long(2, 2, requests={"cpu": "2"})

    stage.end(first)
    stage.small("late-comer")
    await stage.wait(20)

    assert stage.bound == {"late-comer": "n0"}


async def test_a_pod_that_a_reservation_refused_is_tried_as_soon_as_that_ends() -> None:
    stage = Stage(full=1)
    members = stage.annotated(1, 1, requests={"cpu": "2"})
    stage.running("second", "n1", cpu="1")
    await stage.wait_long()
    pod = stage.small("small")
    await stage.schedule()
    refused = stage.where("small")

    stage.end(members[0])
    await stage.wait(20)

    assert refused == "unschedulable"
    (message,) = stage.refusals(pod)
    assert message.startswith(
        '0/2 nodes are available: 1 Insufficient cpu, 1 node(s) reserved for the pod group "default/a" until it fits. '
    )
    assert stage.bound == {"small": "n1"}
    assert stage.ends == {"gone": 1}


async def test_turning_reservations_off_ends_one_at_once() -> None:
    stage = Stage(full=1)
    stage.running("second", "n1", cpu="1")
    await stage.waiting_long(1, 1, requests={"cpu": "2"})
    stage.small("small")
    await stage.schedule()

    stage.use(seconds=0)
    stage.under_test.wait(20)
    await stage.schedule()

    assert stage.ends == {"turned off": 1}
    assert stage.bound == {"small": "n1"}


async def test_a_group_that_no_empty_nodes_would_hold_gets_no_reservation() -> None:
    stage = Stage(nodes=3, full=1)

    await stage.waiting_long(4, 4, requests={"cpu": "2"})

    assert stage.reserved == {}
    assert stage.ends == {}


async def test_nodes_that_refuse_the_pods_of_a_group_for_what_they_are_do_not_count() -> None:
    stage = Stage(nodes=2)
    stage.under_test.see(a_node("gpu", cpu="2", labels={"kind": "gpu"}))
    stage.running("service", "gpu", cpu="2")

    await stage.waiting_long(1, 1, requests={"cpu": "2"}, node_selector={"kind": "gpu"})

    assert stage.reserved == {"gpu": 2000}


async def test_pods_of_daemon_sets_stay_so_that_their_nodes_are_not_waited_for() -> None:
    stage = Stage(nodes=2)
    stage.of_daemon_set(stage.running("agent", "n0"))
    stage.running("service", "n1")

    await stage.waiting_long(1, 1, requests={"cpu": "2"})

    assert stage.reserved == {"n1": 2000}


async def test_a_group_of_higher_priority_takes_over() -> None:
    stage = Stage(nodes=2)
    stage.fill("n0", "n1", priority=50)
    await stage.waiting_long(2, 2, "low", requests={"cpu": "2"}, priority=1)
    low = stage.engine.group_parts.reserved.reservation

    await stage.waiting_long(2, 2, "high", requests={"cpu": "2"}, priority=10)

    high = stage.engine.group_parts.reserved.reservation
    assert low is not None
    assert low.group.name == "low"
    assert high is not None
    assert high.group.name == "high"
    assert stage.ends == {"replaced": 1}


async def test_a_group_of_higher_priority_that_would_fit_nowhere_takes_nothing_over() -> None:
    stage = Stage(nodes=2, full=2)
    stage.annotated(2, 2, "low", requests={"cpu": "2"})
    await stage.waiting_long(3, 3, "too-large", requests={"cpu": "2"}, priority=10)

    await stage.wait(PATIENCE + 1)

    assert stage.ends == {"given up": 1}


async def test_of_equal_priority_the_group_that_has_waited_longest_keeps_its_nodes() -> None:
    stage = Stage(nodes=2, full=2)
    stage.annotated(2, 2, "early", requests={"cpu": "2"})
    await stage.schedule()
    await stage.wait(1)
    stage.annotated(2, 2, "late", requests={"cpu": "2"})
    await stage.schedule()

    await stage.wait(2 * WAIT)

    assert stage.engine.group_parts.reserved.reservation is not None
    assert stage.engine.group_parts.reserved.reservation.group.name == "early"
    assert stage.ends == {}


async def test_a_reservation_of_which_nothing_comes_is_given_up_and_others_have_their_turn() -> None:
    stage = Stage(nodes=2, full=2)
    stage.annotated(2, 2, "early", requests={"cpu": "2"})
    await stage.schedule()
    await stage.wait(1)
    await stage.waiting_long(1, 1, "late", requests={"cpu": "2"})

    await stage.wait(PATIENCE + 1)
    await stage.wait(5)

    assert stage.ends == {"given up": 1}
    assert stage.engine.group_parts.reserved.reservation is not None
    assert stage.engine.group_parts.reserved.reservation.group.name == "late"


async def test_a_pod_that_fits_waits_for_one_reservation_only() -> None:
    stage = Stage(nodes=2)
    stage.running("first", "n0", cpu="1")
    stage.running("second", "n1", cpu="1")
    for name in ("early", "late"):
        stage.annotated(2, 2, name, requests={"cpu": "2"})
    await stage.wait_long()
    stage.small("small")
    await stage.schedule()
    refused = stage.where("small")

    await stage.wait(PATIENCE + 1)

    assert refused == "unschedulable"
    assert "small" in stage.bound


@pytest.mark.parametrize("cpu", ["0", "2"])
async def test_a_group_that_a_plugin_of_others_refuses_gets_no_nodes_idle_or_busy(cpu: str) -> None:
    class Never(fw.FilterPlugin):
        name = "Never"

        def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
            return fw.unschedulable("never") if pod.name.startswith("a-") else None

    stage = Stage(Never, nodes=2)
    for node in ("n0", "n1"):
        stage.running(f"on-{node}", node, cpu=cpu)

    await stage.waiting_long(2, 2)

    assert stage.reserved == {}


async def test_the_group_is_told_what_is_reserved_and_why_it_is_so_no_longer() -> None:
    stage = Stage(nodes=2, full=1)

    await stage.waiting_long(2, 2, requests={"cpu": "2"})
    await stage.wait(PATIENCE + 1)

    assert stage.said == [
        (
            "Normal",
            "NodesReserved",
            "2 nodes reserved for it since 2023-11-14 22:31 UTC (n1, n0); 1 of 2 pods would fit there now, the others "
            "once there is space: it may take the end of 1 pod of which nobody knows when it ends",
        ),
        ("Warning", "ReservationGivenUp", "nodes are no longer reserved for it: nothing has come of it for 10 minutes"),
    ]


async def test_progress_extends_a_reservation() -> None:
    stage = Stage(nodes=2)
    first, _ = stage.fill("n0", "n1")
    await stage.waiting_long(2, 2, requests={"cpu": "2"})

    await stage.wait(PATIENCE - 10)
    stage.end(first)
    await stage.wait(5)
    await stage.wait(PATIENCE - 10)

    assert len(stage.reserved) == 2
    assert stage.ends == {}


async def test_a_time_that_is_known_is_waited_for() -> None:
    stage = Stage(nodes=2)
    stage.fill("n0", "n1", deadline=3 * int(PATIENCE))
    await stage.waiting_long(2, 2, requests={"cpu": "2"})

    await stage.wait(2 * PATIENCE)

    assert len(stage.reserved) == 2
    assert stage.ends == {}


async def test_a_time_that_was_known_is_not_waited_for_once_no_announced_end_is_ahead() -> None:
    stage = Stage(nodes=1)
    first = stage.running("first", "n0", cpu="2", deadline=3 * int(PATIENCE))
    await stage.waiting_long(1, 1, requests={"cpu": "2"})

    stage.end(first)
    stage.running("second", "n0", cpu="2")
    await stage.wait(5)
    await stage.wait(PATIENCE + 1)

    assert stage.ends == {"given up": 1}


async def test_a_group_that_loses_a_pod_it_needs_loses_its_nodes() -> None:
    stage = Stage(nodes=2, full=2)
    members = await stage.waiting_long(2, 2, requests={"cpu": "2"})

    stage.end(members[0])
    await stage.wait(5)

    assert stage.reserved == {}
    assert stage.ends == {"gone": 1}


async def test_a_group_whose_minimum_has_changed_has_other_nodes() -> None:
    stage = Stage(nodes=4, full=4)
    stage.create(minimum=2)
    stage.pods(3, requests={"cpu": "2"})
    await stage.wait_long()
    two = len(stage.reserved)

    stage.create(minimum=3)
    await stage.wait(5)

    assert (two, len(stage.reserved)) == (2, 3)


async def test_a_group_that_requires_a_rack_has_nodes_of_one_rack() -> None:
    stage = Stage(nodes=0)
    racks = ("r1", "r2", "r1", "r2", "r2")
    for number, rack in enumerate(racks):
        stage.under_test.see(a_node(f"n{number}", cpu="2", labels={"rack": rack}))
        stage.running(f"service-{number}", f"n{number}", cpu="1" if rack == "r1" else "2")
    annotations = {"loadmaster.dev/required-topology": "rack"}

    await stage.waiting_long(3, 3, requests={"cpu": "2"}, annotations=annotations)

    assert sorted(stage.reserved) == ["n1", "n3", "n4"]


REFUSED = PodCondition(
    type="PodScheduled", status="False", reason="Unschedulable", last_transition_time="2023-11-14T22:13:20Z"
)


async def test_after_a_restart_a_group_has_waited_for_as_long_as_the_conditions_of_its_pods_say() -> None:
    stage = Stage(nodes=1, full=1)
    stage.annotated(1, 1, requests={"cpu": "2"}, status=PodStatus(conditions=(REFUSED,)))

    await stage.schedule()
    await stage.wait(1)

    assert stage.reservations.wall_clock() > START + WAIT
    assert stage.reserved == {"n0": 2000}


async def test_time_in_which_further_pods_of_a_complete_group_waited_does_not_count() -> None:
    stage = Stage(nodes=1)
    pods = stage.annotated(1, 1, requests={"cpu": "2"}, node_name="n0")
    pods += stage.annotated(1, 1, first=1, status=PodStatus(conditions=(REFUSED,)))
    await stage.schedule()

    for pod in pods:
        stage.end(pod)
    stage.fill("n0")
    stage.annotated(1, 1, requests={"cpu": "2"})
    await stage.wait(1)

    assert stage.reserved == {}


async def test_a_pod_with_an_odd_condition_has_not_waited_before() -> None:
    stage = Stage(nodes=1, full=1)
    odd = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", last_transition_time="long ago")
    (pod,) = stage.annotated(1, 1, requests={"cpu": "2"})
    stage.under_test.see(
        msgspec.structs.replace(newer(pod), status=msgspec.structs.replace(pod.status, conditions=(odd,)))
    )

    await stage.schedule()
    await stage.wait(1)

    assert stage.reserved == {}


async def test_a_choice_that_fails_is_logged_and_leaves_the_group_without_a_reservation(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage(nodes=1, full=1)
    stage.annotated(1, 1, requests={"cpu": "2"})
    await stage.schedule()

    def fails(*_: object) -> None:
        raise RuntimeError("out of order")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(stage.engine.group_parts.levels, "outlook", fails)
        await stage.wait(WAIT + 1)
    without = stage.reserved
    await stage.wait(WAIT + 1)

    assert without == {}
    assert [record.message for record in caplog.records] == ["Choosing nodes for a pod group failed"]
    assert stage.reserved == {"n0": 2000}


def test_the_groups_of_kube_scheduler_are_none_of_ours() -> None:
    stage = Stage()
    stage.annotated(2, 2)
    pod = next(iter(stage.engine.pods.values()))
    group = stage.engine.group_parts.groups.of(pod)
    assert group is not None
    of_kubernetes = msgspec.structs.replace(group, is_ours=False, source=POD_GROUP)

    stage.reservations.refused(of_kubernetes, [pod])

    assert stage.reservations._waits == {}
