"""Groups of pods in the domains of a topology, on the real control plane, as docs/groups.md has it set up, and Kueue.

Kueue is played: no controller of it runs, but pods and changes have the shapes that it gives them.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.cluster.coscheduling import GROUPS
from tests.cluster.loadmaster import granted, node_of, start
from tests.controlplane import Client, Cluster, Component, a_node, wait_until
from tests.controlplane.client import Object
from tests.docs.pages import ROOT, blocks

BLOCK, RACK, HOST = "example.com/block", "example.com/rack", "kubernetes.io/hostname"
INDEX = "batch.kubernetes.io/job-completion-index"
RACKS = {"r1": ("a", 1), "r2": ("a", 2), "r3": ("b", 3)}
"""Rack → its block, and how many nodes of two cores each it has."""

(CONFIGURATION,) = [each.text for each in blocks(ROOT / "docs" / "groups.md") if "topologyLevels" in each.text]


def an_indexed_job(name: str, count: int, annotation: str) -> Object:
    """A Job whose pods of a core each are a group with this annotation about racks."""
    annotations = {
        "loadmaster.dev/pod-group": name,
        "loadmaster.dev/pod-group-min-available": str(count),
        f"loadmaster.dev/{annotation}": RACK,
    }
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": "1"}}}
    pod = {"schedulerName": "loadmaster", "restartPolicy": "Never", "containers": [container]}
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    spec = {"completionMode": "Indexed", "completions": count, "parallelism": count, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


TRAINING = an_indexed_job("training", 4, "required-topology")


@pytest.fixture(scope="module")
def racks(cluster: Cluster) -> Iterator[Mapping[str, str]]:
    """Node → rack."""
    found = {f"{rack}-{number}": rack for rack, (_, count) in RACKS.items() for number in range(count)}
    with cluster.client() as api:
        for name, rack in found.items():
            # kwok leaves them alone: pods of Jobs stay as they are, and keep their cores.
            labels = {BLOCK: RACKS[rack][0], RACK: rack, HOST: name}
            api.create(a_node(name, cpu="2", labels=labels, annotations={}))
        yield found
        for name in found:
            api.delete("Node", name)


@pytest.fixture(scope="module", autouse=True)
def loadmaster(
    cluster: Cluster, racks: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Component]:
    """With the configuration of the documentation."""
    with granted(cluster, "Coscheduling", *GROUPS):
        path: Path = tmp_path_factory.mktemp("config") / "config.yaml"
        path.write_text(CONFIGURATION)
        with start(cluster, f"--config={path}") as component:
            yield component


def nodes_by_rank(api: Client, namespace: str) -> dict[int, str]:
    """Rank → node, of the members that have one."""
    pods = [(pod["metadata"].get("labels", {}).get(INDEX), node_of(pod)) for pod in api.list("Pod", namespace)]
    return {int(rank): node for rank, node in pods if rank and node}


def leave(api: Client, namespace: str) -> None:
    """Make space for the next test."""
    api.delete_all("batch/v1/Job", namespace)
    api.delete_all("Pod", namespace)
    wait_until(lambda: not api.list("Pod", namespace), 60, "the pods are gone")


def test_the_job_with_a_required_rack_is_in_one_and_its_neighbours_are_together(
    api: Client, namespace: str, racks: Mapping[str, str]
) -> None:
    api.create(TRAINING, namespace)

    wait_until(lambda: len(nodes_by_rank(api, namespace)) == 4, 30, "the job has its nodes")

    nodes = nodes_by_rank(api, namespace)
    assert {racks[node] for node in nodes.values()} == {"r2"}  # the smallest that holds four pods
    assert nodes[0] == nodes[1] != nodes[2] == nodes[3]
    leave(api, namespace)
