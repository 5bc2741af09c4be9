"""kube-scheduler's own cases of preemption for a group as a whole: who has to go, and who comes back."""

from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import msgspec
import pytest

from scheduler import framework as fw
from scheduler.api import pod_groups as api
from scheduler.api.objects import ObjectMeta, PodStatus
from scheduler.config.feature_gates import FeatureGates
from scheduler.framework.resources import POD_DISRUPTION_BUDGET
from scheduler.runtime.profile_spec import PluginRef, Plugins, PluginSet
from scheduler.testing import a_node, a_pod, an_object
from tests.conformance.transcribed import Case, cases
from tests.fakes import Eviction, run
from tests.unit.cycle.fakes import PROFILE
from tests.unit.groups.groups import Groups

GATES = FeatureGates(generic_workload=True)
PLUGINS = ("PrioritySort", "Rules", "DefaultPreemption", "DefaultBinder", "GangScheduling")
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
NO_VICTIMS = "No preemption victims found for incoming preemptor"
WORDS = {"Unschedulable": "not eligible due to preemptionPolicy=Never.", "UnschedulableAndUnresolvable": NO_VICTIMS}


class Rules(fw.FilterPlugin):
    """Lets one pod onto a node for each of its rules, while none of the rule's pods is there."""

    name: ClassVar[str] = "Rules"
    rules: ClassVar[list[tuple[str, list[str]]]] = []

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        there = {each.name for each in node.pods}
        room = sum(name == node.name and not there & set(blocking) for name, blocking in self.rules)
        taken = sum(name.startswith("preemptor-") for name in there)
        return None if taken < room else fw.unschedulable("full")


def preempted(case: Case, preemptor: Case, rules: list[Any]) -> tuple[list[str], str]:
    """Let the preemptor be tried in the cluster of a case; return the names of the victims, and its condition."""
    found: list[str] = []
    message = ""

    async def play() -> None:
        nonlocal message
        plugin = type("Rules", (Rules,), {"rules": rules})
        only = Plugins(multi_point=PluginSet(tuple(map(PluginRef, PLUGINS))))
        groups = Groups(plugin, nodes=0, only=only, gates=GATES)
        groups.under_test.see(*(a_node(name) for name in nodes_of(case, rules)))
        for name, facts in case.get("groups", {}).items():
            groups.store(a_group(name, **facts))
        if "budget" in case:
            budget = an_object(
                "budget",
                namespace="default",
                spec={"selector": {"matchLabels": case["budget"]}},
                status={"disruptionsAllowed": 0},
            )
            groups.engine.object_handlers.object_changed(POD_DISRUPTION_BUDGET, budget)
        groups.under_test.see(*(a_victim(name, **facts) for name, facts in case["pods"].items()))
        groups.create("preemptor", minimum=len(preemptor["pods"]), priority=preemptor["priority"])
        groups.under_test.see(*(a_preemptor(number, **facts) for number, facts in enumerate(preemptor["pods"])))

        await groups.schedule()

        found.extend(each.victim.rpartition("/")[2] for each in groups.under_test.world.written(Eviction))
        condition = groups.condition("preemptor")
        assert condition is not None
        assert condition[:2] == ("False", "Unschedulable")
        message = condition[2]

    run(play())
    return found, message


def nodes_of(case: Case, rules: list[Any]) -> list[str]:
    names = [pod["node"] for pod in case["pods"].values()] + [name for name, _ in rules]
    return list(dict.fromkeys([*names, "node1"]))


def a_group(name: str, mode: str | None = None, priority: int | None = None) -> api.PodGroup:
    spec = api.PodGroupSpec(disruption_mode=mode, priority=priority)
    return api.PodGroup(metadata=ObjectMeta(name=name, namespace="default", uid=name), spec=spec)


def a_victim(
    name: str,
    node: str,
    priority: int,
    group: str = "",
    labels: dict[str, str] | None = None,
    started: int | None = None,
) -> fw.Pod:
    status = PodStatus(start_time=None if started is None else EPOCH + timedelta(seconds=started))
    return a_pod(name, node_name=node, priority=priority, group=group, labels=labels, status=status)


def a_preemptor(number: int, priority: int, never: bool = False) -> fw.Pod:
    pod = a_pod(f"preemptor-{number}", group="preemptor", priority=priority, scheduler_name=PROFILE)
    spec = msgspec.structs.replace(pod.spec, preemption_policy="Never" if never else None)
    return fw.Pod(metadata=pod.metadata, spec=spec, status=pod.status)


def one_of(priority: int) -> Case:
    """A preemptor of one pod."""
    return {"priority": priority, "pods": [{"priority": priority}]}


@pytest.mark.parametrize("case", cases("more_important_victim"))
def test_the_less_important_victim_goes(case: Case) -> None:
    cluster: Case = {"pods": {}, "groups": {}}
    for node in ("first", "second"):
        facts = case[node]
        group = f"of-{node}" if facts.get("group") else ""
        if group:
            cluster["groups"][group] = {"mode": "PodGroup", "priority": facts["priority"]}
        for number in range(facts.get("pods", 1)):
            pod = {"node": "node1", "priority": facts["priority"], "group": group, "started": facts.get("started", 0)}
            cluster["pods"][f"{node}-{number}"] = pod
    rules = [("node1", [name for name in cluster["pods"] if name.startswith(which)]) for which in ("first", "second")]

    victims, _ = preempted(cluster, one_of(1000), rules)

    loser = "second" if case["is_first"] else "first"
    assert sorted(victims) == [name for name in cluster["pods"] if name.startswith(loser)]


@pytest.mark.parametrize("case", cases("is_pod_group_preemptible_pod"))
def test_a_pod_goes_with_its_group_if_that_says_so(case: Case) -> None:
    group = "pg1" if case["is_member"] else ""
    pods = {name: {"node": "node1", "priority": 0, "group": group} for name in ("p1", "p2")}
    groups = {name: {"mode": mode} for name, mode in case.get("groups", {}).items()}

    victims, _ = preempted({"pods": pods, "groups": groups}, one_of(10), [("node1", ["p1"])])

    assert sorted(victims) == (["p1", "p2"] if case["together"] else ["p1"])
