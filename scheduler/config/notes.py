"""Settings that are accepted because kube-scheduler has them, but have no effect here."""

from collections.abc import Mapping
from typing import Any, Final

from scheduler.config.types import Config
from scheduler.framework.arguments import arguments_of

WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "parallelism": "one thread looks at all nodes at once",
    "enableProfiling": "there is no /debug/pprof",
    "enableContentionProfiling": "there is no /debug/pprof",
    "delayCacheUntilActive": "the cache is filled at the start",
    "clientConnection.qps": "requests are not limited here, but by the API server's priority and fairness",
    "clientConnection.burst": "requests are not limited here, but by the API server's priority and fairness",
    "clientConnection.contentType": "requests are JSON",
    "clientConnection.acceptContentTypes": "answers are JSON",
}
"""Path → why."""


def notes(config: Config) -> list[str]:
    """Return a line to log for each setting that differs from the default and has no effect."""
    given, default = arguments_of(config), arguments_of(Config(profiles=()))
    return [
        f"{path} has no effect: {reason}"
        for path, reason in WITHOUT_EFFECT.items()
        if _at(given, path) != _at(default, path)
    ]


def _at(values: Any, path: str) -> Any:
    for key in path.split("."):
        values = values[key]
    return values
