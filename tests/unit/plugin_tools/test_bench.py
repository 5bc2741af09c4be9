"""`loadmaster plugins bench`: what a plugin adds to a decision."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from scheduler.__main__ import main

pytestmark = [pytest.mark.programs, pytest.mark.usefixtures("frozen_again")]

Output = pytest.CaptureFixture[str]

HEAD = "import time\nfrom scheduler import framework as fw\n"

TIER = """
class Tier(fw.FilterPlugin, fw.PreBindPlugin):
    name = "Tier"
    reads_raw_pods = True

    def filter(self, state, pod, node):
        tier = pod.annotations.get("example.com/tier")
        return fw.unschedulable("of no tier") if tier is None else None

    async def pre_bind(self, state, pod, node_name):
        time.sleep(0.0005)
"""
SIGNED = """
import numpy as np
class Signed(fw.ScoreNodesPlugin, fw.SignPlugin):
    name = "Signed"
    aspects = fw.Aspect.REQUESTED

    def sign(self, pod):
        return ()

    def score_nodes(self, state, pod, nodes, rows):
        return np.zeros(len(rows), np.int64)
"""
QUEUE = """
class Queue(fw.QueueSortPlugin, fw.PreEnqueuePlugin, fw.BindPlugin):
    name = "Queue"

    def start(self, handle):
        self.handle = handle

    def less(self, a, b):
        return a.timestamp < b.timestamp

    def pre_enqueue(self, pod):
        return None

    async def bind(self, state, pod, node_name):
        await self.handle.binder.bind(pod, node_name)
"""
SLOW = """
class Slow(fw.FilterPlugin):
    name = "Slow"

    def filter(self, state, pod, node):
        time.sleep(0.01)
"""
HANGING = SLOW.replace("time.sleep(0.01)", "time.sleep(600)")
POD = """
kind: Pod
metadata: {annotations: {example.com/tier: gold}}
spec:
  containers: [{name: main, resources: {requests: {cpu: 1}}}]
"""


@pytest.fixture
def bench(tmp_path: Path, capsys: Output) -> Any:
    def run(code: str, *options: str, nodes: int = 20, seconds: float = 0.1) -> Any:
        file = tmp_path / "mine.py"
        file.write_text(HEAD + code)
        command = ["plugins", "bench", str(file), f"--nodes={nodes}", f"--seconds={seconds}", "-o", "json", *options]
        assert main(command) == 0
        return json.loads(capsys.readouterr().out)["plugins"]

    return run


def points(workload: Any) -> dict[str, tuple[str, bool | None]]:
    return {each["name"]: (each["form"], each["signed"]) for each in workload["extensionPoints"]}


def test_it_says_what_a_plugin_adds_by_extension_point(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(POD)

    (found,) = bench(TIER, f"--pod={tmp_path}/pod.yaml")

    assert (found["plugin"], found["nodes"]) == ("Tier", 20)
    assert [each["pods"] for each in found["workloads"]] == ["alike", "different"]
    for workload in found["workloads"]:
        assert points(workload)["Filter"] == ("node by node", False)
        times = {each["name"]: each["microseconds"] for each in workload["extensionPoints"]}
        assert times["Filter"] > 0
        assert times["PreBind"] >= 500
        assert workload["withMicroseconds"] > times["Filter"]
        assert workload["withoutMicroseconds"] > 0
        assert workload["placed"] >= workload["decisions"] > 0
        assert workload["notPlaced"] == {}


LABEL = """
class Label(fw.FilterPlugin):
    name = "Label"

    def filter(self, state, pod, node):
        return None if node.labels.get("team") == "shop" else fw.unschedulable("of no team")
"""


def test_nodes_are_like_a_manifest(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text("kind: Node\nmetadata: {name: a, labels: {team: shop}}\n")

    (found,) = bench(LABEL, f"--node={tmp_path}/node.yaml")

    assert all(each["placed"] > 0 and each["notPlaced"] == {} for each in found["workloads"])


def test_why_pods_were_not_placed_is_told(bench: Any) -> None:
    (found,) = bench(TIER)

    for workload in found["workloads"]:
        assert workload["placed"] == 0
        ((reason, count),) = workload["notPlaced"].items()
        assert "20 of no tier" in reason
        assert count >= workload["decisions"]


def test_all_plugins_of_a_file_are_measured_each_in_a_profile_that_fits_it(bench: Any) -> None:
    signed, queue = sorted(bench(SIGNED + QUEUE), key=lambda each: str(each["plugin"]), reverse=True)

    assert points(signed["workloads"][0]) == {"Score": ("by columns", True)}
    assert points(queue["workloads"][0]).keys() == {"PreEnqueue", "QueueSort", "Bind"}
    for workload in queue["workloads"]:
        assert all(each["microseconds"] > 0 for each in workload["extensionPoints"])


CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: shops
  plugins:
    queueSort: {enabled: [{name: Queue}], disabled: [{name: "*"}]}
    bind: {enabled: [{name: Queue}], disabled: [{name: "*"}]}
"""


def test_a_configuration_says_at_which_points_a_plugin_is(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)

    (found,) = bench(QUEUE, f"--config={tmp_path}/config.yaml")

    times = {each["name"]: each["microseconds"] for each in found["workloads"][0]["extensionPoints"]}
    assert times["PreEnqueue"] == 0
    assert times["QueueSort"] > 0
    assert times["Bind"] > 0


def test_a_slow_plugin_is_measured_as_often_as_there_is_time(bench: Any) -> None:
    began = time.monotonic()

    (found,) = bench(SLOW, seconds=1)

    assert time.monotonic() - began < 20
    for workload in found["workloads"]:
        assert 0 < workload["decisions"] < 20
        assert workload["addedMicroseconds"] > 100_000


def test_a_plugin_that_hangs_ends_the_command_and_its_line_is_shown(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(HEAD + HANGING)
    arguments = ["plugins", "bench", f"{tmp_path}/mine.py", "--nodes=3", "--seconds=1"]
    program = (
        "from scheduler.plugin_tools import bench; bench.GRACE_SECONDS = 1.0\n"
        f"from scheduler.__main__ import main; main({arguments!r})"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)

    assert ended.returncode == 1
    assert f'File "{tmp_path}/mine.py", line 8 in filter' in ended.stderr


@pytest.mark.parametrize(
    ("code", "options", "problem"),
    [
        pytest.param("x = 1 +", (), "mine.py:1: SyntaxError", id="no Python"),
        pytest.param("x = 1", (), "mine.py: ", id="no plugin in it"),
        pytest.param(HEAD + TIER, ("--nodes=0",), "--nodes: must be from 1 to 100000, got 0", id="no nodes"),
        pytest.param(HEAD + TIER, ("--nodes=1000000",), "--nodes: must be", id="too many nodes"),
        pytest.param(HEAD + TIER, ("--seconds=0",), "--seconds: must be more than 0", id="no time"),
        pytest.param(HEAD + TIER, ("--seconds=inf",), "--seconds: must be more than 0", id="no end"),
        pytest.param(HEAD + TIER, ("--seconds=nan",), "--seconds: must be more than 0", id="no number"),
        pytest.param(HEAD + TIER, ("--pod={}/mine.py",), "mine.py", id="a pod that is none"),
        pytest.param(HEAD + TIER, ("--pod={}/list.yaml",), "list.yaml: this is not one Pod", id="not a pod"),
        pytest.param(HEAD + TIER, ("--pod={}/empty.yaml",), "empty.yaml: the pod has no containers", id="an empty pod"),
        pytest.param(HEAD + TIER, ("--pod={}/list2.yaml",), "list2.yaml: Expected", id="containers of another type"),
        pytest.param(HEAD + TIER, ("--pod={}/null.yaml",), "null.yaml: Expected", id="no metadata"),
        pytest.param(HEAD + TIER, ("--node={}/lots.yaml",), "not a quantity: 'lots'", id="an odd quantity"),
        pytest.param(HEAD + TIER, ("--pod={}/much.yaml",), "not a quantity: 'much'", id="an odd request"),
        pytest.param(HEAD + TIER, ("--pod={}/odd.yaml",), "odd.yaml: Expected `int", id="an odd pod"),
        pytest.param(HEAD + TIER, ("--node={}/pod.yaml",), "pod.yaml: this is not one Node", id="not a node"),
        pytest.param(HEAD + TIER, ("--node={}/flat.yaml",), "flat.yaml: Expected `object", id="a flat node"),
        pytest.param(HEAD + TIER, ("--node={}/few.yaml",), "few.yaml: Expected `", id="an odd node"),
        pytest.param(HEAD + TIER, ("--config={}/none.yaml",), "none.yaml: cannot be read", id="no configuration"),
        pytest.param(HEAD + TIER, ("--config={}/other.yaml",), "other.yaml: no profile enables Tier", id="no profile"),
        pytest.param(
            HEAD + TIER.replace("reads_raw", "def start(self, handle): 1 / 0\n    reads_raw"),
            (),
            "plugin 'Tier' did not start: ZeroDivisionError",
            id="does not start",
        ),
        pytest.param(
            HEAD + "from dataclasses import dataclass\n@dataclass" + TIER.replace("name =", "pool: str\n    name ="),
            (),
            "args.pool: Required value",
            id="needs arguments",
        ),
    ],
)
def test_what_cannot_be_measured_is_one_clear_error(
    tmp_path: Path, capsys: Output, code: str, options: tuple[str, ...], problem: str
) -> None:
    (tmp_path / "mine.py").write_text(code)
    (tmp_path / "list.yaml").write_text("kind: List\nitems: []\n")
    (tmp_path / "empty.yaml").write_text("kind: Pod\nspec: {containers: []}\n")
    (tmp_path / "odd.yaml").write_text("kind: Pod\nspec: {containers: [{name: main}], priority: high}\n")
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / "flat.yaml").write_text("kind: Node\nmetadata: {labels: [team]}\n")
    (tmp_path / "few.yaml").write_text("kind: Node\nstatus: {allocatable: {cpu: [1]}}\n")
    (tmp_path / "list2.yaml").write_text("kind: Pod\nspec: {containers: [{name: main, resources: [1]}]}\n")
    (tmp_path / "null.yaml").write_text("kind: Pod\nmetadata:\nspec: {containers: [{name: main}]}\n")
    (tmp_path / "lots.yaml").write_text("kind: Node\nstatus: {allocatable: {cpu: lots}}\n")
    (tmp_path / "much.yaml").write_text(POD.replace("cpu: 1", "cpu: much"))
    header = CONFIG.splitlines()[:2]
    (tmp_path / "other.yaml").write_text("\n".join(header))
    (tmp_path / "broken.py").write_text("1 / 0\n")  # another file, that does not matter

    code_ = main(["plugins", "bench", f"{tmp_path}/mine.py", *(each.format(tmp_path) for each in options)])

    assert code_ == 2
    err = capsys.readouterr().err
    assert problem in err
    assert len(err.splitlines()) == 1
    assert "broken.py" not in err


@pytest.mark.parametrize("name", ["none.py", "test_mine.py", "_shared.py", "mine.txt", ""])
def test_what_is_no_file_of_plugins_is_told(tmp_path: Path, capsys: Output, name: str) -> None:
    for each in ("test_mine.py", "_shared.py", "mine.txt"):
        (tmp_path / each).write_text(HEAD + TIER)

    assert main(["plugins", "bench", f"{tmp_path}/{name}"]) == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{tmp_path}/{name}: ")


def test_a_file_may_import_what_is_beside_it(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "_shared.py").write_text("TIER = 'of no tier'\n")

    (found,) = bench("from ._shared import TIER\n" + TIER)

    assert found["plugin"] == "Tier"


def test_the_text_is_for_people(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "mine.py").write_text(HEAD + TIER)

    assert main(["plugins", "bench", f"{tmp_path}/mine.py", "--nodes=1200", "--seconds=1"]) == 0

    out = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == "Tier on 1,200 nodes: medians in µs"
    assert any(line.startswith("Filter node by node no ") for line in lines)
    assert any("1200 of no tier" in line for line in lines)
    assert lines[-1].endswith('see "When it must be fast" in docs/plugins.md.')


def test_the_page_shows_what_is_printed(capsys: Output) -> None:
    docs = Path(__file__).parents[3] / "docs"
    shown = re.search(r"```text\n(GpuGuard on .*?)```", (docs / "plugins.md").read_text(), re.S)
    assert shown is not None

    assert main(["plugins", "bench", f"{docs}/examples/gpu_guard.py", "--nodes=1200", "--seconds=1"]) == 0

    assert words(capsys.readouterr().out) == words(shown[1])


def words(text: str) -> list[list[str]]:
    """The lines without their numbers."""
    return [re.sub(r"-?[\d,.]+", "", line).split() for line in text.splitlines()]
