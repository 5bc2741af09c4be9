"""kube-scheduler's own cases of when DefaultPreemption lets a pod in."""

from collections.abc import Iterable
from typing import Any

import pytest

from scheduler import framework as fw
from scheduler.api.groups import pod_groups as api
from scheduler.api.objects import ObjectMeta
from scheduler.config.feature_gates import FeatureGates
from scheduler.cycle.steps import in_one_go
from scheduler.framework.queued import QueuedPod
from scheduler.testing import a_node, a_pod
from tests.conformance.transcribed import Case, cases
from tests.fakes import settle
from tests.unit.cycle.fakes import PROFILE
from tests.unit.groups.groups import Groups

HIGH = 1000


def a_full_cluster(groups: Iterable[str]) -> Groups:
    """One node, with room for the pod that it has."""
    made = Groups(nodes=0, gates=FeatureGates(generic_workload=True))
    made.under_test.see(a_node("node1", pods=1), a_pod("p1", node_name="node1"))
    for name in groups:
        spec = api.PodGroupSpec(priority=HIGH)
        made.store(api.PodGroup(metadata=ObjectMeta(name=name, namespace="default", uid=name), spec=spec))
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
