"""Engines with groups of pods for `tests/bench/groups.py`: nodes, gangs that come, and what the event loop is held for.

No API server: bindings and evictions succeed at once. All times are CPU time, so that other work on the machine counts
less.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from plugins.default_preemption.plugin import DefaultPreemption
from scheduler import framework as fw
from scheduler.api.objects import GroupAnnotations
from scheduler.assembly.cluster import settle_memory
from scheduler.config.feature_gates import FeatureGates
from scheduler.cycle.steps import in_one_go
from scheduler.engine.engine import Engine
from scheduler.framework.queued import in_order
from scheduler.testing import a_node, a_pod
from tests.unit.cycle.fakes import PROFILE, EngineUnderTest
from tests.unit.groups.coscheduling import Coscheduled
from tests.unit.groups.groups import Groups
from tests.unit.groups.topology.clusters import LEVELS, RACK

GATES: Final = FeatureGates(generic_workload=True)
AMOUNTS: Final = {"cpu": "100m", "memory": "100Mi"}


class World(Groups):
    """Nodes, and gangs of `scheduling.k8s.io` that come."""

    def __init__(self, nodes: int, cores: int = 32) -> None:
        super().__init__(nodes=0, gates=GATES)
        for number in range(nodes):
            labels = {"kubernetes.io/hostname": f"n{number}", "topology.kubernetes.io/zone": f"z{number % 3}"}
            self.under_test.see(a_node(f"n{number}", cpu=str(cores), memory="128Gi", labels=labels))
        self.made = 0

    def gang(self, size: int, priority: int | None = None) -> None:
        """Let the watch show a gang."""
        self.made += 1
        name = f"g{self.made}"
        self.create(name, minimum=size, priority=priority)
        self.pods(size, group=name, requests=AMOUNTS)
        settle_memory()

    def decide(self) -> float:
        """Decide about the gang at the head of the queue, and bind none of it; return the seconds."""
        return decided(self.under_test)

    def fill(self, lower: int) -> None:
        """Let so many pods of a lower priority run, of a core each."""
        names = list(self.engine.cache.table.node_names())
        for number in range(lower):
            node = names[number % len(names)]
            self.under_test.see(a_pod(f"low-{number}", node_name=node, priority=0, requests={"cpu": "1"}))

    @property
    def evicts(self) -> bool:
        """Whether the victims for a gang were chosen."""
        plugin = self.under_test.framework.plugins.by_name["DefaultPreemption"]
        assert isinstance(plugin, DefaultPreemption)
        return plugin._executor.group_count > 0


class Racks(Coscheduled):
    """Racks of as many nodes each, and a gang of our own rules that is to be in one of them."""

    def __init__(self, racks: int, nodes: int) -> None:
        super().__init__(nodes=0)
        self.engine.group_parts.levels._configured = LEVELS
        for number in range(racks * nodes):
            labels = {"kubernetes.io/hostname": f"n{number}", RACK: f"r{number // nodes}"}
            self.under_test.see(a_node(f"n{number}", cpu="64", memory="512Gi", pods="1000", labels=labels))

    def gang(self, size: int) -> None:
        """Let the watch show it."""
        self.create("g", size, GroupAnnotations(required_topology=RACK))
        self.pods(size, requests=AMOUNTS)
        settle_memory()


def decided(under_test: EngineUnderTest) -> float:
    """Decide about the gang at the head of the queue, and bind none of it; return the seconds."""
    engine = under_test.engine
    groups, algorithm = engine.group_parts.cycle, engine.pod_groups
    assert groups is not None
    assert algorithm is not None
    group = under_test.pop_group()
    members = in_order(group.members)
    began = time.process_time()
    in_one_go(algorithm.decide_in_steps(under_test.framework, members))
    seconds = time.process_time() - began
    engine.queue.drop(group)
    return seconds


async def run_until(engine: Engine, is_done: Callable[[], bool]) -> tuple[float, float]:
    """Let the loop schedule; return after how many seconds it is done, and the longest hold of the event loop."""
    task, longest = asyncio.create_task(engine.loop.run()), 0.0
    began = last = time.process_time()
    while not is_done():
        await asyncio.sleep(0)
        now = time.process_time()
        longest, last = max(longest, now - last), now
    engine.queue.close()
    await task
    return last - began, longest


def bound_by(under_test: EngineUnderTest, pods: int) -> tuple[float, float]:
    """Let the loop bind so many pods; return after how many seconds they are bound, and the longest hold."""
    world = under_test.world
    return asyncio.run(run_until(under_test.engine, lambda: len(world.bound) >= pods))


class Crowd(Coscheduled):
    """Full nodes, and gangs that wait in vain. A pod ends now and then, and others take its place at once."""

    def __init__(self, nodes: int, gangs: int, size: int) -> None:
        super().__init__(nodes=0)
        self._running: dict[int, fw.Pod] = {}
        """Number of a node → the pod that runs there."""
        self._taken = 0
        for number in range(nodes):
            self.under_test.see(a_node(f"n{number}", cpu="1", memory="128Gi"))
            self._take(number)
        for number in range(gangs):
            self.create(f"g{number}", size)
            self.pods(size, group=f"g{number}")
        self._nodes, self._ended = nodes, 0
        while self._try():
            pass
        settle_memory()

    def second(self, events: int) -> tuple[float, int]:
        """Let so many pods end within a second; return the CPU seconds that this took, and how often gangs were tried.

        Every pod that ends makes space for a member, as far as that pod's hints can say.
        """
        tries, began = 0, time.process_time()
        for _ in range(events):
            number = self._ended % self._nodes
            self._ended += 1
            self.under_test.handlers.pod_deleted(self._running[number])
            tries += self._try()
            self._take(number)
            self.under_test.clock.advance(1 / events)
            self.engine.queue.flush_backoff_completed()
        return time.process_time() - began, tries

    def _take(self, number: int) -> None:
        """Let another pod run on a node."""
        self._taken += 1
        pod = a_pod(f"running-{self._taken}", node_name=f"n{number}", requests={"cpu": "1"})
        self._running[number] = pod
        self.under_test.see(pod)

    def _try(self) -> int:
        tries = 0
        while (queued := self.engine.queue.pop_nowait()) is not None:
            self.engine.loop.schedule_one(queued)
            tries += 1
        return tries


def plain_pods(under_test: EngineUnderTest, count: int) -> None:
    """Let pods without a group come."""
    under_test.see(*(a_pod(f"p-{number}", requests=AMOUNTS, scheduler_name=PROFILE) for number in range(count)))
