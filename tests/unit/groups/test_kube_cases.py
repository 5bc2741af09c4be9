"""kube-scheduler's own cases of the pod group cycle: who is taken, and what its condition becomes."""

from typing import Any, ClassVar

import pytest

from scheduler import framework as fw
from scheduler.api.groups import pod_groups as api
from scheduler.api.objects import ObjectMeta
from scheduler.groups.apis.kubernetes import as_group
from scheduler.runtime.profile_spec import PluginRef, Plugins, PluginSet
from scheduler.testing import a_node, a_pod
from tests.conformance.transcribed import Case, cases
from tests.fakes import settle
from tests.unit.cycle.fakes import PROFILE, newer
from tests.unit.groups.groups import Groups

SCHEDULED_BEFORE = "2026-01-01T00:00:00Z"


class Answers(fw.FilterPlugin):
    """Lets all pods onto all nodes, and notes them."""

    name: ClassVar[str] = "FakePodGroupPlugin"
    asked: ClassVar[list[str]] = []

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        self.asked.append(pod.name)
        return None


def answering() -> Groups:
    """An engine with one node, node1, and no plugin but one that notes which pods are tried."""
    plugin = type("FakePodGroupPlugin", (Answers,), {"asked": []})
    enabled = tuple(PluginRef(name) for name in ("PrioritySort", "DefaultBinder", "FakePodGroupPlugin"))
    groups = Groups(plugin, nodes=0, only=Plugins(multi_point=PluginSet(enabled)))
    groups.under_test.see(a_node("node1"))
    return groups


def a_member(name: str, **fields: Any) -> fw.Pod:
    return a_pod(name, group="pg", **{"scheduler_name": PROFILE, **fields})


@pytest.mark.parametrize("case", cases("skip_pod_group_pod_schedule"))
async def test_pods_that_go_or_have_a_node_are_skipped(case: Case) -> None:
    groups = answering()
    groups.create("pg", minimum=None)
    pods = {name: a_member(name) for name in case["pods"]}
    groups.under_test.see(*pods.values())
    for name in case["terminating"]:
        groups.under_test.see(newer(pods[name], deletion_timestamp="2026-01-01"))
    for name in case["assumed"]:
        groups.engine.cache.assume(pods[name].bound_to("node1"))
        groups.under_test.world.bound[pods[name].uid] = "node1"

    await groups.schedule()

    (framework,) = groups.engine.frameworks.values()
    plugin: Any = framework.plugins.by_name["FakePodGroupPlugin"]
    assert plugin.asked == case["tried"]


def a_condition(said: list[str]) -> api.Condition:
    status, reason, message = said
    return api.Condition(
        type=api.POD_GROUP_SCHEDULED,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=SCHEDULED_BEFORE,
    )


@pytest.mark.parametrize("case", cases("update_pod_group_condition"))
async def test_the_condition_becomes_what_it_becomes_in_kube_scheduler(case: Case) -> None:
    groups = answering()
    name = case["group"]
    metadata = ObjectMeta(name=name, namespace="default", uid=name, generation=case.get("generation", 1))
    group = api.PodGroup(metadata=metadata)
    groups.store(group, (a_condition(case["before"]),) if "before" in case else ())
    status, reason, message = case["set"]

    groups.cycle._conditions.set(as_group(group), is_scheduled=status == "True", reason=reason, message=message)
    await settle()

    assert groups.condition(name) == tuple(case["condition"])
    (condition,) = groups.object(name).status.conditions
    assert (condition.last_transition_time == SCHEDULED_BEFORE) == case.get("keeps_time", False)
    assert condition.observed_generation == (case.get("generation", 1) if groups.patches else 0)
