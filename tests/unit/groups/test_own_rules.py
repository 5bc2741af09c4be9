"""Our own rules for groups of pods: what brings a group back that was tried in vain, and what does not."""

from collections import Counter
from typing import Any

import pytest

from scheduler import framework as fw
from scheduler.testing import a_node
from tests.fakes import Unschedulable, settle
from tests.unit.cycle.fakes import PROFILE, newer
from tests.unit.groups.coscheduling import Coscheduled


class Stage(Coscheduled):
    """With a count of the decisions about groups."""

    def __init__(self, *plugins: type[fw.Plugin], **options: Any) -> None:
        super().__init__(*plugins, **options)
        self.decisions = 0
        algorithm = self.engine.pod_groups
        assert algorithm is not None
        decide = algorithm.decide_and_leave

        def counted(*arguments: Any) -> Any:
            self.decisions += 1
            return decide(*arguments)

        algorithm.decide_and_leave = counted  # type: ignore[method-assign, assignment]

    def wait_counts(self) -> dict[tuple[str, ...], int]:
        """The plugins that refused pods, and how many of the pods that wait they refused."""
        waiting = self.engine.queue.pending_pods()["unschedulable"]
        return Counter(tuple(sorted(queued.unschedulable_plugins)) for queued in waiting)


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_members_that_would_fit_wait_for_the_others(stage: Stage) -> None:
    await stage.try_group(minimum=8, pods=8)

    assert stage.wait_counts() == {("NodeResourcesFit",): 4, (): 4}


async def test_a_node_that_comes_brings_the_whole_group_back(stage: Stage) -> None:
    await stage.try_group(minimum=6, pods=6)
    assert (stage.decisions, stage.bound) == (1, {})

    await stage.later(a_node("new", cpu="2"))

    assert stage.decisions == 2
    assert len(stage.bound) == 6


async def test_an_event_that_helps_no_member_brings_no_group_back(stage: Stage) -> None:
    await stage.try_group(minimum=6, pods=6)

    node = a_node("n0", cpu="2", labels={"a": "b"})
    stage.engine.handlers.node_changed(node)
    stage.see(["other"], requests={"cpu": "100"})
    await stage.later()

    assert stage.decisions == 1


async def test_a_group_that_fails_again_waits_for_its_backoff() -> None:
    stage = Stage(nodes=1)
    await stage.try_group(minimum=50, pods=50)

    for number in range(24):
        stage.under_test.see(a_node(f"new-{number}", cpu="2"))
        await stage.schedule()

    assert stage.decisions == 1
    await stage.later()
    assert stage.decisions == 2
    assert len(stage.bound) == 50


async def test_of_two_gangs_that_want_the_same_room_one_gets_it_all(stage: Stage) -> None:
    for group in ("g", "h"):
        stage.create(group, minimum=4)
    for number in range(4):
        stage.pods(1, "g", first=number)
        stage.pods(1, "h", first=number)

    await stage.schedule()

    assert sorted(stage.bound) == ["g-0", "g-1", "g-2", "g-3"]
    stage.check()
    for name in ("g-0", "g-1", "g-2", "g-3"):
        stage.engine.handlers.pod_deleted(stage.engine.pods[f"default/{name}"])
    await stage.later()
    assert sorted(stage.bound)[4:] == ["h-0", "h-1", "h-2", "h-3"]


async def test_a_member_that_comes_once_the_minimum_runs_is_placed_at_once() -> None:
    stage = Stage(nodes=3)
    await stage.try_group(minimum=3, pods=3)

    await stage.try_pods(2, first=3)

    assert len(stage.bound) == 5


async def test_members_beyond_the_minimum_that_fit_nowhere_wait_without_the_others(stage: Stage) -> None:
    await stage.try_group(minimum=3, pods=6)
    assert len(stage.bound) == 4
    await stage.later(a_node("new", cpu="2"))

    assert len(stage.bound) == 6


async def test_a_member_that_dies_is_replaced(stage: Stage) -> None:
    pods = await stage.try_group(minimum=4, pods=4)

    stage.engine.handlers.pod_deleted(newer(pods[1].bound_to("n0"), phase="Failed"))
    await stage.try_pods(1, first=4)

    assert "g-4" in stage.bound


async def test_a_replacement_is_not_bound_if_the_others_have_gone_since_it_was_decided(stage: Stage) -> None:
    pods = await stage.try_group(minimum=3, pods=3)
    stage.engine.handlers.pod_deleted(pods[0].bound_to("n0"))
    stage.pods(1, first=3)

    stage.engine.loop.schedule_one(stage.under_test.pop_group())
    stage.engine.handlers.pod_deleted(pods[1].bound_to("n0"))
    await settle()

    assert "g-3" not in stage.bound
    assert "too few other pods of its group have a node" in stage.under_test.world.notes()[-1]


async def test_a_gang_whose_podgroup_has_gone_since_it_was_decided_is_not_bound(stage: Stage) -> None:
    stage.create(minimum=3, pods=3)

    stage.engine.loop.schedule_one(stage.under_test.pop_group())
    stage.delete()
    await settle()

    assert stage.bound == {}


async def test_after_a_restart_in_the_middle_of_its_bindings_the_rest_of_a_group_is_placed() -> None:
    """The API server lists by name: those that are bound may come last."""
    stage = Coscheduled()
    stage.create(minimum=3)

    stage.pods(1)
    await stage.try_pods(2, first=1, node_name="n0")

    assert stage.under_test.world.bound == {"default/g-0": "n1"}


async def test_the_only_member_that_waits_for_events_may_be_deleted(stage: Stage) -> None:
    stage.create(minimum=5)
    await stage.try_pods(6, requests={"cpu": "1"})
    refused = [
        queued.pod
        for queued in stage.engine.queue.pending_pods()["unschedulable"]
        if queued.unschedulable_plugins == {"NodeResourcesFit"}
    ]

    stage.engine.handlers.pod_deleted(refused[0])
    await stage.later()
    assert stage.wait_counts() == {("NodeResourcesFit",): 1, (): 4}
    await stage.later(a_node("new", cpu="2"))

    assert len(stage.bound) == 5


async def test_kinds_of_members_wait_for_events_of_their_own(stage: Stage) -> None:
    stage.create(minimum=5, pods=4)

    await stage.try_pods(1, first=4, node_selector={"kind": "big"})

    assert stage.wait_counts() == {("NodeAffinity",): 1, (): 4}


async def test_pods_behind_scheduling_gates_do_not_count_until_they_are_open(stage: Stage) -> None:
    stage.create(minimum=3)
    pods = stage.pods(3, gates=["kueue.x-k8s.io/admission"])
    assert stage.decisions == 0

    for pod in pods:
        stage.see([pod.name], labels=dict(pod.labels))
        await stage.schedule()

    assert stage.decisions == 1
    assert len(stage.bound) == 3


async def test_a_group_that_is_deleted_keeps_its_pods_from_the_nodes(stage: Stage) -> None:
    pods = await stage.try_group(minimum=5, pods=5)

    stage.delete()
    await stage.later(a_node("new", cpu="8"))

    assert not stage.bound
    assert stage.decisions == 1
    assert stage.refusal(pods[0]) == 'waiting for the PodGroup "g" of the pod to appear'
    stage.create(minimum=5)
    await stage.later()
    assert len(stage.bound) == 5


async def test_others_are_evicted_only_if_the_whole_group_fits_then(stage: Stage) -> None:
    stage.see(["victim-0", "victim-1"], priority=0)
    await stage.schedule()
    stage.create("small", minimum=3)
    stage.create("large", minimum=5)

    await stage.try_pods(5, "large", priority=10)
    assert not stage.under_test.evicted
    await stage.try_pods(3, "small", priority=10)

    assert len(stage.under_test.evicted) == 1


async def test_a_group_without_a_profile_is_left_alone() -> None:
    stage = Stage(profiles=(PROFILE, "other"))
    stage.create(minimum=2, pods=1)
    stage.pods(1, first=1, scheduler_name="not-ours")

    assert await stage.schedule() == 0


@pytest.mark.parametrize("count", [300])
async def test_many_groups_leave_nothing_behind(count: int) -> None:
    stage = Stage(nodes=0)
    pods = [pod for number in range(count) for pod in stage.annotated(1, 1, group=f"a{number}")]
    for _ in range(10):
        queued = stage.engine.queue.pop_nowait()
        assert queued is not None
        stage.engine.loop.schedule_one(queued)

    for pod in pods:
        stage.engine.handlers.pod_deleted(pod)

    members = stage.engine.group_parts.groups.members_by_group
    assert not members.groups()
    members.check_invariants()


async def test_a_group_for_which_there_is_no_room_is_not_tried_again_for_less(stage: Stage) -> None:
    await stage.try_group(minimum=8, pods=8)

    await stage.later(a_node("new-0", cpu="2"))
    assert stage.decisions == 1
    assert stage.wait_counts() == {("NodeResourcesFit",): 4, (): 4}
    await stage.later(a_node("new-1", cpu="2"))

    assert stage.decisions == 2
    assert len(stage.bound) == 8


async def test_a_group_that_was_left_alone_for_lack_of_space_is_woken_by_what_is_freed() -> None:
    stage = Stage(nodes=0)
    stage.under_test.see(a_node("new-0", cpu="2", unschedulable=True))
    await stage.try_group(minimum=2, pods=2)
    (service,) = stage.see(["service"], node_name="new-0", requests={"cpu": "2"})

    await stage.later(a_node("new-0", cpu="2"))
    while_full = dict(stage.bound)
    stage.engine.handlers.pod_deleted(service)
    await stage.later()

    assert while_full == {}
    assert sorted(stage.bound) == ["g-0", "g-1"]


async def test_a_group_is_tried_in_full_once_it_has_waited_too_long(stage: Stage) -> None:
    await stage.try_group(minimum=8, pods=8)

    stage.under_test.clock.advance(400)
    stage.engine.queue.flush_unschedulable_leftover()
    await stage.schedule()

    assert stage.decisions == 2


async def test_members_that_join_a_group_that_waits_cost_one_attempt_after_its_backoff_and_are_told_why() -> None:
    stage = Stage()
    await stage.try_group(minimum=8, pods=8)
    for first in range(8, 11):
        stage.pods(1, first=first)
    in_backoff = stage.where("g-8")

    await stage.later()

    told = {write.pod for write in stage.under_test.world.written(Unschedulable)}
    assert in_backoff == "backoff"
    assert stage.decisions == 2
    assert len(told) == 11
    await stage.later()
    assert stage.decisions == 2


async def test_of_members_of_several_sizes_the_smallest_say_whether_there_may_be_room(stage: Stage) -> None:
    stage.create(minimum=3)
    stage.pods(2, requests={"cpu": "1500m", "memory": "1Gi"})
    await stage.try_pods(1, first=2, requests={"cpu": "600m"})
    assert stage.decisions == 1

    await stage.later(a_node("new", cpu="600m"))

    assert stage.decisions == 2
    assert len(stage.bound) == 3


async def test_what_a_group_needs_together_is_compared_with_the_cluster_before_any_pod_is_tried(stage: Stage) -> None:
    await stage.try_group(minimum=3, min_resources={"cpu": "5", "example.com/gpu": "2", "pods": "1"}, pods=3)

    messages = {write.message for write in stage.under_test.world.written(Unschedulable)}
    assert messages == {"resource gap: cpu: 1000m, example.com/gpu: 2"}
    await stage.later(a_node("new", cpu="1"))
    assert stage.decisions == 1
    await stage.later(a_node("gpus", allocatable={"example.com/gpu": "2"}))
    assert len(stage.bound) == 3


async def test_what_a_group_has_counts_as_free_for_it(stage: Stage) -> None:
    await stage.try_group(minimum=3, min_resources={"cpu": "4"}, pods=3)

    await stage.try_pods(1, first=3)

    assert len(stage.bound) == 4


@pytest.mark.parametrize(
    ("resources", "refusal"),
    [
        ({"cpu": "much"}, "minResources of the PodGroup cannot be read: "),
        ({f"example.com/r{number}": 1 for number in range(101)}, "minResources of the PodGroup cannot be read: it has"),
    ],
)
async def test_resources_that_cannot_be_read_are_named(stage: Stage, resources: dict[str, Any], refusal: str) -> None:
    (pod,) = stage.create(minimum=1, min_resources=resources, pods=1)

    assert await stage.schedule() == 0

    assert stage.refusal(pod).startswith(refusal)


@pytest.mark.parametrize("amount", ["9" * 30, "1e18", "-5", "0"])
async def test_amounts_beyond_reason_do_no_harm(stage: Stage, amount: str) -> None:
    stage.create(minimum=2**31 - 1, min_resources={"cpu": amount, "example.com/unknown": amount})
    stage.create("h", minimum=1, min_resources={"memory": amount})
    stage.pods(2)

    await stage.try_pods(1, "h")
    await stage.later(a_node("new", cpu="2"))

    assert sorted(stage.bound) in ([], ["h-0"])


async def test_a_member_is_replaced_though_others_have_succeeded(stage: Stage) -> None:
    pods = await stage.try_group(minimum=3, pods=3)

    stage.engine.handlers.pod_deleted(newer(pods[0].bound_to("n0"), phase="Succeeded"))
    stage.engine.handlers.pod_deleted(newer(pods[1].bound_to("n0"), phase="Failed"))
    await stage.try_pods(1, first=3)

    assert "g-3" in stage.bound


async def test_members_that_fit_another_way_round_are_placed_so() -> None:
    stage = Stage(nodes=1)
    stage.under_test.see(a_node("gpu", cpu="4", labels={"kind": "gpu"}))
    stage.annotated(1, 2)
    stage.annotated(1, 2, first=1, node_selector={"kind": "gpu"}, requests={"cpu": "4"})

    await stage.schedule()

    assert stage.bound == {"a-0": "n0", "a-1": "gpu"}


async def test_of_a_group_that_does_not_need_all_its_members_the_small_ones_are_tried_first_at_last() -> None:
    stage = Stage(nodes=0)
    stage.under_test.see(a_node("n0", cpu="4"))
    for number, cores in enumerate("12111"):
        stage.annotated(1, 4, first=number, requests={"cpu": cores})

    await stage.schedule()

    assert stage.bound == dict.fromkeys(["a-0", "a-2", "a-3", "a-4"], "n0")


async def test_pods_whose_group_is_deleted_when_they_are_in_the_queue_wait_for_it_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage()
    pods = stage.create(minimum=2, pods=2)
    stage.delete()

    await stage.schedule()

    assert [stage.where(pod.name) for pod in pods] == ["incomplete"] * 2
    assert stage.refusal(pods[0]) == 'waiting for the PodGroup "g" of the pod to appear'
    assert not caplog.records

    stage.create(minimum=2)
    await stage.later()
    assert len(stage.bound) == 2
