"""Two replicas: one works, the other takes over, and never do both bind."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial

import pytest

from tests.cluster import loadmaster
from tests.cluster.bind_watch import BindWatch
from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import http_get, metric
from tests.cluster.replicas import NAME, Replicas, Timing, two_replicas
from tests.controlplane import Client, Cluster, ControlPlane, a_pod, wait_until

pytestmark = pytest.mark.alone

TIMING = Timing()


@pytest.fixture
def replicas(cluster: Cluster, api: Client, make_nodes: MakeNodes) -> Iterator[Replicas]:
    make_nodes(3)
    loadmaster.install_rbac(cluster)
    with two_replicas(cluster, api, TIMING) as both:
        yield both
        for replica in both.both:
            if replica.running:
                replica.send_signal(signal.SIGCONT)


@pytest.fixture
def bound(cluster: Cluster, api: Client, namespace: str) -> Iterator[BindWatch]:
    with BindWatch(cluster, api, namespace) as watch:
        yield watch


def seconds_to_bind(api: Client, namespace: str, bound: BindWatch, name: str, timeout: float = 30.0) -> float:
    began = time.monotonic()
    pod = api.create(a_pod(name), namespace)
    return bound.bound_at(pod["metadata"]["uid"], timeout) - began


def bindings_in(log: str) -> int:
    return log.count("Successfully bound pod") + log.count("Reading what became of a binding")


def test_one_works_and_the_other_is_ready_and_writes_nothing(
    replicas: Replicas, api: Client, namespace: str, bound: BindWatch
) -> None:
    (leader,) = replicas.leaders()
    standby = replicas.other(leader)

    for name in ("a", "b", "c"):
        seconds_to_bind(api, namespace, bound, name)

    scheduled = partial(metric, leader.port, "scheduler_schedule_attempts_total", result="scheduled")
    wait_until(lambda: scheduled() == 3, 10, "all three are counted")
    assert metric(standby.port, "scheduler_schedule_attempts_total") == 0
    for verb in ("POST", "PATCH", "DELETE"):
        for resource in ("pods/binding", "pods/status", "pods", "events"):
            assert metric(standby.port, "loadmaster_api_calls_total", verb=verb, resource=resource) == 0
    for replica in replicas.both:
        status, text = http_get(replica.port, "/readyz?verbose")
        assert status == 200
        assert "[+]leaderElection ok" in text
    assert wait_until(lambda: metric(standby.port, "scheduler_pending_pods", queue="active") == 0, 5)
    assert replicas.spec()["leaseDurationSeconds"] == TIMING.lease


def test_after_a_clean_stop_the_other_works_within_a_second(
    replicas: Replicas, api: Client, namespace: str, bound: BindWatch
) -> None:
    leader = replicas.leader()

    leader.send_signal(signal.SIGTERM)
    seconds = seconds_to_bind(api, namespace, bound, "a")

    assert seconds < 1.0
    assert wait_until(lambda: leader.exit_code is not None, 10)
    assert leader.exit_code == 0
    assert replicas.leaders() == [replicas.other(leader)]


def test_after_a_kill_the_other_works_a_lease_duration_later(
    replicas: Replicas, api: Client, namespace: str, bound: BindWatch
) -> None:
    leader = replicas.leader()

    leader.kill()
    seconds = seconds_to_bind(api, namespace, bound, "a")

    assert TIMING.lease - TIMING.retry - 0.5 < seconds < TIMING.lease + 2


def test_a_leader_that_was_halted_for_longer_than_its_lease_binds_nothing_more(
    replicas: Replicas, api: Client, namespace: str, bound: BindWatch
) -> None:
    leader = replicas.leader()
    standby = replicas.other(leader)
    api.create_many([a_pod(f"many-{i}", cpu="1m", memory="1Mi") for i in range(100)], namespace)
    wait_until(lambda: bound.bound, 10, "it is at work")

    leader.send_signal(signal.SIGSTOP)
    before, transitions = bindings_in(leader.log.read_text()), replicas.spec()["leaseTransitions"]
    wait_until(
        lambda: replicas.spec()["leaseTransitions"] > transitions and len(bound.bound) == 100, 30, "the other works"
    )
    api.create_many([a_pod(f"more-{i}", cpu="1m", memory="1Mi") for i in range(100)], namespace)
    leader.send_signal(signal.SIGCONT)
    wait_until(lambda: leader.exit_code is not None, 10, "it ends")

    wait_until(lambda: len(bound.bound) == 200, 20, "all are bound")
    assert leader.exit_code == 1
    # What was sent before it was halted may have been answered while it was.
    after = leader.log.read_text()
    assert bindings_in(after) - before <= 100
    # It may decide on what it finds when it wakes up, but none of that is sent.
    assert not [line for line in after.splitlines() if "Successfully bound pod" in line and "more-" in line]
    assert standby in replicas.leaders()


def test_a_leader_without_an_api_server_ends_before_its_lease_and_all_goes_on_afterwards(
    replicas: Replicas, controlplane: ControlPlane, api: Client, namespace: str
) -> None:
    leader = replicas.leader()
    began = time.monotonic()

    controlplane.apiserver.send_signal(signal.SIGSTOP)
    wait_until(lambda: "Failed to renew lease" in leader.log.read_text(), 20, "it gives up", 0.01)
    stopped = time.monotonic() - began
    wait_until(lambda: leader.exit_code is not None, 20, "it ends", 0.01)
    assert leader.exit_code == 1
    controlplane.apiserver.send_signal(signal.SIGCONT)
    leader.start()  # as the kubelet would

    pod = api.create(a_pod("a"), namespace)
    wait_until(lambda: loadmaster.node_of(api.get("Pod", pod["metadata"]["name"], namespace)), 30, "it is bound")
    assert leader.running
    assert stopped < TIMING.renew + 0.2
    assert len(replicas.leaders()) == 1


def test_events_about_the_lease_tell_who_leads(replicas: Replicas, cluster: Cluster, api: Client) -> None:
    holder = replicas.spec()["holderIdentity"]

    def told() -> list[str]:
        events = api.list("events.k8s.io/v1/Event", loadmaster.NAMESPACE, fields="regarding.kind=Lease")
        return [event["note"] for event in events if event["reason"] == "LeaderElection"]

    wait_until(lambda: f"{holder} became leader" in told(), 5)


def test_without_rights_to_the_lease_a_start_says_so_and_what_to_do(cluster: Cluster) -> None:
    loadmaster.install_rbac(cluster)
    cluster.kubectl("delete", "rolebinding", NAME, "-n", loadmaster.NAMESPACE)
    kubeconfig = cluster.service_account_kubeconfig(loadmaster.NAMESPACE, loadmaster.ACCOUNT)

    command = [sys.executable, "-m", "scheduler", "run", "--secure-port=0", f"--kubeconfig={kubeconfig}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)

    loadmaster.install_rbac(cluster)
    assert ended.returncode == 2
    where = "leases (coordination.k8s.io) in namespace kube-system"
    lines = ended.stderr.splitlines()
    denied = [
        f"may not create {where}",
        f"may not get, list, update, watch {where} named loadmaster",
        "without other replicas no Lease is needed: --leader-elect=false",
    ]
    at = lines.index(denied[0])
    assert lines[0] == "these rules are missing:"
    assert lines[at : at + 3] == denied
