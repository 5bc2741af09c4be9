"""The versions of Kubernetes that Loadmaster is tested with, and which of them a control plane is built from.

Each has a go.mod, which names the patch release: `k8s/go.mod` for our own version, `k8s/1.34/go.mod` and so on for the
others. `LOADMASTER_KUBERNETES=1.34` chooses another one than our own, for all programs but kube-scheduler: what we are
compared with is the one that Loadmaster equals, on every API server.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from tests.controlplane.toolchain import BuildError

OWN: Final = "1.37"
"""The one whose kube-scheduler Loadmaster equals."""

VERSIONS: Final = ("1.34", "1.35", "1.36", OWN)
"""The workflows, the chart's documentation and docs/versions.md name the same ones."""

VARIABLE: Final = "LOADMASTER_KUBERNETES"


def chosen(environment: Mapping[str, str]) -> str:
    """The version that `LOADMASTER_KUBERNETES` in `environment` names, or our own. Raises BuildError."""
    version = environment.get(VARIABLE) or OWN
    if version not in VERSIONS:
        raise BuildError(f"{VARIABLE}={version} is none of: {', '.join(VERSIONS)}")
    return version


def beside_older_servers(environment: Mapping[str, str]) -> Sequence[str]:
    """The flags without which kube-scheduler waits for an API that an older server does not have."""
    return ("--feature-gates=DRADeviceTaintRules=false",) if chosen(environment) != OWN else ()
