"""What another scheduler has decided, and what we would: each verdict with its reason, and nothing is done about it."""

import logging
from dataclasses import replace
from typing import Any, Final

import msgspec
import pytest

from scheduler import framework as fw
from scheduler.api.objects import PodCondition
from scheduler.api.pods.pod import Pod
from scheduler.assembly.shadow import config_for
from scheduler.config.load import load_config
from scheduler.framework.errors import ConfigError
from scheduler.plugin_loading.in_tree import in_tree
from scheduler.replay import shadow as verdicts
from scheduler.replay.shadow import MAX_KEPT, MAX_TEXT, Shadow
from tests.fakes import FakeClock, sample
from tests.unit.replay.stage import PROFILE, Stage

SHORT_OF_CPU: Final = "0/2 nodes are available: 2 Insufficient cpu."


class Picky(fw.FilterPlugin, fw.ScorePlugin):
    """Refuses what is called so, and scores nodes by the number in their names."""

    name = "Picky"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        if pod.name == "broken":
            raise RuntimeError("out of order")
        if pod.name == "leaving":
            raise SystemExit(3)
        return fw.unschedulable("not liked") if pod.name in node.labels else None

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> int:
        return int(node.name[-1]) * 10 if pod.name.startswith("scored") else 0


class Scene:
    """A scheduler that only looks on, at two equal nodes."""

    def __init__(self) -> None:
        plugins = {"multiPoint": {"enabled": [{"name": "Picky", "weight": 3}]}}
        self.stage = Stage({"plugins": plugins}, {**in_tree(), "Picky": Picky})
        self.clock = FakeClock()
        engine = self.stage.engine
        self.is_current = True
        self.shadow = Shadow(engine, PROFILE, self.stage.metrics, lambda: self.is_current, self.clock)
        self.shadow.start()
        self.handlers = engine.handlers
        for name in ("node-1", "node-2"):
            labels = {"kubernetes.io/hostname": name, **({"choosy": "yes", "never": "yes"} if name == "node-1" else {})}
            self.stage.node(name, allocatable={"cpu": "4", "memory": "8Gi", "pods": "10"}, labels=labels)

    def pod(self, name: str, cpu: str = "1", **meta: Any) -> Pod:
        return self.stage.pod(name, {"container": {"resources": {"requests": {"cpu": cpu}}}}, **meta)

    def bound(self, pod: Pod, node: str) -> None:
        self.handlers.pod_changed(self.stage.newer(pod.bound_to(node)))

    def refused(self, pod: Pod, message: str, reason: str = "Unschedulable") -> None:
        condition = PodCondition(type="PodScheduled", status="False", reason=reason, message=message)
        self.handlers.pod_changed(self.stage.newer(pod, conditions=(condition,)))

    @property
    def verdicts(self) -> dict[str, int]:
        found: dict[str, int] = self.shadow.about()["verdicts"]
        return found

    @property
    def latest(self) -> dict[str, Any]:
        return self.shadow.latest[-1]


async def test_the_same_node_is_no_difference() -> None:
    scene = Scene()
    scene.bound(scene.pod("scored"), "node-2")
    assert scene.verdicts == {verdicts.SAME_NODE: 1}
    assert not scene.shadow.latest
    assert sample(scene.stage.metrics, "loadmaster_shadow_decisions_total", verdict=verdicts.SAME_NODE) == 1


async def test_one_of_two_equals_is_a_tie() -> None:
    scene = Scene()
    for number in range(10):
        pod = scene.pod(f"pod-{number}", cpu="0")
        scene.bound(pod, "node-1")
        scene.handlers.pod_deleted(scene.stage.engine.pods[pod.uid])
    assert set(scene.verdicts) == {verdicts.SAME_NODE, verdicts.TIE}
    assert not scene.shadow.latest


async def test_a_node_with_a_higher_score_is_told_with_the_plugins_that_make_it() -> None:
    scene = Scene()
    scene.bound(scene.pod("scored"), "node-1")
    assert scene.verdicts == {verdicts.OTHER_NODE: 1}
    assert (scene.latest["there"], scene.latest["here"]) == ("node-1", "node-2")
    assert scene.latest["scores"] == {"Picky": [30, 60]}
    before, after = scene.latest["totals"]
    assert after - before == 30
    assert scene.shadow.about()["plugins"] == [{"verdict": verdicts.OTHER_NODE, "plugin": "Picky", "count": 1}]


async def test_a_node_that_we_refuse_is_told_and_logged_with_plugin_and_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    with caplog.at_level(logging.INFO):
        scene.bound(scene.pod("choosy"), "node-1")
    assert scene.verdicts == {verdicts.REFUSED: 1}
    assert (scene.latest["plugin"], scene.latest["message"]) == ("Picky", "not liked")
    assert scene.latest["here"] == "node-2"
    (line,) = (vars(record) for record in caplog.records if record.getMessage().startswith("Shadow: "))
    assert (line["pod"], line["plugin"], line["reason"]) == ("default/choosy", "Picky", "not liked")


async def test_a_pod_that_we_place_nowhere_is_told_with_what_we_say() -> None:
    scene = Scene()
    scene.bound(scene.pod("large", cpu="20"), "node-1")
    assert scene.verdicts == {verdicts.ONLY_THEY: 1}
    assert scene.latest["here"] == SHORT_OF_CPU
    assert scene.latest["plugin"] == "NodeResourcesFit"


async def test_a_pod_that_they_place_nowhere_is_told_with_our_node() -> None:
    scene = Scene()
    scene.refused(scene.pod("choosy"), "0/2 nodes are available: 2 node(s) had untolerated taint(s).")
    assert scene.verdicts == {verdicts.ONLY_WE: 1}
    assert scene.latest["here"] == "node-2"


async def test_what_preemption_says_makes_no_other_reason_and_other_reasons_are_told() -> None:
    scene = Scene()
    more = " preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
    scene.refused(scene.pod("large", cpu="20"), SHORT_OF_CPU + more)
    scene.refused(scene.pod("larger", cpu="20"), SHORT_OF_CPU)
    assert scene.verdicts == {verdicts.BOTH_REFUSE: 2}
    scene.refused(scene.pod("largest", cpu="20"), "0/2 nodes are available: 2 Insufficient memory.")
    assert scene.verdicts == {verdicts.BOTH_REFUSE: 2, verdicts.OTHER_REASON: 1}
    assert scene.latest["here"] == SHORT_OF_CPU
    assert scene.shadow.about()["plugins"][0]["plugin"] == "NodeResourcesFit"


async def test_the_refusal_of_a_pod_that_has_a_group_is_not_compared_and_its_placement_is() -> None:
    scene = Scene()
    pod = scene.stage.pod("scored", {"schedulingGroup": {"podGroupName": "g"}})

    scene.refused(pod, "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled")
    refused = scene.verdicts
    scene.bound(scene.stage.engine.pods[pod.uid], "node-2")

    assert (refused, scene.verdicts) == ({}, {verdicts.SAME_NODE: 1})


async def test_a_refusal_is_looked_at_once() -> None:
    scene = Scene()
    pod = scene.pod("large", cpu="20")
    for _ in range(3):
        scene.refused(pod, SHORT_OF_CPU)
    scene.refused(pod, "its scheduler stumbled", reason="SchedulerError")
    assert scene.shadow.about()["decisions"] == 1


@pytest.mark.parametrize(("name", "why"), [("broken", "out of order"), ("leaving", "SystemExit")])
async def test_a_fault_costs_the_comparison_and_not_the_watch(name: str, why: str) -> None:
    scene = Scene()
    scene.bound(scene.pod(name), "node-1")
    assert scene.verdicts == {verdicts.FAULT: 1}
    assert why in scene.latest["here"]
    assert scene.stage.engine.cache.get(name) is not None, "it is counted all the same"


async def test_each_decision_is_made_before_its_pod_counts_and_after_those_before_it() -> None:
    scene = Scene()
    scene.bound(scene.pod("first", cpu="4"), "node-1")
    scene.bound(scene.pod("second", cpu="4"), "node-2")
    scene.bound(scene.pod("third", cpu="4"), "node-2")
    assert scene.shadow.verdicts[verdicts.ONLY_THEY] == 1
    assert scene.latest["pod"] == "default/third"


async def test_pods_of_others_and_those_that_nobody_decided_about_are_left_alone() -> None:
    scene = Scene()
    foreign = scene.stage.pod("foreign", {"schedulerName": "another"})
    scene.bound(foreign, "node-1")
    static = scene.pod("static")
    scene.handlers.pod_deleted(static)
    scene.bound(static, "node-1")
    moved = scene.pod("running")
    scene.bound(moved, "node-1")
    counted = scene.shadow.about()["decisions"]
    scene.bound(moved, "node-1")
    going = scene.pod("going")
    scene.bound(msgspec.structs.replace(going, metadata=replace_deletion(going)), "node-1")
    assert scene.shadow.about()["decisions"] == counted == 1


async def test_what_was_decided_in_a_state_that_is_not_known_is_left_out_once_and_known_afterwards() -> None:
    scene = Scene()
    placed, refused = scene.pod("placed", cpu="4"), scene.pod("refused", cpu="20")
    missed = scene.pod("missed", cpu="4")
    scene.handlers.pod_deleted(missed)
    late = scene.pod("late", cpu="4")

    scene.is_current = False
    scene.bound(placed, "node-1")
    scene.refused(refused, SHORT_OF_CPU)
    scene.bound(missed, "node-2")
    left_out = dict(scene.verdicts)
    scene.is_current = True
    scene.bound(placed, "node-1")
    scene.refused(refused, SHORT_OF_CPU)
    scene.refused(late, SHORT_OF_CPU)

    assert left_out == {verdicts.LEFT_OUT: 3}
    assert scene.verdicts == {verdicts.LEFT_OUT: 3, verdicts.BOTH_REFUSE: 1}
    assert not scene.shadow.latest
    assert sample(scene.stage.metrics, "loadmaster_shadow_decisions_total", verdict=verdicts.LEFT_OUT) == 3


def replace_deletion(pod: Pod) -> Any:
    return msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")


async def test_nothing_is_assumed_nominated_or_begun() -> None:
    scene = Scene()
    scene.bound(scene.pod("low", cpu="4"), "node-1")
    scene.bound(scene.pod("low too", cpu="4"), "node-2")
    high = scene.stage.pod("high", {"priority": 100, "container": {"resources": {"requests": {"cpu": "4"}}}})
    scene.refused(high, SHORT_OF_CPU)
    engine = scene.stage.engine
    assert engine.cache.assumed_count == 0
    assert list(engine.nominator.by_node()) == []
    assert sample(scene.stage.metrics, "scheduler_preemption_attempts_total") == 0
    assert len(engine.pods) == 3, "nobody was evicted"
    assert engine.algorithm.next_start == 0


async def test_what_is_kept_is_bounded_and_logged_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene()
    with caplog.at_level(logging.INFO):
        for number in range(MAX_KEPT + 50):
            pod = scene.pod(f"large-{number}", cpu="20")
            scene.refused(pod, "x" * 50_000)
            scene.handlers.pod_deleted(pod)
            scene.clock.advance(0.01)

    assert len(scene.shadow.latest) == MAX_KEPT
    assert len(scene.latest["there"]) == MAX_TEXT + 1
    lines = [record for record in caplog.records if record.getMessage().startswith("Shadow: ")]
    assert 2 <= len(lines) <= 4
    assert lines[1].notLogged > 50  # type: ignore[attr-defined]
    assert scene.shadow.about()["latest"][0]["pod"] == f"default/large-{MAX_KEPT + 49}", "the newest first"


def test_the_only_profile_judges_the_pods_of_the_other_scheduler() -> None:
    config = load_config(None, in_tree())
    assert [each.scheduler_name for each in config_for(config, "default-scheduler").profiles] == ["default-scheduler"]


def test_of_several_profiles_that_of_its_name_judges() -> None:
    config = load_config(None, in_tree())
    [profile] = config.profiles
    several = replace(config, profiles=(profile, replace(profile, scheduler_name="other")))
    assert [each.scheduler_name for each in config_for(several, "other").profiles] == ["other"]
    with pytest.raises(ConfigError, match="has no profile of that name, and several: loadmaster, other"):
        config_for(several, "default-scheduler")
