"""A group of pods is charged as a whole or not at all."""

from collections.abc import Sequence

import pytest

from plugins.contrib.coscheduling.plugin import Coscheduling
from scheduler import framework as fw
from scheduler.api.groups import coscheduling as api
from scheduler.config.types import LoadmasterSettings
from scheduler.cycle.steps import in_one_go
from scheduler.framework.queued import QueuedGroup
from scheduler.testing import a_node
from tests.unit.quota.waiting.shares import Sharing


class Stage(Sharing):
    """With groups of pods in the namespace `a`, and a quota of it that gives so many cores and no more."""

    def __init__(self, cpu: str = "") -> None:
        super().__init__(also=(Coscheduling,))
        if cpu:
            self.quota(minimum={"cpu": cpu}, maximum={"cpu": cpu})

    def a_group(self, name: str, minimum: int, pods: int, **fields: object) -> list[fw.Pod]:
        labels = self.group(name, minimum)
        return [self.pod(f"{name}-{number}", labels=labels, **fields) for number in range(pods)]


async def test_a_group_above_its_share_has_none_of_its_pods_placed() -> None:
    stage = Stage("3")
    stage.a_group("g", 4, 4)

    await stage.schedule()

    assert stage.placed == []
    assert stage.used() == 0


async def test_what_a_waiting_group_does_not_take_goes_to_others() -> None:
    stage = Stage("3")
    stage.a_group("g", 4, 4)
    await stage.schedule()

    await stage.try_pods(3)

    assert stage.placed == ["a-0", "a-1", "a-2"]


async def test_a_group_is_woken_once_there_is_room_for_all_of_it() -> None:
    stage = Stage("4")
    running = await stage.try_pods(2)
    stage.a_group("g", 4, 4)
    await stage.schedule()

    assert await stage.end(running[0]) == 0
    await stage.end(running[1])

    assert stage.placed == ["g-0", "g-1", "g-2", "g-3"]


@pytest.mark.parametrize(("others", "is_tried"), [((), True), (("Coscheduling",), True), (("NodeAffinity",), False)])
def test_a_group_is_tried_again_at_once_if_quota_has_refused_members_for_whom_there_is_space_by_now(
    others: Sequence[str], is_tried: bool
) -> None:
    stage = Stage("4")
    stage.a_group("g", 3, 4)
    group = stage.engine.queue.pop_nowait()
    assert isinstance(group, QueuedGroup)

    for member in group.members:
        member.unschedulable_plugins = {"CapacityScheduling", *others}

    assert stage.engine.shares.has_come_free(group) is is_tried


async def test_a_group_whose_member_is_not_bound_is_tried_after_the_backoff_of_that() -> None:
    stage = Stage("4")
    await stage.try_pods(1)
    pods = stage.a_group("g", 3, 4)
    stage.under_test.world.exists = lambda uid: uid != "a/g-0"
    await stage.schedule(0)
    assert len(stage.placed) == 1, "without the first, too few have a node"

    stage.under_test.world.exists = lambda uid: True
    await stage.schedule()

    assert len([pod for pod in pods if pod.name in stage.placed]) == 3


async def test_what_was_kept_for_more_pods_than_a_group_has_goes_to_others() -> None:
    stage = Stage("4")
    running = await stage.try_pod("large", requests={"cpu": "4"})
    group = stage.a_group("g", 4, 4, priority=9)
    await stage.schedule()
    await stage.try_pods(2)

    stage.delete(running)
    stage.a_group("g", 3, 0)
    await stage.end(group[1])
    await stage.schedule()

    assert stage.placed == ["a-0", "g-0", "g-2", "g-3"]


async def test_nobody_is_woken_for_what_the_rest_of_a_group_takes() -> None:
    stage = Stage("4")
    running = await stage.try_pod("large", requests={"cpu": "4"})
    stage.a_group("g", 4, 4, priority=9)
    await stage.schedule()
    await stage.try_pods(8)

    assert await stage.end(running) == 1
    assert await stage.schedule() == 0
    assert stage.placed == ["g-0", "g-1", "g-2", "g-3"]


async def test_pods_beyond_the_minimum_of_a_group_wait_alone() -> None:
    stage = Stage("3")
    stage.a_group("g", 2, 5)

    await stage.schedule()

    assert len(stage.placed) == 3
    assert stage.used() == 3000


async def test_no_member_of_a_group_that_lacks_quota_asks_autoscalers_for_nodes() -> None:
    stage = Stage("3")
    stage.a_group("g", 4, 4)

    await stage.schedule()

    assert stage.reasons == dict.fromkeys(("a/g-0", "a/g-1", "a/g-2", "a/g-3"), "WaitingForQuota")


async def test_neither_does_one_that_joins_it_and_it_says_what_for() -> None:
    stage = Stage("3")
    stage.a_group("g", 4, 4)
    await stage.schedule()

    await stage.try_pod("g-4", labels={api.POD_GROUP_LABEL: "g"})

    assert stage.reasons["a/g-4"] == "WaitingForQuota"


async def test_the_event_of_a_group_says_why_it_waits() -> None:
    stage = Stage("3")
    pods = stage.a_group("g", 4, 4)

    await stage.schedule()

    group, cycle = stage.engine.group_parts.groups.of(pods[0]), stage.engine.group_parts.cycle
    assert group is not None
    assert cycle is not None
    record = cycle.records.of(group)
    assert record is not None
    assert "4 pods that start together are rejected in PreFilter because ElasticQuota a is more than Max" in record.text


async def test_a_group_that_has_space_in_its_share_and_no_nodes_waits_for_nodes() -> None:
    stage = Stage()
    stage.quota(minimum={"cpu": "4", "memory": "1Ti"}, maximum={"cpu": "4", "memory": "1Ti"})
    running = await stage.try_pods(4)
    stage.a_group("g", 4, 4, requests={"cpu": "1", "memory": "40Gi"})
    await stage.schedule()
    await stage.end(*running)
    assert stage.placed == []

    stage.under_test.see(a_node("large", cpu="8", memory="512Gi"))
    await stage.schedule()

    assert stage.placed == ["g-0", "g-1", "g-2", "g-3"]


async def test_nodes_are_reserved_for_a_group_only_while_it_lacks_no_quota() -> None:
    stage = Stage()
    reservations = stage.engine.group_parts.reservations
    assert reservations is not None
    reservations.use(LoadmasterSettings(group_reservation_seconds=60))
    stage.quota(minimum={"cpu": "3"}, maximum={"cpu": "3"})
    stage.pod("large", namespace="b", node_name="n", requests={"cpu": "62"})
    stage.a_group("g", 4, 4)

    async def look() -> bool:
        await stage.schedule()
        in_one_go(reservations.look())
        return reservations.reserved is not None

    await look()
    without_quota = await look()
    stage.quota(minimum={"cpu": "4"}, maximum={"cpu": "4"})
    await look()
    with_quota = await look()
    stage.quota(minimum={"cpu": "3"}, maximum={"cpu": "3"})
    lowered = await look()

    assert (without_quota, with_quota, lowered) == (False, True, False)
