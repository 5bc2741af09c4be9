"""The controllers of workloads, built from their Go modules and run beside a cluster with their own definitions.

What defaults and checks the workloads that users write, their webhooks, runs here too: the API server is told the
addresses of these processes instead of those of Services.
"""

import base64
import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, NamedTuple

import trustme
import yaml

from tests.controlplane import Cluster, wait_until
from tests.controlplane.build import Module, build, cache_directory, no_stamp
from tests.controlplane.processes import free_port
from tests.controlplane.toolchain import find_go


class Controller(NamedTuple):
    """One of them. Paths are those of its module."""

    name: str
    module: str
    package: str
    definitions: str
    """The folder of its CustomResourceDefinitions."""

    config: str = ""
    """The API version of its configuration; empty if it is told by flags, and has no webhooks."""

    webhooks: str = ""
    """The file that says what its webhooks are asked about."""

    flags: tuple[str, ...] = ()
    """Without a configuration; with `{hooks}` for the port of its webhooks."""

    @property
    def built_from(self) -> Module:
        return Module(f"workloads/{self.name}", self.module, {self.name: self.package}, self.name, no_stamp)

    def source(self, path: str) -> Path:
        """Return a file, or folder, of its module."""
        build(self.built_from)  # downloads it
        argv = [str(find_go(cache_directory())), "list", "-m", "-f={{.Dir}}", self.module]
        found = subprocess.run(argv, cwd=self.built_from.directory, capture_output=True, text=True, check=True)
        return Path(found.stdout.strip(), path)


JOBSET: Final = Controller(
    "jobset",
    "sigs.k8s.io/jobset",
    "sigs.k8s.io/jobset",
    "config/components/crd/bases",
    "config.jobset.x-k8s.io/v1alpha1",
    "config/components/webhook/manifests.yaml",
)
LWS: Final = Controller(
    "lws",
    "sigs.k8s.io/lws",
    "sigs.k8s.io/lws/cmd",
    "config/crd/bases",
    "config.lws.x-k8s.io/v1alpha1",
    "config/webhook/manifests.yaml",
)
KUBERAY: Final = Controller(
    "kuberay",
    "github.com/ray-project/kuberay/ray-operator",
    "github.com/ray-project/kuberay/ray-operator",
    "config/crd/bases",
    flags=("--metrics-addr=0", "--enable-leader-election=false"),
)
TRAINER: Final = Controller(
    "trainer",
    "github.com/kubeflow/trainer/v2",
    "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
    "manifests/base/crds",
    flags=("--metrics-bind-address=0", "--webhook-server-port={hooks}"),
)


@contextmanager
def running(cluster: Cluster, controller: Controller) -> Iterator[None]:
    """Run a controller as an administrator; afterwards nothing of it is left but its definitions."""
    definitions = controller.source(controller.definitions).glob("*_*.yaml")
    made = cluster.kubectl("apply", "--server-side", "--output=name", *(f"--filename={each}" for each in definitions))
    wait_until(lambda: _are_served(cluster, made.split()), 30, "its kinds are served")
    binary, directory, hooks = build(controller.built_from) / controller.name, cluster.directory, free_port()
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    folder = directory / f"{controller.name}-webhooks"
    folder.mkdir(exist_ok=True)
    certificate.private_key_pem.write_to_path(str(folder / "tls.key"))
    certificate.cert_chain_pems[0].write_to_path(str(folder / "tls.crt"))

    def argv(port: int) -> list[str]:
        if not controller.config:
            flags = [each.format(hooks=hooks) for each in controller.flags]
            return [str(binary), f"--health-probe-bind-address=:{port}", *flags]
        config = {
            "apiVersion": controller.config,
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": f":{port}"},
            "metrics": {"bindAddress": "0"},
            "webhook": {"host": "127.0.0.1", "port": hooks, "certDir": str(folder)},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
        }
        (folder / "config.json").write_text(json.dumps(config))
        return [str(binary), f"--config={folder / 'config.json'}"]

    def is_ready(port: int) -> bool:
        return _answers(port) and (not controller.config or _answers(hooks))

    with cluster.spawn(controller.name, argv, is_ready, {"KUBECONFIG": str(cluster.kubeconfig())}):
        asked = _webhooks(controller, hooks, authority.cert_pem.bytes())
        with _asked(cluster, asked) if asked else nullcontext():
            yield


@contextmanager
def _asked(cluster: Cluster, webhooks: str) -> Iterator[None]:
    cluster.kubectl("apply", "-f", "-", stdin=webhooks)
    try:
        yield
    finally:  # else nobody could create a pod any more
        cluster.kubectl("delete", "-f", "-", stdin=webhooks)


def _webhooks(controller: Controller, port: int, authority: bytes) -> str:
    """Return what tells the API server to ask the process at a port; empty if it need not."""
    if not controller.webhooks:
        return ""
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(controller.source(controller.webhooks).read_text()))
    for document in documents:
        document["metadata"]["name"] = f"{controller.name}-{document['kind'].lower()}"
        for webhook in document["webhooks"]:
            path = webhook["clientConfig"].pop("service")["path"]
            bundle = base64.b64encode(authority).decode()
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
    return "---\n".join(json.dumps(each) + "\n" for each in documents)


def _are_served(cluster: Cluster, definitions: list[str]) -> bool:
    listed = json.loads(cluster.kubectl("get", *definitions, "--output=json"))
    items = listed.get("items", [listed])
    conditions = [each for item in items for each in item.get("status", {}).get("conditions") or ()]
    served = [each for each in conditions if (each["type"], each["status"]) == ("Established", "True")]
    return len(served) == len(definitions)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
