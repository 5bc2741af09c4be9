"""`simulate` loads plugins as `run` does, and has of pods what `run` has."""

import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.__main__ import main

PLUGIN = """\
from typing import ClassVar
from scheduler import framework as fw

class Mine(fw.FilterPlugin):
    name: ClassVar[str] = "Mine"
    reads_raw_pods: ClassVar[bool] = RAW

    def filter(self, state, pod, node):
        (container,) = pod.raw["spec"]["containers"]
        return fw.unschedulable("shop") if container["command"] == ["shop"] else None
"""
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: loadmaster, plugins: {multiPoint: {enabled: [{name: Mine}]}}}]
"""
CLUSTER = """\
kind: Node
metadata: {name: n}
status: {capacity: {cpu: 4, memory: 8Gi, pods: 110}}
---
kind: Pod
metadata: {name: shop}
spec: {containers: [{name: c, command: [shop], resources: {limits: {cpu: 1}}}]}
---
kind: Pod
metadata: {name: bank}
spec: {containers: [{name: c, command: [bank]}]}
"""


@pytest.fixture
def simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Simulate with a plugin that reads raw pods; return message by pod, or the problems as printed."""
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)

    def simulate(*, flag: bool) -> Any:
        (tmp_path / "mine.py").write_text(PLUGIN.replace("RAW", str(flag)))
        files = [f"{tmp_path}/cluster.yaml", f"--config={tmp_path}/config.yaml", f"--plugin-dir={tmp_path}"]
        code = main(["simulate", *files, "-o", "json"])
        out, err = capsys.readouterr()
        return err if code else {pod["name"]: pod["message"] for pod in json.loads(out)["pods"]}

    return simulate


def test_a_plugin_that_reads_raw_pods_has_them(simulated: Any) -> None:
    messages = simulated(flag=True)

    assert messages["shop"].startswith("0/1 nodes are available: 1 shop.")
    assert messages["bank"] == ""


def test_reading_raw_pods_without_saying_so_names_the_missing_line(simulated: Any) -> None:
    messages = simulated(flag=False)

    for message in messages.values():
        assert "Mine" in message
        assert "add `reads_raw_pods: ClassVar[bool] = True` to the plugin" in message
