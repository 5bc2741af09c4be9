"""The process in its pod, as the kernel and the kubelet see it: what it may do, and what it counts."""

from datetime import datetime

from tests.controlplane import Client, condition, wait_until
from tests.kind.cluster import NODES, KindCluster
from tests.kind.release import HELM_SECONDS
from tests.kind.scheduler import Scheduler, container_of
from tests.kind.workloads import HOST, SOON, a_deployment, a_pod, apply, is_running, rollout, wait_running

NOBODY = 65532
LEASE_LOCK = "scheduler.kube.election.lease_lock"
"""Warns of a Lease that the replica before has just written."""
WORKER = NODES[1]
ON_WORKER = {"nodeSelector": {HOST: WORKER}}


def test_it_becomes_ready_soon_and_without_a_warning(loadmaster: Scheduler) -> None:
    loadmaster.kubectl("rollout", "restart", f"deployment/{loadmaster.name}")
    loadmaster.kubectl("rollout", "status", f"deployment/{loadmaster.name}", "--timeout=170s")
    loadmaster.wait_ready(HELM_SECONDS)

    started = container_of(loadmaster.pod)["state"]["running"]["startedAt"]
    ready = next(line["ts"] for line in loadmaster.lines() if line["msg"] == "Ready")
    seconds = (datetime.fromisoformat(ready) - datetime.fromisoformat(started)).total_seconds()
    print(f"ready {seconds:.1f} s after the container was started")
    assert seconds < 10  # 1.5 on a machine without other work; this one runs a whole cluster
    wrong = [line for line in loadmaster.lines() if line["level"] in ("warning", "error", "critical")]
    assert [line for line in wrong if line["logger"] != LEASE_LOCK] == []


def test_it_runs_as_nobody_and_may_do_nothing(loadmaster: Scheduler) -> None:
    lines = loadmaster.execute("cat", "/proc/1/status").splitlines()
    status = {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}

    assert status["Uid"].split() == [str(NOBODY)] * 4
    assert status["Gid"].split() == [str(NOBODY)] * 4
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1")


def test_it_has_nowhere_to_write(loadmaster: Scheduler) -> None:
    mounts = [line.split() for line in loadmaster.execute("cat", "/proc/1/mountinfo").splitlines()]

    options = {mount[4]: mount[5].split(",") for mount in mounts}
    assert "ro" in options["/"]
    assert "ro" in options["/etc/loadmaster"]


def test_the_debugger_agrees_with_the_api_server(cluster: KindCluster, loadmaster: Scheduler, namespace: str) -> None:
    apply(cluster, namespace, a_deployment("web", 3))
    rollout(cluster, namespace, "deployment/web")

    assert agrees(loadmaster)


def test_a_pod_that_the_kubelet_rejects_does_not_count_for_ever(
    cluster: KindCluster, loadmaster: Scheduler, api: Client, namespace: str
) -> None:
    apply(cluster, namespace, a_pod("hog", cpu="64", nodeName=WORKER))
    reason = wait_until(lambda: api.get("Pod", "hog", namespace)["status"].get("reason"), SOON, "the kubelet's answer")

    apply(cluster, namespace, a_pod("after", cpu=f"{free_milli_cpu(api) - 20}m", **ON_WORKER))
    wait_running(api, namespace, "after", 1)

    assert reason == "OutOfcpu"
    assert agrees(loadmaster)


def test_two_schedulers_that_fill_a_node_at_once_leave_nothing_counted_twice(
    loadmaster: Scheduler, api: Client, namespace: str
) -> None:
    cpu = f"{free_milli_cpu(api) // 10}m"
    pods = [
        a_pod(f"{scheduler[0]}-{number}", cpu=cpu, scheduler=scheduler, **ON_WORKER)
        for number in range(10)
        for scheduler in ("loadmaster", "default-scheduler")
    ]
    api.create_many(pods, namespace)

    def settled() -> bool:
        """Whether each pod runs, was rejected by the kubelet, or fits nowhere."""
        left = [pod for pod in api.list("Pod", namespace) if pod["status"].get("phase") == "Pending"]
        answers = [condition(pod, "PodScheduled") for pod in left]  # None: no scheduler has looked at it yet
        return all(answer is not None and answer["status"] == "False" for answer in answers)

    wait_until(settled, SOON, "each pod has an answer")
    wait_until(lambda: sum(map(is_running, api.list("Pod", namespace))) == 10, SOON, "the node is full")
    assert agrees(loadmaster)


def agrees(loadmaster: Scheduler) -> bool:
    """Whether the debugger finds no difference between the scheduler's tables and the API server's."""

    def comparisons() -> list[bool]:
        return [line["mismatch"] for line in loadmaster.lines() if line["msg"] == "Cache comparer finished"]

    before = len(comparisons())
    loadmaster.execute("sh", "-c", "kill -USR2 1")
    return not wait_until(lambda: comparisons()[before:], 15, "the comparison")[0]


def free_milli_cpu(api: Client) -> int:
    """What the pods of the worker leave of its cpu, in thousandths."""
    pods = api.list("Pod", fields=f"spec.nodeName={WORKER}")
    taken = sum(
        milli(container["resources"].get("requests", {}).get("cpu", "0"))
        for pod in pods
        if pod["status"].get("phase") not in ("Succeeded", "Failed")
        for container in pod["spec"]["containers"]
    )
    return milli(api.get("Node", WORKER)["status"]["allocatable"]["cpu"]) - taken


def milli(cpu: str) -> int:
    """A quantity of cpu in thousandths.

    >>> milli("2"), milli("250m")
    (2000, 250)
    """
    return int(cpu[:-1]) if cpu.endswith("m") else int(cpu) * 1000
