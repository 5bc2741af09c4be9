"""What was recorded is decided again, to the same result, whatever the scheduler did before and meanwhile."""

import gzip
import json
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from scheduler import framework as fw
from scheduler.__main__ import main
from scheduler.api.unstructured import Unstructured
from scheduler.commands import replaying as command
from scheduler.framework.errors import ApiError
from scheduler.framework.handle import NoWrites
from scheduler.plugin_loading.in_tree import in_tree
from scheduler.replay.trace.trace_file import Trace
from tests import fakes
from tests.unit.replay.stage import Stage, a_busy_hour, with_nodes

CaptureFixture = pytest.CaptureFixture[str]


def lines_of(path: Path) -> list[Any]:
    with gzip.open(path) as file:
        return [json.loads(line) for line in file]


def kinds_of(path: Path) -> list[str]:
    return [line[0] for line in lines_of(path)[1:]]


def replayed(
    capsys: CaptureFixture, path: Path, *options: str, plugins: Mapping[str, type[fw.Plugin]] | None = None
) -> tuple[int, dict[str, Any]]:
    code = main(["replay", str(path), "-o", "json", *options], plugins or {})
    out, err = capsys.readouterr()
    document: dict[str, Any] = json.loads(out or err)
    return code, document


Play = Callable[[Stage], Awaitable[None]]


def record_play(
    path: Path, play: Play, *, before: Play | None = None, nodes: int = 12, kind: type[Stage] = Stage, **settings: Any
) -> Path:
    async def recorded() -> None:
        stage = with_nodes(kind(**settings), nodes)
        if before is not None:
            await before(stage)
        await stage.recorded(path, lambda: play(stage))
        await stage.engine.loop.finish(0)
        stage.close()

    fakes.run(recorded())
    return path


async def plain_pods(stage: Stage, count: int = 40) -> None:
    """Pods that all find a node, and stay."""
    for number in range(count):
        stage.pod(f"pod-{number}", {"container": {"resources": {"requests": {"cpu": "500m", "memory": "256Mi"}}}})
        await stage.schedule()


def record_plain(path: Path, count: int = 40) -> Path:
    return record_play(path, partial(plain_pods, count=count))


def record(path: Path, *, before: int = 80, pods: int = 200, **settings: Any) -> Path:
    """Recorded from the middle of a busy hour."""
    early, late = (partial(a_busy_hour, seed=seed, pods=count) for seed, count in ((7, before), (8, pods)))
    return record_play(path, late, before=early, **settings)


def test_a_busy_hour_is_decided_again(tmp_path: Path, capsys: CaptureFixture) -> None:
    path, kept = record(tmp_path / "a.trace"), tmp_path / "decisions"

    code, document = replayed(capsys, path, f"--decisions={kept}")

    assert code == 0
    assert document["notes"] == document["differences"] == []
    recorded = [line[6] for line in lines_of(path)[1:] if line[0] == "decide"]
    assert document["decisions"] == len(recorded) > 400
    assert [json.loads(line) for line in kept.read_text().splitlines()] == recorded
    assert sum(bool(decision[7]) for decision in recorded) > 20, "room was made for many"
    assert {"node gone", "nominate", "no nomination", "uncount", "pod gone"} <= set(kinds_of(path))


def test_decisions_are_written_into_no_file_that_is_there(tmp_path: Path, capsys: CaptureFixture) -> None:
    path = record_plain(tmp_path / "a.trace", 2)
    before = path.read_bytes()
    assert main(["replay", str(path), f"--decisions={path}"]) == 2
    assert capsys.readouterr().err == f"{path}: is there already\n"
    assert path.read_bytes() == before


@pytest.mark.parametrize("place", ["missing/decisions", "a\0b", "x" * 300])
def test_decisions_that_cannot_be_written_are_one_sentence(
    place: str, tmp_path: Path, capsys: CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = record_plain(tmp_path / "a.trace", 2)
    assert main(["replay", str(path), f"--decisions={place}"]) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full disk to offer")
def test_decisions_on_a_full_disk_are_one_sentence(
    tmp_path: Path, capsys: CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = record_plain(tmp_path / "a.trace", 2)
    monkeypatch.setattr(command, "open", lambda _path, _mode: open("/dev/full", "wb"), raising=False)  # noqa: SIM115 - as there
    assert main(["replay", str(path), "--decisions=full"]) == 2
    assert capsys.readouterr().err == "full: cannot be written: No space left on device\n"


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
def test_other_configurations_are_recorded_and_replayed(
    settings: dict[str, Any], tmp_path: Path, capsys: CaptureFixture
) -> None:
    code, document = replayed(capsys, record(tmp_path / "a.trace", pods=80, **settings))
    assert (code, document["different"]) == (0, 0)
    assert document["decisions"] > 80


async def other_pods(stage: Stage) -> None:
    for number in range(30):
        stage.pod(f"other-{number}")
        await stage.schedule()


def test_a_search_of_a_part_of_the_nodes_goes_on_where_the_last_one_ended(
    tmp_path: Path, capsys: CaptureFixture
) -> None:
    path = record_play(tmp_path / "a.trace", other_pods, before=plain_pods, nodes=200, percentageOfNodesToScore=1)

    code, document = replayed(capsys, path)

    assert (code, document["different"], document["decisions"]) == (0, 0, 30)
    assert {line[5] for line in lines_of(path)[1:] if line[0] == "decide"} != {0}


def test_rows_of_nodes_that_went_are_where_they_were(tmp_path: Path, capsys: CaptureFixture) -> None:
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

    path = record_play(tmp_path / "a.trace", nodes_come, before=nodes_go)
    [layout] = [line for line in lines_of(path)[1:] if line[0] == "layout"]
    assert layout[3] == [4, 2, 7]
    assert [row for row, name in enumerate(layout[2]) if not name] == [2, 4, 7]

    code, document = replayed(capsys, path)

    assert (code, document["different"], document["decisions"]) == (0, 0, 40)


def test_nodes_that_are_left_alone_are_left_alone_again(tmp_path: Path, capsys: CaptureFixture) -> None:
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

    path = record_play(tmp_path / "a.trace", others_come_and_go, before=one_node_is_left_alone, nodes=3)
    nodes = [line[6][0] for line in lines_of(path)[1:] if line[0] == "decide"]
    assert set(nodes[:4]) == {"node-1", "node-2"}
    assert set(nodes[4:8]) == {"node-2"}
    assert {"node-0", "node-1"} & set(nodes[8:])

    code, document = replayed(capsys, path)

    assert (code, document["different"], document["decisions"]) == (0, 0, 12)


def test_a_trace_that_was_changed_is_not_as_recorded(tmp_path: Path, capsys: CaptureFixture) -> None:
    path = record(tmp_path / "a.trace", pods=40)
    found = lines_of(path)
    place = next(i for i, line in enumerate(found) if i and line[0] == "decide" and line[6][0] and line[6][2] > 1)
    found[place][6][3] += 1
    path.write_bytes(gzip.compress(b"".join(msgspec.json.encode(line) + b"\n" for line in found)))

    code, document = replayed(capsys, path, "--edited")

    assert code == 1
    assert document["kinds"]["other scores"] >= 1
    assert document["differences"][0]["pod"] == f"default/{found[place][2]}"


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


def test_what_plugins_keep_in_memory_is_made_again(tmp_path: Path, capsys: CaptureFixture) -> None:
    plugins: dict[str, type[fw.Plugin]] = {"Ledger": Ledger}
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "Ledger", "weight": 50}]}}}
    settings: dict[str, Any] = {"registry": {**in_tree(), **plugins}, "profile": profile, "api": CountingApi()}
    path = record(tmp_path / "a.trace", before=0, **settings)
    assert {"answer", "prebind", "undo"} <= set(kinds_of(path))

    code, document = replayed(capsys, path, plugins=plugins)

    assert (code, document["different"]) == (0, 0)
    assert document["decisions"] > 150


def test_a_plugin_that_is_not_there_is_one_sentence(tmp_path: Path, capsys: CaptureFixture) -> None:
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "Ledger"}]}}}
    path = record(tmp_path / "a.trace", before=0, pods=3, registry={**in_tree(), "Ledger": Ledger}, profile=profile)
    code = main(["replay", str(path)])
    error = capsys.readouterr().err
    assert code == 2
    assert "Ledger" in error
    assert "need --plugin-dir here" in error


class Broken(fw.FilterPlugin):
    name = "Broken"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        if pod.name.endswith("3"):
            raise RuntimeError("out of order")
        return None


def test_an_attempt_that_a_fault_ended_is_decided_again(tmp_path: Path, capsys: CaptureFixture) -> None:
    plugins: dict[str, type[fw.Plugin]] = {"Broken": Broken}
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "Broken"}]}}}
    path = record(tmp_path / "a.trace", pods=60, registry={**in_tree(), **plugins}, profile=profile)
    recorded = [line[6] for line in lines_of(path)[1:] if line[0] == "decide"]
    assert any("out of order" in decision[8] for decision in recorded)

    code, document = replayed(capsys, path, plugins=plugins)

    assert (code, document["different"]) == (0, 0)


class Choosy(fw.FilterPlugin):
    name = "Choosy"
    reads_raw_pods = True

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        return None if pod.annotations.get("node") == node.name else fw.unschedulable("another node")


def test_a_plugin_that_reads_raw_pods_decides_the_same_in_a_replay(tmp_path: Path, capsys: CaptureFixture) -> None:
    plugins: dict[str, type[fw.Plugin]] = {"Choosy": Choosy}
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "Choosy"}]}}}

    async def recorded() -> None:
        stage = with_nodes(Stage(profile, {**in_tree(), **plugins}), 3)
        stage.pod("before", annotations={"node": "node-1"})

        async def play() -> None:
            stage.pod("during", annotations={"node": "node-2"})
            await stage.schedule()

        await stage.recorded(tmp_path / "a.trace", play)
        stage.close()

    fakes.run(recorded())
    decisions = [line[6] for line in lines_of(tmp_path / "a.trace")[1:] if line[0] == "decide"]
    assert [decision[0] for decision in decisions] == ["node-1", "node-2"]

    code, document = replayed(capsys, tmp_path / "a.trace", plugins=plugins)

    assert (code, document["decisions"], document["different"]) == (0, 2, 0)


def test_a_configuration_that_reads_raw_pods_needs_a_trace_that_has_them(
    tmp_path: Path, capsys: CaptureFixture
) -> None:
    path, config = record(tmp_path / "a.trace", before=0, pods=3), tmp_path / "config.yaml"
    profile = "{schedulerName: loadmaster, plugins: {multiPoint: {enabled: [{name: Choosy}]}}}"
    kind = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration"
    config.write_text(f"{kind}\nprofiles: [{profile}]\n")

    code = main(["replay", str(path), "--config", str(config)], {"Choosy": Choosy})

    assert code == 2
    assert "read raw pods, which the trace does not have" in capsys.readouterr().err


def test_pods_that_are_assumed_at_the_start_are_counted(tmp_path: Path, capsys: CaptureFixture) -> None:
    async def assumed(stage: Stage) -> None:
        pod = stage.pod("assumed", {"container": {"resources": {"requests": {"cpu": "3"}}}})
        assert stage.engine.queue.pop_nowait() is not None
        stage.engine.cache.assume(pod.bound_to("node-0"))

    async def another(stage: Stage) -> None:
        stage.pod("next", {"container": {"resources": {"requests": {"cpu": "2"}}}})
        await stage.schedule()

    path = record_play(tmp_path / "a.trace", another, before=assumed, nodes=2)
    found = lines_of(path)[1:]
    [count] = [line for line in found[: found.index(["begin", 0])] if line[0] == "count"]
    assert count[2:4] == ["assumed", True]
    assert [line[3] for line in found if line[0] == "assume"] == ["node-1"]

    code, document = replayed(capsys, path)

    assert (code, document["different"], document["decisions"]) == (0, 0, 1)


MOST_ALLOCATED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: {profile}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{{name: cpu, weight: 1}}]
  plugins:
    score:
      disabled: [{{name: NodeResourcesBalancedAllocation}}]
"""


def test_another_configuration_is_compared_and_says_why(tmp_path: Path, capsys: CaptureFixture) -> None:
    path, config = record(tmp_path / "a.trace", pods=60), tmp_path / "new.yaml"
    config.write_text(MOST_ALLOCATED.format(profile="default-scheduler"))

    code, document = replayed(capsys, path, f"--config={config}")

    assert code == 0
    assert document["kinds"]["other node"] > 10
    difference = next(each for each in document["differences"] if each["kind"] == "other node")
    then, now = difference["then"]["node"], difference["now"]["node"]
    scores = difference["why"]["scores"]
    assert sum(scores[now].values()) >= sum(scores[then].values())
    assert scores[now]["NodeResourcesFit"] != scores[then]["NodeResourcesFit"] or difference["why"]["tie"]
    assert not document["notes"], "the recorded configuration still decides as recorded"


def test_what_another_configuration_tries_leaves_nothing_behind(tmp_path: Path, capsys: CaptureFixture) -> None:
    """Few nodes, and much preemption: which of two equal nodes is chosen depends on the order of their pods."""

    early, late = (partial(a_busy_hour, seed=seed, pods=count) for seed, count in ((106, 60), (107, 120)))
    path = record_play(tmp_path / "a.trace", late, before=early, nodes=5)
    config = tmp_path / "new.yaml"
    config.write_text(MOST_ALLOCATED.format(profile="default-scheduler"))

    code, document = replayed(capsys, path, f"--config={config}")

    assert code == 0
    assert document["decisions"] > 500
    assert not document["notes"], "the recorded configuration still decides as recorded"


def test_ctrl_c_ends_a_replay_even_within_a_plugin(
    tmp_path: Path, capsys: CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers: list[Any] = []

    def opened(path: str) -> Trace:
        handlers.append(signal.getsignal(signal.SIGINT))
        return Trace(path)

    monkeypatch.setattr(command, "Trace", opened)
    before = signal.getsignal(signal.SIGINT)
    replayed(capsys, record_plain(tmp_path / "a.trace", 2))
    assert handlers == [signal.SIG_DFL]
    assert signal.getsignal(signal.SIGINT) is before


def test_another_profile_takes_the_pods_of_the_only_one(tmp_path: Path, capsys: CaptureFixture) -> None:
    path, config = record(tmp_path / "a.trace", pods=20), tmp_path / "new.yaml"
    config.write_text(MOST_ALLOCATED.format(profile="packing"))
    code, document = replayed(capsys, path, f"--config={config}")
    assert code == 0
    assert document["kinds"]["other node"] > 1


def test_profiles_that_do_not_fit_are_one_sentence(tmp_path: Path, capsys: CaptureFixture) -> None:
    path, config = record(tmp_path / "a.trace", pods=3), tmp_path / "new.yaml"
    config.write_text(MOST_ALLOCATED.format(profile="a") + "- schedulerName: b\n")
    code = main(["replay", str(path), f"--config={config}"])
    assert code == 2
    assert "the trace has a profile 'default-scheduler', the configuration has only a, b" in capsys.readouterr().err


def test_differences_are_told_as_text(tmp_path: Path, capsys: CaptureFixture) -> None:
    path, config = record(tmp_path / "a.trace", pods=60), tmp_path / "new.yaml"
    config.write_text(MOST_ALLOCATED.format(profile="default-scheduler"))

    main(["replay", str(path), f"--config={config}"])
    text = capsys.readouterr().out

    assert " differ: " in text
    assert "  then: placed on " in text
    assert "    NodeResourcesFit: " in text


SAME = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
"""


def test_the_recorded_configuration_left_to_itself_comes_to_the_same(tmp_path: Path, capsys: CaptureFixture) -> None:
    path, config = record_plain(tmp_path / "a.trace"), tmp_path / "same.yaml"
    config.write_text(SAME)
    _, document = replayed(capsys, path, f"--config={config}")
    assert document["different"] == 0
    found = document["carriedOn"]
    assert found["then"] == found["now"]
    assert found["then"]["pods"] == 40
    assert found["then"]["cpu"]["requested"] == 20_000


def test_another_configuration_left_to_itself_packs_pods(tmp_path: Path, capsys: CaptureFixture) -> None:
    path, config = record_plain(tmp_path / "a.trace", 20), tmp_path / "new.yaml"
    config.write_text(MOST_ALLOCATED.format(profile="packing"))

    _, document = replayed(capsys, path, f"--config={config}")

    then, now = document["carriedOn"]["then"], document["carriedOn"]["now"]
    assert then["nodesUsed"] == 9
    assert now["nodesUsed"] == 3
    assert (now["pods"], now["pending"]) == (then["pods"], then["pending"]) == (20, 0)
    main(["replay", str(path), f"--config={config}"])
    assert "nodes with pods                          9           3" in capsys.readouterr().out


ONLY_NODE_1: Final = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-1]}]
"""


def test_a_pod_that_waits_here_makes_room_wherever_it_went_then(tmp_path: Path, capsys: CaptureFixture) -> None:
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

    path, config = record_play(tmp_path / "a.trace", three_pods, nodes=2), tmp_path / "new.yaml"
    assert [line[6][0] for line in lines_of(path)[1:] if line[0] == "decide"] == ["node-1", "node-0", "node-1"]
    config.write_text(ONLY_NODE_1)

    _, document = replayed(capsys, path, f"--config={config}")

    found = document["carriedOn"]
    assert found["evicted"] == 1, "low makes room for high, which waited on no node"
    assert (found["now"]["pods"], found["now"]["pending"]) == (1, 0)


def test_a_busy_hour_left_to_itself_evicts_and_waits(tmp_path: Path, capsys: CaptureFixture) -> None:
    path, config = record(tmp_path / "a.trace", pods=120), tmp_path / "same.yaml"
    config.write_text(SAME)
    _, document = replayed(capsys, path, f"--config={config}")
    found = document["carriedOn"]
    assert document["different"] == 0
    assert found["evicted"] > 0
    assert abs(found["now"]["pods"] - found["then"]["pods"]) <= 10
    assert found["now"]["cpu"]["requested"] <= found["now"]["cpu"]["allocatable"]
