"""The scheduler without its connection to a cluster: tables, queue, profiles and loop, for `run` and `simulate`."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from scheduler.api import recent_caches
from scheduler.api.pod import Pod
from scheduler.config.types import Config
from scheduler.cycle.algorithm import Algorithm
from scheduler.cycle.api_calls import PublishedCalls
from scheduler.cycle.cycle_events import Reconfigured
from scheduler.cycle.failure import FailureHandler
from scheduler.cycle.handlers import ClusterEventHandlers
from scheduler.cycle.last_look import LastLook
from scheduler.cycle.listeners import PodListeners
from scheduler.cycle.loop import SchedulingLoop
from scheduler.cycle.object_handlers import ObjectEventHandlers
from scheduler.cycle.preemptions import PreemptionEnds
from scheduler.cycle.rejections import EarlyEnds
from scheduler.cycle.writers import Writers
from scheduler.engine.profiles import Profiles, Resources
from scheduler.engine.records import DecisionRecords
from scheduler.extenders.attempts import ExtendedAttempts
from scheduler.extenders.binding import ExtenderBinding
from scheduler.extenders.chain import Extenders, PodSource
from scheduler.extenders.conversation import Conversations
from scheduler.extenders.decision import ExtendedAlgorithm
from scheduler.extenders.roster import Roster, nobody_is_asked
from scheduler.framework.events import ALL_EVENTS, ClusterEventWithHint
from scheduler.framework.resources import ApiResource
from scheduler.groups.apis.kubernetes import KubernetesGroups, name_of
from scheduler.groups.parts import GroupParts, adapted_groups
from scheduler.groups.refusals import GroupRefusals
from scheduler.groups.reservations.wakes import POD_GROUP_RESERVATION, reservation_events
from scheduler.groups.statuses import GroupStatuses
from scheduler.groups.topology.levels import TopologyLevels
from scheduler.groups.topology.node_labels import TOPOLOGY_LEVELS, label_events
from scheduler.groups.wakes import GroupWakes
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
    from scheduler.groups.cycle import PodGroupCycle


@dataclass(frozen=True, slots=True)
class ExtenderAccess:
    """The extenders, and the source of the pods that they are sent."""

    roster: Roster
    pods: PodSource


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts that outlive `build_engine`."""

    profiles: Profiles
    cache: Cache
    queue: SchedulingQueue
    nominator: Nominator
    algorithm: Algorithm
    handlers: ClusterEventHandlers
    ends: EarlyEnds
    loop: SchedulingLoop
    pods: dict[str, Pod]
    objects: ObjectStore
    object_handlers: ObjectEventHandlers
    records: DecisionRecords
    roster: Roster
    stream: EventStream
    group_parts: GroupParts
    share_parts: ShareParts
    levels: TopologyLevels

    @property
    def pod_groups(self) -> "PodGroupAlgorithm | None":
        """Decides about groups of pods; None if groups are off."""
        return self.group_parts.algorithm

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
        self.levels.configured = config.loadmaster.topology_levels
        self.group_parts.use(self.frameworks, config.loadmaster)
        self.share_parts.use(self.frameworks)
        self.algorithm.use_seed(config.loadmaster.seed)
        self.use_extenders(config.loadmaster.pods_at_extenders)
        if Reconfigured in self.stream.listeners:
            self.stream.publish(Reconfigured())

    def use_extenders(self, max_in_lane: int) -> None:
        """Call the extenders in use from the next decision on; `max_in_lane`: attempts of one lane."""
        if self.loop.extended is not None:
            self.loop.extended.use(self.roster.extenders, max_in_lane)
        if self.loop.extender_binding is not None:
            self.loop.extender_binding.use(self.roster.extenders)

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
) -> Engine:
    """Put a scheduler together and start its plugins; `now` in seconds, monotonic; `tasks` are its own by default.

    `extender_access`: the extenders, and what they need; without it none is asked, whatever the configuration says.
    `stream`: where it publishes its events, one of its own by default. `make_plugins`: makes those of a profile.

    Raises ConfigError if a profile cannot be built, or a plugin does not start.
    """
    tasks = tasks or Tasks(metrics)
    stream = stream or EventStream()
    cache = Cache(metrics, now, config.loadmaster.assumed_pod_ttl_seconds, stream)
    nominator = Nominator(stream)
    activator = _Activator()
    records = DecisionRecords(cache.table, stream)
    last_look = LastLook(cache, writers.binder, stream, metrics)
    objects = ObjectStore(stream)
    pods: dict[str, Pod] = {}
    preemptions, listeners = Preemptions(pods, nominator, activator, now), PodListeners()
    calls = PublishedCalls(writers.api, writers.reader, stream)
    waiting_pods, pods_in_pre_bind, sharing = WaitingPods(), PodsInPreBind(), Sharing()
    gates = config.gates
    groups = adapted_groups(objects, gates)
    shares = AdaptedShares(nominator, groups, objects)

    def handle(profile_name: str) -> tuple[EngineHandle, ProfileObjects, ProfileShared]:
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
        )
        return made, of_profile, shared

    def framework(plugins: ProfilePlugins, of: EngineHandle, percentage: int, limits: Limits) -> Framework:
        return Framework(plugins, of, cache.table, nominator, metrics, percentage, limits, stream)

    of_groups = Resources(*KubernetesGroups(objects).resources()) if gates.generic_workload else Resources()
    profiles = Profiles(handle, framework, make_plugins, of_groups)
    profiles.swap(profiles.prepare(config, registry))
    roster = Roster(nobody_is_asked, metrics) if extender_access is None else extender_access.roster
    queue = SchedulingQueue(queue_settings(config, profiles.frameworks, roster.extenders), metrics, nominator, now)
    activator.queue = queue
    algorithm = Algorithm(cache.table, config.loadmaster.seed)
    failure = FailureHandler(queue, nominator, pods, writers, metrics, stream, profiles.frameworks, listeners)
    listeners.add(PreemptionEnds(preemptions, pods, nominator, queue, writers.evictor))
    ends = EarlyEnds(cache)
    handlers = ClusterEventHandlers(
        pods, cache, queue, nominator, profiles.frameworks, waiting_pods, ends, writers, metrics, stream, listeners
    )
    by_extender = None
    if extender_access is not None:
        by_extender = ExtenderBinding(extender_access.pods, cache, last_look.check, handlers.assumption_expired, tasks)
    loop = SchedulingLoop(
        profiles.frameworks,
        queue,
        cache,
        nominator,
        algorithm,
        failure,
        writers,
        last_look,
        stream,
        metrics,
        now,
        tasks,
        by_extender,
        listeners,
    )
    if extender_access is not None:
        extended = ExtendedAlgorithm(algorithm, cache.table, loop.ready, metrics)
        conversations = Conversations(cache.table, extender_access.pods, stream)
        # The loop takes it after its construction, as each calls the other.
        loop.extended = ExtendedAttempts(
            profiles.frameworks, extended, conversations, queue, failure, loop, metrics, now, tasks, stream
        )

    levels = TopologyLevels(algorithm, config.loadmaster.topology_levels)

    def group_cycle() -> "tuple[PodGroupAlgorithm, PodGroupCycle]":
        from scheduler.groups.algorithm import PodGroupAlgorithm
        from scheduler.groups.conditions import GroupConditions
        from scheduler.groups.cycle import PodGroupCycle
        from scheduler.groups.reservations.keeper import Reservations

        of_groups = PodGroupAlgorithm(
            algorithm,
            cache,
            nominator,
            metrics,
            levels,
            uses_placements=gates.topology_aware_workload_scheduling,
        )
        conditions, of_metrics = GroupConditions(objects, writers.api, tasks), metrics.add_pod_groups()
        reservations = Reservations(
            algorithm,
            levels,
            groups,
            profiles.frameworks,
            queue,
            writers.group_events,
            of_metrics.reservations,
            now,
            stream,
        )
        metrics.watch_reserved_nodes(lambda: 0 if algorithm.reservation is None else len(algorithm.reservation.nodes))
        return of_groups, PodGroupCycle(
            profiles.frameworks,
            groups,
            of_groups,
            queue,
            failure,
            loop,
            conditions,
            reservations,
            writers.group_events,
            of_metrics,
            now,
            stream,
        )

    if gates.generic_workload:
        queue.ignores_events = name_of
    handlers.announces_pods = gates.gang_scheduling
    statuses = GroupStatuses(objects, groups.members_by_group, writers.api, tasks)
    refusals = GroupRefusals(groups, profiles.frameworks, writers.group_events)
    wakes = GroupWakes(groups, queue, objects, statuses, refusals)
    group_parts = GroupParts(groups, statuses, refusals, wakes, group_cycle, loop, cache, queue, handlers, pods)
    group_parts.use(profiles.frameworks, config.loadmaster)
    share_parts = ShareParts(shares, groups, objects, cache, queue, handlers, failure, writers, tasks, now, preemptions)
    share_parts.use(profiles.frameworks)
    object_handlers = ObjectEventHandlers(objects, queue, profiles.resources.watched, handlers.mend, metrics)
    engine = Engine(
        profiles,
        cache,
        queue,
        nominator,
        algorithm,
        handlers,
        ends,
        loop,
        pods,
        objects,
        object_handlers,
        records,
        roster,
        stream,
        group_parts,
        share_parts,
        levels,
    )
    engine.use_extenders(config.loadmaster.pods_at_extenders)
    return engine


def queue_settings(config: Config, frameworks: Mapping[str, Framework], extenders: Extenders) -> QueueSettings:
    """Return the queue's settings from a configuration and the profiles and extenders made of it."""
    others: dict[str, Sequence[ClusterEventWithHint]] = {}
    if extenders:
        others[EXTENDER] = (ClusterEventWithHint(ALL_EVENTS),)
    groups = next(iter(frameworks.values())).handle.pod_groups  # the same for all
    others[POD_GROUP_RESERVATION] = reservation_events()
    others[TOPOLOGY_LEVELS] = label_events(groups, config.loadmaster.topology_levels)
    return QueueSettings(
        next(iter(frameworks.values())).queue_sort,
        {name: framework.pre_enqueue for name, framework in frameworks.items()},
        {name: {**framework.rejector_events(), **others} for name, framework in frameworks.items()},
        Backoff(config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds),
        starvation_seconds=config.pod_max_backoff_seconds,
        leftover_seconds=config.loadmaster.pod_max_in_unschedulable_pods_seconds,
    )


class _Activator:
    """Breaks a cycle: plugins are made before the queue, which needs them, and may activate pods in it."""

    queue: SchedulingQueue

    def activate(self, uids: Iterable[str]) -> None:
        self.queue.activate(uids)
