"""A plugin that is one mounted file, on the real control plane, with the account and the RBAC that are shipped."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import install_rbac, node_of, start
from tests.controlplane import Client, Cluster, Component, a_pod, condition, wait_until

TIER = """\
from typing import ClassVar

from scheduler import framework as fw


class Tier(fw.FilterPlugin):
    \"\"\"Run a pod on nodes of the tier that an annotation names; without limits of cpu, on none.\"\"\"

    name: ClassVar[str] = "Tier"
    reads_raw_pods: ClassVar[bool] = True

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        (container,) = pod.raw["spec"]["containers"]
        if "cpu" not in container["resources"].get("limits", {}):
            return fw.unresolvable("a pod without a limit of cpu")
        tier = pod.annotations.get("example.com/tier")
        return None if node.labels.get("tier") == tier else fw.unschedulable("node(s) of another tier")
"""
CONFIG: dict[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "loadmaster", "plugins": {"multiPoint": {"enabled": [{"name": "Tier"}]}}}],
}


class Mount:
    """A directory as a kubelet mounts a ConfigMap."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self._version = 0

    def write(self, **files: str) -> None:
        """Put these files, and no others, in the place of what there is, all at once."""
        self._version += 1
        version = self.path / f"..v{self._version}"
        version.mkdir()
        for name, text in files.items():
            (version / f"{name}.py").write_text(text)
        new = self.path / "..data_tmp"
        new.symlink_to(version.name)
        new.rename(self.path / "..data")
        for name in files:
            link = self.path / f"{name}.py"
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}.py")


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    return Mount(tmp_path / "plugins")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    return path


@pytest.fixture
def loadmaster(cluster: Cluster, mount: Mount, config: Path) -> Iterator[Component]:
    install_rbac(cluster)
    mount.write(tier=TIER)
    with start(cluster, f"--config={config}", f"--plugin-dir={mount.path}") as process:
        yield process


def a_tiered_pod(name: str, tier: str, namespace: str, limits: dict[str, str]) -> Any:
    pod = a_pod(name, namespace=namespace)
    pod["metadata"]["annotations"] = {"example.com/tier": tier, "large": "x" * 10_000}
    pod["spec"]["containers"][0]["resources"]["limits"] = limits
    return pod


def test_a_mounted_file_places_pods_by_what_it_reads_of_them(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    nodes = make_nodes(4)
    for node, tier in zip(nodes, ("gold", "lead", "lead", "lead"), strict=True):
        api.patch("Node", node, {"metadata": {"labels": {"tier": tier}}})

    api.create(a_tiered_pod("gold", "gold", namespace, {"cpu": "1"}))
    api.create(a_tiered_pod("bare", "gold", namespace, {}))

    wait_until(lambda: node_of(api.get("Pod", "gold", namespace)) == nodes[0], 20, "the plugin has its way")
    wait_until(lambda: "without a limit of cpu" in message(api, "bare", namespace), 20, "its refusal is told")


def message(api: Client, pod: str, namespace: str) -> str:
    scheduled = condition(api.get("Pod", pod, namespace), "PodScheduled")
    return str(scheduled["message"]) if scheduled else ""


def test_simulate_says_the_same_of_the_same_pods(
    cluster: Cluster,
    loadmaster: Component,
    mount: Mount,
    config: Path,
    api: Client,
    namespace: str,
    make_nodes: MakeNodes,
) -> None:
    (node,) = make_nodes(1)
    api.patch("Node", node, {"metadata": {"labels": {"tier": "gold"}}})
    dump = cluster.kubectl("get", "nodes", "-o", "json")
    pods = [a_tiered_pod("gold", "gold", namespace, {"cpu": "1"}), a_tiered_pod("bare", "gold", namespace, {})]
    command = [sys.executable, "-m", "scheduler", "simulate", "-", f"--config={config}", f"--plugin-dir={mount.path}"]

    done = subprocess.run(
        [*command, "-o", "json"],
        input="\n".join([dump, *map(json.dumps, pods)]),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    gold, bare = json.loads(done.stdout)["pods"]
    assert gold["node"] == node
    assert "without a limit of cpu" in bare["message"]
