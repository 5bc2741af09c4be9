"""What a reader has before a page begins: a cluster with Loadmaster, a copy of this repository, files of their own.

The cluster is a real control plane with kwok's nodes. A page that uses the cluster gets a new one. kube-scheduler runs
in it, as in the reader's, so the pods of Loadmaster's Deployment come to nodes; the process behind them runs on this
machine. kwok leads `kubectl port-forward` and `kubectl logs` to it, and the API server's proxy reaches it by the
address that the pods get.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.cluster.loadmaster import ACCOUNT, MANIFEST, NAMESPACE
from tests.cluster.proxied import own_address
from tests.controlplane import Client, Component, ControlPlane, Settings, a_node, wait_until
from tests.controlplane.build import find_binaries
from tests.controlplane.flags import KWOK_STAGES
from tests.docs.pages import ROOT

FILES: Final = Path(__file__).with_name("files")
PORT: Final = 10259
RELEASED: Final = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "loadmaster"},
    "spec": {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 1},
}
"""The Lease that a leader left behind: whoever comes next need not wait."""
KIND: Final = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
SUCCEEDED: Final = "pod-succeeded"
"""The stage that is left out: the containers of the pages are pauses, which do not end."""
LABEL: Final = "app.kubernetes.io/name"

ELSEWHERE: Final = {
    "docker": "needs an engine and minutes: make kind-test builds the image, loads it and installs it",
    "kind": "the same",
    "buildah": "needs root and minutes: make kind-test builds the image by docker",
    "cosign": "needs a released image and the network",
}
"""Programs that are not run here. They do nothing, and are listed at the end with the reason."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a page presumes."""

    installed: bool = True
    """Whether `deploy/loadmaster.yaml` is applied already; otherwise the page does that."""
    cluster: bool = True
    repository: bool = True
    """Whether the page begins in a copy of this repository; otherwise in an empty directory."""
    nodes: tuple[Mapping[str, Any], ...] = tuple(
        {"name": f"node-{n}", "cpu": "4", "memory": "16Gi", "zone": f"zone-{'abc'[n % 3]}"} for n in range(1, 11)
    )
    values: str = ""
    """The reader's `values.yaml` for the chart. Loadmaster runs with its configuration from the beginning."""
    before: str = ""
    """Commands that the reader has run already."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the commands of a page are run, and in which environment."""

    directory: Path
    env: Mapping[str, str]
    unrun: Path
    """The file to which programs that are not run write how they were called."""
    cluster: ControlPlane | None = None


@contextmanager
def staged(need: Need, directory: Path) -> Iterator[Stage]:
    """Set everything up below `directory`, and end it afterwards."""
    with ExitStack() as stack:
        home = directory / "here"
        home.mkdir()
        if need.repository:
            copy_repository(home)
            (home / ".venv").symlink_to(Path(sys.prefix))
        cluster = stack.enter_context(ControlPlane(Settings(controller_manager=True))) if need.cluster else None
        programs = directory / "programs"
        programs.mkdir()
        unrun = directory / "unrun"
        write_stand_ins(programs, unrun)
        env = {"PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "120"}
        env |= {"GIT_CONFIG_COUNT": "0", "TMPDIR": str(directory)}
        if cluster:
            for name, path in find_binaries(["kubectl", "helm"]).items():
                (programs / name).symlink_to(path)
            env |= {f"HELM_{kind}_HOME": str(directory / "helm" / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
            env["KUBECONFIG"] = str(cluster.kubeconfig())
            stack.enter_context(with_scheduler(cluster, need))
        if need.values:
            (home / "values.yaml").write_text(need.values)
        yield Stage(home, env, unrun, cluster)


def copy_repository(target: Path) -> None:
    """Copy what git knows. The files are of old, so that `make install` finds that everything is installed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)
            os.utime(target / name, (0, 0))


def write_stand_ins(programs: Path, unrun: Path) -> None:
    """Write programs that only record how they were called."""
    for name in ELSEWHERE:
        path = programs / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {unrun}\n')
        path.chmod(0o755)


@contextmanager
def with_scheduler(cluster: ControlPlane, need: Need) -> Iterator[None]:
    """Add nodes, kube-scheduler and Loadmaster to a control plane."""
    address = own_address() or "127.0.0.2"
    ended = threading.Event()
    with ExitStack() as stack:
        api = stack.enter_context(cluster.client())
        log = cluster.directory / "loadmaster.log"
        kwok = stack.enter_context(start_kwok(cluster, address, log))
        stack.enter_context(cluster.start_kube_scheduler())
        api.create_many(node_at(address, kwok.port, **each) for each in need.nodes)
        account = cluster.kubeconfig()
        if need.installed:
            api.create(RELEASED, NAMESPACE)
            cluster.kubectl("apply", "-f", str(MANIFEST))
            page = '[{"op": "add", "path": "/rules/0/nonResourceURLs/-", "value": "/debug/page/*"}]'
            cluster.kubectl("patch", "clusterrole", "kube-system:loadmaster:explain", "--type=json", f"--patch={page}")
            account = cluster.service_account_kubeconfig(NAMESPACE, ACCOUNT)
        given = [f"--{what}kubeconfig={account}" for what in ("", "authentication-", "authorization-")]
        given += [f"--bind-address={address}", f"--secure-port={PORT}", "--page"]
        given += [] if need.installed else ["--leader-elect=false"]  # the Lease is for the release of the page
        if need.values:
            config = cluster.directory / "config.json"
            config.write_text(json.dumps({**KIND, **yaml.safe_load(need.values)["config"]}))
            given.append(f"--config={config}")
        command = [sys.executable, "-m", "scheduler", "run", *given]
        stack.enter_context(cluster.spawn("loadmaster", lambda _: command, lambda _: serves(address)))
        kubelet = threading.Thread(target=be_a_kubelet, args=(cluster, address, ended))
        kubelet.start()
        stack.callback(kubelet.join)
        stack.callback(ended.set)
        if need.installed:
            wait_until(lambda: has_endpoint(api, address), 60, "the Service leads to Loadmaster")
        yield


def serves(address: str) -> bool:
    """Whether Loadmaster answers at its address."""
    command = ["curl", "--silent", "--insecure", "--fail", "--max-time", "2", f"https://{address}:{PORT}/readyz"]
    return subprocess.run(command, capture_output=True, check=False, timeout=10).returncode == 0


def start_kwok(cluster: ControlPlane, address: str, log: Path) -> Component:
    """Start kwok, which is asked for ports and logs of pods as a kubelet is."""
    forwards = {"forwards": [{"ports": [PORT], "target": {"address": address, "port": PORT}}]}
    logs = {"logs": [{"containers": ["loadmaster"], "logsFile": str(log)}]}
    kinds = (("ClusterPortForward", forwards), ("ClusterLogs", logs))
    config = cluster.directory / "kwok.yaml"
    stages = [each for each in yaml.safe_load_all(KWOK_STAGES.read_text()) if each["metadata"]["name"] != SUCCEEDED]
    own = [
        {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": kind, "metadata": {"name": "all"}, "spec": spec}
        for kind, spec in kinds
    ]
    config.write_text(yaml.safe_dump_all([*stages, *own]))
    binary = find_binaries(["kwok"])["kwok"]

    def argv(port: int) -> list[str]:
        return [
            str(binary),
            f"--kubeconfig={cluster.kubeconfig('kwok')}",
            f"--config={config}",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            f"--server-address=0.0.0.0:{port}",
            f"--tls-cert-file={cluster.credentials.server_cert}",
            f"--tls-private-key-file={cluster.credentials.server_key}",
        ]

    return cluster.spawn("kwok", argv)


def node_at(address: str, port: int, **wishes: Any) -> dict[str, Any]:
    """A node with a kubelet at this address."""
    node = a_node(**wishes)
    node["status"]["addresses"] = [{"type": "InternalIP", "address": address}]
    node["status"]["daemonEndpoints"] = {"kubeletEndpoint": {"Port": port}}
    return node


def be_a_kubelet(cluster: ControlPlane, address: str, ended: threading.Event) -> None:
    """Give running pods of Loadmaster the address of the process, and let tests of the chart succeed, until `ended`."""
    addresses = {"podIP": address, "podIPs": [{"ip": address}]}
    with cluster.client() as api:
        while not ended.wait(0.3):
            for pod in api.list("Pod"):
                meta, status = pod["metadata"], pod["status"]
                if status.get("phase") != "Running":
                    continue
                if meta.get("annotations", {}).get("helm.sh/hook") == "test":
                    api.patch("Pod", meta["name"], {"status": {"phase": "Succeeded"}}, meta["namespace"], "status")
                elif meta.get("labels", {}).get(LABEL) == "loadmaster" and not status.get("podIP"):
                    api.patch("Pod", meta["name"], {"status": addresses}, meta["namespace"], "status")


def has_endpoint(api: Client, address: str) -> bool:
    """Whether a Service leads to the process."""
    slices = api.list("discovery.k8s.io/v1/EndpointSlice", NAMESPACE)
    return any(address in point["addresses"] for each in slices for point in each["endpoints"] or ())
