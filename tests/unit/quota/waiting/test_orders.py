"""Who gets what is free when several shares want it, in each order."""

import heapq
import random
from collections import Counter
from itertools import count
from typing import Any, Final

import msgspec
import pytest

from plugins.contrib.capacity_scheduling.plugin import CapacityScheduling
from scheduler import framework as fw
from scheduler.framework.shares import DeclaredShare
from scheduler.testing import a_node, a_pod
from tests.unit.cycle.fakes import PROFILE
from tests.unit.quota.waiting.shares import Sharing

CORES: Final = 12
HOUR: Final = 3600


def company(*shares: DeclaredShare, **arguments: Any) -> Sharing:
    """A company with one node, and no guarantees but those of the shares."""
    return Sharing(
        DeclaredShare("company", maximum={"cpu": str(CORES)}),
        *shares,
        node=a_node("n", cpu="64", memory="640Gi"),
        arguments=arguments,
    )


def a_share(name: str, cpu: str = "0", **fields: Any) -> DeclaredShare:
    return DeclaredShare(name, "company", minimum={"cpu": cpu}, namespaces=(name,), **fields)


async def started(stage: Sharing, using: str, **waiting: tuple[str, int]) -> list[str]:
    """Let pods come one after the other while a share uses all cores, then one of these be free; return who starts.

    `waiting`: name of a pod → its namespace and priority.
    """
    running = stage.pods(CORES, using, node_name="n")
    for name, (namespace, priority) in waiting.items():
        await stage.try_pod(name, namespace=namespace, priority=priority)
    await stage.end(running[0])
    return [name for name in waiting if name in stage.placed]


class Contest:
    """Shares that always have pods that wait; each pod has one core, and runs for up to a minute."""

    def __init__(self, stage: Sharing, shares: str, backlog: int = 10, seed: int = 1) -> None:
        self._stage, self._shares, self._backlog = stage, shares, backlog
        self._random, self._numbers = random.Random(seed), count()
        self._waiting: dict[str, tuple[str, float]] = {}
        self._ends: list[tuple[float, int, fw.Pod]] = []
        self.used: Counter[str] = Counter()
        """Share → core seconds."""
        self.longest: dict[str, float] = dict.fromkeys(shares, 0.0)
        """Share → seconds that one of its pods has waited at most."""

    async def play(self, seconds: int) -> None:
        clock = self._stage.clock
        for _ in range(seconds):
            for name in self._shares:
                missing = self._backlog - sum(share == name for share, _ in self._waiting.values())
                for _ in range(missing):
                    pod = self._stage.pod(f"{name}-{next(self._numbers)}", namespace=name)
                    self._waiting[pod.uid] = name, clock()
            await self._stage.schedule(1.0)
            self._start(clock())
            self._end(clock())

    def _start(self, now: float) -> None:
        bound = self._stage.under_test.world.bound
        for uid in [uid for uid in self._waiting if uid in bound]:
            share, since = self._waiting.pop(uid)
            seconds = self._random.randint(20, 60)
            self.longest[share] = max(self.longest[share], now - since)
            self.used[share] += seconds
            heapq.heappush(self._ends, (now + seconds, next(self._numbers), self._stage.engine.pods[uid]))
        self._stage.confirm()

    def _end(self, now: float) -> None:
        while self._ends and self._ends[0][0] <= now:
            self._stage.delete(heapq.heappop(self._ends)[2])


@pytest.mark.parametrize("order", ["DominantShare", "DecayedUsage"])
async def test_two_shares_that_contend_for_an_hour_get_what_they_weigh_and_none_starves(order: str) -> None:
    stage = company(a_share("a", weight=1), a_share("b", weight=3), order=order, usage_half_life_seconds=600.0)
    contest = Contest(stage, "ab")

    await contest.play(HOUR)

    assert contest.used["b"] / contest.used["a"] == pytest.approx(3, rel=0.15)
    # Ten of its pods wait, three run at a time, for 40 s on average.
    assert contest.longest["a"] < 3 * 10 * 40 / 3


@pytest.mark.parametrize("order", ["DominantShare", "DecayedUsage"])
async def test_the_pods_of_a_share_with_shares_below_it_do_not_starve(order: str) -> None:
    below = DeclaredShare("a", "m", namespaces=("a",))
    stage = company(a_share("m"), below, order=order, usage_half_life_seconds=600.0)
    contest = Contest(stage, "ma")

    await contest.play(HOUR // 4)

    assert contest.used["a"] / contest.used["m"] == pytest.approx(1, rel=0.15)
    assert contest.longest["m"] < 3 * 10 * 40 / 6


async def test_without_an_order_of_shares_the_oldest_pod_is_first_whatever_the_weights() -> None:
    contest = Contest(company(a_share("a", weight=1), a_share("b", weight=3)), "ab")

    await contest.play(HOUR // 4)

    assert contest.used["b"] / contest.used["a"] == pytest.approx(1, rel=0.15)


@pytest.mark.parametrize("order", ["Priority", "DominantShare", "DecayedUsage"])
async def test_a_share_below_its_guarantee_goes_first_in_every_order(order: str) -> None:
    stage = company(a_share("a", "2"), a_share("b", weight=100), order=order)

    assert await started(stage, "b", high=("b", 1000), guaranteed=("a", 0)) == ["guaranteed"]


@pytest.mark.parametrize("order", ["Priority", "DominantShare", "DecayedUsage"])
async def test_a_share_of_higher_priority_goes_before_the_others(order: str) -> None:
    stage = company(a_share("a"), a_share("b", priority=1), a_share("c", "12"), order=order)

    assert await started(stage, "c", first=("a", 1000), second=("b", 0)) == ["second"]


@pytest.mark.parametrize("order", ["Priority", "DominantShare", "DecayedUsage"])
async def test_a_less_important_pod_within_the_guarantee_does_not_keep_space_for_one_of_its_share_that_borrows(
    order: str,
) -> None:
    stage = company(a_share("a", "4"), a_share("b", priority=1), order=order)
    ending, *_ = (
        stage.pod("ending", namespace="b", requests={"cpu": "5"}, node_name="n"),
        stage.pods(7, "b", node_name="n"),
    )
    waiting = {"guaranteed": ("a", 3, 0), "of-its-share": ("a", 5, 1), "of-the-other": ("b", 5, 0)}
    for name, (namespace, cpu, priority) in waiting.items():
        await stage.try_pod(name, namespace=namespace, requests={"cpu": str(cpu)}, priority=priority)

    await stage.end(ending)

    assert [name for name in waiting if name in stage.placed] == ["of-the-other"]


@pytest.mark.parametrize("order", ["Priority", "DominantShare", "DecayedUsage"])
@pytest.mark.parametrize("other", ["a", "b"])
async def test_the_pod_that_was_created_first_goes_first_though_a_restarted_scheduler_lists_it_last(
    order: str, other: str
) -> None:
    stage = company(a_share("a"), a_share("b"), a_share("c", "12"), order=order)
    ending, *_ = stage.pods(CORES, "c", node_name="n")
    for name, namespace, second in (("newer", other, 2), ("older", "a", 1)):
        pod = a_pod(name, namespace=namespace, requests={"cpu": "1"}, scheduler_name=PROFILE)
        metadata = msgspec.structs.replace(pod.metadata, creation_timestamp=f"2026-01-01T00:00:0{second}Z")
        stage.under_test.see(msgspec.structs.replace(pod, metadata=metadata))
    await stage.schedule()

    await stage.end(ending)

    assert "older" in stage.placed
    assert "newer" not in stage.placed


async def test_past_usage_counts_less_and_less() -> None:
    """What `b` used long ago is forgotten; what `a` has used lately is not."""
    stage = company(a_share("a"), a_share("b"), order="DecayedUsage", usage_half_life_seconds=60.0)
    old = stage.pods(CORES, "b", node_name="n")
    stage.clock.advance(600)
    stage.delete(*old)
    stage.clock.advance(600)
    recent = stage.pods(CORES, "a", node_name="n")
    stage.clock.advance(60)
    stage.pod("again", namespace="a")
    await stage.schedule(0)
    stage.pod("other", namespace="b")
    await stage.schedule(0)

    await stage.end(recent[0])

    assert "other" in stage.placed
    assert "again" not in stage.placed


@pytest.mark.parametrize("name", ["quota", "another"])
async def test_a_quota_that_is_deleted_and_created_again_has_its_past_whatever_its_name(name: str) -> None:
    stage = Sharing(node=a_node("n", cpu="64", memory="640Gi"), arguments={"order": "DecayedUsage"})
    amounts: dict[str, Any] = {"minimum": {"cpu": "6"}, "maximum": {"cpu": "12"}}
    for namespace in ("a", "b"):
        stage.quota(namespace, **amounts)
    stage.engine.share_parts.catch_up()
    old = stage.pods(CORES, "a", node_name="n")
    stage.clock.advance(HOUR)
    stage.delete(*old)
    recent = stage.pods(CORES, "b", node_name="n")

    stage.drop("a")
    await stage.schedule()
    stage.quota("a", **amounts, name=name)
    for namespace in ("a", "b"):
        stage.pod(f"waits-{namespace}", namespace=namespace, requests={"cpu": "7"})
        await stage.schedule(0)
    await stage.end(*recent[:7])

    assert "waits-b" in stage.placed
    assert "waits-a" not in stage.placed


async def test_what_is_kept_for_a_pod_does_not_count_twice_when_others_of_its_share_compete() -> None:
    stage = Sharing(node=a_node("n", cpu="64", memory="640Gi"), arguments={"order": "DecayedUsage"})
    stage.quota("a", minimum={"cpu": "0", "memory": "0"})
    stage.quota("b", minimum={"cpu": "6", "memory": "640Gi"})
    running = stage.pods(6, "b", node_name="n")
    await stage.try_pod("preemptor", namespace="b", requests={"cpu": "2"}, priority=5)
    victims = [pod for pod in running if str(pod) in stage.evicted]
    assert len(victims) == 2
    stage.pod("guaranteed", namespace="b")
    await stage.try_pod("borrows", namespace="a")

    await stage.end(next(pod for pod in running if pod not in victims), *victims)

    assert {"preemptor", "guaranteed"} <= set(stage.placed)
    assert "borrows" not in stage.placed


@pytest.mark.parametrize(("large", "freed"), [(11, 11), (11, 1), (13, 11)], ids=["borrows", "waits", "never fits"])
async def test_a_share_below_its_guarantee_does_not_starve_behind_its_own_large_pod(large: int, freed: int) -> None:
    stage = company(a_share("a", "4"), a_share("b", "6"), order="DominantShare")
    ending = stage.pod("ending", namespace="b", requests={"cpu": freed}, node_name="n")
    stage.pods(CORES - freed, "b", node_name="n")
    stage.pod("large", namespace="a", requests={"cpu": large})
    stage.pod("small", namespace="a", requests={"cpu": "1"})
    await stage.try_pods(CORES, "b", first=CORES)

    await stage.end(ending)

    assert "small" in stage.placed


def test_an_order_that_makes_no_sense_is_refused_with_all_its_problems() -> None:
    plugin = CapacityScheduling(usage_half_life_seconds=0.0, resource_weights={"cpu": -1.0})

    assert [path for path, _ in plugin.problems()] == ["usageHalfLifeSeconds", "resourceWeights[cpu]"]


@pytest.mark.parametrize("order", ["Priority", "DominantShare", "DecayedUsage"])
async def test_a_share_of_higher_priority_does_not_go_before_what_another_is_guaranteed(order: str) -> None:
    stage = company(a_share("a", "2"), a_share("b", priority=1), order=order)

    assert await started(stage, "b", eager=("b", 0), guaranteed=("a", 0)) == ["guaranteed"]


async def test_a_share_is_not_charged_for_pods_that_were_woken_and_found_no_node() -> None:
    stage = company(a_share("a"), a_share("b"), order="DecayedUsage")
    running = stage.pods(CORES, "b", node_name="n")
    await stage.try_pods(8, "a", node_selector={"no": "node"})
    for _ in range(4):
        stage.delete(running.pop())
        await stage.schedule()  # they are woken
        running.append(stage.pod(f"more-{len(running)}-{stage.clock()}", namespace="b", node_name="n"))
    await stage.try_pod("second", namespace="b")
    await stage.try_pod("first", namespace="a")

    await stage.end(running.pop())

    assert "first" in stage.placed
    assert "second" not in stage.placed


@pytest.mark.parametrize("order", ["DominantShare", "DecayedUsage"])
async def test_a_share_does_not_starve_while_more_important_pods_of_another_keep_coming(order: str) -> None:
    stage = company(a_share("a"), a_share("b"), order=order)
    running = stage.pods(CORES, "b", node_name="n")
    stage.pod("poor", namespace="a")
    await stage.schedule(0)

    stage.delete(running[0])  # the pod is woken, but has to pause
    stage.pod("greedy", namespace="b", priority=9)
    await stage.schedule(0)
    await stage.schedule()

    assert "poor" in stage.placed
    assert "greedy" not in stage.placed
