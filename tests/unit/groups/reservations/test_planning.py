"""On which nodes a group would fit earliest, and when."""

from scheduler.api.objects import ContainerPort
from scheduler.groups.reservations.keeper import Reserved
from scheduler.groups.reservations.planning import Plan
from scheduler.groups.reservations.run_times import NEVER
from scheduler.testing import a_node
from tests.unit.groups.reservations.stage import WAIT, Stage

RACK = "example.com/rack"


def reserved(stage: Stage) -> Reserved:
    found = stage.reservations.reserved
    assert found is not None, "nothing is reserved"
    return found


async def a_plan(stage: Stage) -> Plan:
    await stage.wait_long()
    return reserved(stage).plan


def a_cluster(*sizes: str) -> Stage:
    stage = Stage(nodes=0)
    stage.under_test.see(*(a_node(f"n{number}", cpu=cpu) for number, cpu in enumerate(sizes)))
    return stage


async def test_the_earliest_of_the_times_that_are_known_counts() -> None:
    stage = a_cluster("2", "2", "2")
    for number, deadline in enumerate((900, 300, 600)):
        stage.running(f"before-{number}", f"n{number}", deadline, cpu="2")
    stage.annotated(2, 2, requests={"cpu": "2"})

    plan = await a_plan(stage)

    assert set(plan.kept) == {"n1", "n2"}
    assert plan.seconds == 600 - WAIT - 1
    assert (plan.needed, plan.fitting, plan.leaving) == (2, 0, 0)


async def test_what_is_free_now_is_part_of_it() -> None:
    stage = a_cluster("4", "4", "4")
    stage.running("a", "n0", 900, cpu="4")
    stage.running("b", "n1", 300, cpu="4")
    stage.running("c", "n2", None, cpu="2")
    stage.annotated(3, 3, requests={"cpu": "2"})

    plan = await a_plan(stage)

    assert {node: kept["cpu"] for node, kept in plan.kept.items()} == {"n1": 4000, "n2": 2000}
    assert plan.seconds == 300 - WAIT - 1
    assert plan.fitting == 1


async def test_where_nobody_knows_the_nodes_that_the_fewest_have_to_leave_are_taken() -> None:
    stage = a_cluster("4", "4", "4")
    for number in range(4):
        stage.running(f"crowd-{number}", "n0")
    stage.running("single", "n1", cpu="4")
    for number in range(2):
        stage.running(f"pair-{number}", "n2", cpu="2")
    stage.annotated(1, 1, requests={"cpu": "4"})

    plan = await a_plan(stage)

    assert set(plan.kept) == {"n1"}
    assert (plan.seconds, plan.leaving) == (NEVER, 1)


async def test_progress_is_kept_when_nodes_are_chosen_again() -> None:
    stage = a_cluster("2", "2", "2")
    pods = stage.fill("n0", "n1", "n2")
    await stage.waiting_long(2, 2, requests={"cpu": "2"})

    stage.end(pods[2])
    await stage.wait(5)

    plan = reserved(stage).plan
    assert "n2" in plan.kept
    assert plan.fitting == 1


async def test_kinds_of_members_are_kept_beside_each_other() -> None:
    stage = a_cluster("4", "4")
    stage.running("a", "n0", cpu="4")
    stage.running("b", "n1", cpu="4")
    stage.annotated(2, 3, requests={"cpu": "3"})
    stage.annotated(1, 3, first=2, requests={"cpu": "1"})

    plan = await a_plan(stage)

    assert sum(kept["cpu"] for kept in plan.kept.values()) == 7000
    assert plan.needed == 3


async def test_a_large_member_is_planned_for_before_small_ones_where_it_fits_no_longer_after_them() -> None:
    stage = a_cluster("4", "1")
    stage.running("a", "n0", cpu="4")
    stage.running("b", "n1", cpu="1")
    stage.annotated(1, 4, requests={"cpu": "2"})
    stage.annotated(3, 4, first=1, requests={"cpu": "1"})

    plan = await a_plan(stage)

    assert {node: kept["cpu"] for node, kept in plan.kept.items()} == {"n0": 4000, "n1": 1000}


async def test_racks_without_any_suitable_node_are_left_out() -> None:
    stage = a_cluster()
    stage.under_test.see(
        *(a_node(f"n{number}", cpu=cpu, labels={RACK: f"r{number}"}) for number, cpu in enumerate("41"))
    )
    stage.running("a", "n0", cpu="4")
    stage.annotated(1, 1, requests={"cpu": "4"}, annotations={"loadmaster.dev/required-topology": RACK})

    plan = await a_plan(stage)

    assert set(plan.kept) == {"n0"}


async def test_members_that_exclude_each_other_have_a_node_each() -> None:
    stage = a_cluster("4", "4", "4")
    for number in range(3):
        stage.running(f"service-{number}", f"n{number}", cpu="4")
    stage.annotated(2, 2, requests={"cpu": "2"}, ports=[ContainerPort(container_port=80, host_port=8080)])

    plan = await a_plan(stage)

    assert len(plan.kept) == 2


async def test_a_plan_names_those_that_are_past_their_promise() -> None:
    stage = a_cluster("2")
    stage.running("fibber", "n0", cpu="2", annotations={"loadmaster.dev/expected-seconds": "10"})
    stage.annotated(1, 1, requests={"cpu": "2"})

    plan = await a_plan(stage)

    assert plan.seconds == NEVER
    assert list(plan.late) == ["default/fibber"]
    assert stage.reservations.text(reserved(stage)) == (
        "1 node reserved for it since 2023-11-14 22:31 UTC (n0); 0 of 1 pod would fit there now, the others once there "
        "is space: it may take the end of 1 pod of which nobody knows when it ends; past the time that they were "
        "expected to run: default/fibber"
    )


async def test_a_plan_says_when_it_fits() -> None:
    stage = a_cluster("2")
    stage.running("before", "n0", 600, cpu="2")
    await stage.waiting_long(1, 1, requests={"cpu": "2"})

    assert stage.reservations.text(reserved(stage)) == (
        "1 node reserved for it since 2023-11-14 22:31 UTC (n0); 0 of 1 pod would fit there now, all of them about "
        "2023-11-14 22:40 UTC"
    )
