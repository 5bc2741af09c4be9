"""CPU that an event of the watch costs: `python -m tests.unit.kube.watch_cost`.

The API server is a fake one, in a process of its own; the watch, kopf and the client are the real ones, with the
settings of the garbage collector that the scheduler has, and with uvloop where it is installed.
"""

import asyncio
import gc
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from scheduler.assembly.cluster import settle_memory
from scheduler.assembly.scheduling import loop_factory
from scheduler.kube.informers.deadlines import Deadlines
from scheduler.kube.informers.intake import node_intake, pod_intake
from scheduler.kube.informers.watch import Watch
from scheduler.process.metrics import Metrics
from tests.unit.kube.fake_api import FakeHandlers, client_of, pod_dict, until
from tests.unit.kube.watch_api import HistoryApi, NoComparisons, size_of

EVENTS: Final = 5_000
OBJECTS: Final = {"each event of another object": EVENTS, "100 objects": 100}


def main() -> int:
    print(f"Python {sys.version.split()[0]}, {size_of([next(history(1))]):,} bytes an event")
    for text, objects in OBJECTS.items():
        ours, theirs = multiprocessing.Pipe()
        server = multiprocessing.get_context("spawn").Process(target=serve, args=(objects, theirs), daemon=True)
        server.start()
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            seconds, lag = runner.run(watched(ours.recv()))
        server.terminate()
        server.join()
        print(f"{text:30} {1e6 * seconds / EVENTS:6.1f} µs CPU per event, {EVENTS / lag:8,.0f} events/s")
    return 0


def history(objects: int) -> Iterator[dict[str, Any]]:
    """Events of pods as the API server sends them, including the parts that are not read."""
    for i in range(EVENTS):
        pod = pod_dict(f"pod-{i % objects:05}", 101 + i, schedulerName="loadmaster", nodeName="node-00001")
        resources = {"requests": {"cpu": "100m", "memory": "500Mi"}}
        pod["spec"]["containers"] = [{"name": "pause", "image": "registry.k8s.io/pause:3.10", "resources": resources}]
        owned: dict[str, Any] = {"f:spec": {f"f:{field}": {} for field in "abcdefghijklmnopqrst"}}
        pod["metadata"]["managedFields"] = [{"manager": "loadmaster", "operation": "Update", "fieldsV1": owned}] * 3
        pod["metadata"]["labels"] = {"app": "web", "tier": "front"}
        pod["status"] = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}], "qosClass": ""}
        yield {"type": "ADDED" if i < objects else "MODIFIED", "object": pod}


def serve(objects: int, connection: Connection) -> None:
    async def forever() -> None:
        api = HistoryApi(list(history(objects)), [])
        async with api.server:
            connection.send(str(api.server.make_url("/")))
            await asyncio.Event().wait()

    asyncio.run(forever())


async def watched(server: str) -> tuple[float, float]:
    """Watch until all events have come; return the seconds of CPU and of the clock from the first to the last."""
    handlers, metrics = FakeHandlers(), Metrics()
    intakes = (pod_intake(handlers, metrics), node_intake(handlers, metrics))
    settle_memory()
    with tempfile.TemporaryDirectory() as directory:
        async with client_of(Path(directory), server, metrics=metrics) as client:
            watch = Watch(client, intakes, NoComparisons(), Deadlines(metrics), metrics)
            task = asyncio.create_task(watch.run())
            await until(lambda: handlers.calls)
            before, cpu, clock = len(handlers.calls), time.process_time(), time.perf_counter()
            await until(lambda: len(handlers.calls) >= EVENTS)
            share = EVENTS / (EVENTS - before)
            spent = share * (time.process_time() - cpu), share * (time.perf_counter() - clock)
            task.cancel()
            await asyncio.wait([task])
    gc.unfreeze()
    return spent


if __name__ == "__main__":
    sys.exit(main())
