"""The whole scheduler over an API server in memory, for counting: `run` without kopf, TLS and sockets.

The engine with the default profile, the client, the binder, Events and status patches are the real ones, put together
as `scheduler.commands.run` does it. What the watch would send is given to the intake, as the lines that it would be.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Final
from unittest.mock import patch

import orjson

import plugins
from scheduler.config.load import load_config
from scheduler.cycle.writers import Writers
from scheduler.engine.engine import build_engine
from scheduler.kube.http.client import Client
from scheduler.kube.identity.credentials import Credentials
from scheduler.kube.identity.identity import Identity
from scheduler.kube.identity.tls_files import TlsFiles
from scheduler.kube.informers.intake import pod_intake
from scheduler.kube.writes.api_writer import PluginWriter
from scheduler.kube.writes.binder import ApiBinder
from scheduler.kube.writes.events import Events
from scheduler.kube.writes.evictor import ApiEvictor
from scheduler.kube.writes.recorder import Recorder
from scheduler.kube.writes.status import PodStatuses
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from tests.bench.cycle_world import PROFILE, Json, numbered_node, pod_dict
from tests.bench.still_loop import Answer, StillLoop, Tally

NOW: Final = 1_700_000_000.0
"""Seconds since 1970; in this world it is always now."""

TICK: Final = 1e-5
"""Seconds by which `perf_counter` goes on with each look: the loop gives others their turn after that many looks."""


class CountedWorld:
    """Nodes, and pods that come."""

    def __init__(self, loop: StillLoop, nodes: int) -> None:
        self._loop = loop
        self._version = 1
        self._pods: dict[str, Json] = {}
        self._bound: dict[str, str] = {}
        """Pod → node, as the API server has it."""
        self._refused: set[str] = set()
        """Pods that were told to be unschedulable."""
        self.warning = ""
        """What the last Event of that type says."""
        self._server = Tally(
            {
                "POST pods/binding": self._bind,
                "POST events": self._take_event,
                "PATCH events": lambda *_: (200, b"{}"),
                "PATCH pods/status": self._patch_status,
            }
        )
        loop.serve(self._server)
        metrics = Metrics()
        self._client = Client(_credentials(), metrics)
        binder = ApiBinder(self._client, metrics)
        tasks = Tasks(metrics)
        self._events = Events(self._client, metrics, tasks, binder.is_binding, now=lambda: NOW, hostname="host")
        self._statuses = PodStatuses(self._client, tasks, now=lambda: NOW)
        recorder = Recorder(self._events, [PROFILE])
        evictor, writer = ApiEvictor(self._client, self._statuses), PluginWriter(self._client)
        writers = Writers(binder, recorder, self._statuses, evictor, writer)
        config = load_config(None, plugins.IN_TREE)
        self.engine = build_engine(
            config, plugins.IN_TREE, writers, metrics, loop.time, tasks, stopwatch=time.perf_counter
        )
        self._intake = pod_intake(self.engine.handlers, metrics)
        for number in range(nodes):
            self.engine.handlers.node_changed(numbered_node(number))

    @property
    def requests(self) -> Counter[str]:
        """Requests so far, by what they were."""
        return self._server.requests

    def is_settled(self, name: str) -> bool:
        """Whether a pod is bound or was refused."""
        return name in self._bound or name in self._refused

    def new_pods(self, names: Sequence[str], spec: Json, app: str) -> list[bytes]:
        """What the watch sends of new pods."""
        for name in names:
            self._pods[name] = _full(pod_dict(name, spec, app=app))
        return [self._line("ADDED", name) for name in names]

    def changed_pods(self, names: Sequence[str], spec: Json, app: str) -> list[bytes]:
        """What the watch sends of pods that were bound or refused."""
        for name in names:
            pod = self._pods[name]
            condition = {"type": "PodScheduled", "status": "True"}
            if name in self._bound:
                pod["spec"]["nodeName"] = self._bound[name]
            else:
                condition |= {"status": "False", "reason": "Unschedulable"}
            pod["status"]["conditions"] = [condition]
        return [self._line("MODIFIED", name) for name in names]

    def deleted_pods(self, names: Sequence[str]) -> list[bytes]:
        """What the watch sends of pods that are gone; nothing of them is kept here."""
        lines = [self._line("DELETED", name) for name in names]
        for name in names:
            del self._pods[name]
            self._bound.pop(name, None)
            self._refused.discard(name)
        return lines

    async def schedule(self, lines: Sequence[bytes]) -> None:
        """Hear what the watch sends, and let everything go as far as it can."""
        for line in lines:
            self._intake.from_line(line)
        await self._loop.idle()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Let the scheduler run."""
        async with self._client:
            self._events.start()
            scheduling = asyncio.create_task(self.engine.loop.run())
            try:
                yield
            finally:
                self.engine.queue.close()
                await scheduling
                await self._events.close()
                await self._statuses.close()

    def _line(self, type_: str, name: str) -> bytes:
        self._version += 1
        pod = self._pods[name]
        pod["metadata"]["resourceVersion"] = str(self._version)
        return orjson.dumps({"type": type_, "object": pod})

    def _bind(self, method: str, path: str, body: bytes) -> Answer:
        binding = orjson.loads(body)
        name = binding["metadata"]["name"]
        assert name not in self._bound, f"{name} is bound twice"
        self._bound[name] = binding["target"]["name"]
        return 201, b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'

    def _take_event(self, method: str, path: str, body: bytes) -> Answer:
        event = orjson.loads(body)
        if event["type"] == "Warning":
            self.warning = event["note"]
        return 201, b"{}"

    def _patch_status(self, method: str, path: str, body: bytes) -> Answer:
        name = path.split("/")[-2]
        self._refused.add(name)
        return 200, orjson.dumps(self._pods[name])


@contextmanager
def ticking() -> Iterator[None]:
    """Let `perf_counter` go on a little with each look, whatever the time is."""
    with patch.object(time, "perf_counter", itertools.count(0.0, TICK).__next__):
        yield


def _full(pod: Json) -> Json:
    """With the parts that nobody reads, as the API server sends them."""
    owned: Json = {"f:spec": {f"f:{field}": {} for field in "abcdefghijklmnopqrst"}}
    pod["metadata"]["managedFields"] = [{"manager": "test", "operation": "Update", "fieldsV1": owned}]
    pod["status"] = {"phase": "Pending", "qosClass": "Burstable"}
    return pod


def _credentials() -> Credentials:
    tls = TlsFiles("", b"", b"", verifies=True)
    identity = Identity("http://127.0.0.1:1", None, None, "Bearer secret", tls, ("", ""))

    async def load(rejected: bool) -> Identity:
        raise AssertionError("nothing is due")

    return Credentials("a test", load, identity)
