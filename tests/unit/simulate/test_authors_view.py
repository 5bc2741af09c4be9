"""What the author of a plugin sees of a simulation: what he prints, and where his code fails."""

import json
from pathlib import Path

import pytest

from scheduler.__main__ import main
from scheduler.plugin_loading import registry

pytestmark = pytest.mark.programs

PLUGIN = """\
import sys
from dataclasses import dataclass
from scheduler import framework as fw

FAILING = "WHICH"
ADDED = fw.ClusterEvent(fw.NODE, fw.Action.ADD)

def called(point, answer=None):
    print("printed in", point)
    sys.stdout.write(f"written in {point}\\n")
    if point == FAILING:
        fail()
    return answer

def fail():
    raise LookupError("not there")  # here

called("import")

@dataclass
class Mine(
    fw.PreEnqueuePlugin, fw.QueueSortPlugin, fw.PreFilterPlugin, fw.FilterPlugin, fw.PostFilterPlugin,
    fw.PreScorePlugin, fw.ScorePlugin, fw.NormalizeScorePlugin, fw.ReservePlugin, fw.PermitPlugin,
    fw.PreBindPlugin, fw.BindPlugin, fw.PostBindPlugin,
):
    name = "Mine"

    def __post_init__(self):
        called("__post_init__")

    def problems(self):
        return called("problems", ())

    def start(self, handle):
        called("start")

    def events_to_register(self):
        return called("events_to_register", [fw.ClusterEventWithHint(ADDED, self.hint)])

    def hint(self, pod, old, new):
        return called("hint", fw.QueueingHint.SKIP)

    def pre_enqueue(self, pod):
        return called("pre_enqueue")

    def less(self, a, b):
        return called("less", a.pod.name < b.pod.name)

    def concerns(self, pod):
        return called("concerns", True)

    def pre_filter(self, state, pod, nodes):
        return called("pre_filter")

    def filter(self, state, pod, node):
        return called("filter", fw.unschedulable("full") if "unlucky" in pod.name else None)

    def post_filter(self, state, pod, node_to_status):
        return called("post_filter", (None, fw.unschedulable("no room")))

    def concerns_score(self, pod):
        return called("concerns_score", True)

    def pre_score(self, state, pod, nodes, rows):
        return called("pre_score")

    def score(self, state, pod, node):
        return called("score", 1)

    def normalize_score(self, state, pod, scores):
        return called("normalize_score", scores)

    def reserve(self, state, pod, node_name):
        return called("reserve")

    def unreserve(self, state, pod, node_name):
        called("unreserve")

    def permit(self, state, pod, node_name):
        return called("permit", fw.unschedulable("not now") if "refused" in pod.name else None)

    @property
    def wait_seconds(self):
        return called("wait_seconds", 1.0)

    def pre_bind_pre_flight(self, state, pod, node_name):
        return called("pre_bind_pre_flight")

    async def pre_bind(self, state, pod, node_name):
        return called("pre_bind")

    async def bind(self, state, pod, node_name):
        called("bind")
        return fw.SKIP

    async def post_bind(self, state, pod, node_name):
        called("post_bind")

    def stop(self):
        called("stop")
"""
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      queueSort: {enabled: [{name: Mine}], disabled: [{name: "*"}]}
      bind: {enabled: [{name: Mine}, {name: DefaultBinder}], disabled: [{name: "*"}]}
      multiPoint: {enabled: [{name: Mine}]}
"""
CLUSTER = """\
kind: Node
metadata: {name: n1}
status: {capacity: {cpu: 4, memory: 8Gi, pods: 110}}
---
kind: Node
metadata: {name: n2}
status: {capacity: {cpu: 4, memory: 8Gi, pods: 110}}
"""
PODS = ("lucky", "unlucky", "refused")
TRIED_OUT = ("import", "__post_init__", "problems", "start", "events_to_register", "stop")
"""What a child does first, where a simulation would not begin if it fails there."""

POINTS = sorted({line.split('called("')[1].split('"')[0] for line in PLUGIN.splitlines() if 'called("' in line})


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    pods = [f"---\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: c}}]}}\n" for name in PODS]
    (tmp_path / "cluster.yaml").write_text(CLUSTER + "".join(pods))
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "plugins").mkdir()
    return [f"{tmp_path}/cluster.yaml", f"--config={tmp_path}/config.yaml", f"--plugin-dir={tmp_path}/plugins"]


def write_plugin(directory: Path, failing: str = "") -> Path:
    path = directory / "plugins" / "mine.py"
    path.write_text(PLUGIN.replace("WHICH", failing))
    return path


def test_what_a_plugin_prints_goes_to_standard_error_whatever_it_is_asked(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_plugin(tmp_path)

    main(["simulate", *files, "-o", "json"])

    out, err = capsys.readouterr()
    assert {pod["name"]: pod["node"] is not None for pod in json.loads(out)["pods"]} == {
        "lucky": True,
        "unlucky": False,
        "refused": False,
    }
    asked = set(POINTS) - {"hint"}  # no node comes
    assert {point for point in asked if f"printed in {point}\n" in err} == asked
    assert {point for point in asked if f"written in {point}\n" in err} == asked


@pytest.mark.parametrize("command", [["config", "show"], ["config", "check"]])
def test_no_command_has_it_among_its_results(
    command: list[str], files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_plugin(tmp_path)

    main([*command, f"{tmp_path}/config.yaml", files[-1]])

    out, err = capsys.readouterr()
    assert "printed in import" in err
    assert "printed in" not in out


@pytest.mark.parametrize("point", [point for point in POINTS if point != "hint"])
def test_an_author_finds_the_line_that_failed_whatever_his_plugin_was_asked(
    point: str,
    files: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = write_plugin(tmp_path, failing=point)
    if point not in TRIED_OUT:
        monkeypatch.setattr(registry, "try_out", lambda *_: [])

    main(["simulate", *files])

    shown = "".join(capsys.readouterr()) + caplog.text
    line = PLUGIN[: PLUGIN.index("# here")].count("\n") + 1
    assert "LookupError: not there" in shown
    assert f"{path}:{line}" in shown or f'File "{path}", line {line}, in fail' in shown
