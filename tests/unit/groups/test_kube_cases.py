"""kube-scheduler's own cases of groups: who is tried, what its condition becomes, and who waits for victims."""

from collections.abc import Iterable
from typing import Any

import pytest

from scheduler import framework as fw
from scheduler.api.groups import pod_groups as api
from scheduler.api.objects import ObjectMeta
from scheduler.cycle.steps import in_one_go
from scheduler.framework.queued import QueuedPod
from scheduler.groups.apis.kubernetes import as_group
from scheduler.runtime.profile_spec import PluginRef, Plugins, PluginSet
from scheduler.testing import a_node, a_pod
from tests.conformance.transcribed import Case, cases
from tests.fakes import a_plugin, settle
from tests.unit.cycle.fakes import PROFILE, newer
from tests.unit.groups.groups import Groups

SCHEDULED_BEFORE = "2026-01-01T00:00:00Z"
HIGH = 1000


def answering(asked: list[str]) -> Groups:
    """An engine with one node, node1, and no plugin but one that notes which pods are tried."""
    name = "FakePodGroupPlugin"
    plugin = a_plugin(name, fw.FilterPlugin, filter=lambda state, pod, node: asked.append(pod.name))
    enabled = tuple(map(PluginRef, ("PrioritySort", "DefaultBinder", name)))
    groups = Groups(plugin, nodes=0, only=Plugins(multi_point=PluginSet(enabled)))
    groups.under_test.see(a_node("node1"))
    return groups


def a_member(name: str, **fields: Any) -> fw.Pod:
    return a_pod(name, group="pg", **{"scheduler_name": PROFILE, **fields})


@pytest.mark.parametrize("case", cases("skip_pod_group_pod_schedule"))
async def test_pods_that_go_or_have_a_node_are_skipped(case: Case) -> None:
    asked: list[str] = []
    groups = answering(asked)
    groups.create("pg", minimum=None)
    pods = {name: a_member(name) for name in case["pods"]}
    groups.under_test.see(*pods.values())
    for name in case["terminating"]:
        groups.under_test.see(newer(pods[name], deletion_timestamp="2026-01-01"))
    for name in case["assumed"]:
        groups.engine.cache.assume(pods[name].bound_to("node1"))
        groups.under_test.world.bound[pods[name].uid] = "node1"

    await groups.schedule()

    assert asked == case["tried"]


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
    groups = answering([])
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


def a_full_cluster(groups: Iterable[str]) -> Groups:
    """One node, with room for the pod that it has."""
    made = Groups(nodes=0)
    made.under_test.see(a_node("node1", pods=1), a_pod("p1", node_name="node1"))
    for name in groups:
        made.create(name, minimum=None, priority=HIGH)
    return made


def a_preemptor(name: str, group: str = "") -> fw.Pod:
    return a_pod(name, group=group, priority=HIGH, scheduler_name=PROFILE)


@pytest.mark.parametrize("case", cases("default_preemption_pre_enqueue"))
async def test_a_pod_waits_for_its_preemption_or_that_of_its_group(case: Case) -> None:
    together = case.get("together", False)
    groups = a_full_cluster(case.get("groups", ()))
    preemptor = a_preemptor("p", case.get("of", ""))
    groups.under_test.see(preemptor)
    framework = groups.under_test.framework
    if together:
        assert groups.engine.pod_groups is not None
        decision = in_one_go(groups.engine.pod_groups.decide_in_steps(framework, [QueuedPod(preemptor, 0.0)]))
        assert decision.is_waiting_for_preemption
    else:
        groups.engine.algorithm.schedule(framework, fw.CycleState(), preemptor)
    plugin: Any = framework.plugins.by_name["DefaultPreemption"]

    refusal = plugin.pre_enqueue(a_preemptor(case["asked"], case.get("asked_of", "")))

    expected = fw.unresolvable(case["refusal"]) if "refusal" in case else None
    assert refusal == expected
    await settle()
