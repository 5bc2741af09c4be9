"""PreemptionToleration: scheduler-plugins' tables, and what is evicted beside pods that tolerate it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from plugins import SHIPPED
from plugins.contrib.preemption_toleration import PREFIX, PRIORITY_CLASS, PreemptionToleration, policy_of
from scheduler import framework as fw
from scheduler.api.objects import PodCondition
from scheduler.api.unstructured import Unstructured
from scheduler.config.load import config_from_dict
from scheduler.framework.handle import NoReads
from scheduler.simulate.engine import simulate
from tests.fakes import sample
from tests.unit.plugins.preemption import Outcome, Scene, a_scene, node
from tests.unit.plugins.preemption import pod as plain
from tests.unit.simulate.what_if import world as in_files

TABLE = json.loads(Path(__file__).with_name("preemption_toleration.json").read_text("utf-8"))
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
NEVER_BY_100: Mapping[str, str] = {"minimum-preemptable-priority": "200", "toleration-seconds": "-1"}


def of_table(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", TABLE[name], ids=[case["name"] for case in TABLE[name]])


def a_class(value: int, annotations: Mapping[str, str], name: str = "dummy") -> Unstructured:
    metadata = {"name": name, "uid": name, "annotations": {f"{PREFIX}{key}": text for key, text in annotations.items()}}
    return Unstructured.from_dict({"metadata": metadata, "value": value})


def pod(name: str, priority: int, cpu: int = 4, *, placed: float | None = None, of: str = "dummy") -> fw.Pod:
    """A pod of a class, which was placed so many seconds ago; None: it does not say."""
    when = None if placed is None else max(NOW - timedelta(seconds=placed), datetime.min.replace(tzinfo=UTC))
    conditions = () if when is None else (PodCondition("PodScheduled", "True", last_transition_time=when.isoformat()),)
    made = plain(name, priority, cpu, conditions=conditions)
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, priority_class_name=of))


class At(NoReads):
    def __init__(self, time: datetime) -> None:
        self.time = time

    def now(self) -> datetime:
        return self.time


def a_cluster(*classes: Unstructured, **on: list[fw.Pod]) -> Scene:
    """A scene with nodes of four cores, each with these pods."""
    others = {PRIORITY_CLASS: classes}
    scene = a_scene(*(node(name) for name in on), pods=on, kind=PreemptionToleration, others=others)
    scene.plugin.handle = replace(scene.plugin.handle, reader=At(NOW))
    return scene


def test_the_tables_are_whole() -> None:
    assert {name: len(TABLE[name]) for name in TABLE["counts"]} == TABLE["counts"]
    assert sum(TABLE["counts"].values()) == 17


@of_table("policies")
def test_a_policy_is_read_as_scheduler_plugins_reads_it(case: dict[str, Any]) -> None:
    found = a_class(*case["class"])

    if "policy" in case:
        assert list(policy_of(found)) == case["policy"]
    else:
        with pytest.raises(ValueError, match=f"^{case['error']}$"):
            policy_of(found)


@of_table("exemptions")
def test_a_pod_is_exempt_where_it_is_in_scheduler_plugins(case: dict[str, Any]) -> None:
    (priority, placed), (preempting, policy) = case["victim"], case["preemptor"]
    victim, preemptor = pod("victim", priority, placed=placed), plain("preemptor", preempting, 4, policy=policy)
    scene = a_cluster(*([a_class(*case["class"])] if case["class"] else ()), n=[victim])
    plugin = scene.plugin

    if "error" in case:
        with pytest.raises(fw.PluginError, match=case["error"]):
            plugin.exempt_from(preemptor)(victim)
        return
    if policy != "Never":  # such a pod is refused before anybody is looked at
        assert plugin.exempt_from(preemptor)(victim) is case["exempt"]
    if priority < preempting:
        assert scene.preempt(preemptor).victims == ([] if case["exempt"] else ["victim"])


def test_those_are_evicted_beside_whom_others_tolerate_it() -> None:
    on_node = [pod("tolerant", 1, 2, placed=9), plain("other", 1, 2)]
    scene = a_cluster(a_class(1, NEVER_BY_100), n=on_node)

    assert scene.preempt(plain("high", 100, 2)).victims == ["other"]
    assert scene.preempt(plain("higher", 100, 3)).victims == []


def test_the_node_is_taken_on_which_nobody_tolerates_it() -> None:
    scene = a_cluster(a_class(1, NEVER_BY_100), a=[pod("tolerant", 1)], b=[plain("dearer", 50, 4)])

    outcome = scene.preempt(plain("high", 100, 4))

    assert (outcome.node, outcome.victims) == ("b", ["dearer"])


def test_a_toleration_ends_with_its_time() -> None:
    annotations = {"minimum-preemptable-priority": "200", "toleration-seconds": "60"}
    scene = a_cluster(a_class(1, annotations), n=[pod("tolerant", 1, placed=30)])
    early = scene.preempt(plain("high", 100, 4))

    scene.plugin.handle = replace(scene.plugin.handle, reader=At(NOW + timedelta(seconds=31)))

    assert early == Outcome(
        "",
        [],
        "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: "
        "1 No preemption victims found for incoming pod.",
    )
    assert scene.preempt(plain("high", 100, 4)).victims == ["tolerant"]


def test_a_class_that_is_gone_costs_its_nodes_only() -> None:
    scene = a_cluster(a=[pod("of-nothing", 1, of="gone")], b=[plain("dearer", 50, 4)])

    assert scene.preempt(plain("high", 100, 4)).victims == ["dearer"]


def test_a_class_that_cannot_be_read_is_counted_and_exempts_nobody() -> None:
    scene = a_cluster(a_class(1, {"toleration-seconds": "an hour"}), n=[pod("victim", 1)])

    assert scene.preempt(plain("high", 100, 4)).victims == ["victim"]
    faults = sample(scene.metrics, "loadmaster_plugin_data_faults_total", plugin=scene.plugin.name, reason="odd object")
    assert faults == 1


def test_an_explanation_names_nobody_who_tolerates_it() -> None:
    on_node = [pod("tolerant", 1, 2, placed=9), plain("other", 1, 2)]
    scene = a_cluster(a_class(1, NEVER_BY_100), n=on_node)
    preemptor = plain("high", 100, 2)
    statuses = {"n": fw.unschedulable("Insufficient cpu")}
    state = fw.CycleState()
    scene.framework.run_pre_filter(state, preemptor, fw.Diagnosis(1))

    found = [each for each in scene.plugin.possible_preemptions(state, preemptor, statuses) if each is not None]

    assert [[victim.name for victim in each.victims] for each in found] == [["other"]]


def test_a_simulation_reads_classes_from_files() -> None:
    enabled, disabled = [{"name": "PreemptionToleration"}], [{"name": "DefaultPreemption"}]
    profile = {"plugins": {"multiPoint": {"enabled": enabled, "disabled": disabled}}}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config = config_from_dict({**head, "profiles": [profile]}, SHIPPED)

    def victims(seconds: str) -> list[str]:
        annotations = {f"{PREFIX}minimum-preemptable-priority": "200", f"{PREFIX}toleration-seconds": seconds}
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        low = {**kind, "metadata": {"name": "low", "annotations": annotations}, "value": 1}
        high = {**kind, "metadata": {"name": "high"}, "value": 100}
        placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {"conditions": [placed]}
        runs = in_files.on("n1", "runs", cpu=2, priority=1, priorityClassName="low", status=status)
        wants = in_files.a_pod("wants", 2, priorityClassName="high")
        cluster = in_files.cluster_with(in_files.a_node("n1", 2), low, high, runs, wants)
        document = simulate(cluster.nodes, cluster.pods, config, SHIPPED, cluster.others)
        return [name for pod in document["pods"] for name in pod.get("victims", ())]

    assert victims("0") == ["default/runs"]
    assert victims("-1") == []
