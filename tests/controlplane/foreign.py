"""A cluster that is not built here, and the choice.

`LOADMASTER_CLUSTER` names the cluster of the cluster tests:

    built       (the default) a control plane of our own
    existing    the cluster that KUBECONFIG points to; by this name only, since the tests create and delete nodes
                and must not do so in a cluster that happens to be there
"""

import os
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from tests.controlplane import flags
from tests.controlplane.build import find_binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.controlplane import ControlPlane, http_status
from tests.controlplane.flags import Settings
from tests.controlplane.kubeconfig import Connection

VARIABLE: Final = "LOADMASTER_CLUSTER"
LEASE_SECONDS: Final = 40
"""The kubelet's own. A controller manager that is not ours declares nodes dead that send no heartbeat."""


class ClusterError(Exception):
    """The cluster that was asked for cannot be had. The text says what is missing."""


def choose(environment: Mapping[str, str]) -> Cluster:
    """The cluster that `LOADMASTER_CLUSTER` in `environment` names, not started. Raises ClusterError."""
    match environment.get(VARIABLE) or "built":
        case "built":
            return ControlPlane(Settings(controller_manager=True, kwok=True))
        case "existing":
            return ExistingCluster(default_kubeconfig(environment))
        case other:
            raise ClusterError(f"{VARIABLE}={other} is none of: built, existing")


def default_kubeconfig(environment: Mapping[str, str]) -> Path:
    """The kubeconfig that kubectl would use: the first of KUBECONFIG, or the one in the home directory."""
    named = environment.get("KUBECONFIG", "").split(os.pathsep)[0]
    return Path(named) if named else Path.home() / ".kube" / "config"


class ExistingCluster(Cluster):
    """The current context of a kubeconfig, whose user must be an administrator; kwok is added to it."""

    def __init__(self, kubeconfig: Path) -> None:
        super().__init__()
        self._kubeconfig = kubeconfig

    def kubeconfig(self, user: str = "admin") -> Path:
        if user != "admin":
            raise ClusterError(f"only the built control plane has a user {user}")
        return self._kubeconfig

    def _start(self) -> None:
        Connection.load(self._kubeconfig)  # says what is wrong with it, before kubectl does in its words
        self.kubectl_binary = shutil.which("kubectl") or find_binaries(["kubectl"])["kubectl"]
        kwok = partial(flags.kwok, find_binaries(["kwok"])["kwok"], self._kubeconfig, lease_seconds=LEASE_SECONDS)
        self.spawn("kwok", kwok, lambda port: http_status(port, "/healthz") == 200)
