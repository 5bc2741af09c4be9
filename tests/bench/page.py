"""What the page takes of the event loop, step by step: `python -m tests.bench.page`.

A scheduler without any I/O has 5,000 nodes with 20,000 pods that run, and 20,000 that wait. Somebody opens the page; in
each second after that 1,000 pods come and are placed. Printed are the milliseconds of all that is done, those of its
longest step, after which others have their turn, and the number of steps: medians of `--rounds` rounds. Exit code 1: a
step is longer than it may be.
"""

import argparse
import asyncio
import gc
import statistics
import sys
import time
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from plugins import IN_TREE
from scheduler import framework as fw
from scheduler.commands.port import Shown
from scheduler.commands.shadow import InEffect
from scheduler.config.load import load_config
from scheduler.serve.page.about import About
from scheduler.serve.page.live import QUEUE_LOOKS
from scheduler.serve.page.pages import PATH, ClusterPage
from scheduler.serve.port.answers import Answer
from scheduler.testing import a_node, a_pod
from tests.unit.cycle.fakes import EngineUnderTest, an_engine

AIM: Final = 3.0
"""Milliseconds of a step."""

ZONES: Final = 3
READY: Final = b"event: ready"


class Steps(NamedTuple):
    """What one thing took."""

    what: str
    milliseconds: list[float]
    """Of each step."""


def steps_of(work: Awaitable[object]) -> list[float]:
    """Milliseconds of each step of what waits for nothing but its turn."""
    found, steps = [], work.__await__()
    gc.disable()  # its pauses are the whole program's
    try:
        with suppress(StopIteration):
            while True:
                began = time.perf_counter()
                try:
                    next(steps)
                finally:
                    found.append(1000 * (time.perf_counter() - began))
    finally:
        gc.enable()
    return found


class Reader:
    """Somebody who looks at the page."""

    def __init__(self, answer: Answer) -> None:
        assert not isinstance(answer.body, bytes)
        self._body = answer.body
        self._told = b""
        self.size = 0
        """Bytes of the first picture."""

    def open(self) -> list[float]:
        """Take the first picture; milliseconds of its steps."""
        found = []
        while READY not in self._told:
            found += steps_of(self.take())
            self.size += len(self._told)
        return found

    async def take(self) -> None:
        """Take what is told next."""
        self._told = await anext(self._body)

    async def close(self) -> None:
        await self._body.aclose()


class Bench:
    """The scheduler, its page, and somebody who looks at it."""

    def __init__(self, nodes: int, running: int, waiting: int) -> None:
        self.scheduler = scheduler = an_engine()
        names = [f"node-{number:06d}" for number in range(nodes)]
        for number, name in enumerate(names):
            labels = {"topology.kubernetes.io/zone": f"zone-{number % ZONES}", "kubernetes.io/hostname": name}
            scheduler.see(a_node(name, cpu="32", memory="256Gi", labels=labels))
        scheduler.see(*_pods("running", running, names))
        for pod in _pods("waiting", waiting):
            scheduler.see(pod)
            _refuse_next(scheduler)
        about = About("0.1.0", lambda: True, lambda: "loadmaster-1")
        self.page = ClusterPage(
            scheduler.engine, scheduler.metrics, about, Shown(InEffect(load_config(None, IN_TREE), IN_TREE)), 0.0
        )
        self._came = 0

    async def come(self, count: int) -> None:
        """Pods come, and are placed."""
        self.scheduler.see(*_pods(f"new-{self._came}", count))
        self._came += 1
        await self.scheduler.schedule()

    async def round(self, count: int) -> list[Steps]:
        """One of each thing."""
        live, node, configuration = (self.page.queried[f"{PATH}{each}"] for each in ("live", "node", "configuration"))
        look = self.page.live.look
        await self.come(count)
        alone = steps_of(look())
        reader = Reader(await live({}))
        opening = reader.open()
        looks = []
        for _ in range(QUEUE_LOOKS):
            await self.come(count)
            looks.append(steps_of(look()))
            steps_of(reader.take())
        await reader.close()
        return [
            Steps("a second without readers", alone),
            Steps(f"the first picture, {reader.size / 1000:.0f} KB", opening),
            Steps(f"a second with {count:,} new pods", min(looks, key=len)),
            Steps("the same, and the queue", max(looks, key=len)),
            Steps("a node", steps_of(node({"name": "node-000000"}))),
            Steps("the configuration", steps_of(configuration({}))),
        ]


def _pods(prefix: str, count: int, nodes: Sequence[str] = ()) -> Iterator[fw.Pod]:
    for number in range(count):
        name = f"{prefix}-{number:06d}"
        where = nodes[number % len(nodes)] if nodes else ""
        yield a_pod(name, uid=name, node_name=where, requests={"cpu": "100m", "memory": "256Mi"})


def _refuse_next(scheduler: EngineUnderTest) -> None:
    queued = scheduler.queue.pop_nowait()
    assert queued is not None
    queued.unschedulable_plugins = {"NodeResourcesFit"}
    scheduler.queue.add_unschedulable_if_not_present(queued)


async def measure(bench: Bench, rounds: int, count: int) -> Iterator[tuple[str, float, float, float]]:
    """What → milliseconds in all, of the longest step, and steps."""
    await bench.round(count)  # warm
    found = [await bench.round(count) for _ in range(rounds)]
    return (
        (
            same[0].what,
            statistics.median(sum(each.milliseconds) for each in same),
            statistics.median(max(each.milliseconds) for each in same),
            statistics.median(len(each.milliseconds) for each in same),
        )
        for same in zip(*found, strict=True)
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.page", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--running", type=int, default=20_000)
    parser.add_argument("--waiting", type=int, default=20_000)
    parser.add_argument("--new", type=int, default=1000, help="pods in a second")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args(arguments)
    bench = Bench(options.nodes, options.running, options.waiting)
    is_missed = False
    print(f"{'':44} {'ms':>7} {'longest':>9} {'steps':>6}")
    for what, total, longest, steps in asyncio.run(measure(bench, options.rounds, options.new)):
        is_missed |= longest > AIM
        print(f"{what:44} {total:7.2f} {longest:9.2f} {steps:6.0f}", flush=True)
    print(f"No step may take more than {AIM:g} ms.")
    return int(is_missed)


if __name__ == "__main__":
    sys.exit(main())
