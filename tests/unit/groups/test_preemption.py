"""Preemption for a group as a whole: who leaves, who stays, and what the group says meanwhile."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from plugins.shared.eviction.budgets import Budgets
from plugins.shared.eviction.units import importance
from scheduler import framework as fw
from scheduler.api.groups import pod_groups as api
from scheduler.api.objects import ObjectMeta, PodStatus
from scheduler.config.defaults import default_plugins
from scheduler.config.feature_gates import FeatureGates
from scheduler.framework.nodes.resources import POD_DISRUPTION_BUDGET
from scheduler.framework.preemption.victims import Unit
from scheduler.runtime.profile_spec import Plugins, PluginSet
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_pod, an_object
from tests.fakes import Eviction, sample
from tests.unit.cycle.fakes import PROFILE, newer, raising
from tests.unit.groups.groups import Groups
from tests.unit.groups.test_placements import Racks

GATES = FeatureGates(generic_workload=True)
RELEASED = "deallocation and deletion of ResourceClaims completed, "


class Preempting(Groups):
    """Nodes with room for two pods each, and groups that may evict others."""

    def __init__(self, nodes: int = 1, gates: FeatureGates = GATES, **options: Any) -> None:
        super().__init__(nodes=nodes, gates=gates, **options)

    def run_pod(self, name: str, node: str, priority: int = 0, start: int = 0, **fields: Any) -> fw.Pod:
        """Let a pod of a core run since second `start`."""
        started = datetime.fromtimestamp(start, UTC) if start else None
        fields = {"requests": {"cpu": "1"}, "status": PodStatus(start_time=started), **fields}
        pod = a_pod(name, node_name=node, priority=priority, **fields)
        self.under_test.see(pod)
        return pod

    def create_disrupted_together(self, name: str, priority: int) -> None:
        spec = api.PodGroupSpec(priority=priority, disruption_mode=api.TOGETHER)
        self.store(api.PodGroup(metadata=ObjectMeta(name=name, namespace="default", uid=name), spec=spec))

    @property
    def victims(self) -> list[str]:
        evictions = self.under_test.world.written(Eviction)
        return [eviction.victim.removeprefix("default/") for eviction in evictions]


async def test_no_more_leave_than_the_group_needs_and_it_waits_for_them() -> None:
    groups = Preempting(nodes=2)
    for number, node in enumerate(("n0", "n0", "n1", "n1")):
        groups.run_pod(f"low-{number}", node, start=number + 1)

    await groups.try_group(minimum=3, priority=10, pods=3)

    assert len(groups.victims) == 3
    assert groups.problem() == (
        "minCount (3) cannot be satisfied: 0 scheduled, 2 remaining, "
        "pod group preemption: found a placement for podgroup, preempting 3 victims"
    )
    nominated = [groups.engine.nominator.node_of(f"default/g-{number}") for number in range(3)]
    assert sorted(filter(None, nominated)) in (["n0", "n0", "n1"], ["n0", "n1", "n1"])
    result = {"result": "waiting_on_preemption", "profile": PROFILE}
    assert groups.under_test.count("scheduler_podgroup_schedule_attempts_total", **result) == 1
    assert groups.under_test.count("scheduler_workload_preemption_attempts_total", result="Success") == 1
    assert groups.under_test.count("scheduler_workload_preemption_victims_sum") == 3
    assert groups.under_test.count("scheduler_preemption_victims_sum") == 0
    assert groups.under_test.count("scheduler_preemption_workload_disruptions_count", preemptor="podgroup") == 0
    point = {"extension_point": "PodGroupPostFilter", "status": "Success", "profile": PROFILE}
    assert groups.under_test.count("scheduler_framework_extension_point_duration_seconds_count", **point) == 1
    [message] = {eviction.message for eviction in groups.under_test.world.written(Eviction)}
    assert message == f"{PROFILE}: preempting to accommodate a higher priority podgroup"
    assert groups.under_test.world.notes("Preempted")[0] == "Preempted by podgroup uid of g on node cluster"


async def test_members_fit_once_their_victims_are_gone() -> None:
    groups = Preempting()
    low = groups.run_pod("low", "n0")
    await groups.try_group(minimum=2, priority=10, pods=2)
    assert groups.victims == ["low"]
    groups.under_test.handlers.pod_deleted(low)
    groups.under_test.wait(10)

    await groups.schedule()

    assert sorted(groups.bound) == ["g-0", "g-1"]
    assert groups.condition() == ("True", "Scheduled", "")


async def test_nobody_leaves_for_a_group_that_does_not_fit_even_then() -> None:
    groups = Preempting()
    groups.run_pod("low", "n0")

    await groups.try_group(minimum=3, priority=10, pods=3)

    assert groups.victims == []
    assert groups.problem() == (
        f"minCount (3) cannot be satisfied: 1 scheduled, 1 remaining, {RELEASED}"
        "pod group preemption: minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"
    )


async def test_only_pods_of_lower_priority_than_the_groups_own_leave() -> None:
    groups = Preempting()
    groups.run_pod("equal", "n0", priority=5)

    await groups.try_group(minimum=2, priority=5, pods=2)

    assert groups.victims == []
    refused = "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
    text = f"{refused}, pod group preemption: No preemption victims found for incoming preemptor"
    assert groups.problem() == text
    assert groups.under_test.world.notes()[0] == f"pod group is unschedulable, {text}"


async def test_no_member_evicts_others_by_itself() -> None:
    groups = Preempting()
    groups.run_pod("low", "n0")

    await groups.try_group(minimum=3, priority=5, pods=3)

    assert groups.victims == []
    assert groups.under_test.world.notes()[1] == "0/1 nodes are available: 1 Insufficient cpu."


async def test_a_group_waits_for_a_victim_that_was_being_deleted_before() -> None:
    groups = Preempting(nodes=2)
    low = [groups.run_pod(f"low-{number}", "n0") for number in range(2)]
    groups.under_test.see(newer(low[1], deletion_timestamp="2026-01-01T00:00:00Z"))
    groups.run_pod("high", "n1", priority=20)
    members = await groups.try_group(minimum=3, priority=10, pods=3)

    nominated = {pod.uid: groups.engine.nominator.node_of(pod.uid) for pod in members}
    groups.under_test.see(*(newer(pod, nominated_node_name=nominated[pod.uid]) for pod in members))
    groups.under_test.handlers.pod_deleted(low[0])
    groups.under_test.wait(60)
    await groups.schedule()

    assert groups.victims == ["low-0"]
    assert groups.problem().endswith("pod group preemption: ongoing preemption on nominated nodes")


async def test_members_that_may_not_preempt_keep_the_group_from_it() -> None:
    groups = Preempting()
    groups.create(minimum=2, priority=5)
    groups.run_pod("low", "n0")
    for name in ("p", "q"):
        groups.under_test.see(with_policy(a_member(name), "Never"))

    await groups.schedule()

    assert groups.victims == []
    assert groups.problem().endswith(f"{RELEASED}pod group preemption: not eligible due to preemptionPolicy=Never.")


def a_member(name: str, priority: int = 5) -> fw.Pod:
    return a_pod(name, group="g", requests={"cpu": "1"}, scheduler_name=PROFILE, priority=priority)


def with_policy(pod: fw.Pod, policy: str | None) -> fw.Pod:
    spec = msgspec.structs.replace(pod.spec, preemption_policy=policy)
    return fw.Pod(metadata=pod.metadata, spec=spec, status=pod.status)


TOGETHER = "all pods in a single pod group should have the same"


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        pytest.param(
            a_member("p"), a_member("q", 7), "priority as the pod group's priority, got 7 and 5", id="priorities"
        ),
        pytest.param(
            a_member("p", 7), a_member("q", 7), "priority as the pod group's priority, got 7 and 5", id="the group's"
        ),
        pytest.param(
            a_member("p"),
            with_policy(a_member("q"), "Never"),
            "preemption policy, got Never and PreemptLowerPriority",
            id="policies",
        ),
        pytest.param(
            a_member("p"), a_member("q", 7).bound_to("n0"), "priority as the pod group's priority, got 7 and 5",
            id="one has a node",
        ),
    ],
)  # fmt: skip
async def test_pods_that_do_not_agree_are_not_tried(first: fw.Pod, second: fw.Pod, problem: str) -> None:
    groups = Preempting()
    groups.create(minimum=2, priority=5)
    groups.under_test.see(first, second)

    await groups.schedule()

    assert groups.bound == {}
    assert groups.problem("SchedulerError") == f"{TOGETHER} {problem}"
    assert set(groups.under_test.world.notes()) == {f"{TOGETHER} {problem}"}


@pytest.mark.parametrize(("its", "of_pod"), [(None, "Never"), ("Never", None)])
async def test_with_the_gate_pods_agree_with_the_policy_of_their_group(its: str | None, of_pod: str | None) -> None:
    groups = Preempting(gates=FeatureGates(generic_workload=True, pod_group_preemption_policy=True))
    spec = api.PodGroupSpec(priority=5, preemption_policy=its)
    groups.store(api.PodGroup(metadata=ObjectMeta(name="g", namespace="default", uid="g"), spec=spec))
    groups.under_test.see(with_policy(a_member("p"), of_pod))

    await groups.schedule()

    lower = "PreemptLowerPriority"
    problem = f"preemption policy as the pod group's preemption policy, got {of_pod or lower} and {its or lower}"
    assert groups.problem("SchedulerError") == f"{TOGETHER} {problem}"


async def test_a_group_that_is_disrupted_together_leaves_as_a_whole() -> None:
    groups = Preempting(nodes=2)
    groups.create(minimum=2, priority=10)
    groups.create_disrupted_together("others", priority=1)
    for number, node in enumerate(("n0", "n1")):
        groups.run_pod(f"other-{number}", node, group="others")
        groups.run_pod(f"high-{number}", node, priority=100)

    await groups.try_pods(2)

    metrics = groups.under_test.metrics
    assert sorted(groups.victims) == ["other-0", "other-1"]
    of_group = {"preemptor": "podgroup"}
    assert sample(metrics, "scheduler_preemption_workload_disruptions_sum", **of_group) == 1
    for what, result in (("evaluation", "Success"), ("execution", "success")):
        name = f"scheduler_preemption_{what}_duration_seconds_count"
        assert sample(metrics, name, **of_group, result=result) == 1


async def test_a_group_that_is_disrupted_together_leaves_as_a_whole_for_a_pod_without_a_group() -> None:
    groups = Preempting(nodes=2)
    groups.create_disrupted_together("others", priority=1)
    for number, node in enumerate(("n0", "n1")):
        groups.run_pod(f"other-{number}", node, group="others", priority=1)
        groups.run_pod(f"high-{number}", node, priority=100)
    groups.under_test.see(a_pod("alone", requests={"cpu": "1"}, scheduler_name=PROFILE, priority=10))

    await groups.schedule()

    assert sorted(groups.victims) == ["other-0", "other-1"]


async def test_a_pod_of_a_group_has_its_priority_when_others_preempt() -> None:
    groups = Preempting()
    groups.create("others", minimum=None, priority=20)
    groups.run_pod("other", "n0", group="others", priority=1, requests={"cpu": "2"})
    groups.under_test.see(a_pod("alone", requests={"cpu": "1"}, scheduler_name=PROFILE, priority=10))

    await groups.schedule()

    assert groups.victims == []


async def test_of_two_groups_the_one_whose_first_pod_started_earlier_stays() -> None:
    groups = Preempting(nodes=4)
    groups.create(minimum=2, priority=10)
    for name, starts in (("older", (5, 1)), ("younger", (3, 4))):
        groups.create_disrupted_together(name, priority=1)
        for number, start in enumerate(starts):
            row = number + (0 if name == "older" else 2)
            groups.run_pod(f"{name}-{number}", f"n{row}", group=name, start=start)
    for row in range(4):
        groups.run_pod(f"high-{row}", f"n{row}", priority=100)

    await groups.try_pods(2)

    assert sorted(groups.victims) == ["younger-0", "younger-1"]


@pytest.mark.parametrize(("pods", "violations"), [(1, 0), (2, 1)])
async def test_pods_whose_budget_would_be_violated_stay_if_others_can_leave(pods: int, violations: int) -> None:
    groups = Preempting()
    groups.create(minimum=pods, priority=10)
    groups.run_pod("kept", "n0", labels={"app": "kept"}, start=9)
    groups.run_pod("low", "n0", start=1)
    budget = an_object(
        "b",
        namespace="default",
        spec={"selector": {"matchLabels": {"app": "kept"}}},
        status={"disruptionsAllowed": 0},
    )
    groups.engine.object_handlers.object_changed(POD_DISRUPTION_BUDGET, budget)

    await groups.try_pods(pods)

    assert groups.victims == ["low", "kept"][:pods]
    counted = sample(groups.under_test.metrics, "scheduler_preemption_pdb_violations_total", preemptor="podgroup")
    assert counted == violations


async def test_members_are_kept_out_while_their_victims_are_being_evicted() -> None:
    groups = Preempting()
    groups.create(minimum=1, priority=10)
    groups.run_pod("low-0", "n0")
    groups.run_pod("low-1", "n0")
    [pod] = groups.pods(1)
    groups.engine.loop.schedule_one(groups.under_test.pop_group())

    assert not groups.engine.queue.wake(pod.uid, "Woken")
    assert groups.where(pod.name) == "gated"


async def test_what_is_tried_leaves_no_trace() -> None:
    groups = Preempting(nodes=2)
    groups.create(minimum=5, priority=10)
    for number in range(4):
        groups.run_pod(f"low-{number}", f"n{number % 2}", start=number + 1)
    table = groups.engine.cache.table
    before = {name: [pod.name for pod in table.pods_on(name)] for name in ("n0", "n1")}

    await groups.try_pods(5)

    assert {name: [pod.name for pod in table.pods_on(name)] for name in before} == before


async def test_a_fault_amid_the_choice_of_victims_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = Preempting()
    groups.create(minimum=2, priority=10)
    groups.run_pod("low", "n0")
    groups.pods(2)
    monkeypatch.setattr(Budgets, "tally", raising(RuntimeError("a fault")))

    await groups.schedule()

    assert "a fault" in groups.problem("SchedulerError")
    groups.engine.cache.mend()
    assert [pod.name for pod in groups.engine.cache.table.pods_on("n0")] == ["low"]


async def test_a_table_is_made_again_if_a_victim_of_a_what_if_cannot_be_put_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups = Preempting()
    groups.create(minimum=3, priority=10)  # more than fit without the other pod: it is put back at the end
    low = groups.run_pod("low", "n0")
    groups.pods(2)
    groups.pods(1, first=2, requests={"cpu": "1", "memory": "1"})  # or the table would not be changed
    table = groups.engine.cache.table
    add_pod = type(table).add_pod

    def failing_once(table: NodeTable, name: str, pod: fw.Pod) -> None:
        if pod.uid == low.uid:
            monkeypatch.undo()
            raise RuntimeError("a fault")
        add_pod(table, name, pod)

    monkeypatch.setattr(NodeTable, "add_pod", failing_once)

    await groups.schedule()

    assert "a fault" in groups.problem("SchedulerError")
    assert table.is_broken
    groups.engine.cache.mend()
    assert [pod.name for pod in table.pods_on("n0")] == ["low"]


async def test_a_group_with_a_topology_preempts_in_one_domain() -> None:
    groups = Racks(a=1, b=1)
    for rack in ("a", "b"):
        groups.under_test.see(a_pod(f"low-{rack}", node_name=f"{rack}-0", requests={"cpu": "2"}))
    groups.create_in_racks(2, priority=10)

    await groups.try_pods(2)

    assert groups.problem().endswith("pod group preemption: found a placement for podgroup, preempting 1 victims")


async def test_without_the_plugin_nobody_leaves() -> None:
    enabled = default_plugins(GATES).multi_point.enabled
    only = Plugins(multi_point=PluginSet(tuple(each for each in enabled if each.name != "DefaultPreemption")))
    groups = Preempting(only=only)

    await groups.try_group(minimum=3, priority=10, pods=3)

    text = "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"
    assert groups.problem() == f"{text}, {RELEASED.removesuffix(', ')}"


def a_unit(
    priority: int = 10, pods: int = 1, start: int = 0, *, of_group: bool = False, of_groups: bool = False
) -> Unit:
    of_pods = [a_pod()] * pods
    return Unit(uid="u", pods=of_pods, priority=priority, started=start, is_of_group=of_group, is_of_groups=of_groups)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(a_unit(20), a_unit(10), id="higher priority"),
        pytest.param(a_unit(of_group=True), a_unit(), id="a group before a pod"),
        pytest.param(a_unit(of_group=True, of_groups=True), a_unit(pods=9, of_group=True), id="a tree before a group"),
        pytest.param(a_unit(start=500), a_unit(start=1000), id="pods: the older"),
        pytest.param(a_unit(pods=2, of_group=True), a_unit(of_group=True), id="groups: the larger"),
        pytest.param(
            a_unit(pods=2, start=500, of_group=True),
            a_unit(pods=2, start=1000, of_group=True),
            id="groups of one size: the older",
        ),
    ],
)
def test_which_unit_is_more_important(first: Unit, second: Unit) -> None:
    """podgrouppreemption_test.go at v1.36.3, TestMoreImportantVictim: 10 cases, each pair in both orders."""
    assert sorted([second, first], key=importance) == [first, second]
    assert sorted([first, second], key=importance) == [first, second]
