"""Takes up a changed configuration while the scheduler works: from the file to the profiles in use.

    CURRENT ──the file changes──► read, checked ──► plugins, extenders made ──► what they read is watched and listed
       ▲                             │ problems          │ one hangs, or raises  │ not permitted, not listed in time
       │                             ▼                   ▼                       ▼
       │                          REFUSED: the last good one stays in use; log, metric, Event, `/readyz?verbose`
       │                             │  the file changes; or, if it was not the file, every RETRY_SECONDS
       └── pods are asked again ◄── swap ◄───────────────┘
           (between two decisions)

Old plugins finish the bindings that they have begun; then they are stopped, and watches that only they needed are
closed. Old extenders answer the requests under way; then their connections are closed (`extenders/roster.py`). An old
plugin that fails while it hands over loses what it kept (`engine/hand_over.py`). Any other failure before the swap
changes nothing. A failure after it, which should not happen, ends the program: its restart reads the same file.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

from scheduler.config.notes import notes
from scheduler.config.reloadable import needs_a_restart, reloaded
from scheduler.config.source import Loaded
from scheduler.config.types import Config
from scheduler.engine.engine import Engine, queue_settings
from scheduler.engine.hand_over import KeptFails, Lost
from scheduler.engine.profiles import Prepared, Resources
from scheduler.extenders.roster import Prepared as PreparedExtenders
from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.framework.tracebacks import described_with_place
from scheduler.plugin_loading.registry import PluginRegistry
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.process.time_slice import TimeSlice
from scheduler.queue.settings import QueueSettings
from scheduler.runtime.guards.plugin_exits import refused_exits
from scheduler.runtime.registry import Registry

LOOK_SECONDS: Final = 1.0
"""Between two looks at the file. It is read at the second that shows the same: until then it may be being written."""

READY_SECONDS: Final = 60.0
"""For what new plugins read to be listed."""

RETRY_SECONDS: Final = 30.0
"""After which a configuration is tried again that the cluster, not the file, kept from being used."""

TOLD: Final = 10
"""Problems that are logged."""

_logger = logging.getLogger(__name__)


class Source(Protocol):
    """The source of the configuration."""

    @property
    def name(self) -> str:
        """How to name it; empty if nothing can change."""

    async def load_again(self, before: Registry) -> Loaded:
        """Read everything again, `before` being the plugins so far. Raises ConfigError."""

    def signature(self) -> Hashable:
        """Something that is another one once it may have changed; None if it never does."""


class Cluster(Protocol):
    """The cluster connection of a reload. Implemented in scheduler.kube.reconfiguring, faked in tests."""

    @property
    def watched(self) -> Collection[str]:
        """The event resources that are watched in addition to pods and nodes."""

    async def open(self, resources: Resources) -> None:
        """Watch all of these, and return when new ones were listed, and nodes are there as they are needed.

        Raises ConfigError if the permissions for that are missing, ClusterError if that is not known.
        """

    async def close(self, names: Collection[str], *, whole_nodes: bool) -> None:
        """Watch these no longer; `whole_nodes`: and do not keep nodes as JSON any more."""

    def keep_only(self, resources: Resources) -> None:
        """Keep no more than these of pods and objects. They are read again, which gives memory back."""

    def report_as(self, profiles: Sequence[str]) -> None:
        """Send the Events of these profiles' pods in their names."""

    async def report(self, type_: str, reason: str, note: str) -> None:
        """Send an Event about ourselves. Raises nothing."""


class _Swapped(NamedTuple):
    changed: frozenset[str]
    """The profiles that are new, others than before, or gone."""

    settings: QueueSettings
    """The settings of the queue."""

    lost: Sequence[Lost]


class Reloader:
    """Follows the configuration. `run` it as a part."""

    def __init__(
        self,
        source: Source,
        loaded: Loaded,
        engine: Engine,
        cluster: Cluster,
        metrics: Metrics,
        tasks: Tasks,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`loaded`: what the engine was made of."""
        self._source = source
        self._file = loaded
        """The latest usable content of the file."""
        self.config = loaded.config
        """The configuration in effect."""
        self._engine = engine
        self._cluster = cluster
        self._reloads = metrics.config_reloads
        self._tasks = tasks
        self._now = now
        self._seen = source.signature()
        self._taken: Hashable = None
        """The latest bytes; None after the start, as the file may have changed since it was read."""
        self._retry_at: float | None = None
        self._replaced: list[Registry] = []
        """Plugins of earlier configurations, as long as profiles made of them are retiring."""
        self.problems: tuple[str, ...] = ()
        """Why the newest configuration is not in use."""
        self.reloaded_at = time.time()
        """When the configuration in effect was taken over, in seconds since 1970."""
        metrics.watch_gauge(
            "loadmaster_config_is_current",
            "Whether the newest configuration is in use: 0 while an older one is, since the newest has been refused.",
            (),
            lambda: (((), 0.0 if self.problems else 1.0),),
        )
        metrics.watch_gauge(
            "loadmaster_config_loaded_timestamp_seconds",
            "When the configuration in use was taken over, in seconds since 1970.",
            (),
            lambda: (((), self.reloaded_at),),
        )

    @property
    def registry(self) -> Registry:
        """The plugins that the configuration in effect may name."""
        return self._file.registry

    def detail(self) -> Iterator[str]:
        """The text for `/readyz?verbose`: that something was refused, not why, as anyone may read it."""
        if self.problems:
            count = len(self.problems)
            yield f"configuration: the last good one is in use; the newest was refused ({count} in the log)"

    async def run(self) -> None:
        """Look for changes until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Do the steps that are due."""
        if self._engine.profiles.is_retiring or self._engine.roster.is_retiring:
            await self._retire()
        if self._is_due():
            await self.reload()

    def _is_due(self) -> bool:
        seen = self._source.signature()
        is_still, self._seen = seen == self._seen, seen
        if not is_still:
            return False
        return seen != self._taken or (self._retry_at is not None and self._now() >= self._retry_at)

    async def reload(self) -> None:
        """Read the configuration, and put it to work if it is another one. An invalid one changes nothing."""
        self._taken, self._retry_at = self._seen, None
        started = self._now()
        try:
            loaded = await self._source.load_again(self.registry)
        except Exception as error:  # noqa: BLE001  files of plugins are read, and imported
            if not isinstance(error, ConfigError):  # the file is as it is
                self._retry_at = self._now() + RETRY_SECONDS
            await self._refuse(self._why(error))
            return
        if loaded == self._file and not self.problems:
            _close(loaded.registry, self.registry)
            return
        try:
            swapped = await self._swap(loaded)
        except Exception as error:  # noqa: BLE001  the plugin boundary: nothing was swapped
            _close(loaded.registry, self.registry)
            self._retry_at = self._now() + RETRY_SECONDS
            await self._refuse(self._why(error))
            return
        # No `await` since the swap.
        self._replaced.append(self._file.registry)
        self._file, self.problems, self.reloaded_at = loaded, (), time.time()
        self._follow(loaded.config, swapped)
        await self._finish(swapped, started)

    def _why(self, error: Exception) -> Sequence[str]:
        match error:
            case ConfigError():
                return error.problems
            case TimeoutError():
                return (f"what its plugins read was not listed within {READY_SECONDS:g} s",)
            case ClusterError():
                return (str(error),)
            case _:
                self._tasks.report("reload", self._source.name, "A configuration could not be taken over", error)
                return (described_with_place(error),)

    async def _swap(self, loaded: Loaded) -> _Swapped:
        """Make all ready, then exchange the profiles. Raises what keeps it from that."""
        lost: list[Lost] = []
        while True:
            try:
                return await self._try_to_swap(loaded, lost)
            except KeptFails as failed:  # new plugins are made, which take over nothing of it
                lost += failed.lost

    async def _try_to_swap(self, loaded: Loaded, lost: Sequence[Lost]) -> _Swapped:
        """The same, but without the lost state of the plugins at work. Raises KeptFails, too."""
        engine, config = self._engine, reloaded(self.config, loaded.config)
        prepared, members = await self._prepare(config, loaded.registry)
        extenders = members.extenders
        try:
            with refused_exits():
                settings = queue_settings(config, prepared.frameworks, extenders)  # asks the plugins, which may raise
            async with asyncio.timeout(READY_SECONDS):
                await self._cluster.open(replace(prepared.resources, whole_nodes=extenders.need_whole_nodes))
            lost = (*lost, *engine.profiles.hand_over(prepared, lost))
            changed = frozenset(engine.profiles.swap(prepared))
        except BaseException:
            engine.profiles.discard(prepared)
            await self._close_unneeded()
            raise
        if engine.roster.swap(members):
            # Any pod may have been refused, or not been helped by preemption, because of one.
            changed |= engine.frameworks.keys()
        return _Swapped(changed, settings, lost)

    async def _prepare(self, config: Config, registry: Registry) -> tuple[Prepared, PreparedExtenders]:
        """Make profiles and extenders. Raises ConfigError with the problems of either."""
        problems: list[str] = []
        members = None
        try:
            members = self._engine.roster.prepare(config.extenders)
        except ConfigError as error:
            problems += error.problems
        try:
            prepared = await self._prepare_profiles(config, registry)
        except ConfigError as error:
            raise type(error)([*error.problems, *problems]) from error
        if members is None:
            self._engine.profiles.discard(prepared)
            raise ConfigError(problems)
        return prepared, members

    async def _prepare_profiles(self, config: Config, registry: Registry) -> Prepared:
        """Make and start plugins one by one. Others have their turn in between."""
        with closing(self._engine.profiles.preparing(config, registry)) as steps:
            while True:
                with refused_exits():
                    try:
                        next(steps)
                    except StopIteration as done:
                        prepared: Prepared = done.value
                        return prepared
                await asyncio.sleep(0)

    def _follow(self, new: Config, swapped: _Swapped) -> None:
        """Have everything go by the configuration whose profiles were just swapped."""
        engine = self._engine
        for path in needs_a_restart(self.config, new):
            _logger.warning("A change of the configuration counts from the next start only", extra={"field": path})
        for note in notes(new, self._file.registry):
            _logger.warning(note)
        self.config = reloaded(self.config, new)
        engine.use(self.config, swapped.settings, swapped.changed)
        self._cluster.report_as(tuple(engine.frameworks))

    async def _finish(self, swapped: _Swapped, started: float) -> None:
        await _in_turn(self._engine.handlers.profiles_changed())
        await _in_turn(self._engine.queue.ask_again(swapped.changed))
        await self._retire()
        self._reloads.labels("success").inc()
        names = ",".join(sorted(swapped.changed)) or "none"
        seconds = round(self._now() - started, 3)
        _logger.info(
            "The configuration has changed",
            extra={"profiles": ",".join(self._engine.frameworks), "changed": names, "seconds": seconds},
        )
        await self._cluster.report(
            "Normal", "ConfigurationChanged", f"The configuration has changed; profiles concerned: {names}"
        )
        for lost in swapped.lost:
            await self._cluster.report("Warning", "PluginStateLost", f"The configuration has changed; {lost}")

    async def _refuse(self, problems: Sequence[str]) -> None:
        self._reloads.labels("error").inc()
        is_known, self.problems = tuple(problems) == self.problems, tuple(problems)
        if is_known:
            return
        for problem in problems[:TOLD]:
            _logger.error("The configuration is refused; the last good one stays in use", extra={"err": problem})
        if len(problems) > TOLD:
            _logger.error("There are more problems", extra={"problems": len(problems) - TOLD})
        note = f"The configuration is refused, the last good one stays in use: {problems[0]}"
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        await self._cluster.report("Warning", "ConfigurationRefused", note + more)

    async def _retire(self) -> None:
        with closing(self._engine.profiles.retiring(self._engine.loop.is_used)) as steps:
            for _ in steps:
                await asyncio.sleep(0)
        await self._engine.roster.retire(self._engine.is_calling)
        if not self._engine.profiles.is_retiring:
            for registry in self._replaced:
                _close(registry, self.registry)
            self._replaced.clear()
        await self._close_unneeded()

    async def _close_unneeded(self) -> None:
        """Close what no plugin or extender reads any more, whether it is at work or finishes what it has begun."""
        profiles = self._engine.profiles
        needed = profiles.needed
        names = [name for name in self._cluster.watched if name not in needed]
        await self._cluster.close(names, whole_nodes=not self._engine.roster.needs_whole_nodes)
        if not profiles.is_retiring:
            self._cluster.keep_only(profiles.resources)


def _close(registry: Registry, successor: Registry) -> None:
    if isinstance(registry, PluginRegistry) and isinstance(successor, PluginRegistry):
        registry.close(successor)


async def _in_turn(steps: Iterator[None]) -> None:
    """Take all steps, and give the event loop back every few milliseconds."""
    time_slice = TimeSlice()
    for _ in steps:
        await time_slice.give_way()
