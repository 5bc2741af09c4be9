"""The scheduler without its connection to a cluster: tables, queue, profiles and loop, for `run` and `simulate`."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from scheduler.api import recent_caches
from scheduler.api.pods.pod import Pod
from scheduler.config.types import Config
from scheduler.cycle.algorithm import Algorithm
from scheduler.cycle.api_calls import PublishedCalls
from scheduler.cycle.core import Core, Pauses
from scheduler.cycle.cycle_events import Reconfigured
from scheduler.cycle.failure import FailureHandler
from scheduler.cycle.handlers import ClusterEventHandlers
from scheduler.cycle.last_look import LastLook
from scheduler.cycle.listeners import PodListeners
from scheduler.cycle.loop import SchedulingLoop
from scheduler.cycle.object_handlers import ObjectEventHandlers
from scheduler.cycle.preemptions import PreemptionEnds
from scheduler.cycle.rejections import EarlyEnds
from scheduler.cycle.resizes import NO_RESIZES, QueuedResizes
from scheduler.cycle.wings import NO_EXTENDERS
from scheduler.cycle.writers import Writers
from scheduler.engine.profiles import Profiles, Resources
from scheduler.engine.records import DecisionRecords
from scheduler.extenders.chain import Extenders, PodSource
from scheduler.extenders.extender import Extender
from scheduler.extenders.roster import Roster, no_extender_is_asked
from scheduler.extenders.wing import AskedExtenders
from scheduler.framework.events import ALL_EVENTS, ClusterEventWithHint
from scheduler.framework.nodes.resources import ApiResource
from scheduler.groups.apis import kubernetes
from scheduler.groups.apis.adapters import AdaptedGroups
from scheduler.groups.parts import GroupParts
from scheduler.groups.rejector_events import rejector_events
from scheduler.groups.reservations.reserved_nodes import ReservedNodes
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.queue.backoff_queue import Backoff
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.queue.settings import QueueSettings
from scheduler.quota.adapters import AdaptedShares
from scheduler.quota.waiting.parts import ShareParts
from scheduler.runtime.event_stream import EventStream
from scheduler.runtime.framework import EXTENDER, Framework
from scheduler.runtime.guards.plugin_limits import Limits
from scheduler.runtime.handle import EngineHandle, PluginColumns
from scheduler.runtime.pre_binding import PodsInPreBind
from scheduler.runtime.profile import ProfilePlugins, build
from scheduler.runtime.profile_spec import ProfileSpec
from scheduler.runtime.registry import Registry
from scheduler.runtime.waiting import WaitingPods
from scheduler.state.cache import Cache
from scheduler.state.nominator import Nominator
from scheduler.state.objects import ObjectStore
from scheduler.state.preemptions import Preemptions
from scheduler.state.subscriptions import ProfileObjects, ProfileShared, Sharing

if TYPE_CHECKING:  # loaded once there are groups
    from scheduler.groups.algorithm import PodGroupAlgorithm


@dataclass(frozen=True, slots=True)
class ExtenderAccess:
    """The extenders, and the source of the pods that they are sent."""

    roster: Roster
    pods: PodSource


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts that outlive `build_engine`."""

    core: Core
    profiles: Profiles
    handlers: ClusterEventHandlers
    object_handlers: ObjectEventHandlers
    ends: EarlyEnds
    loop: SchedulingLoop
    records: DecisionRecords
    roster: Roster
    group_parts: GroupParts
    share_parts: ShareParts
    extenders: AskedExtenders | None
    """None if none may be asked."""

    @property
    def cache(self) -> Cache:
        return self.core.cache

    @property
    def queue(self) -> SchedulingQueue:
        return self.core.queue

    @property
    def nominator(self) -> Nominator:
        return self.core.nominator

    @property
    def algorithm(self) -> Algorithm:
        return self.core.algorithm

    @property
    def pods(self) -> dict[str, Pod]:
        return self.core.pods

    @property
    def objects(self) -> ObjectStore:
        return self.core.objects

    @property
    def stream(self) -> EventStream:
        return self.core.stream

    @property
    def pauses(self) -> Pauses:
        return self.core.pauses

    @property
    def pod_groups(self) -> "PodGroupAlgorithm | None":
        """Decides about groups of pods; None if groups are off."""
        cycle = self.group_parts.cycle
        return None if cycle is None else cycle.algorithm

    @property
    def shares(self) -> AdaptedShares:
        """The shares of the cluster; none without the plugin CapacityScheduling."""
        return self.share_parts.shares

    @property
    def watched(self) -> dict[str, ApiResource]:
        """Event resource → API resource, of everything that the plugins watch except pods and nodes."""
        return self.profiles.resources.watched

    @property
    def frameworks(self) -> dict[str, Framework]:
        """The profiles at work by name: always the same dictionary."""
        return self.profiles.frameworks

    def forget_idle(self) -> Iterator[None]:
        """Free cached data that was not used since the last call: its pods are probably gone.

        Yields now and then, so that other tasks can run. No decision changes: data that is needed again is made again.
        """
        recent_caches.forget_idle()
        self.cache.table.forget_idle()
        yield
        for framework in tuple(self.frameworks.values()):
            yield from framework.forget_idle()

    def cache_bytes(self) -> Iterator[tuple[str, int]]:
        """Yield each kind of cache and its approximate size. See docs/operations/memory.md."""
        yield from recent_caches.cache_sizes()
        yield "stored answers", sum(framework.stored_bytes for framework in self.frameworks.values())
        yield from self.cache.table.cache_bytes()

    def look_for_late_plugins(self) -> None:
        """Name plugins whose calls have been awaited for too long."""
        for framework in self.frameworks.values():
            framework.budgets.look_for_late()

    def paused_plugins(self) -> Iterator[tuple[tuple[str, str, str], float]]:
        """Yield plugin, profile and action, and the number of namespaces where it is paused."""
        for framework in self.frameworks.values():
            yield from framework.breaker.counts()

    def use(self, config: Config, settings: QueueSettings, changed: Collection[str]) -> None:
        """Use another configuration, whose profiles and extenders were swapped in this step.

        `settings`: what the queue has of it; `changed`: the profiles that are others now.
        """
        self.queue.use(settings, changed)
        self.group_parts.use(self.frameworks, config.loadmaster)
        self.share_parts.use(self.frameworks)
        self.algorithm.use_seed(config.loadmaster.seed)
        self.use_extenders(config.loadmaster.pods_at_extenders)
        if Reconfigured in self.stream.listeners:
            self.stream.publish(Reconfigured())

    def use_extenders(self, max_in_lane: int) -> None:
        """Call the extenders in use from the next decision on; `max_in_lane`: attempts of one lane."""
        if self.extenders is not None:
            self.extenders.use(self.roster.extenders, max_in_lane)

    def is_calling(self, extender: Extender) -> bool:
        """Return whether an attempt or a binding may still call this extender."""
        return self.extenders is not None and self.extenders.is_calling(extender)

    def close(self) -> None:
        """Stop the plugins at the end of the program."""
        self.profiles.stop()


def build_engine(
    config: Config,
    registry: Registry,
    writers: Writers,
    metrics: Metrics,
    now: Callable[[], float],
    tasks: Tasks | None = None,
    extender_access: ExtenderAccess | None = None,
    stream: EventStream | None = None,
    make_plugins: Callable[[ProfileSpec, Registry], ProfilePlugins] = build,
    stopwatch: Callable[[], float] = time.perf_counter,
) -> Engine:
    """Put a scheduler together and start its plugins; `now` in seconds, monotonic; `tasks` are its own by default.

    `extender_access`: the extenders, and what they need; without it none is asked, whatever the configuration says.
    `stream`: where it publishes its events, one of its own by default. `make_plugins`: makes those of a profile.
    `stopwatch`: the clock, in seconds, of how long pods are scheduled before other tasks get their turn.

    Raises ConfigError if a profile cannot be built, or a plugin does not start.
    """
    tasks = tasks or Tasks(metrics)
    stream = stream or EventStream()
    cache = Cache(metrics, now, config.loadmaster.assumed_pod_ttl_seconds, stream)
    nominator = Nominator(stream)
    activator = _Activator(lambda: queue)
    records = DecisionRecords(cache.table, stream)
    last_look = LastLook(cache, writers.binder, stream, metrics)
    objects = ObjectStore(stream)
    pods: dict[str, Pod] = {}
    preemptions = Preemptions(pods, nominator, activator, now)
    calls = PublishedCalls(writers.api, writers.reader, stream)
    waiting_pods, pods_in_pre_bind, sharing = WaitingPods(), PodsInPreBind(), Sharing()
    gates = config.gates
    groups = AdaptedGroups(objects, gates, now)
    shares = AdaptedShares(nominator, groups, objects)

    def handle(profile_name: str, plugins: ProfilePlugins) -> tuple[EngineHandle, ProfileObjects, ProfileShared]:
        of_profile = ProfileObjects(objects)
        shared = ProfileShared(sharing, of_profile)
        made = EngineHandle(
            profile_name=profile_name,
            nodes=cache.table,
            nominator=nominator,
            activator=activator,
            waiting_pods=waiting_pods,
            binder=last_look,
            events=writers.events,
            objects=of_profile,
            pods=MappingProxyType(pods),
            evictor=writers.evictor,
            metrics=metrics,
            columns=PluginColumns(cache.table),
            pods_in_pre_bind=pods_in_pre_bind,
            api=calls,
            reader=calls,
            shared=shared,
            tasks=tasks,
            pod_groups=groups,
            shares=shares,
            preemptions=preemptions,
            feature_gates=gates.switched_on(),
            post_filters=tuple(map(type, plugins.at["post_filter"])),
        )
        return made, of_profile, shared

    def framework(plugins: ProfilePlugins, of: EngineHandle, percentage: int, limits: Limits) -> Framework:
        return Framework(plugins, of, cache.table, nominator, metrics, percentage, limits, stream)

    of_groups = Resources()
    if gates.generic_workload:
        of_groups = Resources(*kubernetes.resources(have_parents=gates.composite_pod_group))
    profiles = Profiles(handle, framework, make_plugins, of_groups)
    profiles.swap(profiles.prepare(config, registry))
    roster = Roster(no_extender_is_asked, metrics) if extender_access is None else extender_access.roster
    queue = SchedulingQueue(
        queue_settings(config, profiles.frameworks, roster.extenders), metrics, nominator, now, groups, shares
    )
    listeners, pauses, reserved_nodes, ends = PodListeners(), Pauses(cache), ReservedNodes(), EarlyEnds(cache)
    algorithm = Algorithm(cache.table, config.loadmaster.seed, reserved_nodes)
    watches_resizes = gates.in_place_pod_vertical_scaling_scheduler_preemption
    resizes = QueuedResizes(queue, profiles.frameworks) if watches_resizes else NO_RESIZES
    failure = FailureHandler(queue, nominator, pods, writers, metrics, stream, profiles.frameworks, listeners, resizes)
    core = Core(
        profiles.frameworks,
        pods,
        objects,
        cache,
        nominator,
        preemptions,
        queue,
        algorithm,
        failure,
        listeners,
        pauses,
        writers,
        metrics,
        stream,
        tasks,
        now,
        resizes,
    )
    listeners.add(PreemptionEnds(core))
    handlers = ClusterEventHandlers(core, waiting_pods, ends, announces_pods=gates.generic_workload)
    extenders = None
    if extender_access is not None:
        extenders = AskedExtenders(core, extender_access.pods, last_look.check, handlers.assumption_expired)
    group_parts = GroupParts(core, groups, reserved_nodes)
    group_parts.use(profiles.frameworks, config.loadmaster)
    share_parts = ShareParts(core, shares, preemptions)
    share_parts.use(profiles.frameworks)
    loop = SchedulingLoop(core, last_look, group_parts, extenders or NO_EXTENDERS, stopwatch)
    object_handlers = ObjectEventHandlers(objects, queue, profiles.resources.watched, handlers.mend, metrics)
    engine = Engine(
        core,
        profiles,
        handlers,
        object_handlers,
        ends,
        loop,
        records,
        roster,
        group_parts,
        share_parts,
        extenders,
    )
    engine.use_extenders(config.loadmaster.pods_at_extenders)
    return engine


def queue_settings(config: Config, frameworks: Mapping[str, Framework], extenders: Extenders) -> QueueSettings:
    """Return the queue's settings from a configuration and the profiles and extenders made of it."""
    any_one = next(iter(frameworks.values()))  # all have the same groups, and sort alike
    others = dict(rejector_events(any_one.handle.pod_groups, config.loadmaster.topology_levels))
    if extenders:
        others[EXTENDER] = (ClusterEventWithHint(ALL_EVENTS),)
    return QueueSettings(
        any_one.queue_sort,
        {name: framework.pre_enqueue for name, framework in frameworks.items()},
        {name: {**framework.rejector_events(), **others} for name, framework in frameworks.items()},
        Backoff(config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds),
        starvation_seconds=config.pod_max_backoff_seconds,
        leftover_seconds=config.loadmaster.pod_max_in_unschedulable_pods_seconds,
    )


class _Activator:
    """Breaks a cycle: plugins are made before the queue, which needs them, and may activate pods in it."""

    def __init__(self, queue: Callable[[], SchedulingQueue]) -> None:
        self._queue = queue

    def activate(self, uids: Iterable[str]) -> None:
        self._queue().activate(uids)
