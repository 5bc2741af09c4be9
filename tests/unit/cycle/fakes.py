"""A whole scheduler without a cluster: the real engine, with a clock and an API server that do as the test says.

`an_engine` builds it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from plugins import IN_TREE
from scheduler import framework as fw
from scheduler.config.defaults import default_plugins
from scheduler.config.feature_gates import FeatureGates
from scheduler.config.types import DEFAULT_GATES, Config, LoadmasterSettings
from scheduler.engine.engine import Engine, ExtenderAccess, build_engine
from scheduler.framework.queued import QueuedGroup, QueuedPod
from scheduler.process.metrics import Metrics
from scheduler.runtime.event_stream import EventStream
from scheduler.runtime.profile_spec import PluginRef, Plugins, PluginSet, ProfileSpec
from tests import fakes
from tests.fakes import Eviction, FakeClock, FakeWorld, a_plugin, sample, settle
from tests.fakes.engine import CHECKS

PROFILE = "default-scheduler"


@dataclass
class EngineUnderTest:
    """An engine with its surroundings, and what tests do with it again and again."""

    engine: Engine
    world: FakeWorld
    clock: FakeClock
    metrics: Metrics

    def __post_init__(self) -> None:
        self.cache = self.engine.cache
        self.queue = self.engine.queue
        self.nominator = self.engine.nominator
        self.handlers = self.engine.handlers
        self.loop = self.engine.loop
        self.framework = next(iter(self.engine.frameworks.values()))
        CHECKS.append(self.check)

    def see(self, *objects: fw.Pod | fw.Node) -> None:
        """Hear of objects from the watch."""
        for each in objects:
            if isinstance(each, fw.Pod):
                self.handlers.pod_changed(each)
            else:
                self.handlers.node_changed(each)

    def pop(self) -> QueuedPod:
        return fakes.pop(self.queue)

    def pop_group(self) -> QueuedGroup:
        return fakes.pop_group(self.queue)

    async def schedule(self, *seen: fw.Pod | fw.Node) -> None:
        """Hear of objects, try every pod once that may be tried, and let its binding go as far as it can."""
        self.see(*seen)
        popped = []
        while (queued := self.queue.pop_nowait()) is not None:
            popped.append(queued)
        for queued in popped:
            self.loop.schedule_one(queued)
        await settle()

    async def try_all(self) -> int:
        """Try pods and groups as long as there is one to try; return how often one was taken out of the queue."""
        tries = 0
        while (queued := self.queue.pop_nowait()) is not None:
            self.loop.schedule_one(queued)
            await settle()
            tries += 1
            assert tries < 2000, "it spins"
        return tries

    def wait(self, seconds: float) -> None:
        """Let time pass, and the queue do what it does with time."""
        self.clock.advance(seconds)
        self.queue.flush_backoff_completed()
        self.queue.flush_unschedulable_leftover()

    @property
    def evicted(self) -> list[str]:
        """The pods that were evicted, sorted."""
        return sorted(each.victim for each in self.world.written(Eviction))

    def where(self, uid: str) -> str:
        return fakes.where(self.queue, uid)

    def waiting(self, uid: str) -> QueuedPod:
        """What the queue remembers of a pod that waits."""
        pods = (queued for part in self.queue.pending_pods().values() for queued in part)
        return next(queued for queued in pods if queued.pod.uid == uid)

    def count(self, name: str, **labels: str) -> float:
        return sample(self.metrics, name, **labels)

    def check(self) -> None:
        """All that we believe is consistent."""
        self.cache.check_invariants()
        self.queue.check_invariants()
        self.nominator.check_invariants()
        self.engine.shares.check_invariants()
        if self.engine.share_parts.waker is not None:
            self.engine.share_parts.waker.check_invariants()


def an_engine(
    *plugins: type[fw.Plugin],
    only: Plugins | None = None,
    percentage: int = 0,
    seed: int = 0,
    ttl: float = 0.0,
    profiles: tuple[str, ...] = (PROFILE,),
    extender_access: ExtenderAccess | None = None,
    room: int = 16,
    stream: EventStream | None = None,
    gates: FeatureGates = DEFAULT_GATES,
) -> EngineUnderTest:
    """Build an engine with the default plugins and these after them, or with the plugins of `only`.

    `extender_access`: extenders; `room`: how many pods they are asked about at once.
    """
    own = tuple(PluginRef(plugin.name) for plugin in plugins)
    default = default_plugins(gates)
    enabled = only or replace(default, multi_point=PluginSet(default.multi_point.enabled + own))
    config = Config(
        profiles=tuple(ProfileSpec(name, enabled) for name in profiles),
        percentage_of_nodes_to_score=percentage,
        loadmaster=LoadmasterSettings(seed=seed, assumed_pod_ttl_seconds=ttl, pods_at_extenders=room),
        gates=gates,
    )
    registry = {**IN_TREE, **{plugin.name: plugin for plugin in plugins}}
    world, clock, metrics = FakeWorld(), FakeClock(), Metrics()
    return EngineUnderTest(
        build_engine(config, registry, world.writers, metrics, clock, extender_access=extender_access, stream=stream),
        world,
        clock,
        metrics,
    )


def refusing(name: str, refusals: Mapping[str, fw.Status]) -> type[fw.Plugin]:
    """Make a Filter plugin: node name → its refusal."""
    return a_plugin(name, fw.FilterPlugin, filter=lambda state, pod, node: refusals.get(node.name))


def raising(error: BaseException) -> Callable[..., Any]:
    """Make a function that raises, whatever it is given."""

    def function(*_: Any) -> Any:
        raise error

    return function


def newer(pod: fw.Pod, **changes: Any) -> fw.Pod:
    """The next version of a pod: `node_name` or `priority` in its spec, `labels` or `deletion_timestamp` in its
    metadata, `phase` or `nominated_node_name` in its status."""
    version = str(int(pod.metadata.resource_version or "0") + 1)
    parts: dict[str, dict[str, Any]] = {"metadata": {"resource_version": version}, "spec": {}, "status": {}}
    for key, value in changes.items():
        part = next(part for part in parts if key in getattr(pod, part).__struct_fields__)
        parts[part][key] = value
    # Not `replace` on the pod itself: what was derived belongs to one version.
    return fw.Pod(**{part: msgspec.structs.replace(getattr(pod, part), **given) for part, given in parts.items()})
