"""scheduler-plugins' own tables for its plugin Coscheduling, played against ours. What is left out says why."""

from typing import Any

import pytest

from plugins.contrib.coscheduling.plugin import Coscheduling
from plugins.priority_sort import PrioritySort
from scheduler import framework as fw
from scheduler.api.groups.coscheduling import POD_GROUP_LABEL
from scheduler.framework.queued import QueuedPod
from scheduler.groups.amounts import resource_gap
from scheduler.testing import a_node, a_pod
from tests.conformance.transcribed import Case, cases
from tests.unit.cycle.fakes import PROFILE
from tests.unit.groups.coscheduling import Coscheduled


def a_member(name: str, group: str, node: str = "", cpu: str = "") -> fw.Pod:
    labels = {POD_GROUP_LABEL: group} if group else {}
    requests = {"cpu": cpu} if cpu else {}
    return a_pod(name, labels=labels, node_name=node, requests=requests, scheduler_name=PROFILE)


def staged(case: Case, pods: dict[str, str], node: str = "") -> Coscheduled:
    """The groups and these pods of a case, and two nodes of four cores."""
    stage = Coscheduled(nodes=0)
    stage.under_test.see(*(a_node(name, cpu="4") for name in ("node-a", "node-b")))
    for group in case["groups"]:
        resources = {"cpu": group["cpu"]} if "cpu" in group else None
        stage.create(group["name"], minimum=group["minimum"], min_resources=resources)
    stage.under_test.see(*(a_member(name, group, node) for name, group in pods.items()))
    return stage


def permit(stage: Coscheduled, name: str, group: str) -> str:
    """What the plugin says of a pod that is assumed on a node."""
    pod = a_member(name, group)
    stage.engine.pods[pod.uid] = pod
    members = stage.engine.group_parts.groups.members_by_group
    members.see(pod)
    members.assume(pod.bound_to("node-a"))
    plugin = stage.engine.frameworks[PROFILE].plugins.by_name["Coscheduling"]
    assert isinstance(plugin, Coscheduling)
    try:
        answer = plugin.permit(fw.CycleState(), pod, "node-a")
    except fw.AttemptFailed:
        return "PodGroup not found"
    return "Wait" if isinstance(answer, fw.PermitWait) else "Success"


@pytest.mark.parametrize("case", cases("coscheduling_pre_filter"))
async def test_a_pod_may_be_tried_as_scheduler_plugins_says(case: Case) -> None:
    ((name, group),) = case["pod"].items()
    stage = staged(case, case["pending"] | case["pod"])

    await stage.schedule()

    assert (name in stage.bound) is case["success"], (name, group)


@pytest.mark.parametrize("case", [*cases("coscheduling_permit"), *cases("coscheduling_plugin_permit")])
async def test_a_pod_with_a_node_waits_as_scheduler_plugins_says(case: Case) -> None:
    ((name, group),) = case["pod"].items()
    stage = staged(case, case["running"], "node-b")

    answer = permit(stage, name, group)

    assert answer == case["want"].replace("PodGroup not specified", "Success")


@pytest.mark.parametrize("case", cases("coscheduling_check_cluster_resource"))
async def test_what_is_free_suffices_as_scheduler_plugins_says(case: Case) -> None:
    stage = Coscheduled(nodes=0)
    stage.create("pg1", minimum=1)
    running: dict[str, Any] = case["running"]
    stage.under_test.see(*(a_node(name, cpu="3") for name in ("node-a", "node-b")))
    stage.under_test.see(*(a_member(name, group, node, cpu) for name, (node, cpu, group) in running.items()))
    groups = stage.engine.group_parts.groups
    group = fw.PodGroup("default", "pg1", "u", fw.COSCHEDULING_POD_GROUP, resources={"cpu": 4000})

    gap = resource_gap(stage.engine.cache.table, group, groups.members(a_member("p", "pg1")))

    assert (gap == "") is case["want"], gap


@pytest.mark.parametrize("case", cases("coscheduling_less"))
def test_pods_are_tried_in_the_order_that_scheduler_plugins_says(case: Case) -> None:
    first, second = (
        QueuedPod(a_pod(name, priority=priority), 0.0, initial_attempt_timestamp=float(at))
        for name, (priority, at) in (("p1", case["first"]), ("p2", case["second"]))
    )
    first.timestamp, second.timestamp = float(case["first"][1]), float(case["second"][1])

    assert PrioritySort().less(first, second) is case["want"]
