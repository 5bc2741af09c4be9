"""The composition root of `loadmaster run`: builds every part, starts them in order, stops them in reverse.

    permissions ─► watch, relister ─► synced ─► the Lease is ours ─► scheduling loop …
        … SIGTERM ─► no more pops ─► bindings finish ─► the Lease is released ─► exit 0

A part that ends unexpectedly ends the program with exit code 1: its supervisor starts it again, and the cluster is
listed again. Bad configuration and missing permissions are ConfigErrors, for the command line to print.
"""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import metadata
from typing import TYPE_CHECKING, Final

from scheduler.assembly.cluster import ClusterConnection, Informers, connect
from scheduler.assembly.gauges import show_certificates, show_state
from scheduler.assembly.port import Inside, Shown, open_port
from scheduler.assembly.queue_statuses import QueueStatuses
from scheduler.assembly.reloading import Reloader
from scheduler.assembly.share_gauges import ShareGauges
from scheduler.config.effective import as_document, write_effective
from scheduler.config.feature_gates import read_gates
from scheduler.config.notes import notes
from scheduler.config.options import RunOptions
from scheduler.config.source import ConfigurationSource, Loaded
from scheduler.config.types import Config
from scheduler.cycle.rejections import Rejections
from scheduler.cycle.writers import Writers
from scheduler.engine.dumper import dump
from scheduler.engine.engine import Engine, ExtenderAccess, build_engine
from scheduler.extenders.roster import Roster
from scheduler.framework.awaited import first_of
from scheduler.kube.debugger import Debugger
from scheduler.kube.election.leadership import Leadership
from scheduler.kube.http.client import Client
from scheduler.kube.informers.comparer import Comparer
from scheduler.kube.informers.listing import Lister
from scheduler.kube.permissions import permissions_for
from scheduler.kube.reads.plugin_reader import PluginReader
from scheduler.kube.reads.pods import ApiPodReader, RawPods
from scheduler.kube.reconfiguring import ReconfigurableCluster
from scheduler.kube.services.extender_transport import Budget, HttpTransport, follow_files
from scheduler.kube.writes.api_writer import PluginWriter
from scheduler.kube.writes.binder import ApiBinder
from scheduler.kube.writes.events import Events
from scheduler.kube.writes.evictor import ApiEvictor
from scheduler.kube.writes.recorder import Recorder as EventRecorder
from scheduler.kube.writes.status import PodStatuses
from scheduler.process import allocator
from scheduler.process.logs import Levels, set_up_logging
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.runtime.event_stream import EventStream
from scheduler.runtime.guards.plugin_exits import START_SECONDS, ended_hangs, refused_exits
from scheduler.runtime.guards.watchdog import Watchdog
from scheduler.serve.endpoints.explanations import PATH as EXPLAIN
from scheduler.serve.endpoints.explanations import Explanations
from scheduler.serve.endpoints.recordings import PATH as RECORD
from scheduler.serve.endpoints.recordings import Recordings
from scheduler.serve.port.http import Pages, QueriedPage
from scheduler.tracing.settings import exporter

if TYPE_CHECKING:
    from scheduler.kube.election.elector import Elector

SHUTDOWN_SECONDS: Final = 20.0
"""For bindings under way at SIGTERM; less than the 30 s after which a kubelet kills."""

EXPIRY_SECONDS: Final = 1.0
"""Between two searches for assumed pods that were never confirmed."""

_logger = logging.getLogger(__name__)


def run(options: RunOptions) -> int:
    """Schedule until stopped; return the exit code. Raises ConfigError."""
    # Its default would end the program; there is nothing to dump before the engine is there.
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    levels = Levels(options.verbosity, options.modules)
    set_up_logging(levels, options.logging_format)
    allocator.settle()
    gates, notes_on_gates = read_gates(options.feature_gates)
    source = ConfigurationSource(options, gates)
    loaded = source.load()
    config = loaded.config
    for note in (*notes(config, loaded.registry), *notes_on_gates):
        _logger.warning(note)
    if options.write_config_to:
        write_effective(config, loaded.registry, options.write_config_to)
        return 0
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        if options.shadow_of:
            from scheduler.assembly import shadow

            return runner.run(shadow.run(options, loaded, Inside(options, gates, levels)))
        return runner.run(_run(options, source, loaded, Inside(options, gates, levels)))


@dataclass(frozen=True, slots=True)
class _Scheduler:
    """A scheduler that is at work, or stands by."""

    cluster: ClusterConnection
    engine: Engine
    informers: Informers
    reloader: Reloader
    leadership: Leadership | None
    """None without leader election."""
    election: "Elector | None"
    share_gauges: ShareGauges

    def is_leading(self) -> bool:
        return self.leadership is None or self.leadership.is_held()

    def leader(self) -> str:
        return "" if self.election is None else self.election.leader()


async def _run(options: RunOptions, source: ConfigurationSource, loaded: Loaded, inside: Inside) -> int:
    config, metrics = loaded.config, Metrics()
    leadership = Leadership() if config.leader_election.leader_elect else None
    may_write = None if leadership is None else leadership.is_held
    async with AsyncExitStack() as stack:
        stream = EventStream()
        _trace(stream, metrics, stack)
        cluster = await stack.enter_async_context(connect(options, config, metrics, may_write))
        client, tasks = cluster.client, cluster.tasks
        writers, events = _writers(cluster, config, stack)
        transport = partial(HttpTransport, budget=Budget(), may_send=may_write or (lambda: True))
        roster = Roster(transport, metrics, config.extenders, stream)
        _follow(roster, tasks, stack)
        extender_access = ExtenderAccess(roster, RawPods(client))
        with ended_hangs(START_SECONDS), refused_exits():
            engine = build_engine(
                config, loaded.registry, writers, metrics, time.monotonic, tasks, extender_access, stream
            )
        stack.callback(engine.close)
        tasks.start("watch on plugins", Watchdog(engine.look_for_late_plugins).run())
        resources = replace(engine.profiles.resources, whole_nodes=roster.needs_whole_nodes)
        informers = Informers(cluster, engine, resources, config.loadmaster.resync_seconds)
        name = config.profiles[0].scheduler_name
        reconfigurable = ReconfigurableCluster(
            client, informers.pods, informers.nodes, informers.relister, informers.further, events, resources, name
        )
        reloader = Reloader(source, loaded, engine, reconfigurable, metrics, tasks)
        permissions = permissions_for(resources.watched.values(), resources.written)
        election = None
        if leadership is not None:
            from scheduler.kube.election.elector import Elector, new_identity
            from scheduler.kube.election.lease_lock import LeaseLock

            of_election = await stack.enter_async_context(Client(client.credentials, metrics, never_reuses=True))
            lock = LeaseLock(of_election, config.leader_election, new_identity(), leadership)
            election = Elector(of_election, lock, config.leader_election, leadership, name, metrics)
            permissions += election.permissions
        scheduler = _Scheduler(cluster, engine, informers, reloader, leadership, election, ShareGauges(engine, metrics))
        _dump_on_signal(scheduler, stack)
        show_state(engine, tasks, metrics)
        port = await open_port(stack, options.serving, _pages(scheduler, inside, options), metrics, tasks)
        show_certificates(client.credentials, port, metrics)
        if await informers.sync(permissions):
            await _work(scheduler, writers)
        await cluster.stop.wait()
        await _finish(scheduler)
    return 1 if tasks.failed else 0


def _writers(cluster: ClusterConnection, config: Config, stack: AsyncExitStack) -> tuple[Writers, EventRecorder]:
    """Make what writes to the API server, and return what records Events again."""
    client, tasks = cluster.client, cluster.tasks
    binder = ApiBinder(client, cluster.metrics, config.loadmaster.bind_timeout_seconds)
    events = Events(client, cluster.metrics, tasks, binder.is_binding)
    events.start()
    stack.push_async_callback(events.close)
    statuses = PodStatuses(client, tasks)
    stack.push_async_callback(statuses.close)
    recorder = EventRecorder(events, [profile.scheduler_name for profile in config.profiles])
    evictor = ApiEvictor(client, statuses)
    writer, reader = PluginWriter(client), PluginReader(client)
    return Writers(binder, recorder, statuses, evictor, writer, reader, recorder, recorder), recorder


def _dump_on_signal(scheduler: _Scheduler, stack: AsyncExitStack) -> None:
    """Log the state, and what differs from the API server's, on SIGUSR2."""
    engine, cluster, synced = scheduler.engine, scheduler.cluster, scheduler.informers.relister.synced
    comparer = Comparer(Lister(cluster.client), engine.cache, engine.queue, engine.frameworks)
    debugger = Debugger(lambda: dump(engine, time.monotonic()), comparer, synced.is_set, cluster.tasks)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, debugger.start)  # kopf leaves this one alone
    stack.push_async_callback(debugger.close)


def _pages(scheduler: _Scheduler, inside: Inside, options: RunOptions) -> Pages:
    engine, reloader, informers = scheduler.engine, scheduler.reloader, scheduler.informers
    metrics, is_leading = scheduler.cluster.metrics, scheduler.is_leading
    shown = Shown(reloader)
    inside.show_gates(metrics)
    pages = inside.pages(shown, engine, metrics, is_leading)
    queried: dict[str, QueriedPage] = {
        EXPLAIN: _at_first_use(lambda: _explanations(engine, is_leading)),
        RECORD: _at_first_use(lambda: _recordings(engine, reloader, is_leading)),
        **inside.queried(reloader),
    }
    if options.serving.page:
        from scheduler.serve.page.about import About
        from scheduler.serve.page.pages import ClusterPage

        about = About(metadata.version("loadmaster"), is_leading, scheduler.leader)
        page = ClusterPage(engine, metrics, about, shown, time.time() - time.monotonic())
        pages |= page.pages
        queried |= page.queried
        page.live.start(scheduler.cluster.tasks)
    live = informers.live
    if scheduler.election is not None:
        live["leaderElection"] = scheduler.election.is_healthy
    return Pages(pages, live, informers.ready, metrics, inside.settings, reloader.detail, queried)


def _at_first_use(make: Callable[[], QueriedPage]) -> QueriedPage:
    """A page that is made, and its code loaded, when it is first asked for."""
    made = cache(make)
    return lambda query: made()(query)


def _explanations(engine: Engine, is_leading: Callable[[], bool]) -> QueriedPage:
    from scheduler.explain.explainer import Explainer

    return Explanations(Explainer(engine, time.monotonic, is_leading))


def _recordings(engine: Engine, reloader: Reloader, is_leading: Callable[[], bool]) -> QueriedPage:
    from scheduler.replay.recorder import Recorder, without_secrets

    def config() -> dict[str, object]:
        return without_secrets(as_document(reloader.config, reloader.registry))

    return Recordings(Recorder(engine, config, is_leading, lambda: reloader.config.gates.given))


async def _work(scheduler: _Scheduler, writers: Writers) -> None:
    """Start what decides, once this replica leads."""
    engine, cluster, election = scheduler.engine, scheduler.cluster, scheduler.election
    tasks = cluster.tasks
    _logger.info("Ready", extra={"nodes": engine.cache.table.count, "profiles": ",".join(engine.frameworks)})
    tasks.start("configuration", scheduler.reloader.run())
    if election is not None:
        tasks.start("watch on the leader lease", election.watch.run())
        tasks.start("leader election", election.run())
        await first_of(cluster.stop.wait(), election.won(scheduler.informers.relister))
    if not cluster.stop.is_set():
        reader = ApiPodReader(cluster.client)
        rejections = Rejections(
            engine.ends, engine.cache, engine.queue, reader, writers, cluster.metrics, time.monotonic
        )
        tasks.start("scheduling loop", engine.loop.run())
        tasks.start("queue flushers", engine.queue.run_flushers())
        tasks.start("pod group status", engine.group_parts.statuses.run(reader))
        tasks.start("refused pod groups", engine.group_parts.refusals.run())
        tasks.start("ignored pod groups", engine.group_parts.ignored.run())
        tasks.start("pod group reservations", engine.group_parts.keep_reservations(engine.pauses.ready))
        tasks.start("shares", engine.share_parts.run())
        QueueStatuses(engine, writers.api, tasks)
        tasks.start("share gauges", scheduler.share_gauges.run())
        tasks.start("expiry", _expire_forever(engine))
        tasks.start("rejections", rejections.run())


async def _finish(scheduler: _Scheduler) -> None:
    """Let bindings under way end, then give the Lease up."""
    engine = scheduler.engine
    _logger.info("Stopping", extra={"bindings": engine.loop.bindings})
    engine.queue.close()
    cancelled = await engine.loop.finish(SHUTDOWN_SECONDS if scheduler.is_leading() else 0.0)
    if cancelled:
        _logger.warning("Bindings were left to the next start", extra={"bindings": cancelled})
    if scheduler.election is not None:
        await scheduler.election.release()
    await scheduler.cluster.tasks.cancel()


def _trace(stream: EventStream, metrics: Metrics, stack: AsyncExitStack) -> None:
    """Make spans, if the environment wants traces; OpenTelemetry is not loaded otherwise. Raises ConfigError."""
    kind = exporter(os.environ)
    if kind is None:
        return
    from scheduler.tracing import export, spans

    traces = export.Traces(metrics, metadata.version("loadmaster"), export.exporter_of(kind))
    stack.push_async_callback(traces.close)
    spans.Spans(traces.tracer, stream)
    _logger.info("Traces are on", extra={"exporter": kind.value})


def _follow(roster: Roster, tasks: Tasks, stack: AsyncExitStack) -> None:
    """Follow the certificates of extenders, and count their calls."""
    stack.push_async_callback(roster.close)
    tasks.start("certificates for extenders", follow_files(roster.refresh))
    tasks.count("prioritizing_extender", lambda: roster.extenders.prioritizing)


async def _expire_forever(engine: Engine) -> None:
    while True:
        await asyncio.sleep(EXPIRY_SECONDS)
        for pod in engine.cache.expire():
            _logger.warning("An assumed pod was never confirmed; its node is free again", extra={"pod": str(pod)})
            engine.handlers.assumption_expired(pod)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed: a tenth less per event and call."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
