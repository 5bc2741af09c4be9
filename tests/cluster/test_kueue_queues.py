"""Kueue's queues on a real API server, with its resources but without its controller, and the rules of the chart."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chart import Helm
from tests.chart.plugin_sets import with_arguments
from tests.cluster.charted import run, scheduler_with
from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import bound, defined, granted, is_ready, metric, node_of, start, with_plugin
from tests.cluster.replicas import leads
from tests.controlplane import Client, Cluster, Component, a_pod, wait_until
from tests.controlplane.client import Object
from tests.controlplane.definitions import KUEUE

API = "kueue.x-k8s.io/v1beta2"
ARGUMENTS = {"kueueQueues": True, "elasticQuotas": False}

CALLS, STATUS = "loadmaster_api_calls_total", "clusterqueues.v1beta2.kueue.x-k8s.io/status"


def put(cluster: Cluster, kind: str, name: str, spec: Any, namespace: str = "") -> None:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    found = {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(found))


@pytest.fixture(scope="module", autouse=True)
def permissions(cluster: Cluster) -> Iterator[None]:
    """Give the shipped account the rules that the chart adds while a profile enables the plugin."""
    with granted(cluster, "CapacityScheduling", "kueue.x-k8s.io"), defined(cluster, *KUEUE):
        yield


@pytest.fixture
def loadmaster(cluster: Cluster, tmp_path: Path) -> Iterator[Component]:
    with started(cluster, tmp_path) as component:
        yield component


def started(cluster: Cluster, directory: Path, *also: str, name: str = "loadmaster") -> Component:
    """`also`: further plugins of the profile."""
    return start(cluster, with_plugin(directory, "CapacityScheduling", ARGUMENTS, also), name=name)


def a_queue(cpu: str, **spec: Any) -> Any:
    flavor = {"name": "any", "resources": [{"name": "cpu", "nominalQuota": cpu}]}
    group = {"coveredResources": ["cpu"], "flavors": [flavor]}
    return {"namespaceSelector": {}, "resourceGroups": [group], **spec}


def pods(names: range, labels: dict[str, str], prefix: str = "p", grace: int = 0) -> list[Object]:
    """Return pods of one core each; `grace`: the seconds that they take to end."""
    made = [a_pod(f"{prefix}{number}", cpu="1", terminationGracePeriodSeconds=grace) for number in names]
    for each in made:
        each["metadata"].setdefault("labels", {}).update(labels)
        for container in each["spec"]["containers"]:
            container["resources"] = {"requests": {"cpu": "1"}}
    return made


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

    api.create_many(pods(range(6), {"kueue.x-k8s.io/queue-name": "q"}), namespace)
    wait_until(lambda: len(bound(api, namespace)) == 3, 30, "it has its own quota and that of the other")
    expected = 'share "ClusterQueue/a" has no space: 1 of any/cpu more than "Cohort/all" has'
    wait_until(lambda: expected in messages(api, namespace), 30, "the others say why they wait")

    put(cluster, "ClusterQueue", "b", a_queue("3", cohortName="all"))
    wait_until(lambda: len(bound(api, namespace)) == 4, 30, "a quota that rises lets one more start")
    put(cluster, "ClusterQueue", "a", a_queue("9", cohortName="all", stopPolicy="Hold"))
    api.create_many(pods(range(6, 7), {"kueue.x-k8s.io/queue-name": "q"}), namespace)
    wait_until(lambda: "it is stopped" in messages(api, namespace), 30, "a pod that comes now says that it is stopped")
    assert len(bound(api, namespace)) == 4
    put(cluster, "ClusterQueue", "a", a_queue("9", cohortName="all"))

    wait_until(lambda: len(bound(api, namespace)) == 7, 30, "all run")


def two_queues(cluster: Cluster, namespace: str) -> None:
    """Two ClusterQueues of two cores each in a cohort; what the second borrows, the first takes back."""
    put(cluster, "ResourceFlavor", "any", {})
    put(cluster, "ClusterQueue", "a", a_queue("2", cohortName="all", preemption={"reclaimWithinCohort": "Any"}))
    put(cluster, "ClusterQueue", "b", a_queue("2", cohortName="all"))
    for name in ("a", "b"):
        put(cluster, "LocalQueue", name, {"clusterQueue": name}, namespace)


def of_queue(queue: str, count: int, grace: int = 0) -> list[Object]:
    return pods(range(count), {"kueue.x-k8s.io/queue-name": queue}, f"{queue}-", grace)


def running(api: Client, namespace: str, queue: str) -> list[str]:
    """The pods of a queue that have a node and are not being deleted."""
    return sorted(
        pod["metadata"]["name"]
        for pod in api.list("Pod", namespace)
        if pod["metadata"]["name"].startswith(f"{queue}-") and node_of(pod) and not is_leaving(pod)
    )


def is_leaving(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def test_a_scheduler_killed_while_its_victims_end_evicts_no_more_afterwards(
    cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes, tmp_path: Path
) -> None:
    # Nobody confirms the end of a pod on such a node: it lasts until it is deleted by force.
    make_nodes(4, cpu="1", annotations={})
    two_queues(cluster, namespace)
    with started(cluster, tmp_path) as first:
        api.create_many(of_queue("b", 4, grace=600), namespace)
        wait_until(lambda: len(running(api, namespace, "b")) == 4, 30, "one queue uses what both are guaranteed")
        api.create_many(of_queue("a", 2), namespace)
        wait_until(lambda: len(running(api, namespace, "b")) < 4, 30, "victims are chosen")
        first.kill()

    with started(cluster, tmp_path, name="loadmaster-again"):
        wait_until(lambda: len(running(api, namespace, "b")) == 2, 30, "as many as are needed are")
        victims = [each["metadata"]["name"] for each in api.list("Pod", namespace) if is_leaving(each)]
        cluster.kubectl("delete", "pods", *victims, "-n", namespace, "--force", "--grace-period=0")
        wait_until(lambda: len(running(api, namespace, "a")) == 2, 60, "the queue has its own")

    assert len(running(api, namespace, "b")) == 2
    assert len(victims) == 2


def test_the_status_of_a_queue_says_what_waits_and_what_it_uses_and_only_the_leader_writes_it(
    cluster: Cluster, helm: Helm, api: Client, namespace: str, make_nodes: MakeNodes, tmp_path: Path
) -> None:
    make_nodes(1, cpu="32")
    put(cluster, "ResourceFlavor", "any", {})
    put(cluster, "ClusterQueue", "shown", a_queue("2"))
    put(cluster, "LocalQueue", "shown", {"clusterQueue": "shown"}, namespace)

    def status() -> Object:
        found: Object = api.get(f"{API}/ClusterQueue", "shown").get("status", {})
        return found

    values = with_arguments("CapacityScheduling", **ARGUMENTS, kueueStatus=True)
    with scheduler_with(cluster, helm, namespace, values, tmp_path) as first:
        wait_until(lambda: leads(first), 30, "it leads")
        second = run(cluster, namespace, "loadmaster", tmp_path / "config.json")
        with cluster.spawn("standby", second, is_ready) as standby:
            api.create_many(pods(range(3), {"kueue.x-k8s.io/queue-name": "shown"}), namespace)
            wait_until(lambda: status().get("pendingWorkloads") == 1, 60, "one pod waits")
            writes = [metric(each.port, CALLS, verb="PATCH", resource=STATUS) for each in (first, standby)]
            refused = metric(first.port, CALLS, code="403")

    assert status()["admittedWorkloads"] == 2
    assert status()["flavorsUsage"] == [{"name": "any", "resources": [{"name": "cpu", "total": "2", "borrowed": "0"}]}]
    assert [each["reason"] for each in status()["conditions"]] == ["Ready"]
    assert writes[0] > 0
    assert (writes[1], refused) == (0, 0)
