"""What it costs to choose who gives quota back, with nodes and all plugins: `python -m tests.bench.reclaim`.

1,000 shares in four levels (a root, 10 organisations, 100 departments, 889 teams), and `--pods` that run on `--nodes`
of 20 or more of them each, all of the teams, which use twice what they are guaranteed. A pod of another share claims
its guarantee, or a group of pods of a core each does: on nodes that have space (`free`), or that are full. Times are of
the whole attempt to schedule it, by the clock of the process; the first attempt, which reads all nodes, is left out.
"""

import argparse
import asyncio
import gc
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from plugins.contrib.coscheduling.plugin import Coscheduling
from scheduler.api.objects import PodStatus
from scheduler.framework.shares import DeclaredShare
from scheduler.groups.apis.annotations import MIN_AVAILABLE_ANNOTATION, POD_GROUP_ANNOTATION
from scheduler.testing import a_node
from tests.bench.plot import Curve, curves
from tests.fakes import Eviction
from tests.unit.quota.waiting.shares import Sharing

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
TEAMS: Final = 889
LIMIT: Final = 50.0
"""Milliseconds that a decision may take."""


def shares(pods: int) -> Iterator[DeclaredShare]:
    guaranteed = pods // 2 // TEAMS
    yield DeclaredShare("root")
    for number in range(10):
        yield DeclaredShare(f"organisation-{number}", "root")
    for number in range(100):
        yield DeclaredShare(f"department-{number}", f"organisation-{number % 10}")
    for number in range(TEAMS):
        name, parent = f"team-{number}", f"department-{number % 100}"
        yield DeclaredShare(name, parent, minimum={"cpu": guaranteed}, namespaces=(name,))
    rest = {"cpu": pods - guaranteed * TEAMS}
    yield DeclaredShare("claiming", "department-0", minimum=rest, namespaces=("claiming",), reclaim="Any")


def world(nodes: int, pods: int, spare: int) -> Sharing:
    each, chance = pods // nodes, random.Random(1)
    made = [a_node(f"n{number}", cpu=str(each + spare), pods="300") for number in range(nodes)]
    stage = Sharing(*shares(pods), node=made[0], also=(Coscheduling,))
    stage.under_test.see(*made[1:])
    for number in range(pods):
        status = PodStatus(start_time=START + timedelta(seconds=number))
        namespace, node = f"team-{number % TEAMS}", f"n{number % nodes}"
        stage.pod(f"p{number}", namespace=namespace, node_name=node, status=status, priority=chance.randrange(5))
    return stage


async def decisions(stage: Sharing, cpus: int, members: int, runs: int) -> tuple[list[float], int]:
    """Return how many milliseconds each took but the first, and the victims of the last one.

    `members`: of a group; 1 for a pod without.
    """
    times, victims = [], list[Eviction]()
    for number in range(runs + 1):
        before = len(stage.under_test.world.written(Eviction))
        group = f"mine-{cpus}-{members}-{number}"
        annotations = {POD_GROUP_ANNOTATION: group, MIN_AVAILABLE_ANNOTATION: str(members)} if members > 1 else {}
        fields = {"namespace": "claiming", "requests": {"cpu": str(cpus)}, "priority": 2, "annotations": annotations}
        pods = [stage.pod(f"{group}-{member}", **fields) for member in range(members)]
        queued = stage.engine.queue.pop_nowait()
        assert queued is not None
        started = time.process_time()
        stage.engine.loop.schedule_one(queued)
        times.append((time.process_time() - started) * 1000)
        for _ in range(200 + 10 * members):
            await asyncio.sleep(0)
        victims = stage.under_test.world.written(Eviction)[before:]
        stage.delete(*pods)
        running = {str(each): each for each in stage.engine.cache.counted_pods()} if victims else {}
        for each in victims:  # others take their places
            there = running[each.victim]
            stage.delete(there)
            uid = f"{there.uid} after {group}"
            metadata = msgspec.structs.replace(there.metadata, uid=uid)
            stage.under_test.see(msgspec.structs.replace(there, metadata=metadata))
    return times[1:], len(victims)


def chart(lines: Sequence[Curve]) -> str:
    """Show them over the size of the group, as SVG."""
    return curves("Claims on quota", "pods of a core each", "milliseconds", lines, log_x=True, log_y=True, dots=True)


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=10)
    options.add_argument("--nodes", type=int, default=5_000)
    options.add_argument("--pods", type=int, default=100_000)
    options.add_argument("--plot", type=Path, metavar="FILE", help="where to write a chart of the groups, as SVG")
    given = options.parse_args()
    print(f"{given.nodes:,} nodes, {given.pods:,} pods, {TEAMS + 112:,} shares, {given.runs} runs")
    print(f"{'nodes':6} {'asked':>8} {'victims':>8} {'median ms':>10} {'largest ms':>11}")
    lines = []
    for kind, spare in (("free", 16), ("full", 0)):
        of_groups = []
        stage = world(given.nodes, given.pods, spare)
        gc.collect()
        gc.freeze()
        for cpus, members in ((1, 1), (4, 1), (16, 1), (1, 16), (1, 100), (1, 1000)):
            times, victims = await decisions(stage, cpus, members, given.runs)
            median = statistics.median(times)
            note = "" if median <= LIMIT else f"  over {LIMIT:.0f} ms"
            print(f"{kind:6} {f'{members} x {cpus}':>8} {victims:8} {median:10.1f} {max(times):11.1f}{note}")
            if cpus == 1:
                of_groups.append((members, median))
        lines.append(Curve(f"nodes are {kind}", of_groups))
    if given.plot:
        given.plot.write_text(chart(lines))


if __name__ == "__main__":
    asyncio.run(main())
