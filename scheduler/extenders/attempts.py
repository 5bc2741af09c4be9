"""Attempts that wait for extenders while the loop schedules other pods.

    pop ─► is its lane below its limit? ─no─► HELD (in the queue)
               │ yes                            │
               │◄─ an attempt of its lane ends ─┘
               ▼
             RUNNING: a job; the pod is in flight ────────────────┬─ placed ─────► assume, reserve, permit, bind as ever
               │                                                  ├─ fits nowhere, or an error ──► failure, as ever
               └─ deleted, bound by others, or we are to stop ──► cancelled: nothing is left

Pods of the same extenders share a lane. Each lane has a limit of attempts, so that an extender that hangs delays only
its own pods, and neither memory nor calls grow with the number of waiting pods. Between two waits, an attempt runs
alone, as every decision does.

When the configuration changes, attempts end with the extenders that they began with. A lane with a removed extender
takes no more pods: its held pods go back to activeQ (`SchedulingQueue.ask_again`).
"""

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Unplaced
from scheduler.cycle.core import Core
from scheduler.cycle.cycle_events import AttemptGivenUp, AttemptStarted, Decided, SearchStarted
from scheduler.cycle.failure import as_scheduler_error
from scheduler.cycle.wings import Loop
from scheduler.extenders.chain import Extenders, PodSource
from scheduler.extenders.conversation import Conversation, LiveConversation
from scheduler.extenders.decision import AttemptWithExtenders, ExtendedAlgorithm
from scheduler.extenders.extender import Extender
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import SchedulerError
from scheduler.framework.queued import QueuedPod
from scheduler.process.metrics import PLUGIN_METRICS_SAMPLE_PERCENT
from scheduler.runtime.framework import Framework

LATE_SECONDS: Final = 1_800.0
"""An attempt that takes longer is reported. Each call has a time limit in the configuration."""


Lane: TypeAlias = tuple[Extender, ...]
"""The extenders that are asked about a pod."""


class _Unwanted(SchedulerError):
    """The pod does not need a node any more."""


@dataclass(slots=True, eq=False)
class _OpenAttempt:
    framework: Framework
    extenders: Extenders
    queued: QueuedPod
    lane: Lane
    started: float
    """In seconds of time.perf_counter."""
    loop: Loop
    is_decided: bool = False


class ExtendedAttempts:
    """The attempts of all profiles."""

    def __init__(self, core: Core, algorithm: ExtendedAlgorithm, pods: PodSource) -> None:
        """There are no extenders before `use`."""
        self._frameworks = core.frameworks
        self._extenders = Extenders(())
        self._max_in_lane = 1
        self._now = core.now
        self._algorithm = algorithm
        self._table = core.cache.table
        self._pods = pods
        self._queue = core.queue
        self._failure = core.failure
        self._duration = core.metrics.scheduling_algorithm_duration
        self._jobs = core.tasks.jobs("extender", LATE_SECONDS, cancels_late=False)
        self._in_lane: Counter[Lane] = Counter()
        self._under_way: set[_OpenAttempt] = set()
        self._sampler = random.Random(0)  # chooses the cycles that time their plugins; no decision depends on it
        self._stream = core.stream

    def __len__(self) -> int:
        """The number of attempts under way."""
        return len(self._jobs)

    def is_used(self, framework: Framework) -> bool:
        """Return whether an attempt uses the plugins of this profile."""
        return any(opened.framework is framework for opened in self._under_way)

    def is_calling(self, extender: Extender) -> bool:
        """Return whether an attempt may still call this extender."""
        return any(extender in opened.extenders for opened in self._under_way)

    def use(self, extenders: Extenders, max_in_lane: int) -> None:
        """Call these extenders from the next attempt on. `max_in_lane`: attempts of one lane."""
        self._extenders, self._max_in_lane = extenders, max_in_lane

    def take(self, framework: Framework, queued: QueuedPod, started: float, loop: Loop) -> bool:
        """Take over the attempt for a popped pod if extenders are interested in it; return whether."""
        lane = self._extenders.asked_about(queued.pod)
        if not lane:
            return False
        if self._in_lane[lane] >= self._max_in_lane:
            self._queue.hold(queued, lane)
            return True
        self._start(_OpenAttempt(framework, self._extenders, queued, lane, started, loop))
        return True

    def _start(self, opened: _OpenAttempt) -> None:
        self._in_lane[opened.lane] += 1
        self._under_way.add(opened)
        pod = opened.queued.pod
        task = self._jobs.start(f"ask about {pod}", self._run(opened), partial(self._ended, opened))
        self._queue.when_deleted(pod.uid, partial(self._jobs.cancel, task))

    async def finish(self) -> None:
        """Cancel all; the next start tries their pods again."""
        await self._jobs.finish(0)

    async def _run(self, opened: _OpenAttempt) -> None:
        queued, framework = opened.queued, opened.framework
        conversation, newest = partial(self._conversation, opened.extenders), partial(self._newest, opened)
        attempt = AttemptWithExtenders(framework, conversation, newest, partial(self._state, queued))
        if AttemptStarted in self._stream.listeners:
            self._stream.publish(AttemptStarted(framework.name, queued, True))
        try:
            state, pod, decision = await self._algorithm.schedule(attempt)
        except _Unwanted:
            opened.is_decided = True
            self._publish_end(queued)
            self._queue.done(queued.pod.uid)
            return
        except asyncio.CancelledError:
            self._publish_end(queued)
            raise
        except Exception as error:  # noqa: BLE001 - only this pod is affected
            opened.is_decided = True
            self._duration.observe(time.perf_counter() - opened.started)
            if Decided in self._stream.listeners:
                self._stream.publish(Decided(framework.name, CycleState(), queued, error, True))
            framework.faults.report(error, queued.pod)
            self._failure.handle(framework.name, queued, as_scheduler_error(error), opened.started)
            return
        # No await from here on: the decision is valid until the next one.
        opened.is_decided = True
        self._duration.observe(time.perf_counter() - opened.started)
        queued.pod = pod
        if Decided in self._stream.listeners:
            self._stream.publish(Decided(framework.name, state, queued, decision, True))
        if isinstance(decision, Unplaced):
            self._failure.handle(framework.name, queued, decision, opened.started)
        else:
            opened.loop.place(framework, state, queued, decision, opened.started)

    def _publish_end(self, queued: QueuedPod) -> None:
        if AttemptGivenUp in self._stream.listeners:
            self._stream.publish(AttemptGivenUp(queued.pod.uid))

    def _newest(self, opened: _OpenAttempt) -> Pod:
        queued = opened.queued
        pod = self._queue.in_flight.newest(queued.pod.uid)
        if pod is None or opened.loop.should_skip(pod):
            raise _Unwanted(f"{queued.pod} need not be placed")
        if SearchStarted in self._stream.listeners:
            self._stream.publish(SearchStarted(pod))
        return pod

    def _conversation(self, extenders: Extenders, pod: Pod) -> Conversation:
        return LiveConversation(extenders.asked_about(pod), pod, self._table, self._pods, self._stream)

    def _state(self, queued: QueuedPod) -> CycleState:
        state = CycleState()
        state.attempt = queued.attempts
        state.record_plugin_metrics = self._sampler.randrange(100) < PLUGIN_METRICS_SAMPLE_PERCENT
        return state

    def _ended(self, opened: _OpenAttempt, error: BaseException | None) -> None:
        """Clean up after an attempt without a decision, and start the next one of the lane."""
        lane, uid = opened.lane, opened.queued.pod.uid
        self._in_lane[lane] -= 1
        self._under_way.discard(opened)
        try:
            if not opened.is_decided and self._queue.in_flight.newest(uid) is None:
                self._queue.done(uid)
            elif error is not None or not opened.is_decided:
                opened.loop.settle(opened.queued)
        finally:
            self._go_on(lane, opened.loop)

    def _go_on(self, lane: Lane, loop: Loop) -> None:
        max_in_lane = self._max_in_lane if all(extender in self._extenders for extender in lane) else 0
        while self._in_lane[lane] < max_in_lane and (queued := self._queue.pop_held(lane)) is not None:
            framework = self._frameworks.get(queued.pod.spec.scheduler_name)
            if framework is None or loop.should_skip(queued.pod):
                self._queue.done(queued.pod.uid)
            else:
                queued.attempt_began = self._now()
                self._start(_OpenAttempt(framework, self._extenders, queued, lane, time.perf_counter(), loop))
        if not self._in_lane[lane]:
            del self._in_lane[lane]
