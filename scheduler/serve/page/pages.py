"""The page's paths."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from scheduler.engine.engine import Engine
from scheduler.process.metrics import Metrics
from scheduler.serve.page.about import About
from scheduler.serve.page.details import ConfigurationDetails, NodeDetails
from scheduler.serve.page.live import Live
from scheduler.serve.page.own_files import page_files
from scheduler.serve.port.http import Page, QueriedPage

PATH: Final = "/debug/page/"


class ClusterPage:
    """The page of one scheduler. `live.start` has it filled."""

    def __init__(
        self, engine: Engine, metrics: Metrics, about: About, config: Callable[[], Mapping[str, Any]], epoch: float
    ) -> None:
        """`config`: the one in effect, as it may be shown. `epoch`: as `Live` has it."""
        self.live = Live(engine, metrics, about, epoch)
        self.pages: dict[str, Page] = dict(page_files(PATH))
        self.queried: dict[str, QueriedPage] = {
            f"{PATH}live": self.live,
            f"{PATH}node": NodeDetails(engine, about),
            f"{PATH}configuration": ConfigurationDetails(engine, metrics, about, config),
            **self.live.shares.pages(PATH, about),
        }
