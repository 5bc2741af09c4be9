"""What a reload holds up whose plugins read more than those before: `python -m tests.bench.reload_lists`.

5,000 nodes, 20,000 pods that wait and 100,000 volumes are listed from memory, as pages of the API server. Then the
configuration changes: all profiles are others, another plugin sorts the queue, and one reads annotations of pods, all
of a volume, and a resource that was not watched before. So every pod and volume is decoded again, every waiting pod is
asked again, and the queue is sorted anew. Then the plugin goes again. Printed is the longest time for which the event
loop is held up, and for which no decision may be made; exit code 1 if one is more than 100 ms.
"""

import argparse
import asyncio
import gc
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import plugins
from scheduler import framework as fw
from scheduler.commands.reloading import Reloader
from scheduler.config.load import config_from_dict
from scheduler.config.source import Loaded
from scheduler.cycle.engine import Engine, build_engine
from scheduler.cycle.profiles import Resources
from scheduler.cycle.writers import Writers
from scheduler.framework.resources import parse_resource
from scheduler.kube.http.client import Operation, Reply
from scheduler.kube.informers.comparison_schedule import ComparisonSchedule
from scheduler.kube.informers.deadlines import Deadlines
from scheduler.kube.informers.further_watches import FurtherWatches
from scheduler.kube.informers.intake import Intake, node_intake, pod_intake
from scheduler.kube.informers.relister import Relister
from scheduler.kube.reconfiguring import ReconfigurableCluster
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.runtime.registry import Registry
from tests.bench.cycle_world import NoWorld, node_name, pod_dict
from tests.bench.reload import PROFILES

Json = dict[str, Any]

ALLOWED: Final = 0.1
"""Seconds."""

BUDGETS: Final = "budgets.v1.example.com"
_PAGE: Final = 500
_NODE: Final[Json] = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi"}


class Reading(fw.QueueSortPlugin, fw.FilterPlugin):
    """Reads more than others do, and sorts the queue."""

    name = "Reading"
    needs = ("metadata.annotations",)
    reads = (BUDGETS, fw.PERSISTENT_VOLUME)

    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        return a.pod.name > b.pod.name

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        return (fw.on(BUDGETS, fw.Action.ADD),)

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return fw.unschedulable("none is good enough")


class _Client:
    """Lists what it was given, from memory."""

    def __init__(self) -> None:
        self._pages: dict[str, list[list[bytes]]] = defaultdict(list)

    def add(self, path: str, objects: Iterator[Json]) -> None:
        every = [json.dumps(each).encode() for each in objects]
        self._pages[path] = [every[at : at + _PAGE] for at in range(0, len(every), _PAGE)]

    async def page(self, operation: Operation, path: str, limit: int, query: str) -> Reply:
        await asyncio.sleep(0)
        number = int(query.partition("continue=")[2] or 0)
        pages = self._pages[path] or [[]]
        more = str(number + 1) if number + 1 < len(pages) else ""
        head = json.dumps({"resourceVersion": "1000", "continue": more}).encode()
        return Reply(200, b'{"metadata":' + head + b',"items":[' + b",".join(pages[number]) + b"]}")


class _Watches(FurtherWatches):
    """Nothing changes; what is watched is listed."""

    def _start(self, intake: Intake[Any]) -> "asyncio.Task[None]":
        async def watch() -> None:
            self._relister.request(intake.resource)
            await asyncio.Event().wait()

        return self._tasks.start(f"watch on {intake.resource}", watch())


class _Nobody:
    """Hears of no Event."""

    def use(self, profiles: Sequence[str]) -> None: ...


class _Longest:
    """The longest times of their kinds, in seconds of CPU."""

    def __init__(self) -> None:
        self.stretch = self.held = 0.0

    async def measure(self) -> None:
        """Look at every turn of the event loop."""
        while True:
            began = time.thread_time()
            await asyncio.sleep(0)
            self.stretch = max(self.stretch, time.thread_time() - began)

    @contextmanager
    def hold(self, engine: Engine) -> Iterator[None]:
        """Have no decision made, and note for how long."""
        began = time.thread_time()
        with engine.loop.hold():
            yield
        self.held = max(self.held, time.thread_time() - began)


def _objects(nodes: int, pods: int, volumes: int) -> _Client:
    def named(name: str, **fields: Any) -> Json:
        return {"metadata": {"name": name, "uid": name, "resourceVersion": "10"}, **fields}

    def a_pod(number: int) -> Json:
        spec = {"schedulerName": PROFILES[number % len(PROFILES)], "nodeSelector": {"no": "where"}}
        pod = pod_dict(f"pod-{number}", spec, app=f"app-{number % 20}")
        pod["metadata"] |= {"resourceVersion": "10", "annotations": {"example.com/note": "n" * 200}}
        return pod

    def a_volume(number: int) -> Json:
        source = {"driver": "ebs.csi.aws.com", "volumeHandle": f"vol-{number}"}
        spec = {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "csi": source}
        return named(f"pv-{number}", spec={**spec, "storageClassName": "gp3"}, status={"phase": "Bound"})

    client = _Client()
    client.add("/api/v1/nodes", (named(node_name(n), status={"allocatable": _NODE}) for n in range(nodes)))
    client.add("/api/v1/pods", map(a_pod, range(pods)))
    client.add("/api/v1/persistentvolumes", map(a_volume, range(volumes)))
    client.add("/apis/example.com/v1/budgets", (named(f"b-{n}", spec={"pool": "blue"}) for n in range(volumes)))
    return client


class _Source:
    """Two configurations, in turn: with the plugin, and without."""

    name = "bench"

    def __init__(self) -> None:
        self.registry: Registry = {**plugins.IN_TREE, Reading.name: Reading}
        self.version = 0

    def signature(self) -> int:
        return self.version

    async def load_again(self, before: Registry) -> Loaded:
        return self.load()

    def load(self) -> Loaded:
        also = [{"name": Reading.name}] if self.version % 2 else []
        sort = {"enabled": also, "disabled": [{"name": "*"}]} if also else {}
        chosen = {"multiPoint": {"enabled": also}, "queueSort": sort}
        profiles = [{"schedulerName": name, "plugins": chosen} for name in PROFILES]
        header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        return Loaded(config_from_dict({**header, "profiles": profiles}, self.registry), self.registry)


async def measure(nodes: int, pods: int, volumes: int) -> dict[str, _Longest]:
    """What was the longest in each phase."""
    client: Any = _objects(nodes, pods, volumes)
    world, metrics, source = NoWorld(), Metrics(), _Source()
    world.unschedulable = lambda *_: None  # type: ignore[method-assign]
    world.event = lambda *_: None  # type: ignore[method-assign]
    tasks, loaded = Tasks(metrics), source.load()
    engine = build_engine(
        loaded.config, source.registry, Writers(world, world, world, world), metrics, time.monotonic, tasks
    )
    schedule, deadlines, longest = ComparisonSchedule(), Deadlines(metrics), _Longest()
    watched = pod_intake(engine.handlers, metrics, schedule.request_later), node_intake(engine.handlers, metrics)

    def hold() -> Any:
        return longest.hold(engine)

    relister = Relister(client, watched, schedule, hold, deadlines, metrics, 0.0, settle=0.0)
    watches = _Watches(
        client, relister, engine.object_handlers, deadlines, metrics, tasks, schedule.request_later, lambda: None
    )
    resources = engine.profiles.resources
    every = Resources({**resources.watched, BUDGETS: parse_resource(BUDGETS)}, {}, resources.written)
    await watches.open(resources)
    events: Any = _Nobody()
    cluster = ReconfigurableCluster(client, *watched, relister, watches, events, every, PROFILES[0])
    reloader = Reloader(source, loaded, engine, cluster, metrics, tasks)
    tasks.start("relister", relister.run())
    for intake in watched:
        relister.request(intake.resource)
    watches.start()
    await relister.synced.wait()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)  # as `run` has it
    tasks.start("scheduling loop", engine.loop.run())
    found: dict[str, _Longest] = {}

    async def phase(name: str, work: Callable[[], Any]) -> None:
        nonlocal longest
        found[name] = longest = _Longest()
        measuring = asyncio.create_task(longest.measure())
        await work()
        await asyncio.sleep(0)
        measuring.cancel()

    async def change() -> None:
        source.version += 1
        await reloader.reload()
        if reloader.problems:
            raise RuntimeError(reloader.problems[0])

    await asyncio.sleep(1.0)
    await phase("nothing happens", partial(asyncio.sleep, 1.0))
    await phase("plugins come that read more", change)
    await phase("decisions afterwards", partial(asyncio.sleep, 1.0))
    await phase("they go again", change)
    await phase("what is left of them", lambda: _look(reloader, 5))
    engine.queue.close()
    await tasks.close()
    engine.close()
    return found


async def _look(reloader: Reloader, times: int) -> None:
    for _ in range(times):
        await reloader.look()
        await asyncio.sleep(0.1)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--volumes", type=int, default=100_000, help="and as many objects that nobody watched before")
    options = parser.parse_args()
    found = asyncio.run(measure(options.nodes, options.pods, options.volumes))
    print(f"{'milliseconds, the longest':<32}{'event loop':>12}{'no decision':>13}")
    for name, each in found.items():
        print(f"{name:<32}{1000 * each.stretch:>12.1f}{1000 * each.held:>13.1f}")
    return int(max(max(each.stretch, each.held) for each in found.values()) > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
