"""Pods and elastic quotas at work: who starts, who waits with which sentence, and what wakes whom."""

from collections.abc import Container

import pytest

from scheduler import framework as fw
from scheduler.framework.events import ELASTIC_QUOTA_SIGS
from scheduler.testing import a_pod
from tests.unit.cycle.fakes import PROFILE, newer
from tests.unit.quota.waiting.shares import Sharing, limited

MORE_THAN_MAX = "Pod a/a-2 is rejected in PreFilter because ElasticQuota a is more than Max"
MORE_THAN_MIN = "Pod a/a-2 is rejected in PreFilter because total ElasticQuota used is more than min"


async def test_pods_above_the_maximum_wait_with_one_sentence() -> None:
    stage = limited("2")

    pods = await stage.try_pods(3)

    assert stage.placed == ["a-0", "a-1"]
    assert stage.where(pods[2]) == "unschedulable"
    assert MORE_THAN_MAX in stage.note(pods[2])


async def test_a_quota_borrows_what_the_others_leave_idle_and_no_more() -> None:
    stage = Sharing()
    stage.quota("a", minimum={"cpu": "1"})
    stage.quota("b", minimum={"cpu": "1"})

    pods = await stage.try_pods(3)

    assert stage.placed == ["a-0", "a-1"]
    assert MORE_THAN_MIN in stage.note(pods[2])


async def test_pods_of_other_schedulers_count_too() -> None:
    stage = limited("2")
    stage.pod("theirs", scheduler_name="another", node_name="n")

    await stage.try_pods(2)

    assert stage.placed == ["a-0", "theirs"]


async def test_pods_that_end_together_wake_as_many_as_there_is_room_for_once() -> None:
    stage = limited("4")
    pods = await stage.try_pods(40)

    assert await stage.end(*pods[:4]) == 4
    assert len(stage.placed) == 4
    assert len(stage.engine.queue.pending_for_quota) == 32


async def test_the_most_important_pod_that_waits_is_woken_first() -> None:
    stage = limited("1")
    first = await stage.try_pod("first")
    stage.pods(3)
    await stage.try_pod("important", priority=10)

    await stage.end(first)

    assert stage.placed == ["important"]


def keeping_back(pods: Container[str]) -> Sharing:
    """A plugin keeps back pods of these names."""

    class KeepsBack(fw.PreEnqueuePlugin):
        name = "KeepsBack"

        def pre_enqueue(self, pod: fw.Pod) -> fw.Status | None:
            return fw.unresolvable() if pod.name in pods else None

    return Sharing(also=(KeepsBack,))


async def test_the_next_of_one_that_another_plugin_keeps_back_is_tried_once_it_is_guaranteed_what_others_use() -> None:
    kept_back = set[str]()
    stage = keeping_back(kept_back)
    for namespace in ("a", "b"):
        stage.quota(namespace, minimum={"cpu": "2", "memory": "64Gi"})
    own = [stage.pod(f"own-{number}", node_name="n") for number in range(2)]
    for number in range(3):
        stage.pod(f"b-{number}", namespace="b", node_name="n")
    stage.pod("oldest")
    await stage.try_pod("next")
    kept_back.add("oldest")

    stage.delete(own[0])
    await stage.after_a_look()

    assert len(stage.evicted) == 1


async def test_a_pod_does_not_go_ahead_of_an_older_one_as_the_next_of_one_that_another_plugin_keeps_back() -> None:
    kept_back = set[str]()
    stage = keeping_back(kept_back)
    stage.quota(minimum={"cpu": "1", "memory": "1Gi"})
    running = stage.pod("running", node_name="n")
    for name, memory in (("oldest", "0"), ("older", "1Mi"), ("alike", "0")):
        await stage.try_pod(name, requests={"cpu": "1", "memory": memory})
    kept_back.add("oldest")

    await stage.end(running)

    assert stage.placed == ["older"]


async def test_a_small_pod_may_start_while_a_larger_one_waits() -> None:
    stage = limited("4")
    running = await stage.try_pods(4)
    stage.pod("large", requests={"cpu": "3"})
    await stage.try_pod("small")

    await stage.end(running[0])

    assert stage.placed == ["a-1", "a-2", "a-3", "small"]


async def test_a_small_pod_that_was_woken_makes_way_for_a_more_important_one_once_there_is_space_for_that() -> None:
    stage = limited("4")
    running = await stage.try_pods(4)
    important = stage.pod("important", requests={"cpu": "2"}, priority=5)
    stage.under_test.see(newer(important, preemption_policy="Never"))
    await stage.try_pod("small")

    await stage.end(*running[:2])

    assert stage.placed == ["a-2", "a-3", "important"]


async def test_what_a_woken_pod_leaves_goes_to_the_next() -> None:
    """The first fits no node: the cluster has none with so much memory."""
    stage = Sharing()
    stage.quota(minimum={"cpu": "1", "memory": "1Ti"}, maximum={"cpu": "1", "memory": "1Ti"})
    first = await stage.try_pod("first")
    stage.pod("huge", requests={"cpu": "1", "memory": "1Ti"}, priority=10)
    await stage.try_pod("next")

    await stage.end(first)

    assert stage.placed == ["next"]


async def test_a_quota_that_rises_wakes_those_for_whom_it_does() -> None:
    stage = limited("1")
    await stage.try_pods(6)

    stage.quota(minimum={"cpu": "3"}, maximum={"cpu": "3"})

    assert await stage.schedule() == 2
    assert len(stage.placed) == 3


async def test_other_amounts_count_at_once_and_the_tree_is_not_made_again_for_them() -> None:
    stage = limited("4")
    stage.quota("b", minimum={"cpu": "1"})
    pods = await stage.try_pods(2)
    (ledger,) = stage.shares.ledgers
    before = ledger.tree

    for cores in (1, 2, 3, 2):
        stage.quota(minimum={"cpu": str(cores)}, maximum={"cpu": str(cores)})
    await stage.try_pods(1, first=2)

    assert ledger.tree is before
    assert stage.placed == [pod.name for pod in pods]


async def test_amounts_that_cannot_be_used_any_more_are_not_taken_over_from_before() -> None:
    stage = limited("4")
    stage.quota("b", minimum={"cpu": "1"})
    await stage.schedule()

    stage.quota(minimum={"cpu": "lots"})
    (pod,) = await stage.try_pods(1)

    assert "not a quantity: 'lots'" in stage.note(pod)


async def test_another_quota_lends_what_it_is_given() -> None:
    stage = Sharing()
    stage.quota("a", minimum={"cpu": "1"})
    await stage.try_pods(3)

    stage.quota("b", minimum={"cpu": "1"})

    assert await stage.schedule() == 1
    assert len(stage.placed) == 2


async def test_pods_are_free_once_their_quota_is_deleted() -> None:
    stage = limited("1")
    await stage.try_pods(5)

    stage.drop()
    await stage.schedule()

    assert len(stage.placed) == 5


async def test_a_new_quota_counts_the_pods_that_are_there() -> None:
    stage = Sharing()
    await stage.try_pods(3)

    stage.quota(minimum={"cpu": "3"}, maximum={"cpu": "3"})
    await stage.try_pods(1, first=3)

    assert len(stage.placed) == 3
    assert stage.used() == 3000


async def test_the_first_api_group_of_quotas_is_read_too() -> None:
    stage = Sharing()
    stage.quota(minimum={"cpu": "1"}, source=ELASTIC_QUOTA_SIGS)

    await stage.try_pods(2)

    assert len(stage.placed) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"name": "old"}, {"name": "new", "created": "2026-02-01T00:00:00Z"}),
        ({"name": "a"}, {"name": "b"}),
        ({"name": "a"}, {"name": "b", "source": ELASTIC_QUOTA_SIGS}),
    ],
    ids=["by age", "by name", "of both groups"],
)
async def test_of_two_quotas_in_a_namespace_the_oldest_counts(one: dict[str, str], other: dict[str, str]) -> None:
    stage = Sharing()
    stage.quota(minimum={"cpu": "8"}, maximum={"cpu": "8"}, **other)  # type: ignore[arg-type]
    stage.quota(minimum={"cpu": "1"}, maximum={"cpu": "1"}, **one)  # type: ignore[arg-type]

    await stage.try_pods(3)

    assert len(stage.placed) == 1
    (ledger,) = stage.shares.ledgers
    problem = f'the namespace has an older one, "a/{one["name"]}", which counts alone'
    assert ledger.problems == {f"a/{other['name']}": problem}


@pytest.mark.parametrize(
    ("minimum", "maximum", "problem"),
    [
        ({"cpu": "2"}, {"cpu": "1"}, "its minimum of cpu, 2000, is above its maximum, 1000"),
        ({"cpu": "-1"}, None, f"its minimum of cpu is -1000: must be from 0 to {2**63 - 1}"),
        ({"cpu": "10E"}, None, f"its minimum of cpu is {10**22}: must be from 0 to {2**63 - 1}"),
        ({"cpu": "lots"}, None, "not a quantity: 'lots'"),
        (
            {f"example.com/r{number}": "1" for number in range(101)},
            None,
            "its min has 101 resources, must have at most",
        ),
    ],
    ids=["minimum above maximum", "negative", "beyond 64 bits", "unreadable", "too many"],
)
async def test_a_quota_that_makes_no_sense_costs_its_own_pods_alone(
    minimum: dict[str, str], maximum: dict[str, str] | None, problem: str
) -> None:
    stage = Sharing()
    stage.quota("a", minimum=minimum, maximum=maximum)
    stage.quota("b", minimum={"cpu": "1"})
    bad, good = stage.pods(1, "a"), stage.pods(1, "b")

    await stage.schedule()

    assert stage.placed == ["b-0"]
    assert problem in stage.note(bad[0])
    assert 'share "a/quota" cannot be used' in stage.note(bad[0])
    assert good[0].name in stage.placed


async def test_a_request_beyond_all_numbers_leaves_no_trace() -> None:
    stage = limited("2")
    huge = stage.pod("huge", scheduler_name="another", node_name="n", requests={"cpu": "9e18"})
    await stage.try_pods(1)
    assert stage.placed == ["huge"]

    await stage.end(huge)

    assert stage.placed == ["a-0"]
    assert stage.used() == 1000


async def test_resources_that_pods_invent_are_not_kept() -> None:
    stage = Sharing()
    stage.quota(minimum={"cpu": "8"})

    for number in range(50):
        stage.pod(f"p{number}", requests={f"example.com/r{number}": "1"}, node_name="n", scheduler_name="another")

    (ledger,) = stage.shares.ledgers
    assert ledger.tree.resources == {"cpu", "memory", "ephemeral-storage"}


async def test_a_pod_that_is_resized_counts_with_what_it_has_then() -> None:
    stage = limited("4")
    stage.pod("grows", node_name="n", scheduler_name="another")

    grown = a_pod("grows", namespace="a", node_name="n", scheduler_name="another", requests={"cpu": "3"})
    stage.under_test.see(newer(grown))

    assert stage.used() == 3000


async def test_a_pod_that_others_bind_waits_no_longer() -> None:
    stage = limited("1")
    pods = await stage.try_pods(2)

    stage.under_test.see(newer(pods[1], node_name="n"))

    assert len(stage.engine.queue.pending_for_quota) == 0
    assert stage.used() == 2000


async def test_pods_that_wait_are_not_tried_again_without_need() -> None:
    stage = limited("1")
    await stage.try_pods(20)

    stage.under_test.wait(600.0)
    stage.pod("elsewhere", namespace="free")

    assert await stage.schedule() == 1
    assert stage.placed == ["a-0", "elsewhere"], "no quota holds the other one"


async def test_a_nominated_pod_of_the_same_quota_counts_if_it_is_as_important() -> None:
    stage = limited("2")
    nominated = a_pod("nominated", namespace="a", priority=5, requests={"cpu": "2"}, scheduler_name=PROFILE)
    stage.engine.nominator.add(nominated, "n")

    lower, higher = a_pod("lower", namespace="a", requests={"cpu": "1"}), a_pod("higher", namespace="a", priority=9)

    assert "more than Max" in str(stage.shares.refusal(lower))
    assert stage.shares.refusal(higher) is None


async def test_a_pod_for_which_space_is_kept_does_not_wait_for_a_newer_one_that_is_as_important() -> None:
    stage = limited("2")
    older, later = (a_pod(name, namespace="a", requests={"cpu": "2"}) for name in ("first", "second"))
    for pod in (older, later):
        stage.engine.nominator.add(pod, "n")
    stage.engine.nominator.keep([older.uid])

    assert stage.shares.refusal(older) is None
    assert "more than Max" in str(stage.shares.refusal(later))


async def test_nominated_pods_of_others_count_as_long_as_they_are_within_their_minimum() -> None:
    stage = Sharing()
    stage.quota("a", minimum={"cpu": "1"})
    stage.quota("b", minimum={"cpu": "1"})
    stage.engine.nominator.add(a_pod("other", namespace="b", requests={"cpu": "2"}), "n")
    pod = a_pod("pod", namespace="a", requests={"cpu": "1"})

    assert "total ElasticQuota used is more than min" in str(stage.shares.refusal(pod))


async def test_a_pending_pod_that_asks_for_what_cannot_be_read_is_tried_and_says_so() -> None:
    stage = Sharing()
    stage.quota(minimum={"cpu": "1"})
    await stage.try_pods(2)

    pod = await stage.try_pod("a-1", requests={"cpu": "lots"})

    assert "lots" in stage.note(pod)
    assert len(stage.engine.queue.pending_for_quota) == 0
