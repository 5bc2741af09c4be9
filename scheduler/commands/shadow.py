"""The composition root of `loadmaster run --shadow-of NAME`: decides about another scheduler's pods, writes nothing.

    permissions to read ─► watch, relister ─► synced ─► each decision of the other one is made here, too
        … SIGTERM ─► summary

There is no election, as nothing is written: two shadows do no harm. The configuration is read once.
"""

import asyncio
import gc
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

from scheduler.commands.port import Inside, Shown, open_port
from scheduler.config.options import RunOptions
from scheduler.config.source import Loaded
from scheduler.config.types import Config
from scheduler.cycle.engine import Engine, build_engine
from scheduler.cycle.writers import Writers
from scheduler.framework.awaited import first_of
from scheduler.framework.errors import ConfigError
from scheduler.framework.handle import NoWrites
from scheduler.kube.http.client import Client
from scheduler.kube.identity.credentials import load_credentials
from scheduler.kube.informers.comparison_schedule import ComparisonSchedule
from scheduler.kube.informers.deadlines import COMPARISON_SECONDS, FIRST_COMPARISON, Deadlines
from scheduler.kube.informers.further_watches import FurtherWatches
from scheduler.kube.informers.intake import node_intake, pod_intake
from scheduler.kube.informers.relister import Relister
from scheduler.kube.informers.watch import Watch
from scheduler.kube.permissions import Permission, reading_permissions
from scheduler.kube.reads.plugin_reader import SilentReader
from scheduler.process.metrics import Metrics
from scheduler.process.stop_signals import StopSignals
from scheduler.process.tasks import Tasks
from scheduler.replay.no_writers import Silence
from scheduler.replay.shadow import Shadow, ShadowedHandlers
from scheduler.runtime.guards.containment import AT_START_SECONDS, Contained
from scheduler.runtime.registry import Registry
from scheduler.serve.endpoints.debug_pages import Memory
from scheduler.serve.endpoints.health import Check
from scheduler.serve.endpoints.metric_pages import metric_pages
from scheduler.serve.port.answers import JSON, Answer
from scheduler.serve.port.http import Pages

PATH: Final = "/debug/shadow"

IDLE_SECONDS: Final = 15.0
"""As of a scheduler that works: what was made for pods is given back then."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InEffect:
    """The configuration, for the pages about it."""

    config: Config
    registry: Registry


@dataclass(frozen=True, slots=True)
class Shadowing:
    """One run. `check_permissions` is the scheduler's own."""

    options: RunOptions
    loaded: Loaded
    inside: Inside
    check_permissions: Callable[[Client, Sequence[Permission], Deadlines], Coroutine[Any, Any, None]]

    async def run(self) -> int:
        """Compare until told to stop; return the exit code. Raises ConfigError."""
        options, registry = self.options, self.loaded.registry
        other = options.shadow_of or ""
        config = config_for(self.loaded.config, other)
        metrics, stop = Metrics(), asyncio.Event()
        deadlines = Deadlines(metrics)
        deadlines.expect(FIRST_COMPARISON, COMPARISON_SECONDS)
        signals = StopSignals(stop)
        signals.listen()
        tasks = Tasks(metrics, stop)
        async with AsyncExitStack() as stack:
            credentials = await load_credentials(options.kubeconfig or config.client_connection.kubeconfig or None)
            client = await stack.enter_async_context(Client(credentials, metrics))
            stack.push_async_callback(tasks.close)
            tasks.start("task watch", tasks.watch())
            tasks.start("signals", signals.keep())
            tasks.start("credentials", credentials.keep_fresh())
            silence = Silence()
            writers = Writers(silence, silence, silence, silence, NoWrites(), SilentReader(client))
            with Contained(AT_START_SECONDS):
                engine = build_engine(config, registry, writers, metrics, time.monotonic, tasks)
            stack.callback(engine.close)
            shadow = Shadow(engine, other, metrics, lambda: synced.is_set() and relister.gaps.is_current)
            self.inside.show_gates(metrics)
            schedule = ComparisonSchedule()
            failed = schedule.request_later
            synced = asyncio.Event()
            handlers = ShadowedHandlers(engine.handlers, shadow, synced.is_set)
            pods = pod_intake(handlers, metrics, failed, engine.pod_type)
            nodes = node_intake(engine.handlers, metrics, failed)
            interval = config.loadmaster.resync_seconds
            relister = Relister(client, (pods, nodes), schedule, engine.loop.hold, deadlines, metrics, interval)

            watch = Watch(client, (pods, nodes), relister, deadlines, metrics, signals.listen)
            further = FurtherWatches(
                client, relister, engine.object_handlers, deadlines, metrics, tasks, failed, signals.listen
            )
            await further.open(engine.profiles.resources)
            live: dict[str, Check] = {
                "parts": tasks.are_running,
                "watches": deadlines.are_met,
                "credentials": client.access.is_granted,
            }
            ready = {"sched-handler-sync": relister.synced.is_set}
            in_effect = InEffect(config, registry)
            pages = {**metric_pages(metrics, engine.pods, lambda: True), **self.inside.pages(Shown(in_effect))}
            pages[PATH] = _page(shadow)
            pages["/debug/memory"] = Memory(engine.cache_bytes, engine.cache.sizes)
            queried = self.inside.queried(in_effect)
            shown = Pages(pages, live, ready, metrics, self.inside.settings, queried=queried)
            await open_port(stack, options.serving, shown, metrics, tasks)
            permissions = reading_permissions(engine.watched.values())
            await first_of(stop.wait(), self.check_permissions(client, permissions, deadlines))
            if stop.is_set():
                return 0
            tasks.start(f"watch on {watch.label}", watch.run())
            further.start()
            tasks.start("relister", relister.run())
            await first_of(stop.wait(), relister.synced.wait())
            synced.set()
            tasks.start("closing gaps", relister.gaps.close_forever(relister.compare_anew))
            gc.collect()
            gc.freeze()
            fields = {"nodes": engine.cache.table.count, "shadowOf": other}
            _logger.info("Ready: a shadow, which writes nothing", extra=fields)
            tasks.start("forgetting what is idle", _forget_idle_forever(engine))
            await stop.wait()
            _summarize(shadow)
            await tasks.cancel()
        return 1 if tasks.failed else 0


def config_for(config: Config, other: str) -> Config:
    """The configuration with the one profile by which the other scheduler's pods are judged. Raises ConfigError.

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


async def _forget_idle_forever(engine: Engine) -> None:
    while True:
        await asyncio.sleep(IDLE_SECONDS)
        for _ in engine.forget_idle():
            await asyncio.sleep(0)
