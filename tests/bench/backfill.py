"""Does a large gang starve among small pods? A simulation with a fake clock: `python -m tests.bench.backfill`.

Small pods keep coming and ask for 95 % of the cluster. After a while a gang comes whose pods each need a whole node;
it would never find so many of them empty at once. The whole engine runs: queue, plugins, decisions, reservations. Only
the clock and the API server are not real. Printed without reservations, and with them: without backfill, with backfill
by what the small pods say about their run time, and where none of them says anything.
"""

import argparse
import asyncio
import heapq
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Final

import msgspec

from scheduler.api.pods.pod import Pod
from scheduler.config.load import config_from_dict
from scheduler.config.profiles import API_VERSION, KIND
from scheduler.config.types import GroupBackfill
from scheduler.cycle.steps import in_one_go
from scheduler.engine.engine import Engine, build_engine
from scheduler.plugin_loading.in_tree import in_tree
from scheduler.process.metrics import Metrics
from scheduler.testing import a_node, a_pod
from tests.fakes import FakeClock, FakeWorld, settle

PROFILE: Final = "loadmaster"
STEP: Final = 5.0
"""Seconds between two looks at the queue, and at the reservation."""

START: Final = 1_700_000_000.0
"""Seconds since 1970 at the beginning."""

CORES: Final = 16
"""Of a node."""

MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is simulated. Times are seconds."""

    nodes: int = 16
    gang: int = 5
    """Pods that need a node each."""

    gang_runs: float = 30 * MINUTE
    load: float = 0.95
    """The share of the cluster that small pods ask for."""

    arrival: float = 30 * MINUTE
    """When the gang comes."""

    hours: float = 2.0
    """That are simulated after that."""

    reservation_seconds: float = 600.0
    """0: without reservations."""

    backfill: GroupBackfill = GroupBackfill.PROMISED
    tells: bool = True
    """Whether small pods say how long they run."""

    seed: int = 1


@dataclass(slots=True)
class Outcome:
    """What came of it, from the arrival of the gang on."""

    gang_waited: float | None = None
    """None if it was not placed."""

    used: float = 0.0
    """Core seconds while nodes were reserved."""

    seconds: float = 0.0
    """How long that was."""

    used_in_all: float = 0.0
    """Core seconds until the end."""

    waits: list[float] = field(default_factory=list)
    """Of the small pods that came after the gang and were placed."""

    unplaced: int = 0
    """Small pods that wait at the end."""


class Simulation:
    """One run."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._clock, self._world = FakeClock(0.0), FakeWorld()
        document = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "profiles": [
                {"schedulerName": PROFILE, "plugins": {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}}}
            ],
            "loadmaster": {
                "groupReservationSeconds": scenario.reservation_seconds,
                "groupBackfill": scenario.backfill.value,
            },
        }
        registry = in_tree()
        config = config_from_dict(document, registry)
        self._engine: Engine = build_engine(config, registry, self._world.writers, Metrics(), self._clock)
        reservations = self._engine.group_parts.reservations
        assert reservations is not None, "the profile has groups"
        self._reservations = reservations
        self._reservations.wall_clock = self._now
        for number in range(scenario.nodes):
            self._engine.handlers.node_changed(a_node(f"n{number}", cpu=CORES, memory="256Gi"))
        self._random = random.Random(scenario.seed)
        self._arrivals = self._small_pods()
        self._came: dict[str, float] = {}
        self._runs: dict[str, float] = {}
        self._ends: list[tuple[float, int, Pod]] = []
        self._running: dict[str, int] = {}
        """UID → cores."""
        self._seen_bound = 0
        self._order = count()
        self.outcome = Outcome()

    async def run(self) -> Outcome:
        """Let time pass to the end."""
        scenario, outcome = self._scenario, self.outcome
        end = scenario.arrival + scenario.hours * 3_600
        gang_came = False
        while self._clock() < end:
            self._clock.advance(STEP)
            self._end_pods()
            self._take_arrivals()
            if not gang_came and self._clock() >= scenario.arrival:
                gang_came = True
                self._gang_comes()
            self._engine.queue.flush_backoff_completed()
            await self._schedule()
            in_one_go(self._reservations.look())
            await self._schedule()
            if gang_came:
                self._measure()
        outcome.unplaced = sum(name.startswith("small") for name in self._came)
        return outcome

    def _now(self) -> float:
        return START + self._clock()

    def _small_pods(self) -> "list[tuple[float, int, float]]":
        """Return when they come, the last first, their cores, and how long they run."""
        scenario, found, at = self._scenario, [], 0.0
        sizes, shortest, longest = (1, 2, 4), 1 * MINUTE, 15 * MINUTE
        core_seconds = sum(sizes) / len(sizes) * (shortest + longest) / 2
        rate = scenario.load * scenario.nodes * CORES / core_seconds
        while at < scenario.arrival + scenario.hours * 3_600:
            at += self._random.expovariate(rate)
            found.append((at, self._random.choice(sizes), float(round(self._random.uniform(shortest, longest)))))
        return found[::-1]

    def _take_arrivals(self) -> None:
        while self._arrivals and self._arrivals[-1][0] <= self._clock():
            at, cores, seconds = self._arrivals.pop()
            pod = a_pod(f"small-{next(self._order)}", requests={"cpu": cores}, scheduler_name=PROFILE)
            if self._scenario.tells:
                spec = msgspec.structs.replace(pod.spec, active_deadline_seconds=int(seconds))
                pod = msgspec.structs.replace(pod, spec=spec)
            self._comes(pod, at, seconds)

    def _gang_comes(self) -> None:
        annotations = {
            "loadmaster.dev/pod-group": "gang",
            "loadmaster.dev/pod-group-min-available": str(self._scenario.gang),
        }
        for number in range(self._scenario.gang):
            pod = a_pod(f"gang-{number}", requests={"cpu": CORES}, scheduler_name=PROFILE, annotations=annotations)
            self._comes(pod, self._clock(), self._scenario.gang_runs)

    def _comes(self, pod: Pod, at: float, seconds: float) -> None:
        self._came[pod.uid], self._runs[pod.uid] = at, seconds
        self._engine.handlers.pod_changed(pod)

    async def _schedule(self) -> None:
        """Try what may be tried, and let what is bound start."""
        while (queued := self._engine.queue.pop_nowait()) is not None:
            self._engine.loop.schedule_one(queued)
        await settle()
        asked = self._world.asked
        for uid, node_name in asked[self._seen_bound :]:
            self._starts(self._engine.pods[uid].bound_to(node_name))
        self._seen_bound = len(asked)

    def _starts(self, pod: Pod) -> None:
        status = msgspec.structs.replace(pod.status, start_time=datetime.fromtimestamp(self._now(), UTC))
        pod = msgspec.structs.replace(pod, status=status)
        self._engine.handlers.pod_changed(pod)
        now, came = self._clock(), self._came.pop(pod.uid)
        heapq.heappush(self._ends, (now + self._runs.pop(pod.uid), next(self._order), pod))
        self._running[pod.uid] = pod.requests["cpu"] // 1000
        if pod.name.startswith("gang"):
            self.outcome.gang_waited = now - came
        elif came >= self._scenario.arrival:
            self.outcome.waits.append(now - came)

    def _end_pods(self) -> None:
        while self._ends and self._ends[0][0] <= self._clock():
            _, _, pod = heapq.heappop(self._ends)
            del self._running[pod.uid]
            self._engine.handlers.pod_deleted(pod)

    def _measure(self) -> None:
        used = STEP * sum(self._running.values())
        self.outcome.used_in_all += used
        if self._engine.group_parts.reserved.reservation is not None:
            self.outcome.used += used
            self.outcome.seconds += STEP


def simulate(scenario: Scenario) -> Outcome:
    """Run a scenario."""

    async def run() -> Outcome:
        return await Simulation(scenario).run()

    return asyncio.run(run())


def row(name: str, scenario: Scenario) -> str:
    """One line of the table."""
    outcome = simulate(scenario)
    cores, hours = scenario.nodes * CORES, scenario.hours * 3_600
    waited = f"not in {scenario.hours:g} h"
    if outcome.gang_waited is not None:
        waited = f"{outcome.gang_waited / MINUTE:.1f}"
    meanwhile = f"{outcome.used / (outcome.seconds * cores):.0%}" if outcome.seconds else "-"
    in_all = f"{outcome.used_in_all / (hours * cores):.0%}"
    mean = sum(outcome.waits) / max(1, len(outcome.waits)) / MINUTE
    return (
        f"| {name} | {waited} | {meanwhile} | {in_all} | {mean:.1f} | {len(outcome.waits):,} | {outcome.unplaced:,} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=Scenario().nodes)
    parser.add_argument("--gang", type=int, default=Scenario().gang, help="pods, each of which needs a node")
    parser.add_argument("--seed", type=int, default=Scenario().seed)
    options = parser.parse_args()
    print("| | gang waits, min | used meanwhile | used in all | small pods wait, min | placed | wait at the end |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, fields in (
        ("no reservations", {"reservation_seconds": 0.0}),
        ("reservation, no backfill", {"backfill": GroupBackfill.NEVER}),
        ("reservation and backfill", {}),
        ("nobody says how long pods run", {"tells": False}),
    ):
        print(row(name, Scenario(options.nodes, options.gang, seed=options.seed, **fields)), flush=True)


if __name__ == "__main__":
    main()
