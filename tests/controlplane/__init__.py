"""A real Kubernetes control plane on a machine without Docker: for cluster tests, benchmarks and trying things out.

from tests.controlplane import ControlPlane, Settings, a_node, a_pod, wait_until
"""

from tests.controlplane.client import ApiError, ApiUnreachable, AsyncClient
from tests.controlplane.cluster import Cluster, KubectlError, wait_until
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.flags import Settings
from tests.controlplane.objects import a_node, a_pod, condition, is_ready
from tests.controlplane.processes import Component, ProcessError
from tests.controlplane.sync import Client
from tests.controlplane.toolchain import BuildError

__all__ = [
    "ApiError",
    "ApiUnreachable",
    "AsyncClient",
    "BuildError",
    "Client",
    "Cluster",
    "Component",
    "ControlPlane",
    "KubectlError",
    "ProcessError",
    "Settings",
    "a_node",
    "a_pod",
    "condition",
    "is_ready",
    "wait_until",
]
