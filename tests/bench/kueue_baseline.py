"""Kueue's own baseline, played as pods with a fake clock: `python -m tests.bench.kueue_baseline`.

Five cohorts of six ClusterQueues, and 500 jobs in each of these: test/performance/scheduler/configs/baseline of
Kueue. A job is one pod here, which asks for as much cpu and runs as long; one that is evicted comes again, as that of
a Job, and runs from its beginning. The whole engine runs: queue, shares, plugins, preemption. Only the clock and the
API server are not real: bindings and evictions take no time, so simulated times are those that quota, order and
backoff make, and the CPU time is printed beside them. Kueue's figures are the means in its rangespec.yaml, of Kueue
with a real API server on its CI; they include what that server takes.
"""

import argparse
import asyncio
import heapq
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Any, Final, NamedTuple

import msgspec

from scheduler.api.pods.pod import Pod
from scheduler.api.quota.kueue import QUEUE_LABEL
from scheduler.api.unstructured import Unstructured
from scheduler.config.load import config_from_dict
from scheduler.config.profiles import API_VERSION, KIND
from scheduler.engine.engine import Engine, build_engine
from scheduler.framework.events import CLUSTER_QUEUE, LOCAL_QUEUE, NAMESPACE, RESOURCE_FLAVOR
from scheduler.plugin_loading.in_tree import in_tree
from scheduler.process.metrics import Metrics
from scheduler.testing import a_node, a_pod
from tests.fakes import FakeClock, FakeWorld, settle
from tests.unit.quota.kueue_objects import a_flavor, a_local_queue, a_queue

PROFILE: Final = "loadmaster"
TEAM: Final = "team"
"""The namespace of all jobs."""

TICK: Final = 0.05
"""Seconds between two looks at the queue at most: a backoff may have ended."""

ROUNDING: Final = 1e-6
"""Sums of times are not exact."""

COHORTS, QUEUES = 5, 6
NODES, CORES = 40, 64
"""Far more than all quotas together: nodes are no matter of Kueue's."""


class Class(NamedTuple):
    """The jobs of one kind in each queue. Times are seconds."""

    jobs: int
    every: float
    runs: float
    priority: int
    cores: int
    admitted_by_kueue: float
    """Its mean time to admission there."""


CLASSES: Final = {
    "large": Class(50, 1.2, 1.0, 200, 20, 6.666),
    "medium": Class(100, 0.5, 0.5, 100, 5, 76.768),
    "small": Class(350, 0.1, 0.2, 50, 1, 215.468),
}
KUEUE_WALL: Final = 351.116
"""Seconds, on the mean of its five runs."""

KUEUE_USED: Final = 0.587
"""How much of their nominal quota the queues used meanwhile."""


class Job(NamedTuple):
    """One that is to run, again if it is evicted."""

    kind: str
    queue: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.queue}-{self.kind}-{self.number}"


@dataclass(slots=True)
class Outcome:
    """What came of it. Times are seconds."""

    admitted_after: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in CLASSES})
    """By kind: how long each job waited before it ran to its end, from when it first came."""

    evictions: Counter[str] = field(default_factory=Counter)
    lasted: float = 0.0
    core_seconds: float = 0.0
    cpu: float = 0.0
    """Of this process, for all that the engine did."""


class Baseline:
    """One run."""

    def __init__(self, jobs: float = 1.0) -> None:
        """`jobs`: which part of the jobs of each queue comes."""
        self._clock, self._world = FakeClock(0.0), FakeWorld()
        self._world.delete = self._evicted
        document = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "profiles": [
                {
                    "schedulerName": PROFILE,
                    "plugins": {"multiPoint": {"enabled": [{"name": "CapacityScheduling"}]}},
                    "pluginConfig": [
                        {"name": "CapacityScheduling", "args": {"elasticQuotas": False, "kueueQueues": True}}
                    ],
                }
            ],
        }
        registry = in_tree()
        config = config_from_dict(document, registry)
        self._engine: Engine = build_engine(config, registry, self._world.writers, Metrics(), self._clock)
        for number in range(NODES):
            self._engine.handlers.node_changed(a_node(f"n{number}", cpu=CORES, memory="256Gi"))
        self._make_quotas()
        self._order = count()
        self._coming: list[tuple[float, int, Job]] = []
        for cohort in range(COHORTS):
            for number in range(QUEUES):
                for kind, of in CLASSES.items():
                    for index in range(round(of.jobs * jobs)):
                        self._comes((index + 1) * of.every, Job(kind, f"q-{cohort}-{number}", index))
        self._came: dict[Job, float] = {}
        self._jobs: dict[str, Job] = {}
        """UID → the job of a pod that waits or runs."""
        self._ends: list[tuple[float, int, str]] = []
        self._started: dict[str, float] = {}
        self._gone: list[str] = []
        self._seen_bound = 0
        self.outcome = Outcome()

    async def run(self) -> Outcome:
        """Let time pass until the last job has ended."""
        begin = time.process_time()
        while self._coming or self._jobs:
            self._clock.advance(self._until_next())
            self._end_pods()
            self._take_arrivals()
            self._engine.queue.flush_backoff_completed()
            await self._schedule()
        self.outcome.lasted = self._clock()
        self.outcome.cpu = time.process_time() - begin
        return self.outcome

    def _until_next(self) -> float:
        """Return the seconds until a job comes or ends, `TICK` at most."""
        soonest = min((times[0][0] for times in (self._coming, self._ends) if times), default=inf)
        return min(max(soonest - self._clock(), 0.0), TICK)

    def _make_quotas(self) -> None:
        self._see(NAMESPACE, Unstructured.from_dict({"metadata": {"name": TEAM, "uid": TEAM}}))
        self._see(RESOURCE_FLAVOR, a_flavor("default"))
        preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
        for cohort in range(COHORTS):
            for number in range(QUEUES):
                name = f"q-{cohort}-{number}"
                quota = {"default": {"cpu": ["20", "100"]}}
                self._see(CLUSTER_QUEUE, a_queue(name, f"cohort-{cohort}", [quota], preemption=preemption))
                self._see(LOCAL_QUEUE, a_local_queue(TEAM, name, name))

    def _see(self, resource: str, found: Any) -> None:
        if not isinstance(found, Unstructured):
            metadata = msgspec.structs.replace(found.metadata, uid=f"{resource} {found.metadata.name}")
            found = msgspec.structs.replace(found, metadata=metadata)
        self._engine.object_handlers.object_changed(resource, found)

    def _comes(self, at: float, job: Job) -> None:
        heapq.heappush(self._coming, (at, next(self._order), job))

    def _take_arrivals(self) -> None:
        while self._coming and self._coming[0][0] <= self._clock() + ROUNDING:
            at, number, job = heapq.heappop(self._coming)
            of = CLASSES[job.kind]
            pod = a_pod(
                f"{job.name}-{number}",
                namespace=TEAM,
                requests={"cpu": of.cores},
                priority=of.priority,
                labels={QUEUE_LABEL: job.queue},
                scheduler_name=PROFILE,
            )
            self._came.setdefault(job, at)
            self._jobs[pod.uid] = job
            self._engine.handlers.pod_changed(pod)

    async def _schedule(self) -> None:
        """Try what may be tried, and let what is bound start and what is evicted go, until nothing more happens."""
        is_over = False
        while not is_over:
            is_over = True
            while (queued := self._engine.queue.pop_nowait()) is not None:
                self._engine.loop.schedule_one(queued)
                is_over = False
            await settle()
            for uid, node_name in self._world.asked[self._seen_bound :]:
                if uid in self._jobs:
                    self._starts(self._engine.pods[uid].bound_to(node_name))
            self._seen_bound = len(self._world.asked)
            is_over = is_over and not self._gone
            self._take_away()

    def _starts(self, pod: Pod) -> None:
        self._engine.handlers.pod_changed(pod)
        now = self._clock()
        self._started[pod.uid] = now
        heapq.heappush(self._ends, (now + CLASSES[self._jobs[pod.uid].kind].runs, next(self._order), pod.uid))

    def _evicted(self, uid: str) -> None:
        self._gone.append(uid)

    def _take_away(self) -> None:
        """Let the watch show that victims are gone; their jobs begin anew."""
        gone, self._gone = self._gone, []
        for uid in gone:
            job = self._jobs.pop(uid, None)
            if job is None:
                continue
            self.outcome.evictions[job.kind] += 1
            self._used(uid, job)
            self._engine.handlers.pod_deleted(self._engine.pods[uid])
            self._comes(self._clock(), job)

    def _end_pods(self) -> None:
        while self._ends and self._ends[0][0] <= self._clock() + ROUNDING:
            _, _, uid = heapq.heappop(self._ends)
            job = self._jobs.pop(uid, None)
            if job is None:
                continue  # it was evicted
            started = self._used(uid, job)
            self.outcome.admitted_after[job.kind].append(started - self._came.pop(job))
            self._engine.handlers.pod_deleted(self._engine.pods[uid])

    def _used(self, uid: str, job: Job) -> float:
        """Account for what a pod that is over has used; return when it started."""
        started = self._started.pop(uid)
        self.outcome.core_seconds += CLASSES[job.kind].cores * (self._clock() - started)
        return started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=float, default=1.0, help="which part of the jobs of each queue comes")
    options = parser.parse_args()
    outcome = asyncio.run(Baseline(options.jobs).run())
    jobs = sum(map(len, outcome.admitted_after.values()))
    used = outcome.core_seconds / outcome.lasted / (COHORTS * QUEUES * 20)
    print("| | Loadmaster, simulated | Kueue, its CI |")
    print("|---|---:|---:|")
    print(f"| until the last job ended, s | {outcome.lasted:.1f} | {KUEUE_WALL:.0f} |")
    print(f"| nominal quota in use meanwhile | {used:.1%} | {KUEUE_USED:.1%} |")
    for kind, of in CLASSES.items():
        waits = outcome.admitted_after[kind]
        print(f"| mean time to admission, {kind}, s | {sum(waits) / len(waits):.2f} | {of.admitted_by_kueue:.1f} |")
    print(f"\n{jobs:,} jobs, {sum(outcome.evictions.values()):,} evictions ({dict(outcome.evictions)})")
    print(f"{outcome.cpu:.1f} s of CPU in all, {outcome.cpu / jobs * 1000:.2f} ms a job, of this simulation too")


if __name__ == "__main__":
    main()
