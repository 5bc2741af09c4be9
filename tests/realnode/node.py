"""A control plane with one real node: containerd, runc and a kubelet, with pods that have addresses.

It must run in the namespaces of `tests.realnode.__main__`, as it mounts what it likes and takes fixed addresses:

    10.0.0.1          lo      the API server, at the address of the Service `kubernetes`
    10.98.0.1/24      cni0    the pods' gateway
"""

import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

from tests.controlplane import ControlPlane, ProcessError, Settings, is_ready, wait_until
from tests.controlplane.build import find_binaries
from tests.realnode import config
from tests.realnode.images import Images

NODE: Final = "node-1"
NODE_BINARIES: Final = ("kubelet", "helm")
ADDRESS: Final = "10.0.0.1"
"""The first of the services' range, tests/controlplane/flags.py."""
GATEWAY: Final = "10.98.0.1"
SOCKET: Final = "/run/containerd/containerd.sock"

AUDIT_POLICY: Final = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: [system:serviceaccounts]
- level: None
"""


class RealNode(ControlPlane):
    """Starts on entering, in about 15 s; the default scheduler runs, too."""

    def __init__(self, images: Images, cgroup: str) -> None:
        """`cgroup`: the group for all pods, which exists."""
        super().__init__(Settings(controller_manager=True, address=ADDRESS, apiserver_port=443, nodes=(NODE,)))
        self._images = images
        self._cgroup = cgroup

    @property
    def audit_log(self) -> Path:
        """A line of JSON for each call that a service account made."""
        return self.directory / "audit.log"

    def ctr(self, *arguments: str) -> str:
        """containerd's own command, for the images and containers of Kubernetes."""
        return run("ctr", f"--address={SOCKET}", "--namespace=k8s.io", *arguments)

    def pids(self, program: str) -> list[int]:
        """The processes of all containers whose command line has `program` in it."""
        found = subprocess.run(["pgrep", "--full", program], capture_output=True, text=True, check=False)
        return [int(line) for line in found.stdout.split()]

    def keep_logs(self, target: Path) -> None:
        """Copy the logs of all components and containers, and what the API server knows, to `target`."""
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for log in (*self.directory.glob("*.log"), *self.directory.glob("pod-logs/*/*/*.log")):
            shutil.copy(log, target / "-".join(log.relative_to(self.directory).parts))
        for name, command in {
            "objects.yaml": ("get", "all,configmaps,events", "--all-namespaces", "--output=yaml"),
            "pods.txt": ("describe", "pods", "--all-namespaces"),
            "node.txt": ("describe", "node", NODE),
        }.items():
            (target / name).write_text(self.kubectl(*command))

    def _start(self) -> None:
        lay_out_machine(self.directory)
        policy = self.directory / "audit-policy.yaml"
        policy.write_text(AUDIT_POLICY)
        self.settings = replace(
            self.settings,
            apiserver_flags=(
                "--kubelet-preferred-address-types=InternalIP",
                f"--audit-policy-file={policy}",
                f"--audit-log-path={self.audit_log}",
            ),
        )
        with ThreadPoolExecutor(max_workers=1) as pool:
            containers = pool.submit(self._start_containerd)
            super()._start()
            containers.result()
        self.start_kube_scheduler()
        self._start_kubelet()
        with self.client() as api:
            wait_until(lambda: is_ready(api.get("Node", NODE)), 60, "the node's readiness")

    def _start_containerd(self) -> None:
        path = self.directory / "containerd.toml"
        path.write_text(config.containerd(self.directory))
        self.spawn("containerd", lambda _: ["containerd", f"--config={path}"], lambda _: self._containerd_answers())
        for archive in (self._images.pause, self._images.loadmaster):
            self.ctr("images", "import", str(archive))

    def _containerd_answers(self) -> bool:
        try:
            self.ctr("version")
        except ProcessError:
            return False
        return True

    def _start_kubelet(self) -> None:
        binary = find_binaries(["kubelet"])["kubelet"]
        path = self.directory / "kubelet.yaml"
        path.write_text(config.kubelet(self.directory, self._cgroup))

        def argv(port: int) -> Sequence[str]:
            return [
                str(binary),
                f"--config={path}",
                f"--kubeconfig={self.kubeconfig(f'system:node:{NODE}')}",
                f"--root-dir={self.directory / 'kubelet'}",
                f"--cert-dir={self.directory / 'kubelet-pki'}",
                f"--hostname-override={NODE}",
                f"--node-ip={ADDRESS}",
                "--v=2",
            ]

        with self.client() as api:

            def is_registered(_: int) -> bool:
                return any(node["metadata"]["name"] == NODE for node in api.list("Node"))

            self.spawn("kubelet", argv, is_registered)


def lay_out_machine(directory: Path) -> None:
    """Give the namespaces their mounts, addresses and bridge."""
    run("mount", "--make-rshared", "/")
    for path in ("/run/containerd", "/var/log", "/var/lib/cni"):
        Path(path).mkdir(parents=True, exist_ok=True)
        run("mount", "-t", "tmpfs", "tmpfs", path)
    # The kubelet wants these for the whole machine. It finds them as it wants, and writes nothing.
    for name, value in {"vm/overcommit_memory": "1", "kernel/panic": "10", "kernel/panic_on_oops": "1"}.items():
        stand_in = directory / Path(name).name
        stand_in.write_text(f"{value}\n")
        run("mount", "--bind", str(stand_in), f"/proc/sys/{name}")
    for command in (
        "link set lo up",
        f"address add {ADDRESS}/32 dev lo",
        # A fixed MAC address: a bridge otherwise takes another whenever a pod comes or goes, and all pods lose their
        # gateway for a minute.
        "link add cni0 address 02:00:0a:62:00:01 type bridge",
        f"address add {GATEWAY}/24 dev cni0",
        "link set cni0 up",
        "route add default dev cni0",  # the kubelet looks for an interface that has one
    ):
        run("ip", *command.split())
    network = directory / "cni"
    network.mkdir()
    (network / "10-pods.conflist").write_text(config.pod_network(directory, GATEWAY))


def run(*command: str) -> str:
    """Run a command and return what it prints. Raises ProcessError with what it said."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise ProcessError(f"{' '.join(command)}: {result.stderr.strip()}")
    return result.stdout
