"""Which pods may run on nodes that are reserved for a group."""

import pytest

from scheduler import framework as fw
from scheduler.api.objects import PodStatus
from scheduler.config.types import GroupBackfill
from scheduler.cycle.steps import in_one_go
from scheduler.testing import a_node
from tests.fakes import Eviction
from tests.unit.groups.reservations.stage import Stage

START_IN = 1_000
"""Seconds until the group is expected to start, when nodes are reserved for it."""


async def a_stage(backfill: GroupBackfill = GroupBackfill.PROMISED) -> Stage:
    """One node of two cores that is reserved for a group which needs all of it; a core is free until others leave."""
    stage = Stage(nodes=1)
    stage.use(backfill=backfill)
    stage.running("before", "n0", deadline=START_IN + 61, priority=5)
    await stage.waiting_long(1, 1, requests={"cpu": "2"}, priority=5)
    assert stage.reserved == {"n0": 2000}
    return stage


async def is_let_on(stage: Stage, pod: fw.Pod) -> bool:
    await stage.schedule()
    return pod.name in stage.bound


async def test_a_pod_that_its_deadline_ends_before_the_group_starts_is_let_on() -> None:
    stage = await a_stage()

    assert await is_let_on(stage, stage.small("short", deadline=START_IN - 10))


async def test_a_pod_that_may_run_longer_is_not() -> None:
    stage = await a_stage()

    pod = stage.small("long", deadline=START_IN + 10)

    assert not await is_let_on(stage, pod)
    assert "until about 2023-11-14 22:48 UTC" in stage.refusals(pod)[0]


async def test_time_that_passes_leaves_less_for_backfill() -> None:
    stage = await a_stage()
    await stage.wait(START_IN / 2)

    assert not await is_let_on(stage, stage.small("short", deadline=START_IN - 10))
    assert await is_let_on(stage, stage.small("shorter", deadline=START_IN // 2 - 10))


@pytest.mark.parametrize(
    ("backfill", "by_deadline", "by_promise"),
    [
        pytest.param(GroupBackfill.PROMISED, True, True, id="promised"),
        pytest.param(GroupBackfill.ENFORCED, True, False, id="enforced"),
        pytest.param(GroupBackfill.NEVER, False, False, id="never"),
    ],
)
async def test_the_setting_says_which_ends_count(backfill: GroupBackfill, by_deadline: bool, by_promise: bool) -> None:
    stage = await a_stage(backfill=backfill)

    promising = await is_let_on(stage, stage.small("promising", annotations={"loadmaster.dev/expected-seconds": "60"}))
    if promising:
        stage.end(stage.engine.pods["default/promising"])
    enforced = await is_let_on(stage, stage.small("enforced", deadline=60))

    assert (enforced, promising) == (by_deadline, by_promise)


@pytest.mark.parametrize("text", ["", "soon", "0", "-5", "60.5", "9" * 5_000, "\uff16\uff10"])
async def test_a_promise_that_is_no_number_is_none(text: str) -> None:
    stage = await a_stage()

    assert not await is_let_on(stage, stage.small("odd", annotations={"loadmaster.dev/expected-seconds": text}))


async def test_where_nobody_knows_when_the_group_starts_no_end_is_early_enough() -> None:
    stage = Stage(nodes=1)
    stage.running("service", "n0")
    await stage.waiting_long(1, 1, requests={"cpu": "2"})

    assert not await is_let_on(stage, stage.small("short", deadline=1))


async def test_a_pod_of_higher_priority_is_not_bound_by_it_and_one_of_the_same_is() -> None:
    stage = await a_stage()

    assert not await is_let_on(stage, stage.small("same", priority=5))
    assert await is_let_on(stage, stage.small("higher", priority=6))


async def test_a_pod_of_a_daemon_set_is_not_bound_by_it() -> None:
    stage = await a_stage()
    pod = stage.small("agent")
    stage.engine.queue.delete(pod.uid)
    agent = stage.of_daemon_set(pod)
    stage.engine.queue.add(agent)

    assert await is_let_on(stage, agent)


async def test_a_pod_beside_which_the_group_fits_is_let_on() -> None:
    stage = Stage(nodes=0)
    stage.under_test.see(a_node("n0", cpu="8"))
    stage.running("before", "n0", cpu="6", priority=50)
    await stage.waiting_long(1, 1, requests={"cpu": "4"})
    too_early = await is_let_on(stage, stage.small("early", cpu="1"))

    stage.end(stage.engine.pods["default/before"])
    in_one_go(stage.reservations.look())  # before the group, for which there is enough space now
    beside = await is_let_on(stage, stage.small("beside", cpu="3"))

    assert not too_early
    assert beside


async def test_nobody_is_evicted_from_a_reserved_node_for_those_that_it_binds() -> None:
    stage = Stage(nodes=1)
    stage.running("victim", "n0", cpu="2", priority=0)
    await stage.waiting_long(1, 1, "patient", requests={"cpu": "2"}, priority=5, preemption_policy="Never")

    stage.small("pod", cpu="2", priority=5)
    stage.annotated(2, 2, "group", requests={"cpu": "1"}, priority=5)
    await stage.schedule()
    by_those_it_binds = len(stage.under_test.world.written(Eviction))
    stage.small("important", cpu="2", priority=6)
    await stage.schedule()

    assert stage.reserved == {"n0": 2000}
    assert by_those_it_binds == 0
    assert len(stage.under_test.world.written(Eviction)) == 1


async def test_a_pod_that_is_nominated_to_a_node_keeps_that() -> None:
    stage = Stage(nodes=1)
    stage.running("before", "n0", cpu="1", priority=5)
    await stage.waiting_long(1, 1, requests={"cpu": "2"}, priority=5)

    pod = stage.small("nominated", status=PodStatus(nominated_node_name="n0"))

    assert await is_let_on(stage, pod)


async def test_a_pod_that_was_refused_is_tried_when_there_is_space_beside_what_is_kept() -> None:
    stage = Stage(nodes=0)
    stage.under_test.see(a_node("n0", cpu="8", labels={"disk": "ssd"}), a_node("n1", cpu="8"))
    before = stage.running("before", "n0", cpu="6")
    stage.running("service", "n1", cpu="8")
    await stage.waiting_long(2, 2, requests={"cpu": "6"})
    pod = stage.small("small", node_selector={"disk": "ssd"})
    refused = not await is_let_on(stage, pod)

    stage.end(before)
    await stage.wait(20)

    assert refused
    assert stage.reserved == {"n0": 6000, "n1": 6000}
    assert stage.bound == {"small": "n0"}
