"""Which feature gates a workload wants, and whether that is what Kubernetes does by itself. Pure except for one file.

Both schedulers run beside an API server with its default gates, except for those of groups of pods, which all three
get if the workload wants them. A workload that wants any other is left out.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

Gates = Mapping[str, bool]

FEATURES: Final = Path("pkg/features/kube_features.go")
BLOCK: Final = re.compile(r"^\t(\w+): \{\n(.*?)^\t\},", re.MULTILINE | re.DOTALL)
SETTABLE: Final = ("GenericWorkload", "TopologyAwareWorkloadScheduling")
"""The gates of groups of pods, off by default."""

ENTRY: Final = re.compile(r'Version: version\.MustParse\("(\d+)\.(\d+)"\), Default: (true|false)')


def default_gates(source: str, version: tuple[int, int]) -> dict[str, bool]:
    """The defaults at a version, from the text of kube_features.go: of each feature, the last entry up to it."""
    found: dict[str, bool] = {}
    for name, body in BLOCK.findall(source):
        for major, minor, default in ENTRY.findall(body):
            if (int(major), int(minor)) <= version:
                found[name] = default == "true"
    return found


def unmet(wanted: Gates, defaults: Gates) -> list[str]:
    """The gates that would have to be set otherwise, as `Name=false`; a gate that nobody knows counts as one."""
    others = {name: value for name, value in wanted.items() if name not in SETTABLE}
    return [written(name, value) for name, value in others.items() if defaults.get(name) is not value]


def set_by(wanted: Gates) -> str:
    """The gates that are set for a workload, as the flag has them; empty if it runs with the defaults."""
    return ",".join(written(name, True) for name in SETTABLE if wanted.get(name))


def written(name: str, value: bool) -> str:
    """A gate as in a flag."""
    return f"{name}={str(value).lower()}"
