"""The scheduler put together from given plugins, over a fake world."""

import asyncio
from collections.abc import Iterable
from typing import Any

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Algorithm
from scheduler.cycle.core import Core
from scheduler.cycle.failure import FailureHandler
from scheduler.cycle.handlers import ClusterEventHandlers
from scheduler.cycle.last_look import LastLook
from scheduler.cycle.listeners import PodListeners
from scheduler.cycle.loop import SchedulingLoop
from scheduler.cycle.pauses import Pauses
from scheduler.cycle.rejections import EarlyEnds
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.nodes.nodes import NodeInfo
from scheduler.framework.plugin import BindPlugin, PermitPlugin, PermitWait, Plugin, ReservePlugin
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Status, unschedulable
from scheduler.process.tasks import Tasks
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queue.settings import QueueSettings
from scheduler.quota.adapters import AdaptedShares
from scheduler.runtime.event_stream import EventStream
from scheduler.runtime.framework import Framework
from scheduler.runtime.guards.plugin_limits import NO_LIMITS, Limits
from scheduler.state.cache import Cache
from scheduler.state.nominator import Nominator
from scheduler.state.objects import ObjectStore
from scheduler.state.preemptions import Preemptions
from scheduler.testing import a_node
from tests import fakes
from tests.fakes import (
    Event,
    FakeClock,
    FakeWorld,
    FirstCome,
    Metrics,
    PlainFilter,
    a_framework,
    plugin,
    sample,
    settle,
)

PROFILE = "default-scheduler"


class WorldBinder(BindPlugin):
    name = "WorldBinder"

    def __init__(self) -> None:
        self.binder: LastLook

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        await self.binder.bind(pod, node_name)
        return None


def one_pod_a_node(_: Pod, node: NodeInfo) -> Status | None:
    return unschedulable("taken") if node.pods else None


class Scheduler:
    """Every part of one scheduler within reach. Each node has room for one pod by default."""

    def __init__(
        self,
        *plugins: Plugin,
        nodes: Iterable[str] = ("a",),
        ttl: float = 0.0,
        limits: Limits = NO_LIMITS,
    ) -> None:
        self.world, self.clock, self.metrics = FakeWorld(), FakeClock(), Metrics()
        self.stream = stream = EventStream()
        self.cache, self.nominator = Cache(self.metrics, self.clock, ttl, stream), Nominator(stream)
        self.shares = AdaptedShares(self.nominator)
        self.pods: dict[str, Pod] = {}
        every: tuple[Plugin, ...] = (PlainFilter(one_pod_a_node, "One"), *plugins, binder := WorldBinder())
        self.framework: Framework = a_framework(
            *every,
            table=self.cache.table,
            nominated=self.nominator,
            metrics=self.metrics,
            profile=PROFILE,
            limits=limits,
            events=self.world,
        )
        self.queue = SchedulingQueue(
            QueueSettings(FirstCome(), {PROFILE: ()}, {PROFILE: self.framework.rejector_events()}),
            self.metrics,
            self.nominator,
            self.clock,
        )
        binder.binder = LastLook(self.cache, self.world, stream, self.metrics)
        writers, frameworks = self.world.writers, {PROFILE: self.framework}
        failure = FailureHandler(self.queue, self.nominator, self.pods, writers, self.metrics, stream, {PROFILE})
        self.core = core = Core(
            frameworks,
            self.pods,
            ObjectStore(),
            self.cache,
            self.nominator,
            Preemptions(self.pods, self.nominator, self.queue, self.clock),
            self.queue,
            Algorithm(self.cache.table),
            failure,
            PodListeners(),
            Pauses(self.cache),
            writers,
            self.metrics,
            stream,
            Tasks(self.metrics),
            self.clock,
        )
        self.loop = SchedulingLoop(core, binder.binder)
        self.waiting = self.framework.handle.waiting_pods
        self.handlers = ClusterEventHandlers(core, self.waiting, EarlyEnds(self.cache))
        for name in nodes:
            self.handlers.node_changed(a_node(name))

    def pop(self) -> QueuedPod:
        return fakes.pop(self.queue)

    async def schedule(self, pod: Pod | None = None) -> None:
        """Let the watch show a pod, if given, and try one pod as far as it goes."""
        if pod is not None:
            self.handlers.pod_changed(pod)
        self.loop.schedule_one(self.pop())
        await settle()

    def where(self, pod: Pod) -> str:
        """In which part of the queue a pod is, `assumed`, `bound`, or empty."""
        if queued := fakes.where(self.queue, pod.uid):
            return queued
        if self.cache.get(pod.uid) is None:
            return ""
        return "assumed" if self.cache.is_assumed(pod.uid) else "bound"

    def attempts(self, result: str) -> float:
        return sample(self.metrics, "scheduler_schedule_attempts_total", result=result, profile=PROFILE)

    def check(self) -> None:
        self.cache.check_invariants()
        self.queue.check_invariants()
        self.nominator.check_invariants()


async def finish(scheduler: Scheduler) -> None:
    """End what a test leaves behind."""
    scheduler.queue.close()
    await scheduler.loop.finish(0)
    await asyncio.sleep(0)


class Reserving(ReservePlugin):
    """Remembers for which pods it set something aside."""

    name = "Reserving"

    def __init__(self) -> None:
        self.held: list[str] = []

    def reserve(self, state: object, pod: Pod, node_name: str) -> None:
        self.held.append(pod.name)

    def unreserve(self, state: object, pod: Pod, node_name: str) -> None:
        self.held.remove(pod.name)


def failed(note: str, pod: str = "default/pod") -> Event:
    """The event of an attempt that failed."""
    return Event(pod, "Warning", "FailedScheduling", "Scheduling", note)


def holding(seconds: float = 600.0) -> PermitPlugin:
    return plugin(PermitPlugin, "Hold", permit=lambda *_: PermitWait(seconds))


async def fail_later(*_: Any) -> Any:
    raise ValueError("broken")
