"""The schedulers that are measured, and how each is started."""

import sys
from dataclasses import dataclass
from typing import Any, Final

import yaml

from tests.bench.gates import set_by
from tests.bench.workloads import Workload
from tests.cluster import loadmaster
from tests.controlplane import Component, ControlPlane

OURS: Final = "loadmaster"
PEER: Final = "kube-scheduler"


@dataclass
class KubeScheduler:
    """As it comes, except for the limit on its client."""

    qps: float = 10_000
    burst: int = 10_000
    """Requests that its client may do: no limit in practice. Its defaults are 50 and 100."""
    name: str = PEER

    def scheduler_name(self, workload: Workload) -> str:
        """What pods name as their scheduler."""
        return configured_name(workload) or "default-scheduler"

    def start(self, controlplane: ControlPlane, workload: Workload) -> Component:
        """Start the process on a new control plane and return when it is ready."""
        further = feature_gates(workload)
        return controlplane.start_kube_scheduler(
            workload.scheduler_config, qps=self.qps, burst=self.burst, further=further
        )


@dataclass
class Loadmaster:
    """As it is shipped: its manifest, its account, its defaults."""

    name: str = OURS

    def scheduler_name(self, workload: Workload) -> str:
        return configured_name(workload) or "loadmaster"

    def start(self, controlplane: ControlPlane, workload: Workload) -> Component:
        gates = feature_gates(workload)
        (loadmaster.allow_groups if gates else loadmaster.install_rbac)(controlplane)
        kubeconfig = controlplane.service_account_kubeconfig(loadmaster.NAMESPACE, loadmaster.ACCOUNT)
        config = [f"--config={workload.scheduler_config}"] if workload.scheduler_config else []

        def argv(port: int) -> list[str]:
            common = [f"--kubeconfig={kubeconfig}", *loadmaster.serving(port), "--leader-elect=false"]
            return [sys.executable, "-m", "scheduler", "run", *common, *config, *gates]

        return controlplane.spawn(self.name, argv, loadmaster.is_ready)


Contender = KubeScheduler | Loadmaster


def feature_gates(workload: Workload) -> list[str]:
    """The flag for the gates that are set for a workload, if any is."""
    gates = set_by(workload.gates)
    return [f"--feature-gates={gates}"] if gates else []


def configured_name(workload: Workload) -> str:
    """The name of the only profile in the workload's own configuration, empty if it has none."""
    if workload.scheduler_config is None:
        return ""
    config: dict[str, Any] = yaml.safe_load(workload.scheduler_config.read_text())
    name: str = config["profiles"][0]["schedulerName"]
    return name
