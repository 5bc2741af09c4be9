"""The page's paths, and its own files: plain HTML, CSS and JavaScript of this package.

They load nothing from anywhere else. The policy below has the browser enforce that: no inline script, no markup made of
text, no request to another origin.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from typing import Any, Final

from scheduler.engine.engine import Engine
from scheduler.process.metrics import Metrics
from scheduler.serve.page.about import About
from scheduler.serve.page.details import ConfigurationDetails, NodeDetails
from scheduler.serve.page.live import Live
from scheduler.serve.port.answers import Answer
from scheduler.serve.port.http import Page, QueriedPage

PATH: Final = "/debug/page/"

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)

HEADERS: Final = (
    ("Content-Security-Policy", _POLICY),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)

INDEX: Final = "index.html"

_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


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


def page_files(path: str) -> Iterator[tuple[str, Page]]:
    """Yield where each file is served below `path`, and what answers there."""
    for file in (resources.files(__package__) / "files").iterdir():
        content_type = _TYPES.get(file.name[file.name.rfind(".") :])
        if content_type is not None:
            page = _file(Answer(200, file.read_bytes(), content_type, headers=HEADERS))
            yield f"{path}{'' if file.name == INDEX else file.name}", page


def _file(answer: Answer) -> Page:
    async def page(_accept: str) -> Answer:
        return answer

    return page
