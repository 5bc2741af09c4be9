"""The composition root of `loadmaster run --shadow-of NAME`: decides about another scheduler's pods, writes nothing.

    permissions to read ─► watch, relister ─► synced ─► each decision of the other one is made here, too
        … SIGTERM ─► summary

There is no election, as nothing is written: two shadows do no harm. The configuration is read once.
"""

import json
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final

from scheduler.assembly.cluster import Informers, connect
from scheduler.assembly.port import Inside, Shown, open_port
from scheduler.config.options import RunOptions
from scheduler.config.source import Loaded
from scheduler.config.types import Config
from scheduler.cycle.writers import NoWriters, Writers
from scheduler.engine.engine import build_engine
from scheduler.framework.errors import ConfigError
from scheduler.framework.handle import NoWrites
from scheduler.kube.permissions import reading_permissions
from scheduler.kube.reads.plugin_reader import SilentReader
from scheduler.process.metrics import Metrics
from scheduler.replay.shadow import Shadow
from scheduler.runtime.guards.plugin_exits import START_SECONDS, ended_hangs, refused_exits
from scheduler.serve.port.answers import JSON, Answer
from scheduler.serve.port.http import Pages

PATH: Final = "/debug/shadow"

_logger = logging.getLogger(__name__)


async def run(options: RunOptions, loaded: Loaded, inside: Inside) -> int:
    """Compare until stopped; return the exit code. Raises ConfigError."""
    other, registry = options.shadow_of or "", loaded.registry
    config, metrics = config_for(loaded.config, other), Metrics()
    async with connect(options, config, metrics) as cluster, AsyncExitStack() as stack:
        nothing = NoWriters()
        writers = Writers(nothing, nothing, nothing, nothing, NoWrites(), SilentReader(cluster.client))
        with ended_hangs(START_SECONDS), refused_exits():
            config = config.without_resizes()
            engine = build_engine(config, registry, writers, metrics, time.monotonic, cluster.tasks)
        stack.callback(engine.close)
        resources = engine.profiles.resources
        informers = Informers(cluster, engine, resources, config.loadmaster.resync_seconds)
        gaps, synced = informers.relister.gaps, informers.relister.synced
        shadow = Shadow(engine, other, metrics, lambda: synced.is_set() and gaps.is_current)
        in_effect = Loaded(config, registry)
        inside.show_gates(metrics)
        pages = {**inside.pages(Shown(in_effect), engine, metrics, lambda: True), PATH: _page(shadow)}
        shown = Pages(
            pages, informers.live, informers.ready, metrics, inside.settings, queried=inside.queried(in_effect)
        )
        await open_port(stack, options.serving, shown, metrics, cluster.tasks)
        if await informers.sync(reading_permissions(engine.watched.values())):
            shadow.start()
            cluster.tasks.start("closing gaps", gaps.close_forever(informers.relister.compare_again))
            fields = {"nodes": engine.cache.table.count, "shadowOf": other}
            _logger.info("Ready: a shadow, which writes nothing", extra=fields)
        await cluster.stop.wait()
        _summarize(shadow)
        await cluster.tasks.cancel()
    return 1 if cluster.tasks.failed else 0


def config_for(config: Config, other: str) -> Config:
    """The configuration with the one profile that decides the other scheduler's pods. Raises ConfigError.

    That is the profile of its name, or the only one there is.
    """
    if config.extenders:
        _logger.warning("Extenders are not asked: a shadow asks nobody", extra={"extenders": len(config.extenders)})
    for profile in config.profiles:
        if profile.scheduler_name == other:
            return replace(config, profiles=(profile,))
    if len(config.profiles) > 1:
        names = ", ".join(profile.scheduler_name for profile in config.profiles)
        raise ConfigError([f"--shadow-of {other}: the configuration has no profile of that name, and several: {names}"])
    return replace(config, profiles=(replace(config.profiles[0], scheduler_name=other),))


def _page(shadow: Shadow) -> Callable[[str], Awaitable[Answer]]:
    async def page(_accept: str) -> Answer:
        return Answer(200, json.dumps(shadow.about(), indent=1).encode() + b"\n", JSON)

    return page


def _summarize(shadow: Shadow) -> None:
    found = shadow.about()
    fields = {"decisions": found["decisions"], "alike": found["alike"], **found["verdicts"]}
    _logger.info("The shadow has ended", extra=fields)
    for each in found["plugins"]:
        _logger.info("What made a difference", extra=each)
