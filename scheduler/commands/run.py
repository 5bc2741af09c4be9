"""The composition root of `loadmaster run`: builds every part, starts them in order, stops them in reverse.

    permissions ─► watch, relister ─► synced ─► the Lease is ours ─► scheduling loop …
        … SIGTERM ─► no more pops ─► bindings finish ─► the Lease is released ─► exit 0

A part that ends by itself, which none should, ends the program with exit code 1: its supervisor starts it again, and
the cluster is listed again. Bad configuration and missing permissions are ConfigErrors, for the command line to print.
"""

import asyncio
import gc
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from importlib import metadata
from typing import Any, Final

from scheduler.api.certificates import expires_at
from scheduler.commands.port import Inside, Shown, open_port
from scheduler.commands.reloading import Reloader
from scheduler.commands.shadow import Shadowing
from scheduler.config.effective import as_document, write_effective
from scheduler.config.feature_gates import read_gates
from scheduler.config.notes import notes
from scheduler.config.options import RunOptions
from scheduler.config.source import ConfigurationSource, Loaded
from scheduler.config.types import Config
from scheduler.cycle.dumper import dump
from scheduler.cycle.engine import PLAIN, Asking, Engine, Parts, build_engine
from scheduler.cycle.rejections import Rejections
from scheduler.cycle.writers import Writers
from scheduler.explain.explainer import Explainer
from scheduler.extenders.roster import Connect, Roster
from scheduler.framework.awaited import first_of
from scheduler.framework.errors import ClusterError
from scheduler.kube.debugger import Debugger
from scheduler.kube.election.election import Election
from scheduler.kube.election.leadership import Leadership
from scheduler.kube.http.client import Client
from scheduler.kube.http.outages import is_outage
from scheduler.kube.http.retries import RetryPolicy
from scheduler.kube.identity.credentials import Credentials, load_credentials
from scheduler.kube.informers.comparer import Comparer
from scheduler.kube.informers.comparison_schedule import ComparisonSchedule
from scheduler.kube.informers.deadlines import COMPARISON_SECONDS, FIRST_COMPARISON, Deadlines
from scheduler.kube.informers.further_watches import FurtherWatches
from scheduler.kube.informers.intake import node_intake, pod_intake
from scheduler.kube.informers.raw_nodes import keep_raw
from scheduler.kube.informers.relister import Relister
from scheduler.kube.informers.watch import Watch
from scheduler.kube.permissions import Permission, check_permissions, permissions_for
from scheduler.kube.reads.plugin_reader import PluginReader
from scheduler.kube.reads.pod_reader import ApiPodReader
from scheduler.kube.reads.raw_pods import RawPods
from scheduler.kube.reconfiguring import ReconfigurableCluster
from scheduler.kube.services.extender_transport import Budget, HttpTransport, follow_files
from scheduler.kube.writes.adapters import EventsByProfile, StatusPatches
from scheduler.kube.writes.api_writer import PluginWriter
from scheduler.kube.writes.binder import ApiBinder
from scheduler.kube.writes.events import Events
from scheduler.kube.writes.evictor import ApiEvictor
from scheduler.kube.writes.status import PodStatuses
from scheduler.process import allocator
from scheduler.process.logs import Levels, set_up_logging
from scheduler.process.metrics import Metrics
from scheduler.process.stop_signals import StopSignals
from scheduler.process.tasks import Tasks
from scheduler.queue.ages import oldest_ages
from scheduler.replay.recorder import Recorder, without_secrets
from scheduler.runtime.guards.containment import AT_START_SECONDS, Contained
from scheduler.runtime.guards.watchdog import Watchdog
from scheduler.serve.endpoints.debug_pages import Memory
from scheduler.serve.endpoints.explanations import PATH as EXPLAIN
from scheduler.serve.endpoints.explanations import Explanations
from scheduler.serve.endpoints.health import Check
from scheduler.serve.endpoints.metric_pages import metric_pages
from scheduler.serve.endpoints.recordings import PATH as RECORD
from scheduler.serve.endpoints.recordings import Recordings
from scheduler.serve.page.about import About
from scheduler.serve.page.pages import ClusterPage
from scheduler.serve.port.http import HttpServer, Pages, QueriedPage
from scheduler.tracing.settings import exporter

SHUTDOWN_SECONDS: Final = 20.0
"""For bindings under way when told to stop; less than the 30 s after which a kubelet kills."""

START_RETRIES: Final = RetryPolicy(first=0.5, limit=10.0)
"""For an API server that does not answer at the start."""

EXPIRY_SECONDS: Final = 1.0
"""Between two searches for assumed pods that were never confirmed."""

IDLE_SECONDS: Final = 15.0
"""What was made for pods is given back once nobody has asked for it for this long, or for up to twice as long."""

_logger = logging.getLogger(__name__)


def run(options: RunOptions) -> int:
    """Schedule until told to stop; return the exit code. Raises ConfigError."""
    # Its default would end the program; there is nothing to dump before the engine is there.
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    levels = Levels(options.verbosity, options.modules)
    set_up_logging(levels, options.logging_format)
    allocator.settle()
    gates, notes_on_gates = read_gates(options.feature_gates)
    source = ConfigurationSource(options)
    loaded = source.load()
    config = loaded.config
    for note in (*notes(config, loaded.registry), *notes_on_gates):
        _logger.warning(note)
    if options.write_config_to:
        write_effective(config, loaded.registry, options.write_config_to)
        return 0
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        if options.shadow_of:
            shadowing = Shadowing(options, loaded, Inside(options, gates, levels), _check_permissions)
            return runner.run(shadowing.run())
        return runner.run(_run(options, source, loaded, Inside(options, gates, levels)))


async def _run(options: RunOptions, source: ConfigurationSource, loaded: Loaded, inside: Inside) -> int:
    config, metrics = loaded.config, Metrics()
    deadlines = Deadlines(metrics)
    deadlines.expect(FIRST_COMPARISON, COMPARISON_SECONDS)
    stop = asyncio.Event()
    signals = StopSignals(stop)
    signals.listen()
    tasks = Tasks(metrics, stop)
    async with AsyncExitStack() as stack:
        parts, connecting = _tracing(metrics, stack)
        credentials = await load_credentials(options.kubeconfig or config.client_connection.kubeconfig or None)
        leadership = Leadership() if config.leader_election.leader_elect else None
        client = Client(credentials, metrics, leadership.is_held if leadership else None)
        await stack.enter_async_context(client)
        stack.push_async_callback(tasks.close)
        tasks.start("task watch", tasks.watch())
        tasks.start("signals", signals.keep())
        tasks.start("credentials", credentials.keep_fresh())
        binder = ApiBinder(client, metrics, config.loadmaster.bind_timeout_seconds)
        events = Events(client, metrics, tasks, binder.is_binding)
        events.start()
        stack.push_async_callback(events.close)
        statuses = PodStatuses(client, tasks)
        stack.push_async_callback(statuses.close)
        names = [profile.scheduler_name for profile in config.profiles]
        evictor, writer, reader = ApiEvictor(client, statuses), PluginWriter(client), PluginReader(client)
        by_profile = EventsByProfile(events, names)
        writers = Writers(binder, by_profile, StatusPatches(statuses), evictor, writer, reader)
        connect = connecting(partial(HttpTransport, budget=Budget(), may_send=_is_leading(leadership)))
        roster = _roster(config, connect, metrics, tasks, stack)
        asking = Asking(roster, RawPods(client))
        with Contained(AT_START_SECONDS):
            engine = build_engine(config, loaded.registry, writers, metrics, time.monotonic, tasks, asking, parts)
        stack.callback(engine.close)
        tasks.start("watch on plugins", Watchdog(engine.look_for_late_plugins).run())
        _show_state(engine, tasks, metrics)
        inside.show_gates(metrics)
        schedule = ComparisonSchedule()
        failed = schedule.request_later
        pods = pod_intake(engine.handlers, metrics, failed, engine.pod_type)
        nodes = node_intake(engine.handlers, metrics, failed, keep_raw if roster.needs_whole_nodes else None)
        intakes = (pods, nodes)
        interval = config.loadmaster.resync_seconds
        relister = Relister(client, intakes, schedule, engine.loop.hold, deadlines, metrics, interval)
        watch = Watch(client, intakes, relister, deadlines, metrics, signals.listen)
        further = FurtherWatches(
            client, relister, engine.object_handlers, deadlines, metrics, tasks, failed, signals.listen
        )
        resources = replace(engine.profiles.resources, whole_nodes=roster.needs_whole_nodes)
        await further.open(resources)
        cluster = ReconfigurableCluster(client, pods, nodes, relister, further, by_profile, resources, names[0])
        reloader = Reloader(source, loaded, engine, cluster, metrics, tasks)
        comparer = Comparer(client, engine.cache, engine.queue, engine.frameworks)
        debugger = Debugger(lambda: dump(engine, time.monotonic()), comparer, relister.synced.is_set, tasks)
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, debugger.start)  # kopf leaves this one alone
        stack.push_async_callback(debugger.close)
        live: dict[str, Check] = {
            "parts": tasks.are_running,
            "watches": deadlines.are_met,
            "credentials": client.access.is_granted,
        }
        permissions = permissions_for(resources.watched.values(), resources.written)
        election = None
        if leadership is not None:
            of_election = await stack.enter_async_context(Client(credentials, metrics, reads_anew=True))
            election = Election(of_election, config.leader_election, leadership, names[0], metrics)
            live["leaderElection"] = election.is_healthy
            permissions += election.permissions
        ready = {"sched-handler-sync": relister.synced.is_set}
        shown = Shown(reloader)
        pages = {**metric_pages(metrics, engine.pods, _is_leading(leadership)), **inside.pages(shown)}
        pages["/debug/memory"] = Memory(
            engine.cache_bytes, lambda: {**engine.cache.sizes(), **engine.queue.pending_counts()}
        )
        explainer = Explainer(engine, time.monotonic, _is_leading(leadership))
        recorder = Recorder(
            engine,
            lambda: without_secrets(as_document(reloader.config, reloader.registry)),
            _is_leading(leadership),
        )
        queried: dict[str, QueriedPage] = {
            EXPLAIN: Explanations(explainer),
            RECORD: Recordings(recorder),
            **inside.queried(reloader),
        }
        if options.serving.page:
            page = _page(engine, metrics, leadership, election, shown)
            pages |= page.pages
            queried |= page.queried
            page.live.start(tasks)
        served = Pages(pages, live, ready, metrics, inside.settings, reloader.detail, queried)
        port = await open_port(stack, options.serving, served, metrics, tasks)
        _show_certificates(credentials, port, metrics)
        await first_of(stop.wait(), _check_permissions(client, permissions, deadlines))
        if stop.is_set():
            return 0
        tasks.start(f"watch on {watch.label}", watch.run())
        further.start()
        tasks.start("relister", relister.run())
        await first_of(stop.wait(), relister.synced.wait())
        if relister.synced.is_set():
            _settle_memory()
            _logger.info("Ready", extra={"nodes": engine.cache.table.count, "profiles": ",".join(names)})
            tasks.start("forgetting what is idle", _forget_idle_forever(engine))
            tasks.start("configuration", reloader.run())
            if election is not None:
                tasks.start("watch on the leader lease", election.watch.run())
                tasks.start("leader election", election.run())
                await first_of(stop.wait(), election.won(relister))
            if not stop.is_set():
                tasks.start("scheduling loop", engine.loop.run())
                tasks.start("queue flushers", engine.queue.run_flushers())
                tasks.start("expiry", _expire_forever(engine))
                tasks.start("rejections", _rejections(engine, client, writers, metrics).run())
        await stop.wait()
        _logger.info("Stopping", extra={"bindings": engine.loop.bindings})
        engine.queue.close()
        may_write = leadership is None or leadership.is_held()
        cancelled = await engine.loop.finish(SHUTDOWN_SECONDS if may_write else 0.0)
        if cancelled:
            _logger.warning("Bindings were left to the next start", extra={"bindings": cancelled})
        if election is not None:
            await election.release()
        await tasks.cancel()
    return 1 if tasks.failed else 0


def _is_leading(leadership: Leadership | None) -> Callable[[], bool]:
    return (lambda: True) if leadership is None else leadership.is_held


def _page(
    engine: Engine,
    metrics: Metrics,
    leadership: Leadership | None,
    election: Election | None,
    config: Callable[[], Mapping[str, Any]],
) -> ClusterPage:
    leader = election.leader if election is not None else lambda: ""
    about = About(metadata.version("loadmaster"), _is_leading(leadership), leader)
    return ClusterPage(engine, metrics, about, config, time.time() - time.monotonic())


def _tracing(metrics: Metrics, stack: AsyncExitStack) -> tuple[Parts, Callable[[Connect], Connect]]:
    """What makes spans, if the environment wants traces; nothing of OpenTelemetry is loaded otherwise.

    The second makes connections to extenders that do. Raises ConfigError.
    """
    kind = exporter(os.environ)
    if kind is None:
        return PLAIN, lambda connect: connect
    from scheduler.tracing import export, parts

    traces = export.Traces(metrics, metadata.version("loadmaster"), export.exporter_of(kind))
    stack.push_async_callback(traces.close)
    _logger.info("Traces are on", extra={"exporter": kind.value})
    return parts.parts(traces.tracer), parts.connecting


def _roster(config: Config, connect: Connect, metrics: Metrics, tasks: Tasks, stack: AsyncExitStack) -> Roster:
    """Make the extenders, and follow their certificates. Raises ConfigError."""
    roster = Roster(connect, metrics, config.extenders)
    stack.push_async_callback(roster.close)
    tasks.start("certificates for extenders", follow_files(roster.refresh))
    tasks.count("prioritizing_extender", lambda: roster.extenders.prioritizing)
    return roster


async def _check_permissions(client: Client, permissions: Sequence[Permission], deadlines: Deadlines) -> None:
    """Wait for an API server that answers. Raises ConfigError if it says that permissions are missing."""
    for wait in START_RETRIES:
        try:
            await check_permissions(client, permissions)
            return
        except ClusterError as error:
            fields = {"err": str(error), "seconds": round(wait, 1)}
            _logger.warning("The API server does not answer; trying again", extra=fields)
            if is_outage(error):
                deadlines.excuse()
        await asyncio.sleep(wait)


def _show_state(engine: Engine, tasks: Tasks, metrics: Metrics) -> None:
    """Add gauges that are read on demand."""
    queue, cache = engine.queue, engine.cache
    metrics.watch_gauge(
        "scheduler_pending_pods",
        "Number of pending pods, by the queue type.",
        ("queue",),
        lambda: (((name,), count) for name, count in queue.pending_counts().items()),
    )
    metrics.watch_gauge(
        "loadmaster_oldest_pending_pod_age_seconds",
        "How long the oldest pod of each queue has been waiting, since it came into the queue; 0 if there is none.",
        ("queue",),
        lambda: (((name,), age) for name, age in oldest_ages(queue.pending_pods(), time.monotonic())),
    )
    metrics.watch_gauge(
        "scheduler_unschedulable_pods",
        "The number of unschedulable pods broken down by plugin name. A pod counts for each plugin that refused it.",
        ("plugin", "profile"),
        lambda: queue.unschedulable_counts().items(),
    )
    metrics.watch_gauge(
        "scheduler_inflight_events",
        "Number of events currently tracked in the scheduling queue.",
        ("event",),
        lambda: (((event,), count) for event, count in queue.in_flight_event_counts().items()),
    )
    metrics.watch_gauge(
        "scheduler_cache_size",
        "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
        ("type",),
        lambda: (((name,), count) for name, count in cache.sizes().items()),
    )
    metrics.watch_gauge(
        "scheduler_goroutines",
        "Number of running tasks split by the work they do such as binding.",
        ("operation",),
        tasks.counts,
    )
    metrics.watch_gauge(
        "loadmaster_oldest_task_age_seconds",
        "How long the oldest of the running tasks that end by themselves has been running, by the work they do.",
        ("operation",),
        tasks.ages,
    )
    metrics.watch_gauge(
        "loadmaster_plugins_paused",
        "In how many namespaces a plugin is out of the way for a while, as it failed or lagged too often there.",
        ("plugin", "profile", "action"),
        engine.paused_plugins,
    )
    metrics.watch_gauge(
        "loadmaster_cache_bytes",
        "About how much memory each kind of cache takes, of those that are made for pods and given back.",
        ("cache",),
        lambda: (((name,), size) for name, size in engine.cache_bytes()),
    )


def _show_certificates(credentials: Credentials, port: HttpServer | None, metrics: Metrics) -> None:
    """Add a gauge that tells when ours end: the one that clients see, and the one that the API server sees."""

    def ends() -> Iterator[tuple[tuple[str], float]]:
        serving = port.certificates.certificate if port is not None else b""
        for name, pem in (("serving", serving), ("client", credentials.certificate)):
            end = expires_at(pem)
            if end is not None:
                yield (name,), end

    metrics.watch_gauge(
        "loadmaster_certificate_expiration_timestamp_seconds",
        "When a certificate of ours ends, in seconds since 1970: the port's, and the one that we show the API server.",
        ("certificate",),
        ends,
    )


def _rejections(engine: Engine, client: Client, writers: Writers, metrics: Metrics) -> Rejections:
    reader = ApiPodReader(client)
    return Rejections(engine.ends, engine.cache, engine.queue, reader, writers, metrics, time.monotonic)


async def _expire_forever(engine: Engine) -> None:
    while True:
        await asyncio.sleep(EXPIRY_SECONDS)
        for pod in engine.cache.expire():
            _logger.warning("An assumed pod was never confirmed; its node is free again", extra={"pod": str(pod)})
            engine.handlers.assumption_expired(pod)


async def _forget_idle_forever(engine: Engine) -> None:
    while True:
        await asyncio.sleep(IDLE_SECONDS)
        for _ in engine.forget_idle():
            await asyncio.sleep(0)
        allocator.give_back()


def _settle_memory() -> None:
    """Keep the garbage collector away from what the first list brought: a full collection would stop every bind."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed: a tenth less per event and call."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
