"""How long decisions take on one cluster: what `make bench-cycle` prints.

Each pod is assumed on its node before the next one is decided, so every decision sees a changed cluster. A preemption's
victims are gone and its pod is in their place before the next one.
"""

import asyncio
import cProfile
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Placed
from scheduler.framework.cycle_state import CycleState
from scheduler.plugin_tools.workload import collector_at_rest
from tests.bench.cycle_cases import Case
from tests.bench.cycle_crowd import APPS, Crowd
from tests.bench.cycle_world import World

Times = tuple[float, float]
"""Seconds of a decision, and of it and the assumption together."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of the decisions of one case."""

    set_up: float
    """To make the cluster and the pods."""

    first: float
    """The first decision of its kind: terms and selectors are looked at for the first time."""

    alone: Sequence[float]
    """Pods of one app, after the first."""

    together: Sequence[float]
    """Each of `alone` with the assumption that follows it."""

    in_turn: Sequence[float]
    """Pods of all apps in turn, after the first of each."""

    @property
    def median(self) -> float:
        return statistics.median(self.alone)

    @property
    def p99(self) -> float:
        return percentile(self.alone)

    @property
    def median_together(self) -> float:
        return statistics.median(self.together)

    @property
    def median_in_turn(self) -> float:
        return statistics.median(self.in_turn)


def percentile(times: Sequence[float]) -> float:
    """The time that 99 of 100 do not exceed."""
    return sorted(times)[int(len(times) * 0.99)]


def costs(case: Case, cluster: tuple[int, int], count: int, profile: cProfile.Profile | None = None) -> Costs:
    """Measure `count` decisions for pods of one app, then about half as many for pods of all apps in turn.

    `cluster`: nodes, and pods that run there.
    """
    started = time.perf_counter()
    nodes, pods = cluster
    others = max(2, count // 2 // APPS) * APPS
    world, crowd = World(nodes), Crowd(case, nodes, pods)
    crowd.settle(world, 1 + count + others)
    of_one = [crowd.coming_pod(number, 0) for number in range(1 + count)]
    of_all = [crowd.coming_pod(1 + count + number, number % APPS) for number in range(others)]
    run = preemptions if case.full else decisions
    set_up = time.perf_counter() - started
    with settled(profile):
        first, *times = run(world, of_one)
        in_turn = [alone for alone, _ in run(world, of_all)][APPS:]
    return Costs(set_up, first[0], [alone for alone, _ in times], [together for _, together in times], in_turn)


def decisions(world: World, pods: Iterable[Pod]) -> Iterator[Times]:
    """Decide on each pod and assume it."""
    engine, framework = world.engine, world.framework
    for pod in pods:
        started = time.perf_counter()
        decision = engine.algorithm.schedule(framework, CycleState(), pod)
        decided = time.perf_counter()
        assert isinstance(decision, Placed), decision
        engine.cache.assume(pod.bound_to(decision.node_name))
        yield decided - started, time.perf_counter() - started


def preemptions(world: World, pods: Iterable[Pod]) -> list[Times]:
    """As `decisions`, where somebody has to make room for each pod."""

    async def run() -> list[Times]:
        return [await _preempt(world, pod) for pod in pods]

    return asyncio.run(run())


async def _preempt(world: World, pod: Pod) -> Times:
    engine, victims = world.engine, world.writers.victims
    engine.pods[pod.uid] = pod  # as the watch has told
    started = time.perf_counter()
    decision = engine.algorithm.schedule(world.framework, CycleState(), pod)
    decided = time.perf_counter()
    assert not isinstance(decision, Placed), decision
    assert decision.nominated_node_name, decision
    await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})  # the evictions
    for victim in victims:
        engine.handlers.pod_deleted(victim)
    victims.clear()
    room = time.perf_counter()
    engine.cache.assume(pod.bound_to(decision.nominated_node_name))
    return decided - started, decided - started + time.perf_counter() - room


@contextmanager
def settled(profile: cProfile.Profile | None = None) -> Iterator[None]:
    """Keep the garbage collector from walking over the cluster, as the program does."""
    with collector_at_rest():
        if profile is not None:
            profile.enable()
        try:
            yield
        finally:
            if profile is not None:
                profile.disable()
