"""kube-scheduler's own cases of the pod group cycle: who is taken, what is decided, and what becomes of each pod."""

import math
from typing import Any, ClassVar

import pytest

from scheduler import framework as fw
from scheduler.api import pod_groups as api
from scheduler.api.objects import ObjectMeta
from scheduler.config.feature_gates import FeatureGates
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.cycle.steps import Steps
from scheduler.framework.errors import SchedulerError
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Code, Status
from scheduler.groups.apis.kubernetes import as_group
from scheduler.groups.decision import GroupDecision, MemberOutcome
from scheduler.runtime.profile_spec import PluginRef, Plugins, PluginSet
from scheduler.testing import a_node, a_pod
from tests.conformance.transcribed import Case, cases
from tests.fakes import run, settle
from tests.unit.cycle.fakes import PROFILE, newer
from tests.unit.groups.groups import Groups

CODES = {code.label: code for code in Code}
MEMBERS = ("p1", "p2", "p3")
SCHEDULED_BEFORE = "2026-01-01T00:00:00Z"


def status_of(code: str) -> fw.Status | None:
    return None if code == "Success" else fw.Status(CODES[code], (f"{code} for test",))


class Answers(fw.FilterPlugin, fw.PostFilterPlugin, fw.PermitPlugin):
    """Answers by pod, as a case says; a pod that it does not name is refused."""

    name: ClassVar[str] = "FakePodGroupPlugin"
    case: ClassVar[Case] = {}
    asked: ClassVar[list[str]] = []

    def of(self, point: str, pod: fw.Pod) -> str:
        return str(self.case.get(point, {}).get(pod.name, "Unschedulable"))

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        self.asked.append(pod.name)
        return status_of(self.of("filter", pod))

    def post_filter(
        self, state: fw.CycleState, pod: fw.Pod, node_to_status: object
    ) -> tuple[fw.PostFilterResult | None, fw.Status | None]:
        answer = self.of("post_filter", pod)
        return (None, status_of(answer)) if answer in CODES else (fw.PostFilterResult(answer), None)

    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | fw.PermitWait | None:
        answer = self.of("permit", pod)
        return fw.PermitWait(math.inf) if answer == "Wait" else status_of(answer)


def answering(case: Case, **options: Any) -> Groups:
    """An engine with one node, node1, and no plugin but one that answers as the case says."""
    plugin = type("FakePodGroupPlugin", (Answers,), {"case": case, "asked": []})
    enabled = tuple(PluginRef(name) for name in ("PrioritySort", "DefaultBinder", "FakePodGroupPlugin"))
    groups = Groups(plugin, nodes=0, only=Plugins(multi_point=PluginSet(enabled)), **options)
    groups.under_test.see(a_node("node1"))
    return groups


def a_member(name: str, **fields: Any) -> fw.Pod:
    return a_pod(name, group="pg", **{"scheduler_name": PROFILE, **fields})


@pytest.mark.parametrize("case", cases("framework_for_pod_group"))
def test_all_members_have_to_be_of_one_profile(case: Case) -> None:
    groups = answering({}, profiles=tuple(case["profiles"]))
    pods = [QueuedPod(a_member(name, scheduler_name=profile), 0.0) for name, profile in case["pods"].items()]
    assert groups.engine.group_parts.cycle is not None

    try:
        found = groups.engine.group_parts.cycle._framework_of(pods)
    except SchedulerError:
        found = None

    assert (found is None) == case["error"]


@pytest.mark.parametrize("case", cases("skip_pod_group_pod_schedule"))
def test_pods_that_go_or_have_a_node_are_skipped(case: Case) -> None:
    async def play() -> None:
        groups = answering({"filter": dict.fromkeys(case["pods"], "Success")})
        groups.create("pg", minimum=None)
        pods = {name: a_member(name) for name in case["pods"]}
        groups.under_test.see(*pods.values())
        for name in case["terminating"]:
            groups.under_test.see(newer(pods[name], deletion_timestamp="2026-01-01"))
        for name in case["assumed"]:
            groups.engine.cache.assume(pods[name].bound_to("node1"))

        await groups.schedule()

        (framework,) = groups.engine.frameworks.values()
        plugin: Any = framework.plugins.by_name["FakePodGroupPlugin"]
        assert plugin.asked == case["tried"]

    run(play())


@pytest.mark.parametrize(
    ("case", "topology"),
    [
        pytest.param(*param.values, topology, id=f"{param.id}{', by placements' * topology}")
        for param in cases("pod_group_scheduling_algorithm")
        for topology in (False, True)
        if not topology or param.values[0].get("topology", True)
    ],
)
def test_the_group_is_decided_as_in_kube_scheduler(case: Case, topology: bool) -> None:
    groups = answering(case, gates=FeatureGates(generic_workload=True, topology_aware_workload_scheduling=topology))
    groups.create("pg", minimum=None)
    pods = list(map(a_member, MEMBERS))
    groups.under_test.see(*pods)
    assert groups.engine.pod_groups is not None

    decision = groups.engine.pod_groups.decide(groups.engine.frameworks[PROFILE], [QueuedPod(pod, 0.0) for pod in pods])

    assert decision.code.label == case["group"]
    assert decision.is_waiting_for_preemption == case.get("waits", False)
    assert {each.queued.pod.name: code_of(each) for each in decision.members} == case["pods"]
    preempting = case.get("preempting", [])
    assert [each.queued.pod.name for each in decision.members if each.requires_preemption] == preempting
    for each in decision.members:
        name = each.queued.pod.name
        has_node = code_of(each) == "Success" or name in preempting
        assert each.node_name == ("node1" if has_node else "")
        if has_node:
            assert each.is_permitted == (case["permit"][name] == "Success")
        else:
            assert each.permit_message is None
    assert list(groups.engine.cache.assumed_pods()) == []


def code_of(outcome: MemberOutcome) -> str:
    if isinstance(outcome.decision, SchedulerError):
        return "Error"
    return "Success" if isinstance(outcome.decision, Placed) else "Unschedulable"


class Decided:
    """An algorithm that has decided as a case says."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def decide_and_leave(self, framework: object, members: list[QueuedPod]) -> Steps[GroupDecision]:
        status = status_with(self.case)
        outcomes = [_outcome(queued, said) for queued, said in zip(members, self.case["pods"], strict=False)]
        yield
        return GroupDecision(outcomes, status, self.case.get("waits", False))

    def forget_left(self) -> None:
        """It has left nothing."""


def status_with(said: Case) -> Status | None:
    if said["code"] == "Success":
        return None
    return Status(CODES[said["code"]], (said["message"],) if "message" in said else ())


def _outcome(queued: QueuedPod, said: Case) -> MemberOutcome:
    decision: Placed | Unplaced | SchedulerError
    if said["code"] == "Success":
        decision = Placed(said["node"], 1, 1)
    elif said["code"] == "Error":
        decision = SchedulerError(said.get("message", ""))
    else:
        nominated = None if said.get("keeps_nomination") else said.get("node", "")
        decision = Unplaced("no", nominated_node_name=nominated)
    permit = said.get("permit")
    message = None if permit is None else "" if permit == "Success" else "waiting"
    is_permitted = permit == "Success"
    return MemberOutcome(
        queued, fw.CycleState(), decision, 0.0, 0.0, said.get("node", ""), message, is_permitted=is_permitted
    )


def a_condition(said: list[str]) -> api.Condition:
    status, reason, message = said
    return api.Condition(
        type=api.POD_GROUP_SCHEDULED,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=SCHEDULED_BEFORE,
    )


@pytest.mark.parametrize("case", cases("submit_pod_group_algorithm_result"))
def test_pods_and_group_become_what_they_become_in_kube_scheduler(case: Case) -> None:
    async def play() -> None:
        groups = answering({"permit": dict.fromkeys(MEMBERS, "Success")})
        groups.create("pg", minimum=None)
        if "before" in case:
            groups.store(groups.object("pg"), (a_condition(case["before"]),))
        groups.under_test.see(*map(a_member, MEMBERS))
        assert groups.engine.group_parts.cycle is not None
        groups.engine.group_parts.cycle._algorithm = Decided(case)  # type: ignore[assignment]

        await groups.schedule()

        nominated = {pod.name for pod in groups.engine.nominator.nominated_pods("node1")}
        waiting = {queued.pod.name for part in groups.engine.queue.pending_pods().values() for queued in part}
        assert sorted(groups.bound) == case.get("bound", [])
        assert sorted(waiting & nominated) == case.get("preempting", [])
        assert sorted(waiting - nominated) == case.get("failed", [])
        assert groups.condition("pg") == tuple(case["condition"])

    run(play())


@pytest.mark.parametrize("case", cases("update_pod_group_condition"))
def test_the_condition_becomes_what_it_becomes_in_kube_scheduler(case: Case) -> None:
    async def play() -> None:
        groups = answering({})
        name = case.get("group", "nonexistent")
        metadata = ObjectMeta(name=name, namespace="default", uid=name, generation=case.get("generation", 1))
        group = api.PodGroup(metadata=metadata)
        if "group" in case:
            groups.store(group, (a_condition(case["before"]),) if "before" in case else ())
        status, reason, message = case["set"]
        assert groups.engine.group_parts.cycle is not None

        groups.engine.group_parts.cycle._conditions.set(
            as_group(group), is_scheduled=status == "True", reason=reason, message=message
        )
        await settle()

        if "group" not in case:
            assert groups.api.patches == []
            return
        assert groups.condition(name) == tuple(case["condition"])
        (condition,) = groups.object(name).status.conditions
        assert (condition.last_transition_time == SCHEDULED_BEFORE) == case.get("keeps_time", False)
        assert condition.observed_generation == (case.get("generation", 1) if groups.api.patches else 0)

    run(play())
