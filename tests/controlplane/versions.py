"""The versions of Kubernetes that Loadmaster is tested with, and which of them a control plane is built from.

Each has a go.mod, which names the patch release: `k8s/go.mod` for our own version, `k8s/1.34/go.mod` and so on for the
others. `LOADMASTER_KUBERNETES=1.34` chooses another one than our own.
"""

from collections.abc import Mapping
from typing import Final

from tests.controlplane.toolchain import BuildError

OWN: Final = "1.36"
"""The one whose kube-scheduler Loadmaster equals."""

VERSIONS: Final = ("1.34", "1.35", OWN, "1.37")
"""The workflows, the chart's documentation and docs/versions.md name the same ones."""

VARIABLE: Final = "LOADMASTER_KUBERNETES"


def chosen(environment: Mapping[str, str]) -> str:
    """The version that `LOADMASTER_KUBERNETES` in `environment` names, or our own. Raises BuildError."""
    version = environment.get(VARIABLE) or OWN
    if version not in VERSIONS:
        raise BuildError(f"{VARIABLE}={version} is none of: {', '.join(VERSIONS)}")
    return version
