"""Pods that wait."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scheduler.doctor.checks import pending
from scheduler.doctor.findings import Finding
from tests.unit.doctor.fake_cluster import NOW, OK, PROBLEM, WARNING, FakeCluster, config_of, facts, levels

JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "training", "uid": "job", "controller": True}


def waiting(name: str, scheduler: str, age: float, message: str = "", reason: str = "Unschedulable") -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return {
        "metadata": {"name": name, "namespace": "shop", "creationTimestamp": NOW - timedelta(seconds=age)},
        "spec": {"schedulerName": scheduler},
        "status": {"phase": "Pending", "conditions": [condition] if message or reason != "Unschedulable" else []},
    }


async def of_pods(*pods: dict[str, Any]) -> list[Finding]:
    return await pending.pods(facts(), FakeCluster(lists={"/api/v1/pods": list(pods)}))


async def test_pods_for_a_scheduler_that_nobody_runs_are_named_with_the_name_that_was_meant() -> None:
    findings = await of_pods(waiting("web", "loadmastr", 120), waiting("new", "loadmastr", 5))

    assert levels(findings) == [PROBLEM]
    assert "1 pod wait for the scheduler 'loadmastr', which nobody runs, as shop/web" in findings[0].message
    assert findings[0].advice.startswith("did you mean loadmaster?")


async def test_pods_that_another_scheduler_looks_at_are_not_ours_to_judge() -> None:
    assert levels(await of_pods(waiting("web", "volcano", 999, "0/5 nodes are available: 5 x."))) == [OK]


async def test_pods_of_ours_that_were_never_tried_are_a_problem() -> None:
    assert levels(await of_pods(waiting("web", "loadmaster", 120))) == [PROBLEM]


async def test_long_waits_come_with_the_most_frequent_reasons() -> None:
    message = (
        "0/5 nodes are available: 3 Insufficient cpu, 2 node(s) had untolerated taint(s). "
        "preemption: 0/5 nodes are available"
    )
    findings = await of_pods(
        waiting("a", "loadmaster", 400, message),
        waiting("b", "loadmaster", 400, "0/5 nodes are available: 5 Insufficient cpu. preemption: none"),
        waiting("c", "loadmaster", 400, reason="SchedulingGated"),
        waiting("young", "loadmaster", 10, message),
    )

    assert levels(findings) == [WARNING]
    assert "3 pods wait for more than 5 minutes: Insufficient cpu (2)" in findings[0].message
    assert "had untolerated taint(s) (1)" in findings[0].message
    assert "scheduling gates (1)" in findings[0].message
    assert findings[0].advice == "loadmaster explain shop/a"


@pytest.mark.parametrize(
    "named",
    [
        {"labels": {"scheduling.x-k8s.io/pod-group": "training"}},
        {"annotations": {"loadmaster.dev/pod-group": "training"}},
        {"annotations": {"scheduling.k8s.io/group-name": "training"}},
        {"annotations": {"gang.scheduling.koordinator.sh/name": "training"}},
        {"annotations": {"loadmaster.dev/gang": "owner"}, "ownerReferences": [JOB]},
    ],
)
async def test_pods_whose_group_their_profile_ignores_are_named(named: dict[str, Any]) -> None:
    pod = waiting("worker", "loadmaster", 10, "0/5 nodes are available: 5 Insufficient cpu.")
    pod["metadata"] |= named

    findings = await of_pods(pod)

    assert levels(findings) == [WARNING]
    assert findings[0].message == "1 pod name a group, as shop/worker, and start one by one"


async def test_pods_of_a_group_that_are_for_another_scheduler_are_named() -> None:
    grouped = {"annotations": {"loadmaster.dev/pod-group": "training"}}
    worker = waiting("worker", "loadmaster", 10, "cannot find enough sibling pods")
    launcher = waiting("launcher", "default-scheduler", 10, "")
    for pod in (worker, launcher):
        pod["metadata"] |= grouped
    launcher["spec"]["nodeName"] = "n1"
    config = config_of()
    known = facts(config=replace(config, profiles={"loadmaster": ("Coscheduling",)}))
    lists = {"/api/v1/pods": [worker], "/api/v1/namespaces/shop/pods": [worker, launcher]}

    findings = await pending.pods(known, FakeCluster(lists=lists))

    assert findings[-1].message == (
        "1 pod of groups that wait do not count, as shop/launcher with 'default-scheduler': other schedulers"
    )
