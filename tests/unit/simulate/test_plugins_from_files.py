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
    needs: ClassVar[tuple[str, ...]] = (NEEDS)

    def filter(self, state, pod, node):
        (container,) = pod.spec.containers
        return fw.unschedulable("shop") if container.command == ("shop",) else None
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
    """Simulate with these needs; return message by pod, or what is printed of problems."""
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)

    def simulate(needs: str) -> Any:
        (tmp_path / "mine.py").write_text(PLUGIN.replace("NEEDS", needs))
        files = [f"{tmp_path}/cluster.yaml", f"--config={tmp_path}/config.yaml", f"--plugin-dir={tmp_path}"]
        code = main(["simulate", *files, "-o", "json"])
        out, err = capsys.readouterr()
        return err if code else {pod["name"]: pod["message"] for pod in json.loads(out)["pods"]}

    return simulate


def test_a_plugin_has_what_it_needs_of_pods(simulated: Any) -> None:
    messages = simulated('"spec.containers.command",')

    assert messages["shop"].startswith("0/1 nodes are available: 1 shop.")
    assert messages["bank"] == ""


def test_reading_what_nobody_needs_says_which_line_is_missing(simulated: Any) -> None:
    messages = simulated("")

    for message in messages.values():
        assert "Mine" in message
        assert 'add needs = ("spec.containers.command",)' in message


def test_a_need_that_pods_do_not_have_is_a_line_with_its_place(simulated: Any, tmp_path: Path) -> None:
    assert simulated('"spec.container.command",') == (
        f"{tmp_path}/mine.py:6: Mine: needs: pods have no field spec.container; did you mean 'containers'?\n"
    )
