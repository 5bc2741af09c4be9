"""The command line of each component, and what had to be learned about its flags. Pure: nothing is started here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml

from tests.controlplane.credentials import Credentials

KWOK_STAGES: Final = Path(__file__).with_name("kwok-stages.yaml")

NEEDS_CONTROLLER_MANAGER: Final = (
    "ServiceAccount",  # refuses every pod until the namespace's default service account exists
    "TaintNodesByCondition",  # taints each new node as not ready; the node lifecycle controller lifts it
    "StorageObjectInUseProtection",  # adds finalizers that its controller removes
)
"""Admission plugins that wait for a controller. scheduler_perf runs without them, too."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a control plane consists of. The default is the least: etcd and the API server."""

    controller_manager: bool = False
    """Run kube-controller-manager: Deployments, Jobs, service accounts, garbage collection, deletion of namespaces.
    Without it those admission plugins are off that wait for it, and a deleted namespace stays Terminating."""

    kwok: bool = False
    """Run kwok: nodes that carry its annotation become Ready, pods on them Running."""

    apiserver_flags: tuple[str, ...] = ()
    """Added to the API server's flags; where one is given twice, the last wins."""

    controller_manager_flags: tuple[str, ...] = ()
    """Added to kube-controller-manager's flags."""

    disable_admission: tuple[str, ...] = ()
    """More admission plugins to turn off. One that pays with many nodes is TaintNodesByCondition: the controller
    lifts the taint of about 200 new nodes a second."""

    max_inflight: int = 4000
    """Requests that the API server works on at once, half of them writes. Its default of 400 + 200 is divided
    among priority levels by API Priority and Fairness, and the levels differ for kube-scheduler (by user name), a
    service account and an administrator (not limited at all). A benchmark that compares them must not measure that,
    so no level is to be the limit. Tests of throttling set it low."""

    def with_feature_gates(self, gates: str, runtime_config: str) -> "Settings":
        """The same with these feature gates, `A=true,B=true`, and the API versions that they need, `group/version`."""
        switches = (f"--feature-gates={gates}",)
        return replace(
            self,
            apiserver_flags=(*self.apiserver_flags, *switches, f"--runtime-config={runtime_config}=true"),
            controller_manager_flags=(*self.controller_manager_flags, *switches),
        )

    def __post_init__(self) -> None:
        if self.max_inflight < 2:
            raise ValueError(f"max_inflight must be at least 2, got {self.max_inflight}")


def etcd(binary: Path, data: Path, port: int) -> list[str]:
    """One member, on one port."""
    url = f"http://127.0.0.1:{port}"
    return [
        str(binary),
        f"--data-dir={data}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        "--listen-peer-urls=http://127.0.0.1:0",  # no peers, but it insists on a port
        "--unsafe-no-fsync",  # a crash of the machine may lose data, a crash of etcd does not
        "--quota-backend-bytes=8589934592",  # 2 GiB by default, which large benchmarks with many events fill
        "--log-level=error",
    ]


def kube_apiserver(binary: Path, credentials: Credentials, etcd_port: int, settings: Settings, port: int) -> list[str]:
    """TLS, RBAC, tokens for users, signed tokens for service accounts."""
    disabled = () if settings.controller_manager else NEEDS_CONTROLLER_MANAGER
    return [
        str(binary),
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        # A loopback address is no valid endpoint of the Service `kubernetes`: it would log an error every 10 s.
        "--endpoint-reconciler-type=none",
        f"--secure-port={port}",
        f"--cert-dir={credentials.directory}",
        f"--tls-cert-file={credentials.server_cert}",
        f"--tls-private-key-file={credentials.server_key}",
        f"--token-auth-file={credentials.token_file}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={credentials.service_account_key}",
        f"--service-account-signing-key-file={credentials.service_account_key}",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--allow-privileged",
        f"--max-requests-inflight={settings.max_inflight // 2}",
        f"--max-mutating-requests-inflight={settings.max_inflight // 2}",
        # One by default: to delete 10,000 pods as a collection would take half a minute.
        "--delete-collection-workers=16",
        # Without it a SIGTERM waits for the watches of the other components, which do not end by themselves.
        "--shutdown-watch-termination-grace-period=2s",
        "--profiling=false",
        # A second such flag would replace this one, not add to it: hence `disable_admission`.
        f"--disable-admission-plugins={','.join((*disabled, *settings.disable_admission))}",
        *settings.apiserver_flags,
    ]


def kube_controller_manager(
    binary: Path, credentials: Credentials, kubeconfig: Path, settings: Settings, port: int
) -> list[str]:
    """All controllers, no leader election, and no node ever declared dead."""
    return [
        str(binary),
        *serving(credentials, kubeconfig, port),
        "--leader-elect=false",  # 2 s to get the lease, 15 s after a restart
        f"--service-account-private-key-file={credentials.service_account_key}",
        f"--root-ca-file={credentials.ca}",
        "--kube-api-qps=1000",  # 20 by default: 5,000 nodes would lose their taints over 4 minutes
        "--kube-api-burst=2000",
        # Nodes without a kubelet send no heartbeat. kwok would, and for 5,000 nodes that is 500 writes a second.
        "--node-monitor-grace-period=8760h",
        "--node-startup-grace-period=8760h",
        *settings.controller_manager_flags,
    ]


def kube_scheduler(
    binary: Path, credentials: Credentials, kubeconfig: Path, config: Path, further: Sequence[str], port: int
) -> list[str]:
    """The scheduler to compare with; `config` is the output of `scheduler_config`, `further` are more flags."""
    return [
        str(binary),
        *serving(credentials, kubeconfig, port),
        f"--config={config}",
        *further,
    ]


def serving(credentials: Credentials, kubeconfig: Path, port: int) -> list[str]:
    """What kube-controller-manager and kube-scheduler have in common: whom to talk to and where to listen."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        # Else it asks for a ConfigMap of the API server's that exists only with client certificates.
        "--authentication-skip-lookup",
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={credentials.server_cert}",
        f"--tls-private-key-file={credentials.server_key}",
    ]


def scheduler_config(text: str, kubeconfig: Path, qps: float, burst: int, *, leader_elect: bool = False) -> str:
    """A KubeSchedulerConfiguration like `text` ("" for the defaults) with the connection and its limits set.

    kube-scheduler ignores `--kubeconfig` when it is given a configuration file, so the file must say it.
    """
    config: dict[str, Any] = yaml.safe_load(text) or {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    connection: Mapping[str, Any] = config.get("clientConnection") or {}
    config["clientConnection"] = {**connection, "kubeconfig": str(kubeconfig), "qps": qps, "burst": burst}
    config["leaderElection"] = {**(config.get("leaderElection") or {}), "leaderElect": leader_elect}
    return yaml.safe_dump(config, sort_keys=False)


def kwok(binary: Path, kubeconfig: Path, port: int) -> list[str]:
    """Fake kubelets for the nodes that carry the annotation, and for no other."""
    return [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--config={KWOK_STAGES}",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        f"--server-address=127.0.0.1:{port}",
        "--node-lease-duration-seconds=0",
    ]
