"""What was recorded is decided again, to the same result, whatever the scheduler did before and meanwhile."""

import json
import os
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from scheduler import framework as fw
from scheduler.api.unstructured import Unstructured
from scheduler.commands import replaying as command
from scheduler.framework.errors import ApiError
from scheduler.framework.handle import NoWrites
from scheduler.plugin_loading.in_tree import in_tree
from scheduler.replay.trace.trace_file import Trace
from tests.unit.replay.stage import PROFILE, Stage, enabled
from tests.unit.replay.traces import MOST_ALLOCATED, RecordedTrace


async def plain_pods(stage: Stage, count: int = 40) -> None:
    """Pods that all find a node, and stay."""
    for number in range(count):
        stage.pod(f"pod-{number}", {"container": {"resources": {"requests": {"cpu": "500m", "memory": "256Mi"}}}})
        await stage.schedule()


async def two_pods(stage: Stage) -> None:
    await plain_pods(stage, 2)


def decisions_in(trace: RecordedTrace) -> list[Any]:
    return [line[6] for line in trace.lines("decide")]


def test_a_busy_hour_is_decided_again(trace: RecordedTrace, tmp_path: Path) -> None:
    trace.record_hour()

    code, report = trace.replay(f"--decisions={tmp_path}/decisions")

    assert code == 0
    assert report["notes"] == report["differences"] == []
    recorded = decisions_in(trace)
    assert report["decisions"] == len(recorded) > 400
    assert [json.loads(line) for line in (tmp_path / "decisions").read_text().splitlines()] == recorded
    assert sum(bool(decision[7]) for decision in recorded) > 20, "room was made for many"
    assert {"node gone", "nominate", "no nomination", "uncount", "pod gone"} <= set(trace.kinds())


def test_decisions_are_written_into_no_file_that_is_there(trace: RecordedTrace) -> None:
    trace.record(two_pods)
    before = trace.path.read_bytes()
    assert trace.run(f"--decisions={trace.path}") == (2, "", f"{trace.path}: is there already\n")
    assert trace.path.read_bytes() == before


@pytest.mark.parametrize("place", ["missing/decisions", "a\0b", "x" * 300])
def test_decisions_that_cannot_be_written_are_one_sentence(
    place: str, trace: RecordedTrace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trace.record(two_pods)
    code, _, error = trace.run(f"--decisions={place}")
    assert code == 2
    assert "cannot be written" in error


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full disk to offer")
def test_decisions_on_a_full_disk_are_one_sentence(trace: RecordedTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    trace.record(two_pods)
    monkeypatch.setattr(command, "open", lambda _path, _mode: open("/dev/full", "wb"), raising=False)  # noqa: SIM115 - as there
    assert trace.run("--decisions=full") == (2, "", "full: cannot be written: No space left on device\n")


@pytest.mark.parametrize(
    "settings",
    [
        {"percentageOfNodesToScore": 1},
        {"loadmaster": {"seed": 7}},
        {"profile": {"plugins": {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}}}},
        {"profile": {"plugins": {"score": {"disabled": [{"name": "*"}]}}}},
    ],
    ids=["a part of the nodes", "a seed", "no preemption", "no scores"],
)
def test_other_configurations_are_recorded_and_replayed(settings: dict[str, Any], trace: RecordedTrace) -> None:
    trace.record_hour(pods=80, **settings)
    assert trace.decided_again()["decisions"] > 80


async def other_pods(stage: Stage) -> None:
    for number in range(30):
        stage.pod(f"other-{number}")
        await stage.schedule()


def test_a_search_of_a_part_of_the_nodes_goes_on_where_the_last_one_ended(trace: RecordedTrace) -> None:
    trace.record(other_pods, before=plain_pods, nodes=200, percentageOfNodesToScore=1)

    assert trace.decided_again()["decisions"] == 30
    assert {line[5] for line in trace.lines("decide")} != {0}


def test_rows_of_nodes_that_went_are_where_they_were(trace: RecordedTrace) -> None:
    async def nodes_go(stage: Stage) -> None:
        for name in ("node-4", "node-2", "node-7"):
            node = stage.engine.cache.table.node(name)
            assert node is not None
            stage.engine.handlers.node_deleted(node)

    async def nodes_come(stage: Stage) -> None:
        for number in range(40):  # the nodes come into rows that are free, the last that went first
            stage.node(f"new-{number}")
            stage.pod(f"pod-{number}")
            await stage.schedule()

    trace.record(nodes_come, before=nodes_go)

    [layout] = trace.lines("layout")
    assert layout[3] == [4, 2, 7]
    assert [row for row, name in enumerate(layout[2]) if not name] == [2, 4, 7]
    assert trace.decided_again()["decisions"] == 40


def test_nodes_that_are_left_alone_are_left_alone_again(trace: RecordedTrace) -> None:
    async def one_node_is_left_alone(stage: Stage) -> None:
        stage.engine.cache.rest("node-0")

    async def others_come_and_go(stage: Stage) -> None:
        for number in range(12):
            if number == 4:
                stage.engine.cache.rest("node-1")
            if number == 8:
                stage.engine.cache.end_rest("node-0")
                stage.engine.cache.end_rest("node-1")
            stage.pod(f"pod-{number}")
            await stage.schedule()

    trace.record(others_come_and_go, before=one_node_is_left_alone, nodes=3)

    nodes = [decision[0] for decision in decisions_in(trace)]
    assert set(nodes[:4]) == {"node-1", "node-2"}
    assert set(nodes[4:8]) == {"node-2"}
    assert {"node-0", "node-1"} & set(nodes[8:])
    assert trace.decided_again()["decisions"] == 12


def test_a_trace_that_was_changed_is_not_as_recorded(trace: RecordedTrace) -> None:
    trace.record_hour(pods=40)
    chosen = next(line for line in trace.lines("decide") if line[6][0] and line[6][2] > 1)

    def score_higher(line: list[Any]) -> None:
        if line == chosen:
            line[6][3] += 1

    trace.edit(score_higher)

    code, report = trace.replay("--edited")

    assert code == 1
    assert report["kinds"]["other scores"] >= 1
    assert report["differences"][0]["pod"] == f"default/{chosen[2]}"


class CountingApi(NoWrites):
    """Every second patch is refused."""

    def __init__(self) -> None:
        self.calls = 0

    async def patch(
        self, resource: str, name: str, namespace: str, patch: Mapping[str, Any], subresource: str = ""
    ) -> Any:
        self.calls += 1
        if self.calls % 2:
            raise ApiError(409, "another version")
        return Unstructured.from_dict({"metadata": {"name": name, "uid": name}, "spec": patch})


class Ledger(fw.ReservePlugin, fw.PreBindPlugin, fw.PostBindPlugin, fw.ScorePlugin):
    """Keeps in memory what it was asked and what PreBind was answered, and scores by it: state that no table has."""

    name = "Ledger"

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle
        self.entries: dict[str, int] = {}

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> int:
        return self.entries.get(node.name, 0) * 7 % 101

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        self.entries[node_name] = self.entries.get(node_name, 0) + 1
        return fw.unschedulable("not today") if pod.name.endswith("13") else None

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        self.entries[node_name] += 2

    def pre_bind_pre_flight(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        return None if pod.priority else fw.SKIP

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        self.entries[node_name] += 31
        try:
            await self.handle.api.patch("Ledger", pod.name, pod.namespace, {})
        except ApiError:
            self.entries[node_name] += 5
            return fw.unschedulable("not written")
        self.entries[node_name] += 11
        return None

    async def post_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        self.entries[node_name] += 17


def with_plugin(plugin: type[fw.Plugin], **enabling: Any) -> dict[str, Any]:
    """Settings of a recording."""
    return {"registry": {**in_tree(), plugin.name: plugin}, "profile": enabled(plugin.name, **enabling)}


def test_what_plugins_keep_in_memory_is_made_again(trace: RecordedTrace) -> None:
    trace.record_hour(before=0, api=CountingApi(), **with_plugin(Ledger, weight=50))

    assert {"answer", "prebind", "undo"} <= set(trace.kinds())
    assert trace.decided_again(plugins={"Ledger": Ledger})["decisions"] > 150


def test_a_plugin_that_is_not_there_is_one_sentence(trace: RecordedTrace) -> None:
    trace.record_hour(before=0, pods=3, **with_plugin(Ledger))
    code, _, error = trace.run()
    assert code == 2
    assert "Ledger" in error
    assert "need --plugin-dir here" in error


class Broken(fw.FilterPlugin):
    name = "Broken"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        if pod.name.endswith("3"):
            raise RuntimeError("out of order")
        return None


def test_an_attempt_that_a_fault_ended_is_decided_again(trace: RecordedTrace) -> None:
    trace.record_hour(pods=60, **with_plugin(Broken))

    assert any("out of order" in decision[8] for decision in decisions_in(trace))
    trace.decided_again(plugins={"Broken": Broken})


class Choosy(fw.FilterPlugin):
    name = "Choosy"
    reads_raw_pods = True

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return None if pod.annotations.get("node") == node.name else fw.unschedulable("another node")


def test_a_plugin_that_reads_raw_pods_decides_the_same_in_a_replay(trace: RecordedTrace) -> None:
    async def before(stage: Stage) -> None:
        stage.pod("before", annotations={"node": "node-1"})

    async def during(stage: Stage) -> None:
        stage.pod("during", annotations={"node": "node-2"})
        await stage.schedule()

    trace.record(during, before=before, nodes=3, **with_plugin(Choosy))

    assert [decision[0] for decision in decisions_in(trace)] == ["node-1", "node-2"]
    assert trace.decided_again(plugins={"Choosy": Choosy})["decisions"] == 2


def test_a_configuration_that_reads_raw_pods_needs_a_trace_that_has_them(trace: RecordedTrace) -> None:
    trace.record_hour(before=0, pods=3)
    code, _, error = trace.run(profiles=[enabled("Choosy")], plugins={"Choosy": Choosy})
    assert code == 2
    assert "read raw pods, which the trace does not have" in error


def test_pods_that_are_assumed_at_the_start_are_counted(trace: RecordedTrace) -> None:
    async def assumed(stage: Stage) -> None:
        pod = stage.pod("assumed", {"container": {"resources": {"requests": {"cpu": "3"}}}})
        assert stage.engine.queue.pop_nowait() is not None
        stage.engine.cache.assume(pod.bound_to("node-0"))

    async def another(stage: Stage) -> None:
        stage.pod("next", {"container": {"resources": {"requests": {"cpu": "2"}}}})
        await stage.schedule()

    trace.record(another, before=assumed, nodes=2)

    found = trace.lines()
    [count] = [line for line in found[: found.index(["begin", 0])] if line[0] == "count"]
    assert count[2:4] == ["assumed", True]
    assert [line[3] for line in trace.lines("assume")] == ["node-1"]
    assert trace.decided_again()["decisions"] == 1


def test_another_configuration_is_compared_and_says_why(trace: RecordedTrace) -> None:
    trace.record_hour(pods=60)

    report = trace.decided_by(MOST_ALLOCATED)

    assert report["kinds"]["other node"] > 10
    difference = next(each for each in report["differences"] if each["kind"] == "other node")
    then, now = difference["then"]["node"], difference["now"]["node"]
    scores = difference["why"]["scores"]
    assert sum(scores[now].values()) >= sum(scores[then].values())
    assert scores[now]["NodeResourcesFit"] != scores[then]["NodeResourcesFit"] or difference["why"]["tie"]
    assert not report["notes"], "the recorded configuration still decides as recorded"
    _, text, _ = trace.run(profiles=[MOST_ALLOCATED])
    assert " differ: " in text
    assert "  then: placed on " in text
    assert "    NodeResourcesFit: " in text


def test_what_another_configuration_tries_leaves_nothing_behind(trace: RecordedTrace) -> None:
    """Few nodes, and much preemption: which of two equal nodes is chosen depends on the order of their pods."""
    trace.record_hour(seed=106, before=60, pods=120, nodes=5)

    report = trace.decided_by(MOST_ALLOCATED)

    assert report["decisions"] > 500
    assert not report["notes"], "the recorded configuration still decides as recorded"


def test_ctrl_c_ends_a_replay_even_within_a_plugin(trace: RecordedTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    handlers: list[Any] = []

    def opened(path: str) -> Trace:
        handlers.append(signal.getsignal(signal.SIGINT))
        return Trace(path)

    monkeypatch.setattr(command, "Trace", opened)
    before = signal.getsignal(signal.SIGINT)
    trace.record(two_pods)
    trace.run()
    assert handlers == [signal.SIG_DFL]
    assert signal.getsignal(signal.SIGINT) is before


def test_profiles_that_do_not_fit_are_one_sentence(trace: RecordedTrace) -> None:
    trace.record(two_pods)
    code, _, error = trace.run(profiles=[{"schedulerName": name} for name in "ab"])
    assert code == 2
    assert "the trace has a profile 'default-scheduler', the configuration has only a, b" in error


def test_the_recorded_configuration_left_to_itself_comes_to_the_same(trace: RecordedTrace) -> None:
    trace.record(plain_pods)
    report = trace.decided_by({"schedulerName": PROFILE})
    assert report["different"] == 0
    found = report["carriedOn"]
    assert found["then"] == found["now"]
    assert found["then"]["pods"] == 40
    assert found["then"]["cpu"]["requested"] == 20_000


def test_another_profile_takes_the_pods_of_the_only_one_and_left_to_itself_packs_them(trace: RecordedTrace) -> None:
    trace.record(partial(plain_pods, count=20))
    packing = {**MOST_ALLOCATED, "schedulerName": "packing"}

    report = trace.decided_by(packing)

    assert report["kinds"]["other node"] > 1
    then, now = report["carriedOn"]["then"], report["carriedOn"]["now"]
    assert then["nodesUsed"] == 9
    assert now["nodesUsed"] == 3
    assert (now["pods"], now["pending"]) == (then["pods"], then["pending"]) == (20, 0)
    assert "nodes with pods                          9           3" in trace.run(profiles=[packing])[1]


def only_node_1() -> dict[str, Any]:
    """A profile with a node affinity of its own."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    plugin = {"name": "NodeAffinity", "args": {"addedAffinity": affinity}}
    return {"schedulerName": PROFILE, "pluginConfig": [plugin]}


def test_a_pod_that_waits_here_makes_room_wherever_it_went_then(trace: RecordedTrace) -> None:
    large = {"resources": {"requests": {"cpu": "3"}}}

    async def three_pods(stage: Stage) -> None:
        there = {"nodeSelector": {"kubernetes.io/hostname": "node-1"}}
        before = stage.pod("before", {"container": large, "priority": 100, **there})
        await stage.schedule()
        stage.pod("high", {"container": large, "priority": 100})
        await stage.schedule()
        stage.engine.handlers.pod_deleted(stage.engine.pods[before.uid])
        stage.pod("low", {"container": large})
        await stage.schedule()

    trace.record(three_pods, nodes=2)
    assert [decision[0] for decision in decisions_in(trace)] == ["node-1", "node-0", "node-1"]

    found = trace.decided_by(only_node_1())["carriedOn"]

    assert found["evicted"] == 1, "low makes room for high, which waited on no node"
    assert (found["now"]["pods"], found["now"]["pending"]) == (1, 0)


def test_a_busy_hour_left_to_itself_evicts_and_waits(trace: RecordedTrace) -> None:
    trace.record_hour(pods=120)
    report = trace.decided_by({"schedulerName": PROFILE})
    found = report["carriedOn"]
    assert report["different"] == 0
    assert found["evicted"] > 0
    assert abs(found["now"]["pods"] - found["then"]["pods"]) <= 10
    assert found["now"]["cpu"]["requested"] <= found["now"]["cpu"]["allocatable"]
