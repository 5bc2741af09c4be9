"""Handles a failed attempt: the pod goes back to the queue, with an Event, a condition and a metric.

Rule: pkg/scheduler/schedule_one.go at v1.36.3 (handleSchedulingFailure).
"""

import logging
import time
from collections.abc import Container, Iterable, Mapping

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Unplaced
from scheduler.cycle.cycle_events import AttemptFailed
from scheduler.cycle.listeners import PodListener
from scheduler.cycle.resizes import NO_RESIZES, Resizes
from scheduler.cycle.writers import Writers
from scheduler.framework.errors import SchedulerError
from scheduler.framework.queued import QueuedPod
from scheduler.framework.tracebacks import described
from scheduler.process.metrics import Metrics
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.runtime.event_stream import EventStream
from scheduler.state.nominator import Nominator

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"

_logger = logging.getLogger(__name__)


class FailureHandler:
    """Sends failed pods back."""

    def __init__(
        self,
        queue: SchedulingQueue,
        nominator: Nominator,
        pods: Mapping[str, Pod],
        writers: Writers,
        metrics: Metrics,
        stream: EventStream,
        profiles: Container[str],
        listeners: Iterable[PodListener] = (),
        resizes: Resizes = NO_RESIZES,
    ) -> None:
        """`pods`: UID → newest version of every pod that the watch has reported. `profiles`: names, may change."""
        self._queue = queue
        self._nominator = nominator
        self._pods = pods
        self._writers = writers
        self._metrics = metrics
        self._stream = stream
        self._profiles = profiles
        self._listeners = listeners
        self._resizes = resizes

    def handle(
        self,
        profile: str,
        queued: QueuedPod,
        cause: Unplaced | SchedulerError,
        started: float,
        *,
        has_event: bool = True,
    ) -> None:
        """Requeue `queued`, unless it is bound, gone or no longer ours, and report why the attempt failed.

        `started`: when the attempt began, in seconds of time.perf_counter. `has_event`: whether it is also an Event.
        """
        if isinstance(cause, Unplaced):
            reasons = filter(None, (each.reason_of(cause) for each in self._listeners))
            reason, result, message, nominated = (
                next(reasons, UNSCHEDULABLE),
                "unschedulable",
                cause.message,
                cause.nominated_node_name,
            )
            queued.unschedulable_plugins = set(cause.unschedulable_plugins)
            queued.pending_plugins = set(cause.pending_plugins)
            _logger.debug("Unable to schedule pod; no fit; waiting", extra={"pod": str(queued.pod), "err": message})
        else:
            reason, result, message, nominated = SCHEDULER_ERROR, "error", str(cause), ""
            queued.unschedulable_plugins = set()
            queued.pending_plugins = set()
            _logger.error("Error scheduling pod; retrying", extra={"pod": str(queued.pod), "err": message})
        self._metrics.schedule_attempts.labels(result, profile).inc()
        self._metrics.scheduling_attempt_duration.labels(result, profile).observe(time.perf_counter() - started)
        if AttemptFailed in self._stream.listeners and not queued.pod.is_resize:
            self._stream.publish(AttemptFailed(profile, queued, cause, started))
        newest = self.give_back(queued)
        if newest is None or newest.is_resize:  # which runs, and needs no nomination
            return
        # Without a new nomination, the one in the pod's status counts.
        self._nominator.add(newest, nominated)
        for each in self._listeners:
            each.attempt_failed(queued, cause)
        if has_event:
            self._writers.events.event(newest, "Warning", "FailedScheduling", "Scheduling", message)
        self._writers.status.unschedulable(newest, reason, message, nominated)

    def give_back(self, queued: QueuedPod) -> Pod | None:
        """Requeue a pod whose attempt is over, and return its newest version.

        None if it is bound or gone, or if its profile was removed during the binding.
        """
        uid = queued.pod.uid
        newest = self._pods.get(uid)
        if newest is not None and newest.node_name:
            newest = self._resizes.waiting.get(uid)
        if newest is None:
            _logger.debug(
                "Pod is bound or gone; not queued again",
                extra={"pod": str(queued.pod)},
            )
            self._queue.done(uid)
            return None
        if newest.spec.scheduler_name not in self._profiles:
            self._queue.done(queued.pod.uid)
            self._writers.status.forget(newest)
            if newest.nominated_node_name:
                self._nominator.add(newest)
            return None
        queued.pod = newest
        self._queue.add_unschedulable_if_not_present(queued)
        return newest


def as_scheduler_error(error: BaseException) -> SchedulerError:
    """Turn an unexpected error into one with a message for the pod's owner."""
    return error if isinstance(error, SchedulerError) else SchedulerError(described(error))
