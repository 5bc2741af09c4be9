"""What is tested on each version: files of cluster tests under the names that the table gives them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

CLUSTER: Final = Path(__file__).parents[1] / "cluster"

CAPABILITIES: Final[dict[str, tuple[str, ...]]] = {
    "What stops a start": ("start",),
    "Binding and status": ("binding", "status"),
    "Affinity": ("affinity",),
    "Topology spread": ("spread",),
    "Preemption": ("preemption",),
    "Volumes": ("volumes",),
    "Devices (DRA)": ("dra",),
    "Devices for extended resources": ("extended_resources", "older_api_servers"),
    "Extenders": ("extenders",),
    "Custom resources that plugins watch": ("watched_resources",),
    "Next to other schedulers": ("coexistence", "shadow"),
    "In kube-scheduler's place": ("only_scheduler",),
    "Profiles": ("profile",),
    "Explanations": ("explain",),
    "Helm chart and its account": ("chart", "chart_permissions", "least_privilege"),
    "Secured port": ("serving",),
    "Metrics": ("metrics",),
    "Two replicas": ("leadership",),
}
"""Those of a usual run; every other file is in a run of all, as one row."""

OTHERS: Final = "All other cluster tests"


def capability_of(file: str) -> str:
    """The row to which a file such as `test_binding` belongs."""
    name = file.removeprefix("test_")
    return next((capability for capability, files in CAPABILITIES.items() if name in files), OTHERS)


def files() -> list[Path]:
    """The files of a usual run."""
    return named(name for names in CAPABILITIES.values() for name in names)


def named(names: Iterable[str]) -> list[Path]:
    """The files of these names, such as `binding`."""
    return [CLUSTER / f"test_{name}.py" for name in names]
