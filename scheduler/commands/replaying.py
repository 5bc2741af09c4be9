"""Plays a trace for `loadmaster replay`, by the recorded configuration and by another one."""

import argparse
import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import metadata
from typing import Any, Final, NamedTuple

from scheduler.config.defaults import CAPACITY_SCHEDULING
from scheduler.config.feature_gates import FeatureGates, read_gates
from scheduler.config.load import config_from_dict, load_config, load_plugins
from scheduler.config.types import Config
from scheduler.framework.errors import ConfigError
from scheduler.plugin_loading.registry import PluginRegistry
from scheduler.process.progress import Progress
from scheduler.process.writing import writing
from scheduler.replay.comparison import Comparison
from scheduler.replay.counterfactual import Counterfactual, utilisation
from scheduler.replay.player import Player
from scheduler.replay.trace.trace_file import Trace, is_as_recorded
from scheduler.replay.trace.trace_time import TraceClock, TraceTimeLoop
from scheduler.runtime.framework import Framework
from scheduler.runtime.registry import Registry

HINT: Final = "its checksum is that of other lines; --edited replays it all the same"
OTHER_SHARES: Final = (
    "the shares differ: single decisions were made with the recorded ones, the result as a whole with the others"
)

Document = dict[str, Any]


class Side(NamedTuple):
    """A configuration of the two that are compared, and the plugins that it may name."""

    config: Config
    registry: Registry


def replayed(options: argparse.Namespace, registry: Registry, progress: Progress) -> Document:
    """Play a trace, and return the differences. Raises ConfigError."""
    trace = Trace(options.trace)
    notes = _checked(options.trace, progress, is_edited=options.edited)
    recorded = Side(recorded_config(trace, registry), registry)
    other = None
    if options.config:
        registry_of_other = _reloaded(registry)
        other = Side(load_config(options.config, registry_of_other, gates=_gates(trace)), registry_of_other)
    with ExitStack() as stack:
        keep = stack.enter_context(_decisions_file(options.decisions)) if options.decisions else None
        document = _run(trace, lambda clock: _replayed(trace, clock, recorded, other, keep, progress))
    document["notes"] += notes
    if other is not None:
        again, total = Trace(options.trace), document["decisions"]
        progress.doing("playing it once more, the other configuration left to itself", total)
        document["carriedOn"] |= _run(again, lambda clock: _what_if(again, clock, other, recorded.config, progress))
    return document


def _checked(path: str, progress: Progress, *, is_edited: bool) -> list[str]:
    """The note about the checksum of a trace. Raises ConfigError if it does not fit, unless `is_edited`."""
    if not os.path.isfile(path):
        return ["the trace came through a pipe: its checksum was not looked at"]
    progress.doing("looking at the checksum")
    fits = is_as_recorded(path)
    if fits is None:
        return ["the trace has no checksum: whether it was edited is not known"]
    if fits:
        return []
    if not is_edited:
        raise ConfigError([f"{path}: edited after it was recorded, or damaged: {HINT}"])
    return ["the trace was edited after it was recorded: what is different may be so by that"]


def _run(trace: Trace, play: Callable[[TraceClock], Coroutine[Any, Any, Document]]) -> Document:
    """Play a trace in an event loop that goes by its time."""
    clock = TraceClock(trace.header.recorded_at)
    with asyncio.Runner(loop_factory=lambda: TraceTimeLoop(clock)) as runner:
        return runner.run(play(clock))


@contextmanager
def _decisions_file(path: str) -> Iterator[Callable[[bytes], None]]:
    """Create the file of `--decisions`; yield a function that writes a decision on a line. Raises ConfigError."""
    with writing(path):
        file = open(path, "xb")  # noqa: SIM115 - closed at the end

    def write(decision: bytes) -> None:
        with writing(path):
            file.write(decision + b"\n")

    try:
        yield write
    finally:
        with writing(path):
            file.close()


def recorded_config(trace: Trace, registry: Registry) -> Config:
    """The configuration of a trace. Raises ConfigError, for plugins above all that are not there."""
    values = dict(trace.header.config)
    own = values.get("loadmaster")
    if isinstance(own, Mapping):
        # Directories of the machine on which it was recorded; --plugin-dir says where those plugins are here.
        values["loadmaster"] = {key: each for key, each in own.items() if key != "pluginDirectories"}
    try:
        load_plugins(values, registry)
        return config_from_dict(values, registry, gates=_gates(trace))
    except ConfigError as error:
        problems = [f"{trace.path}: the configuration in it: {problem}" for problem in error.problems]
        if any("plugin" in problem for problem in problems):
            problems.append("plugins that were loaded from a directory there need --plugin-dir here")
        raise ConfigError(problems) from error


def _gates(trace: Trace) -> FeatureGates:
    """The feature gates of a trace. Raises ConfigError."""
    return read_gates([f"{name}={str(wanted).lower()}" for name, wanted in trace.header.feature_gates.items()])[0]


def other_profiles(player: Player, trace: Trace, other: Side) -> dict[str, Framework]:
    """Make the profiles of another configuration, by the names of those recorded. Raises ConfigError."""
    engine = player.engine
    prepared = engine.profiles.prepare(*other)
    if prepared.resources.raw_pods and not trace.header.raw_pods:
        raise ConfigError(["plugins of the configuration read raw pods, which the trace does not have"])
    engine.object_handlers.watch(prepared.resources.watched)
    found: dict[str, Framework] = {}
    for name in engine.frameworks:
        if name in prepared.frameworks:
            found[name] = prepared.frameworks[name]
        elif len(prepared.frameworks) == 1:
            [found[name]] = prepared.frameworks.values()
        else:
            known = ", ".join(prepared.frameworks)
            raise ConfigError([f"the trace has a profile {name!r}, the configuration has only {known}"])
    return found


async def _replayed(
    trace: Trace,
    clock: TraceClock,
    recorded: Side,
    other: Side | None,
    keep: Callable[[bytes], object] | None,
    progress: Progress,
) -> Document:
    player = Player(trace, clock, *recorded)
    try:
        profiles = None if other is None else other_profiles(player, trace, other)
        comparison = Comparison(player, profiles, keep, progress)
        progress.doing("deciding once more")
        await player.play(comparison.add)
        document = document_of(trace, player, comparison, time.perf_counter() - player.begun_at)
        if other is not None:
            if _shares(other.config) != _shares(recorded.config):
                document["notes"].append(OTHER_SHARES)
            document["carriedOn"] = {"then": utilisation(player.engine, player.engine.frameworks)}
        return document
    finally:
        player.engine.close()
        await player.tasks.close()


def _shares(config: Config) -> object:
    enabled = (profile for profile in config.profiles if CAPACITY_SCHEDULING in profile.enabled)
    return next((profile.plugin_config.get(CAPACITY_SCHEDULING, {}) for profile in enabled), None)


async def _what_if(trace: Trace, clock: TraceClock, other: Side, recorded: Config, progress: Progress) -> Document:
    """The result of the trace with the configuration left to itself."""
    player = Counterfactual(trace, clock, *other, progress)
    try:
        await player.run()
        profiles = {profile.scheduler_name for profile in recorded.profiles}
        return {"now": utilisation(player.engine, profiles), "evicted": player.evicted}
    finally:
        player.engine.close()
        await player.tasks.close()


def document_of(trace: Trace, player: Player, comparison: Comparison, seconds: float) -> Document:
    """The result, as in the JSON output."""
    decisions = comparison.kinds.total()
    header = trace.header
    notes = []
    if trace.incomplete:
        notes.append(f"the trace is not whole: {trace.incomplete}; replayed up to there")
    if header.version != (here := metadata.version("loadmaster")):
        notes.append(f"recorded by Loadmaster {header.version}, replayed by {here}: decisions may differ on purpose")
    if not player.begun_at:
        notes.append("the trace ends before the state at its start is whole: nothing was decided")
    if header.bindings:
        notes.append(
            f"bindings under way when the recording began: {header.bindings:,}; what plugins held for them in memory "
            "(volumes, devices) is not in the trace"
        )
    if not_compared := comparison.not_compared + player.not_decided:
        notes.append(
            f"decisions that count as recorded: {not_compared:,}; extenders had a say in them, and nobody "
            "knows what they would have said"
        )
    if comparison.unfaithful:
        notes.append(
            f"the recorded configuration, too, decides {comparison.unfaithful:,} of these in another way now: replay "
            "without --config says which"
        )
    return {
        "trace": {
            "file": trace.path,
            "version": header.version,
            "recordedAt": header.recorded_at,
            "seconds": round(player.clock.now(), 3),
            "ended": trace.end,
        },
        "nodes": player.engine.cache.table.count,
        "pods": len(player.engine.pods),
        "decisions": decisions,
        "different": decisions - comparison.kinds["same"],
        "kinds": dict(comparison.kinds),
        "perSecond": round(decisions / seconds) if seconds else 0,
        "differences": comparison.differences,
        "notes": notes,
    }


def _reloaded(registry: Registry) -> Registry:
    """Plugins for another configuration: files that have not changed stay loaded."""
    return registry.renewed() if isinstance(registry, PluginRegistry) else registry
