"""Workloads become gangs by one line of their pod templates, with their real controllers and the RBAC of the chart.

Their manifests are those that the projects publish as samples.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from tests.chart import Helm
from tests.cluster.charted import scheduler_with
from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import node_of
from tests.controlplane import Client, Cluster, Component, a_node, wait_until
from tests.controlplane.objects import KWOK
from tests.workloads.certified import certified
from tests.workloads.controllers import JOBSET, KUBERAY, LWS, TRAINER, Controller, running

Object = dict[str, Any]

KINDS: Final = ("JobSet", "LeaderWorkerSet", "RayCluster")
PLUGINS: Final = {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}}
ARGUMENTS: Final = [{"name": "Coscheduling", "args": {"gangs": {"kinds": list(KINDS)}}}]
PROFILE: Final = {"schedulerName": "loadmaster", "plugins": PLUGINS, "pluginConfig": ARGUMENTS}

BOUND: Final = 60.0
"""Seconds until all pods of a gang have a node: they may have to wait for the end of a backoff."""


class Sample(NamedTuple):
    """One workload."""

    controller: Controller
    manifest: str
    """A file of the controller's module, or of this folder."""

    pods: int
    """How many are to start together."""

    cpu: float
    """What each asks for."""

    change: tuple[str, object, int]
    """What a user changes: where, to what, and how many pods have a node then."""

    gangs: int = 1

    says_at: str = ""
    """The object at which Events say why it waits, if that is not the workload."""

    ends: bool = False
    """Whether kwok ends its pods as soon as they run, as those of a Job."""

    template: str = ""
    """The file of the controller's module that has the pod template, if that is not in the workload."""

    @property
    def workload(self) -> Object:
        """The manifest, with the one line in each pod template."""
        return self._changed(self.manifest)

    @property
    def objects(self) -> list[Object]:
        """The workload after what it refers to."""
        return [*([self._changed(self.template)] if self.template else []), self.workload]

    def _changed(self, manifest: str) -> Object:
        here = Path(__file__).parent / manifest
        text = (here if here.exists() else self.controller.source(manifest)).read_text()
        found: Object = next(each for each in yaml.safe_load_all(text) if each)
        for template in _templates(found):
            template["schedulerName"] = "loadmaster"
        return found


SAMPLES: Final = {
    "JobSet": Sample(JOBSET, "jobset.yaml", pods=5, cpu=1, change=("/spec/suspend", True, 0), ends=True),
    "LeaderWorkerSet": Sample(
        LWS,
        "config/samples/leaderworkerset_v1_leaderworkerset.yaml",
        pods=4,
        cpu=0.05,
        change=("/spec/replicas", 4, 16),
        gangs=3,
        says_at="pod/leaderworkerset-sample-0",
    ),
    "RayCluster": Sample(
        KUBERAY,
        "config/samples/ray-cluster.sample.yaml",
        pods=2,
        cpu=1,
        change=("/spec/workerGroupSpecs/0/replicas", 3, 4),
    ),
    "TrainJob": Sample(
        TRAINER,
        "trainjob.yaml",
        pods=3,
        cpu=1,
        change=("/spec/suspend", True, 0),
        says_at="jobset/pytorch-simple",
        ends=True,
        template="manifests/base/runtimes/torch_distributed.yaml",
    ),
}


def _templates(of: object) -> Iterator[Object]:
    """Yield the spec of each pod template in a workload."""
    if isinstance(of, list):
        for each in of:
            yield from _templates(each)
    elif isinstance(of, dict):
        if "containers" in of:
            yield of
        for each in of.values():
            yield from _templates(each)


@pytest.fixture(scope="module", params=SAMPLES)
def kind(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[str]:
    """A kind of workload whose controller runs."""
    controller = SAMPLES[request.param].controller
    with ExitStack() as stack:
        if controller is TRAINER:  # its workloads become JobSets
            stack.enter_context(running(cluster, JOBSET))
            stack.enter_context(certified(cluster))
        stack.enter_context(running(cluster, controller))
        yield request.param


@pytest.fixture(scope="module")
def loadmaster(
    cluster: Cluster, kind: str, helm: Helm, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Component]:
    values = {"config": {"profiles": [PROFILE]}}
    with scheduler_with(cluster, helm, "kube-system", values, tmp_path_factory.mktemp("loadmaster")) as process:
        yield process


@pytest.fixture
def sample(kind: str, loadmaster: Component, cluster: Cluster, namespace: str) -> Iterator[Sample]:
    yield SAMPLES[kind]
    cluster.kubectl("delete", kind.lower(), "--all", f"--namespace={namespace}")


def create(cluster: Cluster, namespace: str, sample: Sample) -> None:
    made = {"apiVersion": "v1", "kind": "List", "items": sample.objects}
    cluster.kubectl("apply", f"--namespace={namespace}", "-f", "-", stdin=json.dumps(made))


def with_a_node(api: Client, namespace: str) -> dict[str, str]:
    """Return the pods that have a node, and are not being deleted, and their nodes."""
    pods = [pod for pod in api.list("Pod", namespace) if not pod["metadata"].get("deletionTimestamp")]
    return {pod["metadata"]["name"]: node_of(pod) for pod in pods if node_of(pod)}


def test_a_workload_starts_as_a_whole_and_waits_as_a_whole(
    sample: Sample, cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes, tmp_path: Path
) -> None:
    make_nodes(1, cpu=f"{sample.cpu * (sample.pods - 1):g}")
    workload = sample.workload
    create(cluster, namespace, sample)
    owner = f"{workload['kind'].lower()}/{workload['metadata']['name']}"

    def said() -> str:
        return cluster.kubectl("events", f"--namespace={namespace}", f"--for={sample.says_at or owner}")

    wait_until(lambda: "FailedScheduling" in said(), BOUND, "the workload has an Event")
    assert with_a_node(api, namespace) == {}
    config = tmp_path / "config.yaml"
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(yaml.safe_dump({**document, "profiles": [PROFILE]}))
    told = explained(cluster, namespace, owner, config)
    assert f"{sample.pods} pods are needed" in told

    make_nodes(1, cpu=f"{sample.cpu:g}")

    wait_until(lambda: len(with_a_node(api, namespace)) == sample.pods, BOUND, "all of a gang have a node")


def test_pods_of_a_lost_node_are_replaced(
    sample: Sample, cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    pods, own = sample.pods * sample.gangs, f"lost-{namespace}"
    manager = {} if sample.ends else KWOK
    cpu = f"{sample.cpu * (pods - 1):g}"
    api.create(a_node(own, cpu=cpu, annotations=manager))
    make_nodes(1, cpu=cpu, annotations=manager)
    create(cluster, namespace, sample)
    wait_until(lambda: len(with_a_node(api, namespace)) == pods, BOUND, "it runs")
    lost = [name for name, node in with_a_node(api, namespace).items() if node == own]

    api.delete("Node", own)
    for name in lost:
        api.delete("Pod", name, namespace)
    make_nodes(1, cpu=f"{sample.cpu * pods:g}", annotations=manager)

    def runs_again() -> bool:
        there = with_a_node(api, namespace)
        return len(there) == pods and own not in there.values()

    wait_until(runs_again, BOUND, "it is complete again")


def test_a_gang_follows_its_workload(
    sample: Sample, cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    pods, (path, value, then) = sample.pods * sample.gangs, sample.change
    make_nodes(1, cpu=f"{sample.cpu * max(pods, then):g}", annotations={})
    workload = sample.workload
    create(cluster, namespace, sample)
    wait_until(lambda: len(with_a_node(api, namespace)) == pods, BOUND, "it runs")

    patch = json.dumps([{"op": "add", "path": path, "value": value}])
    name = workload["metadata"]["name"]
    cluster.kubectl("patch", workload["kind"], name, f"--namespace={namespace}", "--type=json", "-p", patch)

    wait_until(lambda: len(with_a_node(api, namespace)) == then, BOUND, "it has changed")


def explained(cluster: Cluster, namespace: str, owner: str, config: Path) -> str:
    options = [f"--kubeconfig={cluster.kubeconfig()}", f"--namespace={namespace}", "--from-cluster"]
    argv = [sys.executable, "-m", "scheduler", "explain", owner, *options, f"--config={config}"]
    found = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    return found.stdout + found.stderr
