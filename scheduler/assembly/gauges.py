"""Gauges of a scheduler that are read on demand."""

import time
from collections.abc import Iterator

from scheduler.api.certificates import expires_at
from scheduler.assembly.share_gauges import in_cores
from scheduler.engine.engine import Engine
from scheduler.kube.identity.credentials import Credentials
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.serve.port.http import HttpServer


def show_state(engine: Engine, tasks: Tasks, metrics: Metrics) -> None:
    """Add gauges that are read on demand."""
    queue, cache = engine.queue, engine.cache
    metrics.watch_gauge(
        "scheduler_pending_pods",
        "Number of pending pods, by the queue type.",
        ("queue",),
        lambda: (((name,), count) for name, count in queue.pending_counts().items()),
    )
    metrics.watch_gauge(
        "scheduler_queued_entities",
        "Number of pods, and of groups tried as a whole, by the queue type and their own type.",
        ("queue", "type"),
        queue.entity_counts,
    )
    metrics.watch_counter(
        "scheduler_queue_incoming_entities",
        "Number of pods, and of groups tried as a whole, added to scheduling queues by event and queue type.",
        ("queue", "event", "type"),
        queue.incoming_entities,
    )
    metrics.watch_gauge(
        "loadmaster_oldest_pending_pod_age_seconds",
        "How long the oldest pod of each queue has been waiting, since it came into the queue; 0 if there is none.",
        ("queue",),
        queue.oldest_ages,
    )
    metrics.watch_gauge(
        "loadmaster_oldest_pending_pod_group_age_seconds",
        "How long the oldest pod group of which no pod has a node has been waiting; 0 if there is none.",
        (),
        lambda: [((), max(0.0, time.time() - engine.group_parts.groups.members_by_group.waiting_since(time.time())))],
    )
    metrics.watch_gauge(
        "scheduler_unschedulable_pods",
        "The number of unschedulable pods broken down by plugin name. A pod counts for each plugin that refused it.",
        ("plugin", "profile"),
        lambda: queue.unschedulable_counts().items(),
    )
    metrics.watch_gauge(
        "loadmaster_shares_unusable",
        "Shares of the cluster that cannot be used, by where they are declared: their pods wait.",
        ("source",),
        engine.share_parts.problems,
    )
    metrics.watch_gauge(
        "loadmaster_shares_guaranteed_excess",
        "How much more is guaranteed to all shares together than nodes have; cpu in cores.",
        ("source", "resource"),
        lambda: ((labels, in_cores(labels[0], labels[1], amount)) for labels, amount in engine.share_parts.excess()),
    )
    metrics.watch_gauge(
        "scheduler_inflight_events",
        "Number of events currently tracked in the scheduling queue.",
        ("event",),
        lambda: (((event,), count) for event, count in queue.in_flight.event_counts().items()),
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


def show_certificates(credentials: Credentials, port: HttpServer | None, metrics: Metrics) -> None:
    """Add a gauge of the end of our certificates: the one that clients see, and the one that the API server sees."""

    def ends() -> Iterator[tuple[tuple[str], float]]:
        serving = port.certificates.certificate if port is not None else b""
        for name, pem in (("serving", serving), ("client", credentials.identity.tls.certificate)):
            end = expires_at(pem)
            if end is not None:
                yield (name,), end

    metrics.watch_gauge(
        "loadmaster_certificate_expiration_timestamp_seconds",
        "When a certificate of ours ends, in seconds since 1970: the port's, and the one that we show the API server.",
        ("certificate",),
        ends,
    )
