"""Schedules one pod after the other: pop, decide, assume, and start a task that binds.

    queue.pop ─► schedule ─► assume ─► reserve ─► permit ─► task: [wait on permit] ─► pre-bind ─► bind ─► post-bind
                    │           │         │          │                   │               │         │
                    ▼           └─────────┴──────────┴───────────────────┴───────────────┴─────────┘
                 failure ◄───────────────────────── unreserve, forget ◄── any refusal or error

Rule: pkg/scheduler/schedule_one.go at v1.36.3. A decision is synchronous: it reads the live tables, with no lock and
no copy. The loop gives the event loop back every few milliseconds, or a full queue would starve the watch. A group, and
a pod about which extenders are asked, is handed over before that (`wings.py`), and comes back to be assumed.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Placed, Unplaced, refused_by
from scheduler.cycle.binding import BindingCycle
from scheduler.cycle.core import Core
from scheduler.cycle.cycle_events import (
    AttemptEnded,
    AttemptStarted,
    BindingStarted,
    BindingUndone,
    Decided,
    PermitWaited,
    PodBound,
    PodPlaced,
    PreBindStarted,
)
from scheduler.cycle.failure import as_scheduler_error
from scheduler.cycle.last_look import LastLook
from scheduler.cycle.wings import ExtenderWing, GroupWing
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError, SchedulerError
from scheduler.framework.events import ASSIGNED_POD_DELETE
from scheduler.framework.queued import Entry, QueuedGroup, QueuedPod
from scheduler.framework.status import Code, Status, unresolvable
from scheduler.process.instruments import observe_all
from scheduler.process.metrics import PLUGIN_METRICS_SAMPLE_PERCENT
from scheduler.process.time_slice import TimeSlice
from scheduler.runtime.framework import Framework
from scheduler.runtime.own_task import is_cancelled_by_others

SLICE_SECONDS: Final = 0.003
"""How long pods are scheduled before other tasks (the watch, bindings) get their turn."""

MAX_BINDINGS: Final = 1_000
"""Pods on their way to the API server at once. At this number the loop waits: more decisions would only cost memory.

Pods that Permit or PreBind plugins keep waiting do not count: they may be waiting for pods still to be scheduled.
"""

LATE_SECONDS: Final = 1_800.0
"""A binding that takes longer is reported. The plugins that it may wait for have time limits of their own, 15 minutes
at most for Permit; the API server may be away for any time."""

_logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Attempt(BindingCycle):
    """The scheduling cycle's result for the binding task."""

    queued: QueuedPod
    placed: Placed
    started: float


class SchedulingLoop:
    """kube-scheduler's ScheduleOne, forever."""

    def __init__(
        self,
        core: Core,
        last_look: LastLook,
        groups: GroupWing,
        extenders: ExtenderWing,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`stopwatch` measures how long pods are scheduled before other tasks get their turn."""
        self._now = core.now
        self._frameworks = core.frameworks
        self._queue = core.queue
        self._cache = core.cache
        self._nominator = core.nominator
        self._algorithm = core.algorithm
        self._failure = core.failure
        self._writers = core.writers
        self._last_look = last_look
        self._stream = core.stream
        self._metrics = core.metrics
        self._tasks = core.tasks
        self._jobs = core.tasks.jobs("binding", LATE_SECONDS, cancels_late=False)
        self._bindings: dict[str, _Attempt] = {}
        """UID of the pod → its newest attempt that has a task."""
        self._parked = 0
        """Number of binding tasks that wait for a Permit or PreBind plugin."""
        self._listeners = core.listeners
        self._pauses = core.pauses
        self._groups = groups
        self._extenders = extenders
        self._stopwatch = stopwatch
        self._binding_ended = asyncio.Event()
        self.group_steps = 0
        """How many steps were taken of the last group that was scheduled so."""
        self._sampler = random.Random(0)  # chooses the cycles that time their plugins; no decision depends on it

    def is_binding(self, uid: str) -> bool:
        return uid in self._bindings

    def is_used(self, framework: Framework) -> bool:
        """Return whether an attempt or a binding uses the plugins of this profile."""
        if self._extenders.is_used(framework) or self._groups.is_used(framework):
            return True
        return any(attempt.framework is framework for attempt in self._bindings.values())

    @property
    def bindings(self) -> int:
        """Number of binding tasks that run."""
        return len(self._bindings)

    async def run(self) -> None:
        """Schedule pods until the queue is closed."""
        stopwatch = self._stopwatch
        time_slice = TimeSlice(SLICE_SECONDS, stopwatch)
        while True:
            queued = self._queue.pop_nowait()
            if queued is None:
                queued = await self._queue.pop()
                if queued is None:
                    return
                time_slice.renew()
            if self._pauses.holds:
                await self._pauses.released()
            if isinstance(queued, QueuedGroup):
                await self._schedule_group(queued, time_slice)
            else:
                try:
                    self._schedule_pod(queued)
                except BaseException as error:  # noqa: BLE001 - only this pod is affected; nothing is awaited
                    self._failed_unexpectedly(queued, error)
            while len(self._bindings) - self._parked >= MAX_BINDINGS:
                self._binding_ended.clear()
                await self._binding_ended.wait()
            if stopwatch() > time_slice.end:  # without a call: this runs for each pod
                await time_slice.give_way()

    async def _schedule_group(self, group: QueuedGroup, time_slice: TimeSlice) -> None:
        """Schedule a group, letting other tasks run between the steps. Nothing else is decided meanwhile."""
        self._pauses.begin_steps()
        self.group_steps = 0
        steps = self._groups.steps(group, self)
        try:
            while True:
                try:
                    next(steps)
                except StopIteration:
                    return
                except BaseException as error:  # noqa: BLE001 - only this group is affected; nothing is awaited
                    self._report_unexpected(group, error)
                    return
                self.group_steps += 1
                if self._stopwatch() > time_slice.end:
                    await time_slice.give_way()
                    await self._pauses.released()
        finally:
            steps.close()
            self._pauses.end_steps()

    def _failed_unexpectedly(self, queued: QueuedPod, error: BaseException) -> None:
        self._report_unexpected(queued, error)
        self.settle(queued)

    def _report_unexpected(self, queued: Entry, error: BaseException) -> None:
        self._tasks.report("scheduling", str(queued.pod), "Scheduling a pod failed unexpectedly", error)
        if AttemptEnded in self._stream.listeners:
            self._stream.publish(AttemptEnded(error))

    async def finish(self, seconds: float) -> int:
        """Wait up to `seconds` for the bindings under way, then cancel the rest; return how many those were.

        A cancelled binding may have reached the API server or not; the next start finds out when it lists the pods.
        """
        await self._extenders.finish()
        return await self._jobs.finish(seconds)

    def schedule_one(self, queued: Entry) -> None:
        """Try to place one pod or group. Raises nothing: an error concerns it only."""
        if isinstance(queued, QueuedGroup):
            for _ in self._groups.steps(queued, self):
                pass  # all in one go
        else:
            self._schedule_pod(queued)

    def _schedule_pod(self, queued: QueuedPod) -> None:
        started = time.perf_counter()
        queued.attempt_began = self._now()
        pod = queued.pod
        framework = self._frameworks.get(pod.spec.scheduler_name)
        if framework is None or self.should_skip(pod):
            self._queue.done(pod.uid)
            return
        extenders = self._extenders
        if extenders.has_extenders and not pod.is_resize and extenders.take(framework, queued, started, self):
            return
        if self._cache.table.is_broken:
            self._cache.mend()
        if pod.is_resize:
            self._try_resize(framework, queued, started)
            return
        state = CycleState()
        state.record_plugin_metrics = self._sampler.randrange(100) < PLUGIN_METRICS_SAMPLE_PERCENT
        stream = self._stream
        if AttemptStarted in stream.listeners:
            stream.publish(AttemptStarted(framework.name, queued, False))
        try:
            decision = self._algorithm.schedule(framework, state, pod, queued.attempts)
        except BaseException as error:  # noqa: BLE001 - only this pod is affected; nothing is awaited
            if Decided in stream.listeners:
                stream.publish(Decided(framework.name, state, queued, error, False))
            self._fail(framework, queued, error, started)
            return
        finally:
            self._metrics.scheduling_algorithm_duration.observe(time.perf_counter() - started)
        if Decided in stream.listeners:
            stream.publish(Decided(framework.name, state, queued, decision, False))
        if isinstance(decision, Unplaced):
            self._failure.handle(framework.name, queued, decision, started)
            return
        self.place(framework, state, queued, decision, started)

    def _try_resize(self, framework: Framework, queued: QueuedPod, started: float) -> None:
        """Make space for a resize; if there is enough, let it wait, as its kubelet does the rest.

        No event is published: nothing is decided about a pod without a node.
        """
        state, pod = CycleState(), queued.pod
        try:
            found = self._algorithm.schedule(framework, state, pod, queued.attempts)
            if isinstance(found, Placed):
                _, refusal = framework.run_permit(state, pod, found.node_name)
                found = refused_by(refusal or unresolvable())
        except BaseException as error:  # noqa: BLE001 - only this pod is affected; nothing is awaited
            self._fail(framework, queued, error, started)
            return
        self._failure.handle(framework.name, queued, found, started)

    def should_skip(self, pod: Pod) -> bool:
        if pod.is_deleting:
            note = f"skip schedule deleting pod: {pod}"
            self._writers.events.event(pod, "Warning", "FailedScheduling", "Scheduling", note)
            return True
        uid = pod.metadata.uid
        return self._cache.is_assumed(uid) and uid not in self._cache.what_ifs

    def settle(self, queued: QueuedPod) -> None:
        """Clean up after an attempt that failed unexpectedly."""
        if queued.pod.uid not in self._bindings:
            self._cache.forget(queued.pod)
            self._failure.give_back(queued)

    def place(
        self,
        framework: Framework,
        state: CycleState,
        queued: QueuedPod,
        placed: Placed,
        started: float,
        since: int | None = None,
    ) -> None:
        pod, node_name = queued.pod, placed.node_name
        try:
            pod = framework.bound(state, pod, node_name) if framework.completes_pods else pod.bound_to(node_name)
            self._cache.assume(pod)
        except (PluginError, ValueError) as error:
            self._fail(framework, queued, error, started)
            return
        if self._nominator.delete(pod.uid):
            for each in self._listeners:
                each.pod_placed(pod)
        if PodPlaced in self._stream.listeners:
            self._stream.publish(PodPlaced(framework.name, state, queued, placed, started))
        attempt = _Attempt(framework, state, pod, placed.node_name, queued, placed, started)
        try:
            refusal = attempt.reserve()
        except BaseException as error:  # noqa: BLE001 - only this pod is affected; nothing is awaited
            self._undo(attempt)
            self._fail(framework, queued, error, started)
            return
        if refusal is not None:
            self._undo(attempt)
            self._failure.handle(framework.name, queued, refused_by(refusal), started)
            return
        if attempt.is_held:
            self._parked += 1
        if state.pods_to_activate:
            self._queue.activate(tuple(state.pods_to_activate))
            state.pods_to_activate.clear()
        self._last_look.note(framework, state, queued.pod, placed.node_name, since)
        self._bindings[pod.uid] = attempt
        self._jobs.start(f"bind {pod}", self._binding_cycle(attempt), partial(self._task_ended, attempt))
        if BindingStarted in self._stream.listeners:
            self._stream.publish(BindingStarted(placed))

    def _task_ended(self, attempt: _Attempt, error: BaseException | None) -> None:
        uid = attempt.pod.uid
        if self._bindings.get(uid) is attempt:  # a failed pod may have its next task already
            del self._bindings[uid]
            self._last_look.drop(uid)
        self._binding_ended.set()
        if AttemptEnded in self._stream.listeners:
            self._stream.publish(AttemptEnded(error))
        if error is not None:
            self._settle(attempt)

    def _settle(self, attempt: _Attempt) -> None:
        """Clean up after a binding that failed unexpectedly, at any step."""
        if attempt.is_held:
            self._end_hold(attempt)
        if attempt.is_bound:
            self._queue.done(attempt.pod.uid)
            return
        try:
            self._undo(attempt)
        finally:
            self._failure.give_back(attempt.queued)

    async def _binding_cycle(self, attempt: _Attempt) -> None:
        framework, pod = attempt.framework, attempt.pod
        try:
            refusal = await self._bind(attempt)
        except asyncio.CancelledError as error:
            if is_cancelled_by_others():
                raise
            self._fail_binding(attempt, error)
            return
        except Exception as error:  # noqa: BLE001 - only this pod is affected
            self._fail_binding(attempt, error)
            return
        if refusal is not None:
            self._undo(attempt)
            self._failure.handle(framework.name, attempt.queued, refusal, attempt.started)
            # After the pod is queued: the resources that it frees do not help the pod itself.
            self._queue.move_all(ASSIGNED_POD_DELETE, pod, None, lambda other: other.uid != pod.uid)
            return
        self._cache.finish_binding(pod)
        if PodBound in self._stream.listeners:
            self._stream.publish(PodBound(pod))
        self._writers.status.forget(pod)
        note = f"Successfully assigned {pod} to {attempt.node_name}"
        self._writers.events.event(pod, "Normal", "Scheduled", "Binding", note)
        self._count_bound(attempt)
        for problem in await framework.run_post_bind(attempt.state, pod, attempt.node_name):
            _logger.error("PostBind failed; the pod is bound", extra={"pod": str(pod), "err": str(problem)})
            framework.faults.report(problem, pod)
        if attempt.state.pods_to_activate:
            self._queue.activate(tuple(attempt.state.pods_to_activate))

    def _fail_binding(self, attempt: _Attempt, error: BaseException) -> None:
        self._undo(attempt)
        self._queue.move_all(ASSIGNED_POD_DELETE, attempt.pod, None)
        self._fail(attempt.framework, attempt.queued, error, attempt.started)

    def _fail(self, framework: Framework, queued: QueuedPod, error: BaseException, started: float) -> None:
        """Requeue a pod after an error, and report whose error it was."""
        framework.faults.report(error, queued.pod)
        self._failure.handle(framework.name, queued, as_scheduler_error(error), started)

    async def _bind(self, attempt: _Attempt) -> Unplaced | None:
        """Run the binding cycle until the API server has accepted the binding; return a refusal, if any."""
        framework, state, pod, node = attempt.framework, attempt.state, attempt.pod, attempt.node_name
        try:
            busy = framework.run_pre_bind_pre_flight(state, pod, node)
            waits = attempt.is_held and self._waits(framework, pod)
            if busy or waits:
                self._writers.status.nominate(pod, node)
            refusal = await self._wait_on_permit(framework, pod) if attempt.is_held else None
        finally:
            if attempt.is_held:
                self._end_hold(attempt)
        if refusal is not None:
            return refused_by(refusal)
        if waits and not busy:  # the binding says more
            self._writers.status.forget(pod)
        # From here on, no event in the cluster decides what becomes of a pod that fails.
        self._queue.done(pod.uid)
        if busy:
            self._parked += 1
            if PreBindStarted in self._stream.listeners:
                self._stream.publish(PreBindStarted(pod))
            try:
                refusal = await attempt.prepare()
            finally:
                self._parked -= 1
            if refusal is not None:
                return Unplaced(refusal.message)
        if self._extenders.has_binder and await self._extenders.bind(pod, node):
            attempt.is_bound = True
            return None
        refusal = await framework.run_bind(state, pod, node)
        if refusal is not None:
            return Unplaced(refusal.message)
        attempt.is_bound = True
        return None

    def _end_hold(self, attempt: _Attempt) -> None:
        attempt.end_hold()
        self._parked -= 1

    def _waits(self, framework: Framework, pod: Pod) -> bool:
        """Return whether a pod waits at Permit still: the last pods of its group may have let it go already."""
        waiting = framework.handle.waiting_pods.get(pod.uid)
        return waiting is not None and bool(waiting.pending_plugins)

    async def _wait_on_permit(self, framework: Framework, pod: Pod) -> Status | None:
        waiting = framework.handle.waiting_pods.get(pod.uid)
        if waiting is None:
            return None
        began, plugins = time.perf_counter(), waiting.pending_plugins
        refusal = await waiting.outcome()
        code, seconds = Code.SUCCESS if refusal is None else refusal.code, time.perf_counter() - began
        self._metrics.permit_wait_duration.labels(code.label).observe(seconds)
        if PermitWaited in self._stream.listeners:
            self._stream.publish(PermitWaited(pod.uid, plugins, seconds, code))
        if refusal is not None and refusal.code is Code.ERROR:  # preempted: it is to be tried again
            raise SchedulerError(f"waiting on permit for pod: {refusal.message}")
        return refusal

    def _undo(self, attempt: _Attempt) -> None:
        pod = attempt.pod
        if BindingUndone in self._stream.listeners:
            self._stream.publish(BindingUndone(pod))
        for problem in attempt.unreserve():
            _logger.error("Unreserve failed", extra={"pod": str(pod), "err": str(problem)})
            attempt.framework.faults.report(problem, pod)
        self._cache.forget(pod)

    def _count_bound(self, attempt: _Attempt) -> None:
        queued, placed = attempt.queued, attempt.placed
        now = time.perf_counter()
        if _logger.isEnabledFor(logging.DEBUG):
            fields = {
                "pod": str(attempt.pod),
                "node": placed.node_name,
                "evaluatedNodes": placed.evaluated_nodes,
                "feasibleNodes": placed.feasible_nodes,
            }
            _logger.debug("Successfully bound pod to node", extra=fields)
        metrics, profile = self._metrics, attempt.framework.name
        metrics.schedule_attempts.labels("scheduled", profile).inc()
        lasted = metrics.scheduling_attempt_duration.labels("scheduled", profile)
        observe_all((lasted, now - attempt.started), (metrics.pod_scheduling_attempts, queued.attempts))
        if queued.initial_attempt_timestamp is not None:
            attempts = "15+" if queued.attempts >= 15 else str(queued.attempts)
            waited = self._now() - queued.initial_attempt_timestamp
            metrics.pod_scheduling_sli_duration.labels(attempts).observe(waited)
        if queued.was_flushed:
            metrics.pod_scheduled_after_flush.inc()
