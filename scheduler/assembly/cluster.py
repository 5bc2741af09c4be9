"""A scheduler's connection to its cluster, the same for `run` and for a shadow.

connect ─► an engine is built ─► Informers ─► sync: permissions, lists, watches ─► the engine knows the cluster
"""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from scheduler.config.options import RunOptions
from scheduler.config.types import Config
from scheduler.engine.engine import Engine
from scheduler.engine.profiles import Resources
from scheduler.framework.awaited import first_of
from scheduler.framework.errors import ClusterError
from scheduler.kube.http.client import BadStatus, Client
from scheduler.kube.http.retries import RetryPolicy, is_outage
from scheduler.kube.identity.credentials import load_credentials
from scheduler.kube.informers.comparison_schedule import ComparisonSchedule
from scheduler.kube.informers.deadlines import COMPARISON_SECONDS, FIRST_COMPARISON, Deadlines
from scheduler.kube.informers.further_watches import FurtherWatches
from scheduler.kube.informers.intake import node_intake, pod_intake
from scheduler.kube.informers.raw_nodes import keep_raw
from scheduler.kube.informers.relister import Relister
from scheduler.kube.informers.watch import Watch
from scheduler.kube.permissions import Permission, check_permissions
from scheduler.kube.services.api_server import ask_api_server
from scheduler.kube.versions import version_problem
from scheduler.process import allocator
from scheduler.process.metrics import Metrics
from scheduler.process.stop_signals import StopSignals
from scheduler.process.tasks import Tasks
from scheduler.serve.endpoints.health import Check

START_RETRIES: Final = RetryPolicy(first=0.5, limit=10.0)
"""For an API server that does not answer at the start."""

IDLE_SECONDS: Final = 15.0
"""Caches filled for pods are given back when nothing has used them for this long, or for up to twice as long."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClusterConnection:
    """A client, and the parts of the process that every scheduler has."""

    client: Client
    metrics: Metrics
    tasks: Tasks
    signals: StopSignals
    deadlines: Deadlines
    stop: asyncio.Event
    """Set by a signal, and when a part has failed."""


@asynccontextmanager
async def connect(
    options: RunOptions, config: Config, metrics: Metrics, may_write: Callable[[], bool] | None = None
) -> AsyncIterator[ClusterConnection]:
    """Connect, and cancel all tasks at the end. Raises ConfigError.

    `may_write`: whether the client may send writes; None: always.
    """
    deadlines = Deadlines(metrics)
    deadlines.expect(FIRST_COMPARISON, COMPARISON_SECONDS)
    stop = asyncio.Event()
    signals = StopSignals(stop)
    signals.listen()
    tasks = Tasks(metrics, stop)
    credentials = await load_credentials(options.kubeconfig or config.client_connection.kubeconfig or None)
    async with Client(credentials, metrics, may_write) as client:
        try:
            tasks.start("task watch", tasks.watch())
            tasks.start("signals", signals.keep())
            tasks.start("credentials", credentials.keep_fresh())
            yield ClusterConnection(client, metrics, tasks, signals, deadlines, stop)
        finally:
            await tasks.close()


class Informers:
    """The lists and watches that keep an engine up to date."""

    def __init__(self, cluster: ClusterConnection, engine: Engine, resources: Resources, resync_seconds: float) -> None:
        """`resources`: what else the plugins read."""
        client, metrics, deadlines, listen = cluster.client, cluster.metrics, cluster.deadlines, cluster.signals.listen
        schedule = ComparisonSchedule()
        failed = schedule.request_later
        self._cluster = cluster
        self._engine = engine
        self._resources = resources
        self.pods = pod_intake(engine.handlers, metrics, failed, raw=resources.raw_pods)
        self.nodes = node_intake(engine.handlers, metrics, failed, keep_raw if resources.whole_nodes else None)
        intakes = (self.pods, self.nodes)
        self.relister = Relister(client, intakes, schedule, engine.pauses.hold, deadlines, metrics, resync_seconds)
        self._watch = Watch(client, intakes, self.relister, deadlines, metrics, listen)
        self.further = FurtherWatches(
            client, self.relister, engine.object_handlers, deadlines, metrics, cluster.tasks, failed, listen
        )

    @property
    def live(self) -> dict[str, Check]:
        """The checks of `/livez`."""
        cluster = self._cluster
        return {
            "parts": cluster.tasks.are_running,
            "watches": cluster.deadlines.are_met,
            "credentials": cluster.client.access.is_granted,
        }

    @property
    def ready(self) -> dict[str, Check]:
        """The checks that `/readyz` has in addition."""
        return {"sched-handler-sync": self.relister.synced.is_set}

    async def sync(self, permissions: Sequence[Permission]) -> bool:
        """List everything and begin to watch; false if the program was stopped first.

        Raises ConfigError if permissions are missing.
        """
        stop, tasks = self._cluster.stop, self._cluster.tasks
        await self.further.open(self._resources)
        await first_of(stop.wait(), self._check(permissions))
        if stop.is_set():
            return False
        tasks.start(f"watch on {self._watch.label}", self._watch.run())
        self.further.start()
        tasks.start("relister", self.relister.run())
        await first_of(stop.wait(), self.relister.synced.wait())
        if not self.relister.synced.is_set():
            return False
        settle_memory()
        tasks.start("forgetting what is idle", _forget_idle_forever(self._engine))
        return True

    async def _check(self, permissions: Sequence[Permission]) -> None:
        """Wait for an API server that answers. Raises ConfigError if it says that permissions are missing."""
        is_known = False
        for wait in START_RETRIES:
            try:
                if not is_known:
                    await self._look_at_api_server()
                    is_known = True
                await check_permissions(self._cluster.client, permissions)
                return
            except ClusterError as error:
                fields = {"err": str(error), "seconds": round(wait, 1)}
                _logger.warning("The API server does not answer; trying again", extra=fields)
                if is_outage(error):
                    self._cluster.deadlines.excuse()
            await asyncio.sleep(wait)

    async def _look_at_api_server(self) -> None:
        """Log and show a version that we are not tested with; each watch finds resources that are not served.

        Raises ClusterError if there is no answer.
        """
        try:
            version = (await ask_api_server(self._cluster.client)).version
        except BadStatus:  # a cluster may keep it to itself
            version = ""
        problem = version_problem(version) if version else ""
        if problem:
            _logger.warning(problem)
        samples = (((version, "false" if problem else "true"), 1.0),) if version else ()
        self._cluster.metrics.watch_gauge(
            "loadmaster_api_server_info",
            "The version of the API server at the start, and whether Loadmaster is tested with it.",
            ("version", "supported"),
            lambda: samples,
        )


def settle_memory() -> None:
    """Keep the garbage collector away from what the first list brought: a full collection would stop every bind."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


async def _forget_idle_forever(engine: Engine) -> None:
    while True:
        await asyncio.sleep(IDLE_SECONDS)
        for _ in engine.forget_idle():
            await asyncio.sleep(0)
        allocator.give_back()
