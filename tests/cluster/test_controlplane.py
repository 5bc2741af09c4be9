"""The test control plane itself: what the other cluster tests take for granted."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.controlplane import (
    ApiError,
    ApiUnreachable,
    Client,
    Cluster,
    ControlPlane,
    KubectlError,
    ProcessError,
    Settings,
    a_node,
    a_pod,
    condition,
    is_ready,
    wait_until,
)

ROOT = Path(__file__).parents[2]

WAIT = 30.0
"""Seconds for what takes one or two on a machine that does nothing else."""


def test_a_pod_bound_to_a_fake_node_runs_and_keeps_its_conditions(
    api: Client, namespace: str, make_nodes: Callable[..., list[str]]
) -> None:
    (node,) = make_nodes(1)
    wait_until(lambda: is_ready(api.get("Node", node)), WAIT, "the node's readiness")
    api.create(a_pod("web"), namespace)

    api.bind("web", node, namespace)

    wait_until(lambda: api.get("Pod", "web", namespace)["status"]["phase"] == "Running", WAIT, "the pod's run")
    assert condition(api.get("Pod", "web", namespace), "PodScheduled") is not None


def test_a_node_that_is_not_ready_becomes_ready(api: Client, namespace: str) -> None:
    node = a_node(f"node-{namespace}")
    del node["status"]

    api.create(node)

    wait_until(lambda: is_ready(api.get("Node", node["metadata"]["name"])), WAIT, "the node's readiness")
    api.delete("Node", node["metadata"]["name"])


def test_a_deployment_makes_pods_and_a_deleted_namespace_goes_away(
    cluster: Cluster, api: Client, namespace: str
) -> None:
    pod = a_pod("web", labels={"app": "web"})
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod["spec"]},
        },
    }
    cluster.create_namespace(f"{namespace}-more")

    cluster.kubectl("apply", "--filename=-", stdin=json.dumps(deployment))
    cluster.kubectl("delete", "namespace", f"{namespace}-more", "--timeout=60s")

    wait_until(lambda: len(api.list("Pod", namespace, labels="app=web")) == 3, WAIT, "three pods")
    with pytest.raises(ApiError, match="NotFound"):
        api.get("Namespace", f"{namespace}-more")


def test_a_service_account_may_do_what_its_role_says_and_no_more(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("create", "serviceaccount", "reader", f"--namespace={namespace}")
    cluster.kubectl("create", "role", "reader", "--verb=list", "--resource=pods", f"--namespace={namespace}")
    subject = f"--serviceaccount={namespace}:reader"
    cluster.kubectl("create", "rolebinding", "reader", "--role=reader", subject, f"--namespace={namespace}")

    with Client(cluster.service_account_kubeconfig(namespace, "reader")) as reader:
        assert reader.list("Pod", namespace) == []
        with pytest.raises(ApiError, match=f"system:serviceaccount:{namespace}:reader") as refused:
            reader.list("Node")

    assert refused.value.status == 403


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_restarted_api_server_has_its_data(controlplane: ControlPlane, api: Client, namespace: str, end: str) -> None:
    api.create(a_pod("web"), namespace)

    getattr(controlplane.apiserver, end)()
    with pytest.raises(ApiUnreachable):
        api.get("Pod", "web", namespace)
    controlplane.apiserver.start()

    assert api.get("Pod", "web", namespace)["metadata"]["name"] == "web"


def test_the_version_is_the_real_one(controlplane: ControlPlane, api: Client) -> None:
    version = json.loads(controlplane.kubectl("version", "--output=json"))

    assert version["serverVersion"]["gitVersion"] == version["clientVersion"]["gitVersion"]
    assert version["serverVersion"]["minor"] == "37"


def test_a_watch_tells_what_happens(api: Client, namespace: str) -> None:
    api.create(a_pod("a"), namespace)
    events = api.watch("Pod", namespace, seconds=10)

    first, created = next(events)
    api.delete("Pod", "a", namespace)
    # A pod's deletion may come as a change (its deletionTimestamp) and then the deletion, even without a grace period.
    last = next(kind for kind, _ in events if kind != "MODIFIED")
    events.close()

    assert (first, created["metadata"]["name"], last) == ("ADDED", "a", "DELETED")


def test_creating_many_ends_at_the_first_refusal(api: Client, namespace: str) -> None:
    with pytest.raises(ApiError, match="AlreadyExists"):
        api.create_many([a_pod("a"), a_pod("b"), a_pod("a")], namespace, concurrency=1)

    assert len(api.list("Pod", namespace)) == 2


def test_kubectl_says_what_went_wrong(cluster: Cluster) -> None:
    with pytest.raises(KubectlError, match='pods "nothing" not found'):
        cluster.kubectl("get", "pod", "nothing")


def test_kube_scheduler_binds_what_names_it(
    controlplane: ControlPlane, api: Client, namespace: str, make_nodes: Callable[..., list[str]]
) -> None:
    make_nodes(2)
    api.create(a_pod("web", scheduler="default-scheduler"), namespace)

    with controlplane.start_kube_scheduler() as scheduler:
        (pod,) = wait_until(lambda: api.list("Pod", namespace, fields="spec.nodeName!="), WAIT, "the binding")

    assert pod["spec"]["nodeName"].startswith("node-")
    assert not scheduler.running


def test_a_component_that_cannot_start_shows_its_log() -> None:
    with pytest.raises(ProcessError, match=r"kube-apiserver ended with code 1:\n.*unknown flag: --no-such-flag"):
        ControlPlane(Settings(apiserver_flags=("--no-such-flag",))).__enter__()


CALLER = """
import json, time
from tests.controlplane import ControlPlane
with ControlPlane() as cp:
    supervisor = cp.supervisor.pid
    print(json.dumps({"directory": str(cp.directory), "supervisor": supervisor,
                      "children": [cp.etcd.pid, cp.apiserver.pid]}), flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_caller_that_is_killed_leaves_nothing(controlplane: ControlPlane, signum: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CALLER], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as caller:
        assert caller.stdout is not None
        started = json.loads(caller.stdout.readline())

        caller.send_signal(signum)
        caller.wait(timeout=60)

    processes = [started["supervisor"], *started["children"]]
    wait_until(lambda: not any(exists(pid) for pid in processes), WAIT, "the end of its processes")
    assert not Path(started["directory"]).exists()


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_a_supervisor_that_is_killed_takes_its_processes_along() -> None:
    with ControlPlane() as cp:
        processes = [cp.etcd.pid, cp.apiserver.pid]

        os.kill(cp.supervisor.pid, signal.SIGKILL)

        wait_until(lambda: not any(exists(pid) for pid in processes), WAIT, "the end of its processes")
    assert not cp.directory.exists()


def exists(pid: int) -> bool:
    """Whether a process has this id. One that has ended but was not waited for (a zombie) does not count."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
