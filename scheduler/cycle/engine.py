"""The scheduler without its edge: tables, queue, profiles and loop, put together for `run` and for `simulate`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from scheduler.api.pod import Pod
from scheduler.config.types import Config
from scheduler.cycle.algorithm import Algorithm
from scheduler.cycle.edge import Edge
from scheduler.cycle.failure import FailureHandler
from scheduler.cycle.handlers import ClusterEventHandlers
from scheduler.cycle.loop import SchedulingLoop
from scheduler.framework import profile
from scheduler.framework.handle import Handle
from scheduler.framework.metrics import Metrics
from scheduler.framework.profile_spec import ProfileSpec
from scheduler.framework.registry import Registry
from scheduler.framework.runtime import Framework
from scheduler.framework.waiting import WaitingPods
from scheduler.queue.backoff_queue import Backoff
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.state.cache import Cache
from scheduler.state.nominator import Nominator


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts that others hold on to."""

    frameworks: dict[str, Framework]
    cache: Cache
    queue: SchedulingQueue
    nominator: Nominator
    algorithm: Algorithm
    handlers: ClusterEventHandlers
    loop: SchedulingLoop
    pods: dict[str, Pod]


def build_engine(config: Config, registry: Registry, edge: Edge, metrics: Metrics, now: Callable[[], float]) -> Engine:
    """Put a scheduler together. Raises ConfigError if a profile cannot be built; `now` in seconds, monotonic."""
    cache = Cache(metrics, now, config.loadmaster.assumed_pod_ttl_seconds)
    nominator = Nominator()
    activator = _Activator()
    frameworks = {
        spec.scheduler_name: _framework(config, spec, registry, edge, metrics, cache, nominator, activator)
        for spec in config.profiles
    }
    queue = SchedulingQueue(
        next(iter(frameworks.values())).queue_sort,
        {name: framework.pre_enqueue for name, framework in frameworks.items()},
        {name: framework.rejecter_events() for name, framework in frameworks.items()},
        Backoff(config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds),
        metrics,
        nominator,
        now,
        starvation_seconds=config.pod_max_backoff_seconds,
    )
    activator.queue = queue
    pods: dict[str, Pod] = {}
    algorithm = Algorithm(cache.table, config.loadmaster.seed)
    failure = FailureHandler(queue, nominator, pods, edge, metrics)
    loop = SchedulingLoop(frameworks, queue, cache, nominator, algorithm, failure, edge, metrics, now)
    waiting = {name: framework.handle.waiting_pods for name, framework in frameworks.items()}
    handlers = ClusterEventHandlers(pods, cache, queue, waiting, edge, metrics)
    return Engine(frameworks, cache, queue, nominator, algorithm, handlers, loop, pods)


class _Activator:
    """Breaks a circle: plugins are made before the queue, which needs them, and may activate pods in it."""

    queue: SchedulingQueue

    def activate(self, uids: Iterable[str]) -> None:
        self.queue.activate(uids)


def _framework(
    config: Config,
    spec: ProfileSpec,
    registry: Registry,
    edge: Edge,
    metrics: Metrics,
    cache: Cache,
    nominator: Nominator,
    activator: _Activator,
) -> Framework:
    handle = Handle(
        profile_name=spec.scheduler_name,
        nodes=cache.table,
        nominator=nominator,
        activator=activator,
        waiting_pods=WaitingPods(),
        binder=edge.binder,
        events=edge.events,
    )
    percentage = spec.percentage_of_nodes_to_score
    if percentage is None:
        percentage = config.percentage_of_nodes_to_score
    plugins = profile.build(spec, registry, handle)
    return Framework(plugins, handle, cache.table, nominator, metrics, percentage)
