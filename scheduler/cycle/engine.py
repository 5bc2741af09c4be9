"""The scheduler without its connection to a cluster: tables, queue, profiles and loop, for `run` and `simulate`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from scheduler.api import recent_caches
from scheduler.api.needs import pod_type
from scheduler.api.pod import Pod
from scheduler.config.types import Config
from scheduler.cycle.algorithm import Algorithm
from scheduler.cycle.extended_algorithm import ExtendedAlgorithm
from scheduler.cycle.extended_attempts import ExtendedAttempts
from scheduler.cycle.extender_binding import ExtenderBinding
from scheduler.cycle.failure import FailureHandler
from scheduler.cycle.handlers import ClusterEventHandlers
from scheduler.cycle.last_look import LastLook
from scheduler.cycle.loop import SchedulingLoop
from scheduler.cycle.object_handlers import ObjectEventHandlers
from scheduler.cycle.rejections import EarlyEnds
from scheduler.cycle.writers import Writers
from scheduler.extenders.chain import Extenders, PodSource
from scheduler.framework.errors import ConfigError
from scheduler.framework.resources import ApiResource, needs_of, parts_read, resources_to_watch, writes_of
from scheduler.framework.shared import Shared
from scheduler.queue.backoff_queue import Backoff
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.runtime import profile
from scheduler.runtime.framework import Framework
from scheduler.runtime.handle import EngineHandle, PluginColumns
from scheduler.runtime.metrics import Metrics
from scheduler.runtime.pre_binding import PodsInPreBind
from scheduler.runtime.profile import ProfilePlugins
from scheduler.runtime.profile_spec import ProfileSpec
from scheduler.runtime.registry import Registry
from scheduler.runtime.tasks import Tasks
from scheduler.runtime.waiting import WaitingPods
from scheduler.state.cache import Cache
from scheduler.state.nominator import Nominator
from scheduler.state.objects import ObjectStore


@dataclass(frozen=True, slots=True)
class Asking:
    """Extenders, and where the pods come from that they are shown."""

    extenders: Extenders
    pods: PodSource


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts that outlive `build_engine`."""

    frameworks: dict[str, Framework]
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
    watched: dict[str, ApiResource]
    """Event resource → API resource, of all that the plugins watch besides pods and nodes."""
    parts_read: dict[str, frozenset[str]]
    """Event resource → the parts that plugins read of its objects, for those of which none reads everything."""
    pod_type: type[Pod]
    """Into what pods are decoded: Pod, or more of it where plugins need more."""
    written: frozenset[tuple[ApiResource, str, tuple[str, ...]]]
    """What the plugins change: resource, subresource or empty, verbs."""

    def forget_idle(self) -> Iterator[None]:
        """Give back what was made for pods, and nobody asked for since the last time: they are probably gone.

        It costs what is given back, and yields now and then, that others may have their turn. It changes no decision:
        what is asked for again is made again.
        """
        recent_caches.forget_idle()
        self.cache.table.forget_idle()
        yield
        for framework in self.frameworks.values():
            yield from framework.forget_idle()

    def cache_bytes(self) -> Iterator[tuple[str, int]]:
        """Yield about how much memory each kind of cache takes. See docs/operations.md, "Memory"."""
        yield from recent_caches.cache_sizes()
        yield "stored answers", sum(framework.stored_bytes for framework in self.frameworks.values())
        yield from self.cache.table.cache_bytes()

    def close(self) -> None:
        """Stop the plugins, when no pod is scheduled any more."""
        for framework in self.frameworks.values():
            framework.plugins.stop()


def build_engine(
    config: Config,
    registry: Registry,
    writers: Writers,
    metrics: Metrics,
    now: Callable[[], float],
    tasks: Tasks | None = None,
    asking: Asking | None = None,
) -> Engine:
    """Put a scheduler together and start its plugins; `now` in seconds, monotonic; `tasks` are its own by default.

    `asking`: the extenders, and what they need; without it none is asked, whatever the configuration says.

    Raises ConfigError if a profile cannot be built, or a plugin does not start.
    """
    tasks = tasks or Tasks(metrics)
    cache = Cache(metrics, now, config.loadmaster.assumed_pod_ttl_seconds)
    nominator = Nominator()
    activator = _Activator()
    last_look = LastLook(cache, writers.binder, metrics)
    objects = ObjectStore()
    pods: dict[str, Pod] = {}
    waiting_pods, pods_in_pre_bind, shared = WaitingPods(), PodsInPreBind(), Shared()

    def handle(profile_name: str) -> EngineHandle:
        return EngineHandle(
            profile_name=profile_name,
            nodes=cache.table,
            nominator=nominator,
            activator=activator,
            waiting_pods=waiting_pods,
            binder=last_look,
            events=writers.events,
            objects=objects,
            pods=pods,
            evictor=writers.evictor,
            metrics=metrics,
            columns=PluginColumns(cache.table),
            pods_in_pre_bind=pods_in_pre_bind,
            api=writers.api,
            shared=shared,
            tasks=tasks,
        )

    plugins = _plugins(config, registry)
    handles = {name: handle(name) for name in plugins}
    _start(plugins, handles)
    frameworks = {
        spec.scheduler_name: _framework(
            config,
            spec,
            plugins[spec.scheduler_name],
            handles[spec.scheduler_name],
            cache,
            nominator,
            metrics,
            has_extenders=asking is not None,
        )
        for spec in config.profiles
    }
    queue = SchedulingQueue(
        next(iter(frameworks.values())).queue_sort,
        {name: framework.pre_enqueue for name, framework in frameworks.items()},
        {name: framework.rejector_events() for name, framework in frameworks.items()},
        Backoff(config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds),
        metrics,
        nominator,
        now,
        starvation_seconds=config.pod_max_backoff_seconds,
    )
    activator.queue = queue
    algorithm = Algorithm(cache.table, config.loadmaster.seed)
    failure = FailureHandler(queue, nominator, pods, writers, metrics)
    loop = SchedulingLoop(
        frameworks, queue, cache, nominator, algorithm, failure, writers, last_look, metrics, now, tasks
    )
    waiting = {name: framework.handle.waiting_pods for name, framework in frameworks.items()}
    ends = EarlyEnds(cache)
    handlers = ClusterEventHandlers(pods, cache, queue, nominator, waiting, ends, writers, metrics)
    if asking is not None:
        extended = ExtendedAlgorithm(algorithm, cache.table, asking.extenders, asking.pods, loop.ready, metrics)
        loop.extended = ExtendedAttempts(
            frameworks,
            asking.extenders,
            extended,
            queue,
            failure,
            loop,
            metrics,
            now,
            tasks,
            config.loadmaster.pods_at_extenders,
        )
        if any(extender.is_binder for extender in asking.extenders):
            loop.extender_binding = ExtenderBinding(
                asking.extenders, asking.pods, cache, last_look.check, handlers.assumption_expired, tasks
            )
    every = [plugin for framework in frameworks.values() for plugin in framework.plugins.by_name.values()]
    watched = resources_to_watch(every)
    object_handlers = ObjectEventHandlers(objects, queue, watched, handlers.mend, metrics)
    return Engine(
        frameworks,
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
        watched,
        parts_read(every),
        pod_type(needs_of(every)),
        writes_of(every),
    )


class _Activator:
    """Breaks a cycle: plugins are made before the queue, which needs them, and may activate pods in it."""

    queue: SchedulingQueue

    def activate(self, uids: Iterable[str]) -> None:
        self.queue.activate(uids)


def _plugins(config: Config, registry: Registry) -> dict[str, ProfilePlugins]:
    """Make the plugins of every profile. Raises ConfigError with the problems of all of them."""
    made: dict[str, ProfilePlugins] = {}
    problems: list[str] = []
    for spec in config.profiles:
        try:
            made[spec.scheduler_name] = profile.build(spec, registry)
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return made


def _start(plugins: Mapping[str, ProfilePlugins], handles: Mapping[str, EngineHandle]) -> None:
    """Start the plugins of every profile. Raises ConfigError if one does not start; then none is left running."""
    with ExitStack() as undo:
        for name, of_profile in plugins.items():
            of_profile.start(handles[name])
            undo.callback(of_profile.stop)
        undo.pop_all()


def _framework(
    config: Config,
    spec: ProfileSpec,
    plugins: ProfilePlugins,
    handle: EngineHandle,
    cache: Cache,
    nominator: Nominator,
    metrics: Metrics,
    *,
    has_extenders: bool,
) -> Framework:
    percentage = spec.percentage_of_nodes_to_score
    if percentage is None:
        percentage = config.percentage_of_nodes_to_score
    return Framework(plugins, handle, cache.table, nominator, metrics, percentage, has_extenders=has_extenders)
