"""Pods of the scheduler that cannot be created."""

from typing import Any

import pytest

from scheduler.api.decoding import convert
from scheduler.doctor.checks import refusals, replicas
from scheduler.doctor.evidence.objects import Deployment
from scheduler.doctor.examination import examine
from tests.unit.doctor.fake_cluster import PROBLEM, FakeCluster, a_pod, facts, levels

OF_REPLICAS = (("replicas", refusals.of_pods), ("replicas", replicas.pods))
FORBIDDEN = 'pods "loadmaster-7d4b9c6f5d-abcde" is forbidden: '


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
