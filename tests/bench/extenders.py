"""Pods of no interest to an extender that takes 100 ms: do they keep their rate while it thinks about others?

    python -m tests.bench.extenders [--nodes 1000] [--pods 4000] [--rounds 5]

The whole engine over a fake API server, and a real extender over HTTP in a process of its own. Each round places
the same pods twice: alone, and then beside pods about which the extender is being asked all the time. What is compared
is how many of the former a second of CPU places: the loop waits for nothing else. The best round of each counts. On a
busy machine a round takes longer, so that more questions fall into it; what one question costs is told as well.
`tests.bench.extenders_on_cluster` does the same at what a real API server offers.
"""

import argparse
import asyncio
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Final

from scheduler.commands.run import loop_factory
from scheduler.config.extenders import ManagedResource
from scheduler.cycle.engine import Asking
from scheduler.extenders.roster import Roster
from scheduler.kube.services.extender_transport import Budget, HttpTransport
from scheduler.process.metrics import Metrics
from scheduler.testing import a_node, a_pod
from tests.cluster.extender_server import ExtenderServer, Slow, agree
from tests.fakes.extenders import DEFAULTS, FakePods
from tests.unit.cycle.fakes import EngineUnderTest, an_engine

GPU: Final = "example.com/gpu"
THINKS_SECONDS: Final = 0.1
WAITING: Final = 200
"""Pods that wait for the extender at any time: more than it is asked about at once."""
ALLOWED: Final = 0.05


@dataclass(frozen=True)
class Round:
    """How many pods a second, of time and of CPU, and how many questions the extender was asked meanwhile."""

    rate: float
    rate_of_cpu: float
    asked: int


def serve(url: Connection) -> None:
    """Be the extender, until the other side is gone."""
    with ExtenderServer() as server:
        server.script["filter"] = lambda question: Slow(THINKS_SECONDS, agree(question))
        server.script["prioritize"] = lambda _: Slow(THINKS_SECONDS, [])
        url.send(server.url)
        try:
            url.recv()
        except EOFError:
            return


@contextmanager
def extender() -> Iterator[str]:
    """Start an extender and give its address."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,))
    process.start()
    theirs.close()
    try:
        yield ours.recv()
    finally:
        ours.close()
        process.join(10)


async def place(url: str, nodes: int, pods: int, *, with_interesting: bool) -> Round:
    """Place pods of no interest, and say how quickly."""
    settings = replace(DEFAULTS, url_prefix=url, preempt_verb="", managed_resources=(ManagedResource(GPU),))
    metrics = Metrics()
    roster = Roster(partial(HttpTransport, budget=Budget(), may_send=lambda: True), metrics, [settings])
    scheduler = an_engine(asking=Asking(roster, FakePods()))
    scheduler.see(*(a_node(f"n{i}", cpu="64", allocatable={GPU: 64, "pods": 500}) for i in range(nodes)))
    loop = asyncio.create_task(scheduler.loop.run())
    try:
        await placed(scheduler, [f"warm{i}" for i in range(200)])
        if with_interesting:
            scheduler.see(*(a_pod(f"gpu{i}", requests={GPU: 1, "cpu": "10m"}) for i in range(WAITING)))
            await asyncio.sleep(THINKS_SECONDS / 2)
        before = asked(metrics, url)
        started, cpu_started = time.perf_counter(), time.process_time()
        await placed(scheduler, [f"web{i}" for i in range(pods)])
        cpu, elapsed = time.process_time() - cpu_started, time.perf_counter() - started
        return Round(pods / elapsed, pods / cpu, asked(metrics, url) - before)
    finally:
        scheduler.queue.close()
        await loop
        await scheduler.loop.finish(1)
        await roster.close()


async def placed(scheduler: EngineUnderTest, names: Sequence[str]) -> None:
    """Let the watch show these pods a hundred at a time, and wait until all are bound."""
    for start in range(0, len(names), 100):
        scheduler.see(*(a_pod(name, requests={"cpu": "10m"}) for name in names[start : start + 100]))
        await asyncio.sleep(0)
    wanted = {f"default/{name}" for name in names}
    while not wanted <= scheduler.world.bound.keys():  # noqa: ASYNC110  the fake API server tells nobody
        await asyncio.sleep(0.001)


def asked(metrics: Metrics, url: str) -> int:
    name = "loadmaster_extender_calls_total"
    labels = [{"extender": url, "verb": verb, "result": "ok"} for verb in ("filter", "prioritize")]
    return int(sum(metrics.registry.get_sample_value(name, each) or 0 for each in labels))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    best: dict[bool, Round] = {}
    with extender() as url:
        for number in range(options.rounds):
            for with_interesting in (False, True):
                with asyncio.Runner(loop_factory=loop_factory()) as runner:
                    found = runner.run(place(url, options.nodes, options.pods, with_interesting=with_interesting))
                if with_interesting not in best or found.rate_of_cpu > best[with_interesting].rate_of_cpu:
                    best[with_interesting] = found
                company = f"beside {found.asked} questions" if with_interesting else "alone"
                rates = f"{found.rate:7.0f} pods/s, {found.rate_of_cpu:7.0f} for a second of CPU"
                print(f"round {number + 1}: {rates}, {company}")
    alone, beside = best[False], best[True]
    lost = 1 - beside.rate_of_cpu / alone.rate_of_cpu
    figures = f"{alone.rate_of_cpu:.0f} alone, {beside.rate_of_cpu:.0f} beside an extender that takes 100 ms"
    question = options.pods * (1 / beside.rate_of_cpu - 1 / alone.rate_of_cpu) / max(beside.asked, 1)
    print(f"best, for a second of CPU: {figures}: {lost:.1%} lost, {1000 * question:.2f} ms a question")
    return 0 if lost <= ALLOWED else 1


if __name__ == "__main__":
    raise SystemExit(main())
