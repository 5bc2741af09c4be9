"""The real engine with given plugins and nearly no others, over a fake world."""

from collections.abc import Iterable
from typing import Any

from plugins import IN_TREE
from scheduler.api.pods.pod import Pod
from scheduler.config.types import Config, LoadmasterSettings
from scheduler.engine.engine import build_engine
from scheduler.framework.nodes.nodes import NodeInfo
from scheduler.framework.plugin import PermitPlugin, PermitWait, Plugin, ReservePlugin
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Status, unschedulable
from scheduler.runtime.guards.plugin_limits import NO_LIMITS, Limits
from scheduler.runtime.profile_spec import Plugins, ProfileSpec
from scheduler.testing import a_node
from scheduler.testing.handles import profile_of
from tests import fakes
from tests.fakes import Event, FakeClock, FakeWorld, Metrics, PlainFilter, plugin, sample, settle
from tests.fakes.engine import CHECKS

PROFILE = "default-scheduler"


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
        settings = LoadmasterSettings(assumed_pod_ttl_seconds=ttl)
        profile = profile_of(PlainFilter(one_pod_a_node, "One"), *plugins, IN_TREE["DefaultBinder"]())
        self.engine = engine = build_engine(
            Config((ProfileSpec(PROFILE, Plugins()),), loadmaster=settings),
            {},
            self.world.writers,
            self.metrics,
            self.clock,
            make_plugins=lambda *_: profile,
        )
        self.framework = engine.frameworks[PROFILE]
        self.framework.use_limits(limits)
        self.cache, self.queue, self.nominator = engine.cache, engine.queue, engine.nominator
        self.pods, self.loop, self.handlers = engine.pods, engine.loop, engine.handlers
        self.waiting = self.framework.handle.waiting_pods
        for name in nodes:
            self.handlers.node_changed(a_node(name))
        CHECKS.append(self.check)

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
