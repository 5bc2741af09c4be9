"""What is accepted because kube-scheduler accepts it, but does nothing here, or nothing good."""

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
    """Return a line to log for each setting that has no effect although it differs from the default, or cannot work."""
    given, default = arguments_of(config), arguments_of(Config(profiles=()))
    without_effect = [
        f"{path} has no effect: {reason}"
        for path, reason in WITHOUT_EFFECT.items()
        if _at(given, path) != _at(default, path)
    ]
    without_address = [
        f"extenders[{place}].urlPrefix is empty: every call of this extender will fail"
        for place, extender in enumerate(config.extenders)
        if not extender.url_prefix
    ]
    return without_effect + without_address


def _at(values: Any, path: str) -> Any:
    for key in path.split("."):
        values = values[key]
    return values
