"""What users do first: the workloads of a day, applied by kubectl and placed on real nodes."""

from collections import Counter

from tests.controlplane import Client, Cluster, wait_until
from tests.kind.cluster import NODES
from tests.kind.workloads import (
    HOST,
    SOON,
    ZONE,
    a_deployment,
    a_template,
    apply,
    nodes_of,
    pods_of,
    rollout,
    schedulers_of,
    spread_over,
    wait_running,
    why_pending,
)


def zones_of(api: Client, nodes: list[str]) -> Counter[str]:
    """How many of these are in which zone; a node counts as often as it comes."""
    zones = {node["metadata"]["name"]: node["metadata"]["labels"][ZONE] for node in api.list("Node")}
    return Counter(zones[node] for node in nodes)


def test_a_deployment_rolls_out_and_so_does_its_next_version(cluster: Cluster, api: Client, namespace: str) -> None:
    apply(cluster, namespace, a_deployment("web", 6))
    rollout(cluster, namespace, "deployment/web")
    first = {pod["metadata"]["name"] for pod in pods_of(api, namespace, "web")}

    cluster.kubectl("set", "env", "deployment/web", "VERSION=2", f"--namespace={namespace}")
    rollout(cluster, namespace, "deployment/web")

    second = {pod["metadata"]["name"] for pod in wait_running(api, namespace, "web", 6)}
    assert not first & second
    assert set(schedulers_of(api, namespace)) == {"loadmaster"}


def test_pods_are_spread_over_zones_and_over_nodes(cluster: Cluster, api: Client, namespace: str) -> None:
    constraints = [spread_over(ZONE, "web"), spread_over(HOST, "web")]

    apply(cluster, namespace, a_deployment("web", 2 * len(NODES), topologySpreadConstraints=constraints))
    rollout(cluster, namespace, "deployment/web")

    nodes = nodes_of(pods_of(api, namespace, "web"))
    by_zone = zones_of(api, nodes)
    assert by_zone.keys() == zones_of(api, list(NODES)).keys()
    assert max(by_zone.values()) - min(by_zone.values()) <= 1
    assert Counter(nodes) == dict.fromkeys(NODES, 2)


def test_a_job_completes(cluster: Cluster, namespace: str) -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "batch"},
        "spec": {"completions": 4, "parallelism": 2, "template": a_template("batch", "help", restartPolicy="Never")},
    }

    apply(cluster, namespace, job)
    cluster.kubectl("wait", "--for=condition=Complete", "job/batch", f"--namespace={namespace}", "--timeout=170s")

    succeeded = cluster.kubectl("get", "job/batch", f"--namespace={namespace}", "--output=jsonpath={.status.succeeded}")
    assert succeeded == "4"


def test_a_pod_of_a_statefulset_comes_back_to_its_volume(cluster: Cluster, api: Client, namespace: str) -> None:
    template = a_template("db", "pause", topologySpreadConstraints=[spread_over(HOST, "db")])
    template["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "16Mi"}}}
    stateful_set = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 2,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": template,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        },
    }
    apply(cluster, namespace, stateful_set)
    rollout(cluster, namespace, "statefulset/db")
    before = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods_of(api, namespace, "db")}
    in_the_pod = ("exec", "db-0", f"--namespace={namespace}", "--", "/agnhost", "mounttest")
    cluster.kubectl(*in_the_pod, "--new_file_0644=/data/mark")

    # Every node has room: only the volume binds the pod to its own.
    cluster.kubectl("delete", "pod", "db-0", f"--namespace={namespace}", "--wait")
    rollout(cluster, namespace, "statefulset/db")

    after = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods_of(api, namespace, "db")}
    assert len(set(before.values())) == 2
    assert after == before
    assert "mount-tester new file" in cluster.kubectl(*in_the_pod, "--file_content=/data/mark")
    claims = api.list("PersistentVolumeClaim", namespace)
    assert {each["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] for each in claims} == set(
        before.values()
    )


def test_pods_of_both_schedulers_share_the_nodes(cluster: Cluster, api: Client, namespace: str) -> None:
    apply(
        cluster,
        namespace,
        a_deployment("ours", 4),
        a_deployment("theirs", 4, scheduler="default-scheduler"),
    )

    for name in ("ours", "theirs"):
        rollout(cluster, namespace, f"deployment/{name}")

    assert sorted(schedulers_of(api, namespace)) == ["default-scheduler"] * 4 + ["loadmaster"] * 4


def test_a_pod_that_fits_nowhere_runs_once_there_is_room(cluster: Cluster, api: Client, namespace: str) -> None:
    apply(cluster, namespace, a_deployment("huge", 1, cpu="900"))
    told = wait_until(lambda: why_pending(api, namespace, "huge"), SOON, "the scheduler's verdict")

    cluster.kubectl("set", "resources", "deployment/huge", f"--namespace={namespace}", "--requests=cpu=10m")
    rollout(cluster, namespace, "deployment/huge")

    assert "Insufficient cpu" in told
