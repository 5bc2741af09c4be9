"""Notes on settings that are accepted as in kube-scheduler, but have no effect, or a bad one."""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from scheduler.config.types import Config
from scheduler.framework.arguments import arguments_of, did_you_mean

WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "parallelism": "one thread looks at all nodes at once",
    "enableContentionProfiling": "there is no contention: one thread does all the work",
    "delayCacheUntilActive": "the cache is filled at the start",
    "clientConnection.qps": "requests are not limited here, but by the API server's priority and fairness",
    "clientConnection.burst": "requests are not limited here, but by the API server's priority and fairness",
    "clientConnection.contentType": "requests are JSON",
    "clientConnection.acceptContentTypes": "answers are JSON",
}
"""Path → why."""


def notes(config: Config, known: Collection[str] | None = None) -> list[str]:
    """Return a line to log for each setting that has no effect although it differs from the default, or cannot work.

    `known`: the plugins that there are; arguments for others have no effect either.
    """
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
    unused = [] if known is None else [*_unused_arguments(config, known)]
    return without_effect + without_address + unused


def _unused_arguments(config: Config, known: Collection[str]) -> Iterator[str]:
    for index, spec in enumerate(config.profiles):
        for name in spec.plugin_config:
            if name not in known:
                hint = did_you_mean(name, known)
                path = f"profiles[{index}].pluginConfig"
                yield f"{path} has no effect for {json.dumps(name)}: there is no such plugin{hint}"


def _at(values: Any, path: str) -> Any:
    for key in path.split("."):
        values = values[key]
    return values
