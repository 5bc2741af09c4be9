"""`loadmaster run --shadow-of default-scheduler` beside the real kube-scheduler, with rights to read and no others."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cluster.https import http_get
from tests.cluster.loadmaster import is_ready, metric, node_of
from tests.controlplane import Client, Component, ControlPlane, a_node, a_pod, condition, wait_until
from tests.controlplane.client import Object

RBAC: Final = Path(__file__).parents[2] / "docs" / "examples" / "shadow.yaml"
OTHER: Final = "default-scheduler"
NAMESPACE: Final = "shadowed"


@pytest.fixture(scope="module")
def own() -> Iterator[ControlPlane]:
    with ControlPlane() as controlplane:
        controlplane.kubectl("apply", "-f", str(RBAC))
        yield controlplane


@pytest.fixture(scope="module", autouse=True)
def kube_scheduler(own: ControlPlane) -> Iterator[Component]:
    with own.start_kube_scheduler() as process:
        yield process


@pytest.fixture(scope="module")
def admin(own: ControlPlane) -> Iterator[Client]:
    with own.client() as client:
        own.create_namespace(NAMESPACE)
        client.create_many(
            a_node(f"node-{i}", cpu="16", zone=f"zone-{i % 3}", labels={"pool": "good" if i % 2 else "bad"})
            for i in range(12)
        )
        yield client


@pytest.fixture(autouse=True)
def no_pods_are_left(admin: Client) -> Iterator[None]:
    """A kube-scheduler that is started again decides again about all that wait."""
    yield
    admin.delete_all("Pod", NAMESPACE)


@pytest.fixture(scope="module")
def reader(own: ControlPlane) -> str:
    """The token of a user who may see the comparison, and nothing else."""
    token = token_of(own, "reader")
    role, subject = "--clusterrole=loadmaster-shadow-reader", "--serviceaccount=default:reader"
    own.kubectl("create", "clusterrolebinding", "reader", role, subject)
    return token


def token_of(own: ControlPlane, account: str) -> str:
    own.kubectl("create", "serviceaccount", account)
    return own.kubectl("create", "token", account).strip()


def shadow(own: ControlPlane, *options: str) -> Component:
    account = own.service_account_kubeconfig("kube-system", "loadmaster-shadow")
    kubeconfigs = [f"--{what}kubeconfig={account}" for what in ("", "authentication-", "authorization-")]

    def argv(port: int) -> list[str]:
        open_to_all = "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics"
        serving = ["--bind-address=127.0.0.1", f"--secure-port={port}", open_to_all]
        common = [*kubeconfigs, f"--shadow-of={OTHER}", *serving]
        return [sys.executable, "-m", "scheduler", "run", *common, *options]

    return own.spawn("loadmaster", argv, is_ready)


def about(process: Component, reader: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(http_get(process.port, "/debug/shadow", token=reader)[1])
    return document


def pods(prefix: str) -> Iterator[Object]:
    for number in range(60):
        app = f"app-{number % 4}"
        spread = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
        more: Object = {"topologySpreadConstraints": [{**spread, "labelSelector": {"matchLabels": {"app": app}}}]}
        yield a_pod(
            f"{prefix}-{number}", cpu="500m", labels={"app": app}, scheduler=OTHER, **({} if number % 3 else more)
        )
    yield a_pod(f"{prefix}-large", cpu="200", scheduler=OTHER)


def play(admin: Client, prefix: str) -> None:
    """Pods that kube-scheduler places, one after the other, and one that it refuses."""
    for pod in pods(prefix):
        name = admin.create(pod, NAMESPACE)["metadata"]["name"]
        if name.endswith("large"):
            wait_until(partial(is_refused, admin, name), 15, f"{name} is refused")
        else:
            wait_until(partial(is_bound, admin, name), 15, f"{name} is bound")


def is_bound(admin: Client, name: str) -> bool:
    return bool(node_of(admin.get("Pod", name, NAMESPACE)))


def is_refused(admin: Client, name: str) -> bool:
    return condition(admin.get("Pod", name, NAMESPACE), "PodScheduled") is not None


def test_the_shadow_of_kube_scheduler_agrees_with_it_and_writes_nothing(
    own: ControlPlane, admin: Client, reader: str
) -> None:
    guest = token_of(own, "guest")
    with shadow(own) as process:
        play(admin, "same")
        wait_until(lambda: about(process, reader)["decisions"] == 61, 10, "all are judged")
        found = about(process, reader)
        others = [http_get(process.port, "/debug/shadow", token=token)[0] for token in ("", guest)]
        refused = metric(process.port, "rest_client_requests_total", code="403")
        written = [
            metric(process.port, "rest_client_requests_total", method=verb) for verb in ("PATCH", "PUT", "DELETE")
        ]
        by_verdict = metric(process.port, "loadmaster_shadow_decisions_total", verdict="both_refuse")
        process.stop()
        log = process.log_tail(40)

    assert found["alike"] == 61, found["latest"]
    assert found["verdicts"]["both_refuse"] == by_verdict == 1
    assert (refused, written, others) == (0, [0, 0, 0], [403, 403])
    events = admin.list("events.k8s.io/v1/Event", NAMESPACE)
    assert not [event for event in events if event["reportingController"] != OTHER]
    leases = [each["metadata"]["name"] for each in admin.list("coordination.k8s.io/v1/Lease", "kube-system")]
    assert not [name for name in leases if "loadmaster" in name]
    assert "The shadow has ended" in log
    assert "decisions=61 alike=61" in log


def test_what_is_placed_around_an_outage_is_compared_in_the_state_of_then_or_left_out(
    own: ControlPlane, admin: Client, kube_scheduler: Component, reader: str
) -> None:
    filled, late = "filled", "late"
    placed = [f"placed-{number}" for number in range(20)]
    # Named so that a list has the one first that is decided about last.
    refused, large, on_late = "a-refused", "b-large", "c-late"
    gates = {"schedulingGates": [{"name": "example.com/later"}]}
    held = [pod_for(refused, "4", filled, **gates), pod_for(large, "13", filled, **gates)]
    with shadow(own) as process:
        admin.create(a_node(filled, cpu="16"))
        admin.create_many([*held, pod_for(on_late, "1", late, **gates)], NAMESPACE)
        admin.create_many((pod_for(name, "100m", filled) for name in placed), NAMESPACE)
        wait_until(lambda: about(process, reader)["decisions"] > 0, 20, "pods are placed")

        own.apiserver.kill()
        kube_scheduler.kill()  # it would come back only after a pause of up to 30 s
        during = health(process)
        process.send_signal(signal.SIGSTOP)  # as one whose next try comes late
        own.apiserver.start()
        admin.create(a_node(late, cpu="16"))
        kube_scheduler.start()
        for name in (large, on_late):
            admin.patch("Pod", name, {"spec": {"schedulingGates": None}}, NAMESPACE)
        for name in (*placed, large, on_late):
            wait_until(partial(is_bound, admin, name), 30, f"{name} is bound")
        admin.patch("Pod", refused, {"spec": {"schedulingGates": None}}, NAMESPACE)
        wait_until(partial(is_unschedulable, admin, refused), 15, f"{refused} is refused")
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: about(process, reader)["decisions"] == 23, 30, "all are counted")
        wait_until(lambda: about(process, reader)["isCurrent"], 30, "what was missed is made up for")
        between = about(process, reader)
        play(admin, "after")
        wait_until(lambda: about(process, reader)["decisions"] == 23 + 61, 10, "all are judged")
        found, afterwards = about(process, reader), health(process)
        written = [
            metric(process.port, "rest_client_requests_total", method=verb) for verb in ("PATCH", "PUT", "DELETE")
        ]
    admin.delete_many("Node", [filled, late])

    assert found["latest"] == []
    assert found["alike"] == between["alike"] + 61
    assert found["decisions"] == found["alike"] + found["verdicts"].get("left_out", 0)
    assert (during, afterwards, written) == ([200] * 3, [200] * 3, [0] * 3)


def pod_for(name: str, cpu: str, node: str, **spec: Any) -> Object:
    """A pod that may run on one node only."""
    return a_pod(name, cpu=cpu, scheduler=OTHER, nodeSelector={"kubernetes.io/hostname": node}, **spec)


def health(process: Component) -> list[int]:
    return [http_get(process.port, path)[0] for path in ("/livez", "/readyz", "/healthz")]


def is_unschedulable(admin: Client, name: str) -> bool:
    found = condition(admin.get("Pod", name, NAMESPACE), "PodScheduled")
    return found is not None and found["reason"] == "Unschedulable"


def test_without_the_right_to_read_it_says_what_is_missing(own: ControlPlane, admin: Client) -> None:
    admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody"}}, NAMESPACE)
    nobody = own.service_account_kubeconfig(NAMESPACE, "nobody")
    main = [sys.executable, "-m", "scheduler", "run", f"--kubeconfig={nobody}", f"--shadow-of={OTHER}"]
    done = subprocess.run([*main, "--secure-port=0"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "may not list, watch pods (core)" in done.stderr
    assert "delete" not in done.stderr
