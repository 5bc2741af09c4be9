"""The scheduler's own pods."""

from typing import Any

import pytest

from scheduler.api.decoding import convert
from scheduler.doctor.checks import replicas
from scheduler.doctor.evidence.cluster import NotThere
from scheduler.doctor.evidence.objects import Deployment, Pod, Service
from scheduler.doctor.examination import examine
from scheduler.doctor.findings import Level
from tests.unit.doctor.fake_cluster import (
    A_NODE,
    OK,
    PROBLEM,
    UNKNOWN,
    WARNING,
    FakeCluster,
    a_pod,
    facts,
    healthy,
    levels,
)

OF_REPLICAS = (("replicas", replicas.creation), ("replicas", replicas.pods))

FORBIDDEN = 'pods "loadmaster-7d4b9c6f5d-abcde" is forbidden: '


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


def refusing(message: str) -> Any:
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    return convert({"spec": {"replicas": 2}, "status": {"conditions": [condition]}}, Deployment)


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        pytest.param(
            "insufficient quota to match these scopes: [{PriorityClass In [system-node-critical]}]",
            "as GKE does: install there, set priorityClassName",
            id="GKE outside of kube-system",
        ),
        pytest.param(
            FORBIDDEN + "unable to validate against any security context constraint: [provider restricted-v2: "
            ".containers[0].runAsUser: Invalid value: 65532: must be in the ranges: [1000690000, 1000699999]]",
            "podSecurityContext: {runAsUser: null, runAsGroup: null}",
            id="OpenShift",
        ),
        pytest.param(
            FORBIDDEN + 'violates PodSecurity "restricted:latest": hostNetwork (pod must not set hostNetwork=true)',
            "hostNetwork",
            id="Pod Security",
        ),
        pytest.param(FORBIDDEN + "exceeded quota: team, requested: cpu=500m", "raise the quota", id="a quota"),
        pytest.param('admission webhook "x.kyverno.svc" denied the request: no', "its message says", id="a policy"),
        pytest.param(FORBIDDEN + "for another reason", "kubectl describe replicasets", id="another reason"),
    ],
)
async def test_a_deployment_without_pods_says_why_and_what_to_do(message: str, advice: str) -> None:
    (finding,) = await examine(facts(pods=(), deployment=refusing(message)), FakeCluster(), OF_REPLICAS)

    assert levels([finding]) == [PROBLEM]
    assert finding.message.startswith(f"no pod can be created: {message[:60]}")
    assert advice in finding.advice


async def test_a_pod_that_is_left_is_counted_as_well() -> None:
    pods = (a_pod("a"), a_pod("b", is_ready=False))

    findings = await examine(facts(pods=pods, deployment=refusing("exceeded quota: x")), FakeCluster(), OF_REPLICAS)

    assert [each.message.partition(":")[0] for each in findings] == [
        "no pod can be created",
        "1 of 2 replicas are ready",
    ]


async def test_another_installation_is_offered_where_there_is_none_of_that_name() -> None:
    other = {"metadata": {"name": "gpu", "namespace": "ml", "labels": {"app.kubernetes.io/instance": "gpu"}}}
    cluster = healthy(lists={"/api/v1/services": [other]})

    findings = await replicas.service(facts(service=NotThere("not found")), cluster)

    assert levels(findings) == [PROBLEM]
    assert findings[0].advice == "--service-namespace ml --service gpu"
