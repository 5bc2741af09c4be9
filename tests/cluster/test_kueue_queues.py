"""Kueue's queues on a real API server, with its resources but without its controller, and the rules of the chart."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chart.permissions import declared_by
from tests.cluster.conftest import MakeNodes
from tests.cluster.kueue_definitions import DEFINITIONS, NAMES
from tests.cluster.loadmaster import ACCOUNT, NAMESPACE, install_rbac, node_of, start
from tests.controlplane import Client, Cluster, Component, a_pod, wait_until
from tests.controlplane.client import Object

API = "kueue.x-k8s.io/v1beta2"
ROLE = "loadmaster-kueue"
RBAC = "rbac.authorization.k8s.io/v1"


def put(cluster: Cluster, kind: str, name: str, spec: Any, namespace: str = "") -> None:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    found = {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(found))


@pytest.fixture(scope="module", autouse=True)
def permissions(cluster: Cluster) -> Iterator[None]:
    """Give the shipped account the rules that the chart adds while a profile enables the plugin."""
    install_rbac(cluster)
    rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
        for (group, resource), verbs in declared_by("CapacityScheduling").items()
        if group == "kueue.x-k8s.io"
    ]
    role: Object = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": ROLE}, "rules": rules}
    binding: Object = {
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": ROLE},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }
    for each in (role, binding, DEFINITIONS):
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(each))
    for name in NAMES:
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=20s")
    yield
    cluster.kubectl("delete", "clusterrole,clusterrolebinding", ROLE)
    cluster.kubectl("delete", "crd", *NAMES, "--ignore-not-found")


@pytest.fixture
def loadmaster(cluster: Cluster, tmp_path: Path) -> Iterator[Component]:
    profile = {
        "schedulerName": "loadmaster",
        "plugins": {"multiPoint": {"enabled": [{"name": "CapacityScheduling"}]}},
        "pluginConfig": [{"name": "CapacityScheduling", "args": {"kueueQueues": True, "elasticQuotas": False}}],
    }
    config = tmp_path / "config.json"
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config.write_text(json.dumps({**kind, "profiles": [profile]}))
    with start(cluster, f"--config={config}") as component:
        yield component


def a_queue(cpu: str, **spec: Any) -> Any:
    flavor = {"name": "any", "resources": [{"name": "cpu", "nominalQuota": cpu}]}
    group = {"coveredResources": ["cpu"], "flavors": [flavor]}
    return {"namespaceSelector": {}, "resourceGroups": [group], **spec}


def pods(names: range, **labels: str) -> list[Object]:
    made = [a_pod(f"p{number}", cpu="1") for number in names]
    for each in made:
        each["metadata"].setdefault("labels", {}).update(labels)
        for container in each["spec"]["containers"]:
            container["resources"] = {"requests": {"cpu": "1"}}
    return made


def bound(api: Client, namespace: str) -> int:
    return sum(1 for pod in api.list("Pod", namespace) if node_of(pod))


def messages(api: Client, namespace: str) -> str:
    """What the conditions PodScheduled of all pods say."""
    conditions = [each for pod in api.list("Pod", namespace) for each in pod.get("status", {}).get("conditions", [])]
    return "\n".join(each.get("message", "") for each in conditions if each["type"] == "PodScheduled")


def test_pods_start_within_the_quota_of_their_queue_borrow_and_follow_the_objects(
    loadmaster: Component, cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1, cpu="32")
    put(cluster, "ResourceFlavor", "any", {})
    put(cluster, "ClusterQueue", "a", a_queue("1", cohortName="all"))
    put(cluster, "ClusterQueue", "b", a_queue("2", cohortName="all"))
    put(cluster, "LocalQueue", "q", {"clusterQueue": "a"}, namespace)

    api.create_many(pods(range(6), **{"kueue.x-k8s.io/queue-name": "q"}), namespace)
    wait_until(lambda: bound(api, namespace) == 3, 30, "it has its own quota and that of the other")
    expected = 'share "ClusterQueue/a" has no space: 1000m of any/cpu more than "Cohort/all" has'
    wait_until(lambda: expected in messages(api, namespace), 30, "the others say why they wait")

    put(cluster, "ClusterQueue", "b", a_queue("3", cohortName="all"))
    wait_until(lambda: bound(api, namespace) == 4, 30, "a quota that rises lets one more start")
    put(cluster, "ClusterQueue", "a", a_queue("9", cohortName="all", stopPolicy="Hold"))
    api.create_many(pods(range(6, 7), **{"kueue.x-k8s.io/queue-name": "q"}), namespace)
    wait_until(lambda: "it is stopped" in messages(api, namespace), 30, "a pod that comes now says that it is stopped")
    assert bound(api, namespace) == 4
    put(cluster, "ClusterQueue", "a", a_queue("9", cohortName="all"))

    wait_until(lambda: bound(api, namespace) == 7, 30, "all run")


def test_pods_whose_queue_comes_later_start_then_and_those_of_kueue_never(
    loadmaster: Component, cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1, cpu="32")
    put(cluster, "ResourceFlavor", "any", {})
    put(cluster, "ClusterQueue", "c", a_queue("9"))
    api.create_many(pods(range(2), **{"kueue.x-k8s.io/queue-name": "late"}), namespace)
    expected = f'share "LocalQueue/{namespace}/late" cannot be used: it does not exist'
    wait_until(lambda: expected in messages(api, namespace), 30, "they say which queue is missing")

    put(cluster, "LocalQueue", "late", {"clusterQueue": "c"}, namespace)

    wait_until(lambda: bound(api, namespace) == 2, 30, "they run")
    api.create_many(
        pods(range(2, 3), **{"kueue.x-k8s.io/queue-name": "late", "kueue.x-k8s.io/managed": "true"}), namespace
    )
    wait_until(
        lambda: "Kueue manages this pod" in messages(api, namespace), 30, "one of Kueue says why it does not start"
    )
