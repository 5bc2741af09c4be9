"""A running scheduler is recorded by a user without other rights, and replayed: byte for byte the same decisions."""

import gzip
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from scheduler.__main__ import main
from tests.cluster.loadmaster import node_of
from tests.cluster.proxied import asker, proxied
from tests.controlplane import ApiError, Client, Component, ControlPlane, a_node, a_pod, condition, wait_until
from tests.controlplane.client import Object

NAMESPACE: Final = "busy"
NODES: Final = 24
PODS: Final = 300


@pytest.fixture(scope="module")
def admin(own: ControlPlane) -> Iterator[Client]:
    with own.client() as client:
        own.create_namespace(NAMESPACE)
        client.create_many(a_node(f"node-{i}", cpu="8", labels={}, zone=f"zone-{i % 3}") for i in range(NODES))
        yield client


@pytest.fixture(scope="module")
def loadmaster(own: ControlPlane, admin: Client, address: str) -> Iterator[Component]:
    with proxied(own, admin, address) as process:
        yield process


@pytest.fixture(scope="module")
def user(own: ControlPlane) -> Path:
    return asker(own, "record", "recorder")


@contextmanager
def recording(path: Path, kubeconfig: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "scheduler", "record", f"--kubeconfig={kubeconfig}", f"--out={path}", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()  # it has ended, unless the test has failed


def pods_of_many_kinds() -> Iterator[Object]:
    for number in range(PODS):
        app = f"app-{number % 5}"
        selector = {"matchLabels": {"app": app}}
        more: Object = {}
        match number % 10:
            case 0:
                term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
                more = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
            case 1:
                spread = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "labelSelector": selector}
                more = {"topologySpreadConstraints": [{**spread, "whenUnsatisfiable": "DoNotSchedule"}]}
            case 2:
                more = {"priorityClassName": "urgent"}
            case 3:
                more = {"schedulingGates": [{"name": "example.com/later"}]}
            case 4:
                more = {"nodeSelector": {"pool": "none"}}
            case _:
                pass
        cpu = "4" if number % 10 == 2 else "1500m" if number % 3 else "100m"
        yield a_pod(f"pod-{number}", cpu=cpu, labels={"app": app}, **more)


def was_tried(pod: Object) -> bool:
    """Whether a pod has a node, or the scheduler has said why not."""
    told = condition(pod, "PodScheduled")
    return bool(node_of(pod)) or (told is not None and told.get("reason") == "Unschedulable")


def decisions_of(path: Path) -> list[Any]:
    with gzip.open(path) as file:
        lines = [json.loads(line) for line in file][1:]
    return [line[-1] if line[0] == "decided" else line[6] for line in lines if line[0] in ("decide", "decided")]


def replayed(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> tuple[int, dict[str, Any]]:
    code = main(["replay", str(path), "--output=json", *options])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, document


def test_what_a_running_scheduler_decides_is_decided_again(
    admin: Client, loadmaster: Component, user: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "busy.trace"
    urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}}
    admin.create({**urgent, "value": 1000})
    with recording(path, user) as process:
        wait_until(lambda: path.exists() and path.stat().st_size > 0, 20, "the recording has begun")

        admin.create_many(pods_of_many_kinds(), NAMESPACE)
        admin.patch("Node", "node-5", {"spec": {"unschedulable": True}})
        gates = [f"pod-{number}" for number in range(3, PODS, 10)]
        for name in gates:
            admin.patch("Pod", name, {"spec": {"schedulingGates": None}}, NAMESPACE)
        for number in range(5, PODS, 20):
            with suppress(ApiError):  # it may have been preempted
                admin.delete("Pod", f"pod-{number}", NAMESPACE)
        admin.create(a_node("node-late", cpu="8", zone="zone-1"))
        admin.delete("Node", "node-7")
        wait_until(lambda: all(map(was_tried, admin.list("Pod", NAMESPACE))), 30, "all pods were tried")
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=60)

    assert process.returncode == 0, errors
    recorded = decisions_of(path)
    assert f"{len(recorded):,} decisions" in said
    assert "it ended because it was stopped where it was recorded" in said
    kept = tmp_path / "decisions"
    code, document = replayed(capsys, path, f"--decisions={kept}")
    assert [json.loads(line) for line in kept.read_text().splitlines()] == recorded
    assert code == 0
    assert document["notes"] == []
    assert document["decisions"] == len(recorded) > PODS
    texts = json.dumps(recorded)
    assert "preemption: " in texts
    assert any(decision[7] for decision in recorded), "room was made for some"
