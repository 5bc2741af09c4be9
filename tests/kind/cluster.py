"""The kind cluster: made, found again, and asked by tests."""

import json
import shutil
from collections.abc import Iterable, Set
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.chart import CHART, Helm
from tests.controlplane.build import cache_directory, find_binaries
from tests.controlplane.cluster import Cluster, KubectlError, wait_until
from tests.controlplane.objects import is_ready
from tests.kind import runc_within_bounds
from tests.kind.engine import Engine, EngineError, run

CONFIGURATION: Final = CHART.parents[1] / "deploy" / "kind.yaml"
CGROUP_V2: Final = Path("/sys/fs/cgroup/cgroup.controllers")
NAME: Final = "loadmaster"
ZONES: Final = ("zone-a", "zone-b", "zone-c")
NODES: Final = (f"{NAME}-control-plane", f"{NAME}-worker", f"{NAME}-worker2")
"""As kind calls them: one in each zone. The control plane's runs pods as the others do."""
PAUSE: Final = "registry.k8s.io/pause:3.10"
"""A program that does nothing: an image that each node has, as it is part of every pod."""
CREATE_SECONDS: Final = 600
READY_SECONDS: Final = 60
"""In which the API server is ready again after it was too busy."""
NODE_SECONDS: Final = 120
"""In which a node that was started is ready again."""


@dataclass(frozen=True, slots=True)
class State:
    """What is known of the cluster that exists; a file in the cache directory."""

    kubernetes: str
    """Its version, such as v1.36.3."""
    node_image: str
    engine: str
    """The command of its engine, `docker` or `podman`."""
    host: str
    """The address of its engine if it is not the default one."""

    @classmethod
    def load(cls) -> "State | None":
        try:
            return cls(**json.loads((directory() / "state.json").read_text()))
        except FileNotFoundError:
            return None

    def save(self) -> None:
        (directory() / "state.json").write_text(json.dumps(asdict(self)))


class KindCluster(Cluster):
    """The cluster that `make kind` made, for tests: it stays when they end."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state
        self.engine = Engine(state.engine, state.host)
        self.kubectl_binary = kubectl(self.engine)

    @property
    def name(self) -> str:
        return NAME

    def _start(self) -> None:
        wait_until(self._is_ready, READY_SECONDS, f"the API server of {NAME} is ready", interval=0.5)

    def _is_ready(self) -> bool:
        try:
            self.kubectl("get", "--raw=/readyz")
        except KubectlError:
            return False
        return True

    def kubeconfig(self, user: str = "admin") -> Path:
        if user != "admin":
            raise LookupError(f"a kind cluster has no user {user}")
        return kubeconfig()

    @property
    def helm(self) -> Helm:
        """helm on this cluster."""
        return Helm(directory() / "helm", self.kubeconfig())

    def stop_node(self, node: str) -> None:
        """Stop a node as a power failure does: the container with all its processes."""
        self.engine("stop", "-t", "1", node)  # the long name of the option depends on the engine

    def start_node(self, node: str) -> None:
        """Start a stopped node; return when it is ready."""
        self.engine("start", node)
        self.wait_node(node, ready=True)

    def wait_node(self, node: str, *, ready: bool, timeout: float = NODE_SECONDS) -> None:
        """Return when the API server has a node as ready, or as not ready. Raises TimeoutError."""
        wanted = "ready" if ready else "not ready"
        with self.client() as api:
            wait_until(lambda: is_ready(api.get("Node", node)) == ready, timeout, f"{node} is {wanted}", interval=0.5)

    def load(self, *images: str) -> None:
        """Copy images from the engine to all nodes."""
        if self.engine.command == "docker":
            kind(self.engine, "load", "docker-image", f"--name={NAME}", *images)
            return
        for image in images:  # kind asks `docker` for images, whatever the engine is
            archive = directory() / "image.tar"
            archive.unlink(missing_ok=True)
            self.engine("save", "--output", str(archive), image, timeout=CREATE_SECONDS)
            self.load_archive(archive)
            archive.unlink()

    def load_archive(self, archive: Path, nodes: Iterable[str] = NODES) -> None:
        """Copy the images of a file that `docker save` wrote to nodes."""
        kind(self.engine, "load", "image-archive", f"--name={NAME}", f"--nodes={','.join(nodes)}", str(archive))


def directory() -> Path:
    """Where the cluster's kubeconfig and state are."""
    path = cache_directory().with_name("kind") / "cluster"
    path.mkdir(parents=True, exist_ok=True)
    return path


def kubeconfig() -> Path:
    return directory() / "kubeconfig"


def kind(engine: Engine, *arguments: str) -> str:
    """Run kind. Raises EngineError."""
    binary = find_binaries(["kind"])["kind"]
    return run([str(binary), *arguments], engine.environment, CREATE_SECONDS)


def kubectl(engine: Engine) -> Path:
    """The cluster's own kubectl, from a node: of its version, and nothing is built for it."""
    path = directory() / "kubectl"
    if not path.exists():
        engine("cp", f"{NODES[0]}:/usr/bin/kubectl", str(path))
    return path


def programs(engine: Engine) -> list[Path]:
    """What a user needs to look around."""
    return [kubectl(engine), *find_binaries(["helm", "kind"]).values()]


def exists(engine: Engine) -> bool:
    """Whether the cluster is there."""
    return NAME in kind(engine, "get", "clusters").split()


def create(engine: Engine, node_image: str) -> State:
    """Make the cluster and return when its nodes are ready. Raises EngineError."""
    path = directory() / "kind.yaml"
    config = configuration(cgroup_v1=not CGROUP_V2.exists(), withheld=runc_within_bounds.withheld())
    path.write_text(yaml.safe_dump(config))
    options = [f"--name={NAME}", f"--image={node_image}", f"--kubeconfig={kubeconfig()}", f"--config={path}"]
    kind(engine, "create", "cluster", *options, "--wait=180s")
    version = engine("exec", NODES[0], "cat", "/kind/version").strip()
    state = State(version, node_image, engine.command, engine.host)
    state.save()
    return state


def delete(engine: Engine) -> None:
    """Delete the cluster and what is known of it. Raises EngineError."""
    command = ("delete", "cluster", f"--name={NAME}", f"--kubeconfig={kubeconfig()}")
    try:
        kind(engine, *command)
    except EngineError:  # on a busy machine Docker does not wait long enough for a node's processes to end
        kind(engine, *command)
    shutil.rmtree(directory())


def configuration(*, cgroup_v1: bool, withheld: Set[str]) -> dict[str, Any]:
    """What users give kind, deploy/kind.yaml, with what this machine's kernel needs."""
    config: dict[str, Any] = yaml.safe_load(CONFIGURATION.read_text())
    if cgroup_v1:  # the kubelet refuses it otherwise
        patch = {"kind": "KubeletConfiguration", "failCgroupV1": False}
        config["kubeadmConfigPatches"].append(yaml.safe_dump(patch))
    if "CAP_SYS_RESOURCE" in withheld:  # the container runtime may not lower the score then
        table = 'plugins."io.containerd.grpc.v1.cri"'
        config["containerdConfigPatches"] = [f"[{table}]\nrestrict_oom_score_adj = true\n"]
    return config
