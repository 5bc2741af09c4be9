"""Groups that evict, over time: they start once their victims are gone, whatever else comes meanwhile."""

from collections.abc import Callable

import pytest

from scheduler.api.groups.coscheduling import POD_GROUP_LABEL
from scheduler.api.objects import PodStatus, Taint
from scheduler.framework.events import COSCHEDULING_POD_GROUP
from scheduler.testing import a_node
from tests.unit.quota.in_time import GPU, Life

REQUIRED = "loadmaster.dev/required-topology"

HOUR = 3_600


def without_quota() -> Life:
    return Life(grace=10, longer=7, without=("CapacityScheduling",))


def replaced(life: Life, seconds: int, count: int, *, priority: int = 0) -> None:
    """Let another pod come at once for each that is gone or leaves, as a controller would have it."""
    for second in range(0, seconds, 5):
        life.advance(5)
        there = sum(pod.namespace == "low" and not pod.is_deleting for pod in life.engine.pods.values())
        for number in range(count - there):
            life.pod(f"again-{second}-{number}", "low", priority=priority)


@pytest.mark.parametrize("priority", [0, 10])
def test_a_gang_starts_once_its_victims_are_gone_though_their_replacements_come_at_once(priority: int) -> None:
    with without_quota() as life:
        life.set_node(a_node("n1", cpu=2), a_node("n2", cpu=2))
        life.pods(4, "low", wait=5)
        life.group("gang", 4, "team", priority=10)
        replaced(life, HOUR // 4, 4, priority=priority)

        assert life.with_node("team") == [f"team/gang-{number}" for number in range(4)]
        assert len(life.victims) == 4


def goes(life: Life) -> None:
    life.remove(COSCHEDULING_POD_GROUP, life.engine.objects.get(COSCHEDULING_POD_GROUP, "gang", "team"))


def has_a_gated_pod(life: Life) -> None:
    life.pod("gated", "team", priority=10, labels={POD_GROUP_LABEL: "gang"}, gates=("later",))


@pytest.mark.parametrize("happens", [goes, has_a_gated_pod])
def test_nothing_is_kept_for_a_group_that_is_tried_no_more_though_its_pods_are_there(
    happens: Callable[[Life], None],
) -> None:
    with without_quota() as life:
        life.set_node(a_node("n1", cpu=2), a_node("n2", cpu=2))
        life.pods(4, "low", wait=5)
        life.group("gang", 4, "team", priority=10, wait=1)
        assert set(life.engine.nominator.nodes) == {"n1", "n2"}

        happens(life)

        assert not life.engine.nominator.nodes
        life.pods(4, "low2", wait=60)
        assert life.running("low2") == 4


def test_nominations_from_before_a_restart_end_with_an_attempt_for_which_nobody_leaves() -> None:
    with without_quota() as life:
        life.set_node(a_node("n1", cpu=2))
        life.pods(1, "high", priority=20, wait=5)

        life.group("gang", 2, "team", priority=10, status=PodStatus(nominated_node_name="n1"), wait=5)

        assert not life.engine.nominator.nodes
        assert life.victims == []


def test_for_members_beyond_the_minimum_others_are_evicted_soon_and_all_at_once() -> None:
    with without_quota() as life:
        life.set_node(a_node("n1", cpu=3), a_node("n2", cpu=3))
        life.pods(6, "low", wait=5)
        life.group("gang", 5, "team", priority=10, minimum=2)

        life.advance(60)
        assert len(life.victims) == 5

        life.advance(60)
        assert life.running("team") == 5
        assert len(life.victims) == 5


def test_of_members_beyond_the_minimum_as_many_start_as_others_can_make_space_for() -> None:
    with without_quota() as life:
        life.set_node(a_node("n1", cpu=3))
        life.pods(3, "low", wait=5)
        life.group("gang", 5, "team", priority=10, minimum=2)

        life.advance(180)

        assert life.running("team") == 3
        assert len(life.victims) == 3


def test_a_group_that_waits_for_its_victims_leaves_others_what_theirs_free() -> None:
    with Life(grace=40, longer=-10, without=("CapacityScheduling",)) as life:
        life.set_node(a_node("n1", cpu=4))
        life.pod("slow", "low", cpu=2, wait=5)
        life.group("first", 2, "team", cpu=2, priority=10, wait=1)
        life.set_node(a_node("n2", cpu=2, labels={"zone": "b"}))
        life.pods(2, "low", wait=5)
        life.group("second", 1, "team", cpu=2, priority=10, node_selector={"zone": "b"}, wait=60)

        assert life.victims == ["low/slow", "low/low0", "low/low1"]
        assert life.with_node() == ["team/first-0", "team/first-1", "team/second-0"]


def test_no_member_takes_what_is_kept_for_another_one_and_leaves_it_what_others_free() -> None:
    with Life(grace=HOUR, without=("CapacityScheduling",)) as life:
        for name, cpu, memory in (("n1", 1, "99Gi"), ("n2", 2, "1Gi"), ("n3", 1, "1Gi")):
            life.set_node(a_node(name, cpu=cpu, memory=memory, labels={"zone": "a" if name == "n1" else "b"}))
            for number in range(cpu):
                life.pod(f"{name}-{number}", "low", priority=0 if (name, number) < ("n2", 1) else 5)
        life.advance(5)
        life.group("first", 2, "team", priority=10, wait=5)
        life.end("low/n2-0")
        life.group("second", 2, "team", priority=20, node_selector={"zone": "b"}, wait=20)

        life.end("low/n2-1", wait=60)
        waiting = life.with_node("team")
        life.end("low/n1-0", "low/n3-0", wait=60)

        assert waiting == []
        assert (life.running("team"), len(life.victims)) == (4, 4)


def test_a_pod_that_evicts_again_waits_for_its_new_victims_and_leaves_a_group_what_was_freed_for_it() -> None:
    with Life(grace=HOUR, without=("CapacityScheduling",)) as life:
        life.set_node(a_node("n1", cpu=4))
        life.pods(4, "low", wait=5)
        life.pod("pod", "team", priority=15, wait=5)
        life.group("gang", 1, "team", cpu=2, priority=10, wait=5)
        first = list(life.victims)
        life.pod("higher", "other", priority=20, wait=5)
        life.end(first[0], wait=20)
        life.end(*first[1:], wait=20)

        assert (len(first), len(life.victims)) == (3, 4)
        assert life.with_node("team") == ["team/gang-0"]
        life.end(life.victims[-1], wait=20)
        assert life.with_node("team") == ["team/gang-0", "team/pod"]


def test_a_more_important_pod_starts_where_its_victim_is_gone_though_a_group_has_evicted_there_since() -> None:
    with Life(grace=HOUR, without=("CapacityScheduling",)) as life:
        life.set_node(a_node("n1", cpu=4))
        life.pods(4, "low", wait=5)
        life.pod("pod", "team", priority=15, wait=5)
        life.group("gang", 1, "team", cpu=2, priority=10, wait=5)
        first = list(life.victims)

        life.end(first[0], wait=20)

        assert life.with_node("team") == ["team/pod"]
        life.end(*first[1:], wait=20)
        assert life.with_node("team") == ["team/gang-0", "team/pod"]
        assert life.victims == first


@pytest.mark.parametrize("required", ["", "rack"])
def test_nothing_is_kept_for_a_group_whose_victims_are_on_a_node_that_is_no_longer_for_it(required: str) -> None:
    with Life(grace=10 - HOUR, longer=HOUR, without=("CapacityScheduling",)) as life:
        life.set_node(*(a_node(name, cpu=2, labels={"rack": "r"}) for name in ("n1", "n2")))
        life.pods(2, "low", cpu=2, wait=5)
        life.group(
            "gang", 2, "team", cpu=2, priority=10, wait=12, annotations={REQUIRED: required} if required else None
        )
        lost = next(pod.node_name for pod in life.engine.pods.values() if pod.is_deleting)
        life.pod("lone", "low2", cpu=1, wait=5)
        assert life.running("low2") == 0

        life.set_node(a_node(lost, cpu=2, labels={"rack": "r"}, taints=(Taint(key="dead", effect="NoExecute"),)))
        life.advance(60)

        assert life.running("low2") == 1
        assert not life.engine.nominator.nodes


def test_a_more_important_pod_gets_what_was_kept_for_a_group_once_that_has_failed() -> None:
    with without_quota() as life:
        life.set_node(a_node("n1", cpu=2, allocatable={GPU: 1}))
        life.pod("first-victim", "low", cpu=2)
        life.pod("last-victim", "low", cpu=0, gpus=1, wait=5)
        life.group("gang", 1, "team", cpu=2, gpus=1, priority=10, wait=1)
        life.pod("urgent", "high", priority=20, wait=20)
        assert life.with_node("low") == ["low/last-victim"]
        assert life.running("high") == 0

        life.pod("bound-by-others", "other", cpu=0, gpus=1, priority=10, node_name="n1", wait=60)

        assert life.with_node("team") == []
        assert life.running("high") == 1
