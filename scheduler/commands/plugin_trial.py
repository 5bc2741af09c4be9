"""The process in which plugins are tried out before others run their code: see `scheduler.plugin_loading.trial`."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from scheduler.plugin_loading.trial import Start, child

if TYPE_CHECKING:  # loads numpy and all plugins of ours: see `_start`
    from scheduler.config.types import Config
    from scheduler.runtime.registry import Registry


def main() -> None:
    """Try out what standard input says, and end the process."""
    child(_start)


def _start() -> Start:
    """Load what it takes to start plugins: once they could be imported, and before their time begins."""
    from scheduler.plugin_loading.in_tree import in_tree
    from scheduler.simulate import engine  # noqa: F401

    return partial(_started, in_tree())


def _started(ours: "Registry", values: Any, plugins: "Registry") -> None:
    from scheduler.config.load import config_from_dict
    from scheduler.config.profiles import API_VERSION, KIND

    registry = {**ours, **plugins}
    config = config_from_dict(values or {"apiVersion": API_VERSION, "kind": KIND}, registry)
    asyncio.new_event_loop().run_until_complete(_start_all(config, registry))


async def _start_all(config: "Config", registry: "Registry") -> None:
    """In an event loop, as in `run`."""
    from scheduler.simulate.cluster import SimulatedCluster
    from scheduler.simulate.engine import engine_of

    with engine_of(SimulatedCluster((), ()), config, registry):
        pass
