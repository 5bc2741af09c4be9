"""The scheduler's own pods."""

from typing import Any

import pytest

from scheduler.api.decoding import convert
from scheduler.doctor.checks import replicas
from scheduler.doctor.evidence.cluster import NotThere
from scheduler.doctor.evidence.objects import Pod, Service
from scheduler.doctor.findings import Level
from tests.unit.doctor.fake_cluster import A_NODE, OK, PROBLEM, UNKNOWN, WARNING, FakeCluster, a_pod, facts, levels


def broken(state: dict[str, Any]) -> Any:
    pod = a_pod("loadmaster-1", is_ready=False)
    status = {"name": "loadmaster", "restartCount": 4, **state}
    meta = {"name": pod.metadata.name, "namespace": "kube-system"}
    return convert({"metadata": meta, "spec": {"nodeName": "n1"}, "status": {"containerStatuses": [status]}}, Pod)


async def test_a_replica_that_ends_says_why() -> None:
    ended = {
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
        "lastState": {"terminated": {"reason": "Error", "message": "may not create pods/binding (core)\n"}},
    }

    findings = await replicas.pods(facts(pods=(broken(ended),)), FakeCluster())

    assert levels(findings) == [PROBLEM, PROBLEM]
    assert "restarted 4 times: Error: may not create pods/binding (core)" in findings[0].message
    assert "0 of 2 replicas are ready" in findings[1].message


@pytest.mark.parametrize(
    "state",
    [
        {"lastState": {"terminated": {"reason": "Error", "message": "exec /usr/bin/python: exec format error"}}},
        {"state": {"waiting": {"reason": "ErrImagePull", "message": "no match for platform in manifest: not found"}}},
    ],
)
async def test_an_image_for_another_architecture_is_called_that(state: dict[str, Any]) -> None:
    findings = await replicas.pods(facts(pods=(broken(state),)), FakeCluster())

    assert "for another architecture than n1" in findings[0].message


async def test_replicas_on_one_node_are_a_warning() -> None:
    findings = await replicas.pods(facts(pods=(a_pod("a"), a_pod("b"))), FakeCluster())

    assert levels(findings) == [WARNING]
    assert "all 2 replicas are on the node n1" in findings[0].message


async def test_a_missing_disruption_budget_is_a_warning() -> None:
    assert levels(await replicas.budget(facts(), FakeCluster())) == [WARNING]


async def test_nodes_of_an_architecture_without_an_image_are_named() -> None:
    nodes = [A_NODE, {"metadata": {"labels": {"kubernetes.io/arch": "s390x"}}}]

    findings = await replicas.architectures(facts(), FakeCluster(lists={"/api/v1/nodes": nodes}))

    assert levels(findings) == [WARNING]
    assert "nodes of s390x" in findings[0].message


@pytest.mark.parametrize(
    ("selector", "level", "message"),
    [
        pytest.param({"app": "loadmaster"}, UNKNOWN, "no pods are behind the Service", id="no pods"),
        pytest.param(None, OK, "the Service selects no pods: the scheduler runs elsewhere", id="no selector"),
    ],
)
async def test_a_scheduler_that_runs_in_no_pod_is_no_fault(selector: Any, level: Level, message: str) -> None:
    service = convert({"spec": {"selector": selector}}, Service)
    (finding,) = await replicas.pods(facts(pods=(), deployment=NotThere("none"), service=service), FakeCluster())

    assert (finding.level, finding.message) == (level, message)
