"""What a decision about a group of pods takes, and for how long it holds the event loop: `make bench-groups`.

No API server: a real engine whose bindings succeed at once. Nodes have 32 cores; pods ask for a tenth of one. All times
are CPU time, so that other work on the machine counts less.
"""

import argparse
import asyncio
import logging
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Final

from scheduler import framework as fw
from scheduler.commands.cluster import settle_memory
from scheduler.config.feature_gates import FeatureGates
from scheduler.cycle.pod_groups.cycle import in_order
from scheduler.cycle.pod_groups.steps import in_one_go
from scheduler.testing import a_node, a_pod
from tests.unit.cycle.pod_groups.groups import Groups

GATES: Final = FeatureGates(generic_workload=True, gang_scheduling=True, workload_aware_preemption=True)
AMOUNTS: Final = {"cpu": "100m", "memory": "100Mi"}
SMALL: Final = 3
"""Pods of a small gang; many of them are decided about, and the median counts."""


class World(Groups):
    """Nodes, and gangs that come."""

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
        groups, algorithm = self.engine.loop.groups, self.engine.pod_groups
        assert groups is not None
        assert algorithm is not None
        first = self.under_test.pop()
        taken = {first.pod.uid: first}
        in_one_go(groups._take_others(first, self.engine.queue.pop_specific, taken))
        members = in_order(taken.values())
        began = time.process_time()
        algorithm.decide(self.under_test.framework, members)
        seconds = time.process_time() - began
        for each in members:
            self.engine.queue.done(each.pod.uid)
        return seconds

    async def run(self, size: int) -> tuple[float, float]:
        """Let the loop bind a gang; return after how many seconds all are bound, and the longest hold of the loop."""
        self.gang(size)
        task, longest = asyncio.create_task(self.engine.loop.run()), 0.0
        began = last = time.process_time()
        for _ in range(sys.maxsize):
            await asyncio.sleep(0)
            now = time.process_time()
            longest, last = max(longest, now - last), now
            if len(self.under_test.world.bound) >= size:
                break
        self.engine.queue.close()
        await task
        return last - began, longest


def decisions(nodes: int, size: int, rounds: int) -> str:
    """The decision about gangs of a size, again and again."""
    world = World(nodes)
    seconds = []
    for _ in range(rounds):
        world.gang(size)
        seconds.append(world.decide())
    return f"{statistics.median(seconds[len(seconds) // 3 :]) * 1000:.2f}"


def holds(nodes: int, size: int) -> str:
    """The longest hold of the event loop while a gang is decided about and bound, and what all takes."""
    world = World(nodes)
    seconds, longest = asyncio.run(world.run(size))
    return f"{longest * 1000:.0f} | {seconds * 1000:,.0f}"


def preemption(nodes: int, lower: int, size: int) -> str:
    """The choice of victims for a gang where every node is full of pods of lower priority."""
    world = World(nodes, cores=lower // nodes)
    for number in range(lower):
        world.under_test.see(_lower(number, nodes))
    world.gang(size, priority=10)

    async def decide() -> float:
        return world.decide()

    return f"{asyncio.run(decide()) * 1000:,.0f}"


def _lower(number: int, nodes: int) -> fw.Pod:
    return a_pod(f"low-{number}", node_name=f"n{number % nodes}", priority=0, requests={"cpu": "1"})


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print Markdown. Returns 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.groups", description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5_000, help="(default: %(default)s)")
    nodes: int = parser.parse_args(argv).nodes
    logging.disable(logging.CRITICAL)
    print("| gang | decision, ms | event loop held at most, ms | until all are bound, ms |\n|---:|---:|---:|---:|")
    for size, rounds in ((SMALL, 300), (100, 20), (1_000, 6), (10_000, 3)):
        print(f"| {size:,} | {decisions(nodes, size, rounds)} | {holds(nodes, size)} |", flush=True)
    print("\n| gang | pods that might leave | decision and choice of victims, ms |\n|---:|---:|---:|")
    for size, lower in ((SMALL, 1_000), (SMALL, 50_000), (1_000, 50_000)):
        print(f"| {size:,} | {lower:,} | {preemption(min(nodes, lower // 10), lower, size)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
