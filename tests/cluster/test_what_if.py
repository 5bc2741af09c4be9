"""What a simulation says would be is what happens when it is done: on a real API server, with real controllers."""

import json
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, Final

import pytest

from scheduler.__main__ import main
from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import node_of
from tests.controlplane import Client, Cluster, a_pod, wait_until
from tests.controlplane.client import Object
from tests.controlplane.cluster import KubectlError

WAIT: Final = 60.0


pytestmark = pytest.mark.usefixtures("loadmaster")


def asked(cluster: Cluster, *arguments: str) -> dict[str, Any]:
    """What is said of the cluster as it is now."""
    with redirect_stdout(TextIOWrapper(BytesIO())) as out:
        code = main(["simulate", "--from-cluster", f"--kubeconfig={cluster.kubeconfig()}", "-o", "json", *arguments])
    assert code == 0
    out.seek(0)
    document: dict[str, Any] = json.load(out)
    return document


def a_workload(kind: str, name: str, pool: str, replicas: int, **wishes: Any) -> Object:
    pod = a_pod(name, labels={"app": name}, **wishes)
    spec = {**pod["spec"], "nodeSelector": {"pool": pool}}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    whole = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    if kind == "DaemonSet":
        del whole["replicas"]
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": whole}


def placed(api: Client, namespace: str, app: str) -> dict[str, int]:
    """Node → pods of an app that are bound to it and stay."""
    counts: dict[str, int] = {}
    for pod in api.list("Pod", namespace, labels=f"app={app}"):
        if node_of(pod) and not pod["metadata"].get("deletionTimestamp"):
            counts[node_of(pod)] = counts.get(node_of(pod), 0) + 1
    return counts


def running(api: Client, namespace: str, app: str) -> int:
    pods = api.list("Pod", namespace, labels=f"app={app}")
    return sum(pod["status"].get("phase") == "Running" for pod in pods)


def test_as_many_copies_fit_as_the_cluster_takes(
    cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes, tmp_path: Path
) -> None:
    pool = {"pool": namespace}
    nodes = [*make_nodes(2, labels=pool, cpu="2"), *make_nodes(1, labels=pool, cpu="3"), *make_nodes(1, cpu="9")]
    (tainted,) = make_nodes(1, labels=pool, taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}])
    wait_until(lambda: bool(api.list("ServiceAccount", namespace)), 30, "the namespace has its service account")
    agents = a_workload("DaemonSet", "agent", namespace, 0, cpu="500m")
    api.create(agents, namespace)
    wait_until(lambda: running(api, namespace, "agent") == 3, WAIT, "the daemons run")
    web = a_workload("Deployment", "web", namespace, 1, cpu="700m")
    file = tmp_path / "web.json"
    file.write_text(json.dumps({**web, "metadata": {"name": "web", "namespace": namespace}}))

    told = asked(cluster, str(file), "--fill")["whatIf"]["copies"]
    api.create({**web, "spec": {**web["spec"], "replicas": told["placed"] + 2}}, namespace)

    assert told["nodes"] == {nodes[2]: 3, nodes[0]: 2, nodes[1]: 2}
    groups = {name for group in told["next"]["explanation"]["groups"] for name in group["names"]}
    assert {*nodes, tainted} <= groups
    wait_until(lambda: sum(placed(api, namespace, "web").values()) == 7, WAIT, "they are bound")
    assert placed(api, namespace, "web") == told["nodes"]
    pending = [pod for pod in api.list("Pod", namespace, labels="app=web") if not node_of(pod)]
    message = told["next"]["message"]
    wait_until(lambda: {message_of(api, namespace, pod) for pod in pending} == {message}, WAIT, "they say why")

    more = asked(cluster, "--of", f"deploy/{namespace}/web", "--count", "3", "--add-nodes", "1", "--like", nodes[2])

    assert more["whatIf"]["copies"]["placed"] == 1  # two that wait come before
    assert [pod["node"] for pod in more["pods"] if pod["namespace"] == namespace] == [f"{nodes[2]}-added-1"] * 2


def message_of(api: Client, namespace: str, pod: Object) -> str:
    conditions = api.get("Pod", pod["metadata"]["name"], namespace)["status"].get("conditions") or []
    found: str = next((each["message"] for each in conditions if each["type"] == "PodScheduled"), "")
    return found


def test_a_drain_leads_to_what_was_said_of_it(
    cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    pool = {"pool": namespace}
    (node,) = make_nodes(1, labels=pool, cpu="8")
    wait_until(lambda: bool(api.list("ServiceAccount", namespace)), 30, "the namespace has its service account")
    budget: Object = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "tight"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "tight"}}},
    }
    api.create(budget, namespace)
    workloads = [
        a_workload("DaemonSet", "agent", namespace, 0, cpu="100m"),
        a_workload("Deployment", "web", namespace, 3, cpu="500m"),
        a_workload("Deployment", "tight", namespace, 2, cpu="2"),
    ]
    for each in workloads:
        api.create(each, namespace)
    api.create(a_pod("bare", nodeSelector=pool), namespace)
    api.patch("Pod", "bare", {"metadata": {"labels": {"app": "bare"}}}, namespace)
    counts = {"agent": 1, "web": 3, "tight": 2, "bare": 1}
    for app, count in counts.items():
        wait_until(lambda app=app, count=count: running(api, namespace, app) == count, WAIT, f"{app} runs")  # type: ignore[misc]
    make_nodes(1, labels=pool, cpu="1800m")
    wait_until(lambda: running(api, namespace, "agent") == 2, WAIT, "the daemon runs on the other node")
    wait_until(
        lambda: api.get("policy/v1/PodDisruptionBudget", "tight", namespace)["status"].get("disruptionsAllowed") == 1,
        WAIT,
        "the budget counts both pods",
    )

    document = asked(cluster, "--drain", node)
    (told,) = document["whatIf"]["drained"]
    with pytest.raises(KubectlError, match="violate the pod's disruption budget"):
        cluster.kubectl(*told["command"].split()[1:], "--timeout=4s")

    pods = {pod["replaces"].partition("/")[2]: pod["node"] for pod in document["pods"] if "replaces" in pod}
    assert sorted(pod["evictedFrom"] for pod in document["pods"] if "replaces" in pod) == [node] * len(pods)
    assert told["command"] == f"kubectl drain {node} --ignore-daemonsets --force"
    assert told["lost"] == [f"{namespace}/bare"]
    for app in ("web", "tight"):
        expected: dict[str, int] = {}
        for name, where in pods.items():
            if name.startswith(app) and where is not None:
                expected[where] = expected.get(where, 0) + 1
        stays = sum(each["pod"].startswith(f"{namespace}/{app}") for each in told["refused"])
        if stays:
            expected[node] = stays
        wait_until(lambda app=app, it=expected: placed(api, namespace, app) == it, WAIT, f"{app}: {expected}")  # type: ignore[misc]
    assert placed(api, namespace, "bare") == {}
    (stays,) = {each["pod"].split("/")[1] for each in told["stays"]}
    assert node_of(api.get("Pod", stays, namespace)) == node
