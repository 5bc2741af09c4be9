"""deploy/loadmaster.yaml on a real node: what a user gets after the README's `kubectl apply`."""

import json
import os
import signal
import time
from datetime import datetime
from pathlib import Path

from tests.cluster.prometheus import a_prometheus, as_documented
from tests.controlplane import Client, condition, wait_until
from tests.node.scheduler import PORT, Scheduler, container_of, pid_of, started_at
from tests.node.workloads import a_deployment, a_running_pod, running, wait_running
from tests.realnode.node import NODE, RealNode

NOBODY = 65532


def status_of(pid: int) -> dict[str, str]:
    """What the kernel says of a process: /proc/PID/status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def test_it_becomes_ready_soon_and_without_a_warning(loadmaster: Scheduler, node: RealNode) -> None:
    ready = next(line for line in loadmaster.lines() if line["msg"] == "Ready")
    seconds = datetime.fromisoformat(ready["ts"]).timestamp() - started_at(pid_of(loadmaster, node))

    print(f"ready {seconds:.2f} s after the process was started")
    assert seconds < 5  # 1.5 on a machine without other work; this one runs a whole cluster
    assert [line for line in loadmaster.lines() if line["level"] in ("warning", "error", "critical")] == []


def test_it_runs_as_nobody_and_may_do_nothing(loadmaster: Scheduler, node: RealNode) -> None:
    status = status_of(pid_of(loadmaster, node))

    assert status["Uid"].split() == [str(NOBODY)] * 4
    assert status["Gid"].split() == [str(NOBODY)] * 4
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1")


def test_it_has_nowhere_to_write(loadmaster: Scheduler, node: RealNode) -> None:
    mounts = [line.split() for line in Path(f"/proc/{pid_of(loadmaster, node)}/mountinfo").read_text().splitlines()]

    (root,) = [mount for mount in mounts if mount[4] == "/"]
    assert "ro" in root[5].split(",")
    (config,) = [mount for mount in mounts if mount[4] == "/etc/loadmaster"]
    assert "ro" in config[5].split(",")


def test_a_pod_that_the_kubelet_rejects_does_not_count_for_ever(
    loadmaster: Scheduler, api: Client, namespace: str
) -> None:
    hog = a_running_pod("hog", "64", nodeName=NODE)
    api.create(hog, namespace)
    reason = wait_until(lambda: api.get("Pod", "hog", namespace)["status"].get("reason"), 15, "the kubelet's answer")

    api.create(a_running_pod("after", f"{free_milli_cpu(api) - 20}m"), namespace)
    wait_running(api, namespace, 1)

    assert reason == "OutOfcpu"
    assert agrees(loadmaster)


def test_two_schedulers_that_fill_the_node_at_once_leave_nothing_counted_twice(
    loadmaster: Scheduler, api: Client, namespace: str
) -> None:
    cpu = free_milli_cpu(api) // 10
    pods = [
        a_running_pod(f"{scheduler[0]}-{i}", f"{cpu}m", scheduler=scheduler)
        for i in range(10)
        for scheduler in ("loadmaster", "default-scheduler")
    ]
    api.create_many(pods, namespace)

    def settled() -> bool:
        """Whether each pod runs, was rejected by the kubelet, or fits nowhere."""
        left = [pod for pod in api.list("Pod", namespace) if pod["status"].get("phase") == "Pending"]
        answers = [condition(pod, "PodScheduled") for pod in left]  # None: no scheduler has looked at it yet
        return all(answer is not None and answer["status"] == "False" for answer in answers)

    wait_until(settled, 30, "each pod has an answer")
    wait_until(lambda: len(running(api, namespace)) == 10, 30, "the node is full")
    assert agrees(loadmaster)
    assert loadmaster.metric("scheduler_cache_size", type="assumed_pods") == 0


def test_killed_it_is_started_again_and_goes_on(
    loadmaster: Scheduler, node: RealNode, api: Client, namespace: str
) -> None:
    killed, before = loadmaster.pod_name, loadmaster.restarts
    os.kill(pid_of(loadmaster, node), signal.SIGKILL)
    api.create(a_deployment("meanwhile", 3), namespace)

    def restarts() -> int:
        count: int = container_of(api.get("Pod", killed, loadmaster.namespace)).get("restartCount", 0)
        return count

    wait_until(lambda: restarts() == before + 1, 30, "the restart")
    loadmaster.wait_ready()
    wait_running(api, namespace, 3)


def test_told_to_end_it_ends_at_once_and_its_successor_goes_on(
    loadmaster: Scheduler, api: Client, namespace: str
) -> None:
    old = loadmaster.pod_name
    started = time.monotonic()
    loadmaster.kubectl("delete", "pod", old, "--wait", "--timeout=25s")
    seconds = time.monotonic() - started
    api.create(a_deployment("meanwhile", 3), namespace)

    loadmaster.wait_ready()
    wait_running(api, namespace, 3)

    print(f"ended {seconds:.1f} s after it was told to")
    assert seconds < 10  # the grace period is 30 s
    assert loadmaster.pod_name != old


def test_one_replica_leads_and_the_other_is_ready_to(loadmaster: Scheduler, api: Client, namespace: str) -> None:
    (standby,) = (pod for pod in loadmaster.pods if pod["metadata"]["name"] != loadmaster.pod_name)
    loadmaster.kubectl("delete", "pod", loadmaster.pod_name, "--wait=false")
    api.create(a_running_pod("at-once"), namespace)

    wait_running(api, namespace, 1, timeout=10)

    # The one that ends may still have placed the pod, and nobody holds the Lease at the moment.
    wait_until(lambda: loadmaster.holder.startswith(f"{standby['metadata']['name']}_"), 10, "the standby leads")
    loadmaster.wait_ready()


def test_its_own_pod_can_be_evicted(loadmaster: Scheduler, api: Client, namespace: str) -> None:
    old = loadmaster.pod_name
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": old}}
    path = f"/api/v1/namespaces/{loadmaster.namespace}/pods/{old}/eviction"
    loadmaster.kubectl("create", f"--raw={path}", "--filename=-", stdin=json.dumps(eviction))
    api.create(a_deployment("meanwhile", 3), namespace)

    wait_until(lambda: loadmaster.is_ready() and loadmaster.pod_name != old, 60, "its successor")
    wait_running(api, namespace, 3)


def test_the_debugger_agrees_with_the_api_server(loadmaster: Scheduler, api: Client, namespace: str) -> None:
    api.create(a_deployment("web", 3), namespace)
    wait_running(api, namespace, 3)

    assert agrees(loadmaster)


def test_a_real_prometheus_scrapes_it(loadmaster: Scheduler, node: RealNode, tmp_path: Path) -> None:
    target = f"{loadmaster.pod['status']['podIP']}:{PORT}"
    with a_prometheus(node, as_documented(tmp_path, [target], loadmaster.token)) as prometheus:
        wait_until(lambda: len(prometheus.query('up{job="loadmaster"} == 1')) == 2, 30, "a scrape of each page")
        nodes = prometheus.query('scheduler_cache_size{type="nodes"}')  # a replica that stands by has it, too
        failed = prometheus.query("scrape_samples_post_metric_relabeling == 0")

    assert float(nodes[0]["value"][1]) >= 1
    assert failed == []


def agrees(loadmaster: Scheduler) -> bool:
    """Whether the debugger finds no difference between the scheduler's tables and the API server's."""

    def comparisons() -> list[bool]:
        return [line["mismatch"] for line in loadmaster.lines() if line["msg"] == "Cache comparer finished"]

    before = len(comparisons())
    loadmaster.execute("sh", "-c", "kill -USR2 1")
    return not wait_until(lambda: comparisons()[before:], 15, "the comparison")[0]


def free_milli_cpu(api: Client) -> int:
    """What the pods of the node leave of its cpu, in thousandths."""
    pods = api.list("Pod", fields=f"spec.nodeName={NODE}")
    taken = sum(
        milli(container["resources"].get("requests", {}).get("cpu", "0"))
        for pod in pods
        if pod["status"].get("phase") not in ("Succeeded", "Failed")
        for container in pod["spec"]["containers"]
    )
    return milli(api.get("Node", NODE)["status"]["allocatable"]["cpu"]) - taken


def milli(cpu: str) -> int:
    """A quantity of cpu in thousandths.

    >>> milli("2"), milli("250m")
    (2000, 250)
    """
    return int(cpu[:-1]) if cpu.endswith("m") else int(cpu) * 1000
