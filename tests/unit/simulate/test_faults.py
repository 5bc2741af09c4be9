"""A simulation shows the author of a plugin how it failed."""

import json
import signal
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from scheduler import framework as fw
from scheduler.__main__ import main

CLUSTER = """\
kind: Node
metadata: {name: n1}
status: {capacity: {cpu: 4, memory: 8Gi, pods: 110}}
---
kind: Pod
metadata: {name: one}
spec: {containers: [{name: c}]}
---
kind: Pod
metadata: {name: two}
spec: {containers: [{name: c}]}
"""
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint:
        enabled: [{name: Odd}]
"""


class Odd(fw.FilterPlugin):
    name: ClassVar[str] = "Odd"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        sys.exit("enough")


class Wrong(fw.FilterPlugin):
    name: ClassVar[str] = "Odd"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> Any:
        return True


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "config.yaml").write_text(CONFIG)
    return [str(tmp_path / "cluster.yaml"), "--config", str(tmp_path / "config.yaml")]


@pytest.mark.parametrize("how", [[], ["--each-alone"], ["--explain"]], ids=["in turn", "each alone", "explained"])
def test_the_traceback_is_shown_once_below_the_pods(
    how: list[str], files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *files, *how], plugins={"Odd": Odd}) == 0

    out, err = capsys.readouterr()
    assert out.count('running "Odd" filter plugin: SystemExit: enough') >= 2
    assert out.count("\nplugin Odd failed at Filter for default/one (") == 1
    below = out.partition("\nplugin Odd failed")[2]
    assert below.count("  File ") == 1
    assert 'sys.exit("enough")' in below
    assert "Traceback" not in err


def test_the_document_has_the_fault_of_each_pod(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *files, "-o", "json"], plugins={"Odd": Odd}) == 0

    pods = json.loads(capsys.readouterr().out)["pods"]
    fault = pods[1]["fault"]
    assert {key: fault[key] for key in ("plugin", "extensionPoint", "type")} == {
        "plugin": "Odd",
        "extensionPoint": "Filter",
        "type": "SystemExit",
    }
    assert fault["at"].startswith(f"{__file__}:")
    assert fault["traceback"].endswith("SystemExit: enough\n")


def test_a_wrong_answer_is_shown_with_the_place_of_the_method(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *files], plugins={"Odd": Wrong}) == 0

    out = capsys.readouterr().out
    assert 'running "Odd" filter plugin: filter answered True (bool), expected None or a Status' in out
    assert f"plugin Odd failed at Filter for default/one ({__file__}:" in out


def test_an_interrupt_ends_a_simulation_at_once_and_is_python_s_again_afterwards(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    handlers: list[Any] = []

    class Looks(Odd):
        def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
            handlers.append(signal.getsignal(signal.SIGINT))
            return None

    before = signal.getsignal(signal.SIGINT)
    assert main(["simulate", *files], plugins={"Odd": Looks}) == 0

    assert handlers[0] is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is before
