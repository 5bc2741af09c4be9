"""What is simulated from a snapshot of a running cluster is what the cluster then does; also with other names."""

import gzip
import json
import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from scheduler.__main__ import main
from tests.cluster.loadmaster import install_rbac, node_of, start
from tests.controlplane import Client, Cluster, a_node, a_pod, is_ready, wait_until
from tests.controlplane.client import Object

READER: Final = Path(__file__).parents[2] / "docs" / "examples" / "snapshot-reader.yaml"
ZONES: Final = ("eu-1a", "eu-1b", "eu-1c")
TEAMS: Final = ("red", "blue", "green")
PODS: Final = 50
CLAIMS: Final = 3
IMAGE: Final = "registry.corp.example/shop/web:1"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
DEDICATED: Final = {"key": "corp.example/dedicated", "value": "batch", "effect": "NoSchedule"}
CLASS: Final[Object] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "snapshot-local"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}
PRIORITIES: Final[list[Object]] = [
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": "Never",  # a pod that is evicted would make room for those that were tried before
    }
    for name, value in (("snapshot-high", 1000), ("snapshot-low", 10))
]


def nodes_of(draw: random.Random) -> list[Object]:
    made = []
    for number in range(12):
        labels = {"corp.example/generation": f"{number % 5}", "team": draw.choice(TEAMS)}
        taints = [DEDICATED] if number % 4 == 0 else []
        name = f"snapshot-{number}-{draw.randrange(10**6)}"
        node = a_node(name, draw.choice(("2", "4")), "8Gi", "12", labels=labels, taints=taints, zone=ZONES[number % 3])
        node["status"]["images"] = [{"names": [IMAGE], "sizeBytes": 400 << 20}] if number % 3 else []
        made.append(node)
    return made


def storage(namespace: str, node: str) -> list[Object]:
    """Volumes on one node, and claims that wait for their pods."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "snapshot-local"}
    made: list[Object] = []
    for number in range(CLAIMS):
        volume = {
            **spec,
            "capacity": {"storage": "1Gi"},
            "local": {"path": "/secret/path"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }
        claim = {**spec, "resources": {"requests": {"storage": "1Gi"}}}
        name = f"{namespace}-{number}"
        made += (
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": volume},
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": f"data-{number}", "namespace": namespace},
                "spec": claim,
            },
        )
    return made


def pod_of(draw: random.Random, name: str, namespace: str) -> Object:
    """A pod that wants some of what pods may want."""
    team = draw.choice(TEAMS)
    same_team = {"labelSelector": {"matchLabels": {"team": team}}, "topologyKey": "kubernetes.io/hostname"}
    newer = {"key": "corp.example/generation", "operator": "Gt", "values": ["1"]}
    liked = {"key": "team", "operator": "In", "values": [team]}
    towards_nodes: dict[str, Any] = draw.choice(
        (
            {},
            {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [newer]}]}},
            {PREFERRED: [{"weight": 50, "preference": {"matchExpressions": [liked]}}]},
        )
    )
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "labelSelector": same_team["labelSelector"],
        "whenUnsatisfiable": draw.choice(("DoNotSchedule", "ScheduleAnyway")),
    }
    preferred = [{"weight": 80, "podAffinityTerm": same_team}]
    affinity = {"nodeAffinity": towards_nodes}
    affinity |= draw.choice(({}, {"podAntiAffinity": {REQUIRED: [same_team]}}, {"podAffinity": {PREFERRED: preferred}}))
    zone = {"topology.kubernetes.io/zone": draw.choice(ZONES)}
    spec: dict[str, Any] = {
        "affinity": affinity,
        "priorityClassName": draw.choice(PRIORITIES)["metadata"]["name"],
        "nodeSelector": draw.choice(({}, {}, {}, zone)),
        "topologySpreadConstraints": draw.choice(([], [spread])),
        "tolerations": draw.choice(([], [{"key": DEDICATED["key"], "operator": "Exists"}])),
    }
    cpu = draw.choice(("100m", "250m", "500m", "1", "3"))
    pod = a_pod(name, namespace, cpu=cpu, memory=draw.choice(("100Mi", "1Gi")), labels={"team": team}, **spec)
    (container,) = pod["spec"]["containers"]
    container["env"] = [{"name": "PASSWORD", "value": "hunter2"}]
    if draw.random() < 0.5:
        container["image"] = IMAGE
    if draw.random() < 0.1:
        container["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    return pod


@pytest.fixture
def nodes(api: Client) -> Iterator[list[Object]]:
    made = nodes_of(random.Random(7))
    names = [node["metadata"]["name"] for node in made]
    api.create_many([*made, CLASS, *PRIORITIES])
    wait_until(lambda: all(is_ready(api.get("Node", name)) for name in names), 30, "the nodes are ready")
    yield made
    api.delete_many("Node", names)
    api.delete("storage.k8s.io/v1/StorageClass", CLASS["metadata"]["name"])
    for each in PRIORITIES:
        api.delete("scheduling.k8s.io/v1/PriorityClass", each["metadata"]["name"])


@pytest.fixture
def reader(cluster: Cluster) -> Path:
    """The kubeconfig of somebody who may do what the example in the documentation says, and nothing else."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ada", "namespace": "default"}}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(account))
    user = "kind: User\n    name: ada\n    apiGroup: rbac.authorization.k8s.io"
    ours = "kind: ServiceAccount\n    name: ada\n    namespace: default"
    rights = READER.read_text()
    assert user in rights
    cluster.kubectl("apply", "-f", "-", stdin=rights.replace(user, ours))
    return cluster.service_account_kubeconfig("default", "ada")


def taken(path: Path, reader: Path, *options: str) -> Path:
    assert main(["snapshot", f"--out={path}", f"--kubeconfig={reader}", *options]) == 0
    return path


def objects_of(path: Path) -> list[Object]:
    whole: Object = json.loads(gzip.decompress(path.read_bytes()))
    assert whole["leftOut"] == []
    items: list[Object] = whole["items"]
    return items


def names_by_uid(path: Path, kind: str) -> dict[str, str]:
    metadata = [each["metadata"] for each in objects_of(path) if each["kind"] == kind]
    return {each["uid"]: f"{each['namespace']}/{each['name']}" if kind == "Pod" else each["name"] for each in metadata}


def simulated(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Mapping[str, Any]]:
    capsys.readouterr()
    assert main(["simulate", str(path), "--output=json"]) == 0
    document = json.loads(capsys.readouterr().out)
    return {f"{pod['namespace']}/{pod['name']}": pod for pod in document["pods"]}


def test_the_cluster_does_what_was_simulated_from_its_snapshot(
    cluster: Cluster,
    api: Client,
    namespace: str,
    nodes: list[Object],
    reader: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    draw = random.Random(11)
    install_rbac(cluster)
    wait_until(lambda: bool(api.list("ServiceAccount", namespace)), 30, "the namespace has its service account")
    for obj in storage(namespace, nodes[1]["metadata"]["name"]):
        api.create(obj)
    with start(cluster):
        api.create_many([pod_of(draw, f"running-{i}", namespace) for i in range(15)])
        wait_until(lambda: all(map(is_settled, api.list("Pod", namespace))), 30, "the first pods are settled")
    waiting = [pod_of(draw, f"waiting-{i}", namespace) for i in range(PODS)]
    for number in range(CLAIMS):
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{number}"}}
        waiting[number] = a_pod(
            f"waiting-{number}", namespace, volumes=[claim], priorityClassName=PRIORITIES[0]["metadata"]["name"]
        )
    api.create_many(waiting)

    plain = taken(tmp_path / "plain.json.gz", reader)
    anonymous = taken(tmp_path / "anonymous.json.gz", reader, "--anonymise")
    expected, of_aliases = simulated(plain, capsys), simulated(anonymous, capsys)
    with start(cluster):
        ours = [f"{namespace}/waiting-{i}" for i in range(PODS)]
        placed = {name: expected[name]["node"] for name in ours if expected[name]["node"]}
        refused = {(name, expected[name]["message"]) for name in ours if name not in placed}
        wait_until(lambda: all(map(is_settled, api.list("Pod", namespace))), 30, "all pods are settled")
        # A pod may have been tried again since, for what happened to others.
        wait_until(lambda: refused <= told(api, namespace), 10, "pods are refused for the reasons that were simulated")
        actual = {f"{namespace}/{pod['metadata']['name']}": node_of(pod) for pod in api.list("Pod", namespace)}

    assert {name: actual[name] for name in placed} == placed
    assert 20 < len(placed) < PODS
    pods, machines = names_by_uid(anonymous, "Pod"), names_by_uid(anonymous, "Node")
    pod_names = {alias: name for uid, name in names_by_uid(plain, "Pod").items() if (alias := pods[uid])}
    node_names = {alias: name for uid, name in names_by_uid(plain, "Node").items() if (alias := machines[uid])}
    assert {pod_names[alias]: node_names.get(pod["node"]) for alias, pod in of_aliases.items()} == {
        name: pod["node"] for name, pod in expected.items()
    }
    text = gzip.decompress(anonymous.read_bytes()).decode()
    for private in ("corp.example", "snapshot-", namespace, "eu-1a", "waiting", "running-", "hunter2", "secret"):
        assert private not in text, private
    assert not set(re.findall(r"\w+", text)) & {*TEAMS, "ada", "data", "dedicated", "team"}
    assert "hunter2" not in gzip.decompress(plain.read_bytes()).decode()


def is_settled(pod: Object) -> bool:
    """Whether the scheduler has bound the pod, or said that it cannot."""
    return bool(node_of(pod)) or bool(pod.get("status", {}).get("conditions"))


def told(api: Client, namespace: str) -> set[tuple[str, str]]:
    """Pods that found no node, and what was said of them."""
    events = api.list("events.k8s.io/v1/Event", namespace)
    return {
        (f"{namespace}/{event['regarding']['name']}", event["note"])
        for event in events
        if event["reason"] == "FailedScheduling"
    }
