"""The profiles in use, and their replacement by those of a changed configuration.

    prepare ─► PREPARED: plugins made and started; nothing has changed ─┬─ hand_over, swap ─► AT WORK
                                                                        └─ discard ─────────► (stopped)
    AT WORK ──swap, and its profile has changed or is gone──► RETIRING ──its last binding has ended──► (stopped)

A profile that did not change, down to the classes of its plugins, stays with its stored answers; only the limits of
its plugins may change. `swap` is synchronous, so it happens between two decisions. A binding under way ends with the
plugins that it began with.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

from scheduler.config.types import Config
from scheduler.cycle.steps import Steps, in_one_go
from scheduler.engine.hand_over import Lost, hand_over
from scheduler.framework.errors import ConfigError
from scheduler.framework.nodes.resources import ApiResource, parts_read, read_raw_pods, resources_to_watch, writes_of
from scheduler.framework.plugin import Plugin
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
    """The definition of a profile: equal origins make equal profiles."""

    spec: ProfileSpec
    percentage: int
    classes: Mapping[str, type[Plugin]]
    """The class of each plugin; a file that is loaded again gives another class of the same name."""


@dataclass(frozen=True, slots=True, eq=False)
class _Running:
    """A profile that was started."""

    origin: Origin
    framework: Framework
    objects: ProfileObjects
    shared: ProfileShared
    resources: "Resources"
    """The resources that its plugins read and write, as declared at their start."""

    def stop(self) -> None:
        in_one_go(self.stopping())

    def stopping(self) -> Steps[None]:
        """The same, plugin by plugin."""
        with closing(self.framework.plugins.stopping()) as steps:
            try:
                yield from steps
            finally:
                self.objects.close()
                self.shared.close()


@dataclass(frozen=True, slots=True)
class Prepared:
    """Profiles that are ready for use."""

    running: Mapping[str, _Running]
    """All profiles by name: unchanged ones and new ones."""

    made: Mapping[str, _Running]
    """New profiles, by name."""

    limits: Limits
    further: "Resources"
    """The resources that the scheduler itself reads and writes."""

    @property
    def frameworks(self) -> dict[str, Framework]:
        return {name: each.framework for name, each in self.running.items()}

    @property
    def resources(self) -> "Resources":
        """The resources that the plugins read and write."""
        return Resources.union((*(each.resources for each in self.running.values()), self.further))


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources, other than pods and nodes, that plugins read and write; and the data that extenders need."""

    watched: dict[str, ApiResource] = field(default_factory=dict)
    """Event resource → API resource."""

    parts_read: dict[str, frozenset[str]] = field(default_factory=dict)
    """Event resource → the fields that plugins read, where no plugin reads whole objects."""

    written: frozenset[tuple[ApiResource, str, tuple[str, ...]]] = frozenset()
    """Permissions to write: resource, subresource or empty, verbs."""

    raw_pods: bool = False
    """Whether pods are kept as JSON, too, for plugins that read it."""

    whole_nodes: bool = False
    """Whether nodes are kept as JSON, too, for extenders that are sent whole nodes."""

    @classmethod
    def of(cls, plugins: Iterable[Plugin]) -> "Resources":
        """Return the resources that plugins declare. Raises ValueError for an invalid one, and errors of plugins."""
        every = list(plugins)
        return cls(resources_to_watch(every), parts_read(every), writes_of(every), read_raw_pods(every))

    @classmethod
    def union(cls, several: Iterable["Resources"]) -> "Resources":
        """Return the union of these, without extenders."""
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


MakeHandle = Callable[[str, ProfilePlugins], tuple[EngineHandle, ProfileObjects, ProfileShared]]
"""Of a profile's name and its plugins."""

MakePlugins = Callable[[ProfileSpec, Registry], ProfilePlugins]
"""Of a profile of the configuration. Raises ConfigError."""

MakeFramework = Callable[[ProfilePlugins, EngineHandle, int, Limits], Framework]
"""Of plugins, their handle, a percentage of nodes to score, and limits."""


class Profiles:
    """All profiles, by name."""

    def __init__(
        self,
        handle: MakeHandle,
        framework: MakeFramework,
        plugins: MakePlugins = profile.build,
        further: Resources | None = None,
    ) -> None:
        """`further`: the resources that the scheduler itself reads and writes."""
        self._handle = handle
        self._further = further or Resources()
        self._plugins = plugins
        self._framework = framework
        self._running: dict[str, _Running] = {}
        self._retiring: list[_Running] = []
        self.frameworks: dict[str, Framework] = {}
        """The profiles in use: always the same dictionary."""
        self.resources = Resources()
        """The resources that their plugins read and write."""

    def prepare(self, config: Config, registry: Registry) -> Prepared:
        """Make and start new profiles. Raises ConfigError with the problems of all profiles; then none is started."""
        return in_one_go(self.preparing(config, registry))

    def preparing(self, config: Config, registry: Registry) -> Steps[Prepared]:
        """Prepare in steps, so that other tasks can run in between: a plugin may read all volumes when it starts.

        Closing the generator early stops the plugins that were started.
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
                handle, objects, shared = self._handle(name, of_profile)
                undo.callback(shared.close)
                undo.callback(objects.close)
                yield from of_profile.starting(handle)
                undo.callback(of_profile.stop)
                try:
                    framework = self._framework(of_profile, handle, origins[name].percentage, limits)
                    resources = Resources.of(of_profile.by_name.values())
                except Exception as error:  # code of plugins
                    raise ConfigError([f"profile {name!r}: {described_with_place(error)}"]) from error
                made[name] = _Running(origins[name], framework, objects, shared, resources)
            undo.pop_all()
        return Prepared({name: stays.get(name) or made[name] for name in origins}, made, limits, self._further)

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

    def hand_over(self, prepared: Prepared, without: Collection[Lost] = ()) -> list[Lost]:
        """Hand the state of old plugins over to the new ones; no decision may be made between this and `swap`.

        See `hand_over.hand_over`. An error changes nothing.
        """
        before = self._running
        pairs = [(before[name].framework, each.framework) for name, each in prepared.made.items() if name in before]
        return hand_over(pairs, without)

    def swap(self, prepared: Prepared) -> Collection[str]:
        """Use the prepared profiles; return the names of new, changed and removed profiles. Calls no plugin."""
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
        """Stop the plugins of prepared profiles that are not used."""
        for running in prepared.made.values():
            running.stop()

    @property
    def is_retiring(self) -> bool:
        """Whether replaced profiles still have bindings under way."""
        return bool(self._retiring)

    @property
    def needed(self) -> frozenset[str]:
        """The event resources that plugins read, including retiring profiles."""
        return frozenset(self.resources.watched.keys()).union(*(each.resources.watched for each in self._retiring))

    def retiring(self, is_busy: Callable[[Framework], bool]) -> Steps[None]:
        """Stop replaced profiles without bindings under way, plugin by plugin."""
        for running in tuple(self._retiring):
            if not is_busy(running.framework):
                self._retiring.remove(running)
                yield from running.stopping()

    def stop(self) -> None:
        """Stop all plugins at the end of the program."""
        for running in (*self._retiring, *self._running.values()):
            running.stop()


def _origin(spec: ProfileSpec, config: Config, registry: Registry) -> Origin:
    percentage = spec.percentage_of_nodes_to_score
    if percentage is None:
        percentage = config.percentage_of_nodes_to_score
    names = profile.plugin_names(spec)
    return Origin(spec, percentage, {name: registry[name] for name in names if name in registry})
