"""Groups of `scheduling.x-k8s.io` and annotated ones, from the watch to the binding."""

import pytest

from scheduler.api.objects import GroupAnnotations
from scheduler.config.feature_gates import FeatureGates
from tests.unit.cycle.fakes import PROFILE, newer
from tests.unit.groups.coscheduling import Coscheduled


async def test_an_annotated_gang_needs_no_object() -> None:
    groups = Coscheduled()
    groups.annotated(2, 3)
    assert await groups.schedule() == 0

    groups.annotated(1, 3, first=2)
    await groups.schedule()

    assert sorted(groups.bound) == ["a-0", "a-1", "a-2"]


async def test_a_gang_that_does_not_fit_holds_nothing() -> None:
    groups = Coscheduled()

    await groups.try_group(minimum=5, pods=5)

    assert not groups.bound
    assert not list(groups.engine.cache.assumed_pods())
    groups.see(["alone-0", "alone-1", "alone-2", "alone-3"])
    await groups.schedule()
    assert len(groups.bound) == 4


async def test_pods_wait_until_their_group_is_there() -> None:
    groups = Coscheduled()
    pods = groups.pods(2)
    assert await groups.schedule() == 0
    assert groups.refusal(pods[0]) == 'waiting for the PodGroup "g" of the pod to appear'

    await groups.try_group(minimum=2)

    assert sorted(groups.bound) == ["g-0", "g-1"]


async def test_a_lower_minimum_lets_a_group_go() -> None:
    groups = Coscheduled()
    await groups.try_group(minimum=3, pods=2)

    await groups.try_group(minimum=2)

    assert len(groups.bound) == 2


async def test_a_group_of_each_kind_may_have_the_same_name() -> None:
    groups = Coscheduled(gates=FeatureGates(generic_workload=True))
    groups.create("g", minimum=2, pods=1)
    groups.annotated(1, 2, group="g", first=1)
    groups.see(["k"], group="g")

    assert await groups.schedule() == 0

    members = groups.engine.group_parts.groups.members_by_group
    assert sorted(key.source for key in members.groups()) == [
        "loadmaster.dev/pod-group",
        "scheduling.k8s.io/PodGroup",
        "scheduling.x-k8s.io/PodGroup",
    ]


@pytest.mark.parametrize("minimum", ["", "0", "-1", "two", "99999999999", "9" * 5_000, "1e3", "٣"])
async def test_an_annotation_that_is_no_number_is_named(minimum: str) -> None:
    groups = Coscheduled()
    (pod,) = groups.annotated(1, minimum)

    assert await groups.schedule() == 0

    refusal = groups.refusal(pod)
    assert refusal.startswith('the annotation loadmaster.dev/pod-group-min-available is "')
    assert len(refusal) < 250


async def test_members_that_contradict_each_other_are_not_tried_until_one_gives_in() -> None:
    groups = Coscheduled()
    groups.annotated(1, 2)
    (wrong,) = groups.annotated(1, 1, first=1)
    assert await groups.schedule() == 0
    assert groups.refusal(wrong) == (
        "all pods in a pod group should have the same annotation loadmaster.dev/pod-group-min-available, "
        'got: "1" and "2"'
    )

    groups.engine.handlers.pod_deleted(wrong)
    groups.annotated(1, 2, first=2)
    await groups.schedule()

    assert sorted(groups.bound) == ["a-0", "a-2"]


async def test_a_pod_that_contradicts_one_that_is_being_bound_is_tried_as_soon_as_that_has_its_node() -> None:
    groups = Coscheduled()
    (first,) = groups.annotated(1, 1, priority=1)
    await groups.schedule()
    groups.annotated(1, 1, first=1)
    assert await groups.schedule() == 0, "the watch shows the first without a node"

    groups.engine.handlers.pod_changed(newer(first, node_name=groups.bound["a-0"]))
    await groups.schedule()

    assert sorted(groups.bound) == ["a-0", "a-1"]


async def test_members_of_different_schedulers_are_not_tried() -> None:
    groups = Coscheduled(profiles=(PROFILE, "one", "two"))
    groups.create(minimum=2)
    groups.pods(1, scheduler_name="one")
    (pod,) = groups.pods(1, first=1, scheduler_name="two")

    assert await groups.schedule() == 0

    assert groups.refusal(pod).startswith("all pods in a pod group should have the same .spec.schedulerName, got: ")


async def test_a_pod_whose_label_changes_leaves_its_group() -> None:
    groups = Coscheduled()
    groups.create(minimum=3)
    groups.create("h", minimum=1)
    groups.pods(2)

    groups.see(["g-1"], labels={"scheduling.x-k8s.io/pod-group": "h"})
    await groups.schedule()

    members = groups.engine.group_parts.groups.members_by_group
    assert sorted((key.name, members.of(key).count) for key in members.groups()) == [("g", 1), ("h", 1)]
    assert sorted(groups.bound) == ["g-1"]


async def test_wishes_are_read_from_the_object_and_from_its_pods() -> None:
    groups = Coscheduled()
    groups.create(
        annotations=GroupAnnotations(required_topology="rack"),
        schedule_timeout_seconds=7,
        min_resources={"cpu": "3", "nvidia.com/gpu": "2"},
    )
    (pod,) = groups.pods(
        1,
        annotations={
            "kueue.x-k8s.io/podset-preferred-topology": "block",
            "kueue.x-k8s.io/podset-required-topology": "host",
            "loadmaster.dev/expected-seconds": "90",
        },
    )

    group = groups.engine.group_parts.groups.of(pod)

    assert group is not None
    assert (group.required_level, group.preferred_level, group.expected_seconds) == ("rack", "block", 90.0)
    assert (group.timeout_seconds, dict(group.resources)) == (7.0, {"cpu": 3000, "nvidia.com/gpu": 2})
    assert (group.is_ours, group.problem) == (True, "")
