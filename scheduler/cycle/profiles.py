"""The profiles at work, and how those of a changed configuration take their place.

    prepare ─► PREPARED: plugins made and started; nothing has changed ─┬─ hand_over, swap ─► AT WORK
                                                                        └─ discard ─────────► (stopped)
    AT WORK ──swap, and its profile has changed or is gone──► RETIRING ──its last binding has ended──► (stopped)

A profile that is as before, down to the classes of its plugins, stays as it is, with its stored answers; only the
limits of its plugins may be others. `swap` is synchronous, so it happens between two decisions. Pods whose binding is
under way end with the plugins that they have.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

from scheduler.config.types import Config
from scheduler.cycle.hand_over import Lost, hand_over
from scheduler.framework.errors import ConfigError
from scheduler.framework.plugin import Plugin
from scheduler.framework.resources import ApiResource, parts_read, read_raw_pods, resources_to_watch, writes_of
from scheduler.framework.tracebacks import described_with_place
from scheduler.runtime import profile
from scheduler.runtime.framework import Framework
from scheduler.runtime.guards.plugin_limits import Limits
from scheduler.runtime.handle import EngineHandle
from scheduler.runtime.profile import ProfilePlugins
from scheduler.runtime.profile_spec import ProfileSpec
from scheduler.runtime.registry import Registry
from scheduler.state.subscriptions import ProfileObjects, ProfileShared


@dataclass(frozen=True, slots=True)
class Origin:
    """All that a profile is made of: equal origins make equal profiles."""

    spec: ProfileSpec
    percentage: int
    classes: Mapping[str, type[Plugin]]
    """The class of each plugin; of a file that was loaded again, another one of the same name."""


@dataclass(frozen=True, slots=True, eq=False)
class _Running:
    """A profile that was started."""

    origin: Origin
    framework: Framework
    objects: ProfileObjects
    shared: ProfileShared
    resources: "Resources"
    """What its plugins read and write, as they said it when they were started."""

    def stop(self) -> None:
        for _ in self.stopping():
            pass

    def stopping(self) -> Generator[None]:
        """The same, plugin by plugin."""
        with closing(self.framework.plugins.stopping()) as steps:
            try:
                yield from steps
            finally:
                self.objects.close()
                self.shared.close()


@dataclass(frozen=True, slots=True)
class Prepared:
    """Profiles that could be at work."""

    running: Mapping[str, _Running]
    """All of them by name: those that stay, and those that were made."""

    made: Mapping[str, _Running]
    """Those that were made, by name."""

    limits: Limits
    """Of the plugins of all of them."""

    @property
    def frameworks(self) -> dict[str, Framework]:
        return {name: each.framework for name, each in self.running.items()}

    @property
    def resources(self) -> "Resources":
        """What the plugins read and write."""
        return Resources.union(each.resources for each in self.running.values())


@dataclass(frozen=True, slots=True)
class Resources:
    """What plugins read and write of the cluster, besides pods and nodes; and what extenders are shown."""

    watched: dict[str, ApiResource] = field(default_factory=dict)
    """Event resource → API resource."""

    parts_read: dict[str, frozenset[str]] = field(default_factory=dict)
    """Event resource → the parts that plugins read of its objects, for those of which none reads everything."""

    written: frozenset[tuple[ApiResource, str, tuple[str, ...]]] = frozenset()
    """What they change: resource, subresource or empty, verbs."""

    raw_pods: bool = False
    """Whether pods are kept as JSON, too, for plugins that read it."""

    whole_nodes: bool = False
    """Whether nodes are kept as JSON, too, for extenders that are sent whole nodes."""

    @classmethod
    def of(cls, plugins: Iterable[Plugin]) -> "Resources":
        """Ask the plugins. Raises ValueError for what is no resource, and what they raise."""
        every = list(plugins)
        return cls(resources_to_watch(every), parts_read(every), writes_of(every), read_raw_pods(every))

    @classmethod
    def union(cls, several: Iterable["Resources"]) -> "Resources":
        """What all of these have together, without extenders."""
        every = list(several)
        watched = {name: resource for each in every for name, resource in each.watched.items()}
        whole = {name for each in every for name in each.watched.keys() - each.parts_read.keys()}
        parts = {
            name: frozenset[str]().union(*(each.parts_read.get(name, ()) for each in every))
            for name in watched.keys() - whole
        }
        return cls(
            dict(sorted(watched.items())),
            parts,
            frozenset[tuple[ApiResource, str, tuple[str, ...]]]().union(*(each.written for each in every)),
            any(each.raw_pods for each in every),
        )


MakeHandle = Callable[[str], tuple[EngineHandle, ProfileObjects, ProfileShared]]
"""By the name of a profile."""

MakePlugins = Callable[[ProfileSpec, Registry], ProfilePlugins]
"""Of a profile of the configuration. Raises ConfigError."""

MakeFramework = Callable[[ProfilePlugins, EngineHandle, int, Limits], Framework]
"""Of plugins, their handle, a percentage of nodes to score, and limits."""


class Profiles:
    """All of them, by name."""

    def __init__(self, handle: MakeHandle, framework: MakeFramework, plugins: MakePlugins = profile.build) -> None:
        self._handle = handle
        self._plugins = plugins
        self._framework = framework
        self._running: dict[str, _Running] = {}
        self._retiring: list[_Running] = []
        self.frameworks: dict[str, Framework] = {}
        """Those at work: always the same dictionary."""
        self.resources = Resources()
        """What their plugins read and write."""

    def prepare(self, config: Config, registry: Registry) -> Prepared:
        """Make and start what is new. Raises ConfigError with the problems of all profiles; then nothing is started."""
        steps = self.preparing(config, registry)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                prepared: Prepared = done.value
                return prepared

    def preparing(self, config: Config, registry: Registry) -> Generator[None, None, Prepared]:
        """The same, in steps, between which others may go on: a plugin may look at all volumes when it starts.

        Closed before its end, it stops what it has started.
        """
        origins = {spec.scheduler_name: _origin(spec, config, registry) for spec in config.profiles}
        stays = {
            name: running
            for name, origin in origins.items()
            if (running := self._running.get(name)) is not None and running.origin == origin
        }
        plugins = self._made({name: origin.spec for name, origin in origins.items() if name not in stays}, registry)
        limits = Limits(config.loadmaster.plugin_limits)
        made: dict[str, _Running] = {}
        with ExitStack() as undo:
            for name, of_profile in plugins.items():
                handle, objects, shared = self._handle(name)
                undo.callback(shared.close)
                undo.callback(objects.close)
                yield from of_profile.starting(handle)
                undo.callback(of_profile.stop)
                try:
                    framework = self._framework(of_profile, handle, origins[name].percentage, limits)
                    resources = Resources.of(of_profile.by_name.values())
                except Exception as error:  # the plugins' own code, in what they say of themselves
                    raise ConfigError([f"profile {name!r}: {described_with_place(error)}"]) from error
                made[name] = _Running(origins[name], framework, objects, shared, resources)
            undo.pop_all()
        return Prepared({name: stays.get(name) or made[name] for name in origins}, made, limits)

    def _made(self, specs: Mapping[str, ProfileSpec], registry: Registry) -> dict[str, ProfilePlugins]:
        made: dict[str, ProfilePlugins] = {}
        problems: list[str] = []
        for name, spec in specs.items():
            try:
                made[name] = self._plugins(spec, registry)
            except ConfigError as error:
                problems += error.problems
        if problems:
            raise ConfigError(problems)
        return made

    def hand_over(self, prepared: Prepared, seconds: float, without: Collection[Lost] = ()) -> list[Lost]:
        """Give what was made what its predecessors keep; no decision may come between that and `swap`.

        The rest is as `hand_over.hand_over` says it. What it raises changes nothing.
        """
        before = self._running
        pairs = [(before[name].framework, each.framework) for name, each in prepared.made.items() if name in before]
        return hand_over(pairs, seconds, without)

    def swap(self, prepared: Prepared) -> Collection[str]:
        """Put them to work; return the names of the profiles that are new, others than before, or gone.

        No plugin is asked for anything.
        """
        changed = {name for name, each in self._running.items() if prepared.running.get(name) is not each}
        self._retiring += (self._running[name] for name in changed)
        changed |= prepared.made.keys()
        self._running = dict(prepared.running)
        for each in self._running.values():
            each.framework.use_limits(prepared.limits)
        self.resources = prepared.resources
        self.frameworks.clear()
        self.frameworks.update(prepared.frameworks)
        return changed

    def discard(self, prepared: Prepared) -> None:
        """Stop what was made in vain."""
        for running in prepared.made.values():
            running.stop()

    @property
    def is_retiring(self) -> bool:
        """Whether there are profiles that are only there for bindings under way."""
        return bool(self._retiring)

    @property
    def needed(self) -> frozenset[str]:
        """The event resources that plugins read, those of retiring profiles too."""
        return frozenset(self.resources.watched.keys()).union(*(each.resources.watched for each in self._retiring))

    def retiring(self, is_busy: Callable[[Framework], bool]) -> Generator[None]:
        """Stop the profiles that were replaced and have no binding under way any more, plugin by plugin."""
        for running in tuple(self._retiring):
            if not is_busy(running.framework):
                self._retiring.remove(running)
                yield from running.stopping()

    def stop(self) -> None:
        """Stop all plugins, when no pod is scheduled any more."""
        for running in (*self._retiring, *self._running.values()):
            running.stop()


def _origin(spec: ProfileSpec, config: Config, registry: Registry) -> Origin:
    percentage = spec.percentage_of_nodes_to_score
    if percentage is None:
        percentage = config.percentage_of_nodes_to_score
    names = profile.plugin_names(spec)
    return Origin(spec, percentage, {name: registry[name] for name in names if name in registry})
