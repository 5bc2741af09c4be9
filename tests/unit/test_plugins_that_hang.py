"""Whatever a plugin does when it is made, started or stopped, a command says so in a line, and ends."""

import subprocess
import sys
from pathlib import Path

import pytest

from scheduler.__main__ import main
from scheduler.plugin_loading import trial

pytestmark = pytest.mark.programs

SECONDS = 150
"""For a command to end, however busy the machine is."""

PLUGIN = """\
import asyncio, atexit, os, sys, threading, time
from dataclasses import dataclass
from typing import ClassVar
from scheduler import framework as fw

def forever():
    while True:
        time.sleep(0.01)

class Mine(fw.FilterPlugin):
    name: ClassVar[str] = "Mine"

    def filter(self, state, pod, node):
        return None

"""
LINE = PLUGIN.count("\n") + 2
"""Of the first line within a method that is added."""

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Mine}]}}}]
"""
CLUSTER = """\
kind: Node
metadata: {name: n}
status: {capacity: {cpu: 4, memory: 8Gi, pods: 110}}
---
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c}]}
"""
COMMANDS = {
    "simulate": ["simulate", "cluster.yaml", "--config", "config.yaml"],
    "what if": ["simulate", "cluster.yaml", "--config", "config.yaml", "--fill"],
    "explain": ["explain", "p", "--from", "cluster.yaml", "--config", "config.yaml"],
    "list": ["plugins", "list", "--config", "config.yaml"],
    "check": ["config", "check", "config.yaml"],
}
FAULTS = {
    "loops": ("start(self, handle):\n        while True: pass", "has not come back for 0.5 s while it was made"),
    "loops in C": ("start(self, handle):\n        sum(iter(int, 1))", "has not come back for 0.5 s while it was made"),
    "waits": (
        "start(self, handle):\n        threading.Event().wait()",
        "has not come back for 0.5 s while it was made",
    ),
    "catches all": (
        "start(self, handle):\n        while True:\n            try: forever()\n            except BaseException: pass",
        "has not come back for 0.5 s while it was made",
    ),
    "loops when made": ("__init__(self):\n        forever()", "has not come back for 0.5 s while it was made"),
    "loops at stop": ("stop(self):\n        forever()", "has not come back for 0.5 s while it was made"),
    "exits": ("start(self, handle):\n        os._exit(0)", "it ends the program, with os._exit, while plugins are"),
    "crashes": (
        "start(self, handle):\n        import ctypes; ctypes.string_at(0)",
        "a plugin crashed Python while it was made or started: Segmentation fault",
    ),
    "kills itself": ("start(self, handle):\n        os.kill(os.getpid(), 9)", "a plugin ended Python while it was"),
}


def prepare(directory: Path, method: str) -> None:
    """Write files for the commands, with a plugin that has this method."""
    (directory / "plugins").mkdir()
    (directory / "plugins" / "mine.py").write_text(f"{PLUGIN}    def {method}\n")
    (directory / "config.yaml").write_text(CONFIG)
    (directory / "cluster.yaml").write_text(CLUSTER)


@pytest.fixture(autouse=True)
def _begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "START_SECONDS", 0.5)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_plugin_that_does_not_come_back_from_its_start_is_told_in_a_line(
    fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    method, said = FAULTS[fault]
    prepare(tmp_path, method)

    code = main([*COMMANDS["simulate"], "--plugin-dir=plugins"])

    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1
    if fault != "kills itself":
        assert "plugins/mine.py:" in err


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "simulate"])
def test_each_command_that_loads_plugins_says_so(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    method, said = FAULTS["loops"]
    prepare(tmp_path, method)

    assert main([*COMMANDS[command], "--plugin-dir=plugins"]) == 2

    assert f"plugins/mine.py:{LINE}: a plugin {said}" in capsys.readouterr().err


LASTING = """start(self, handle):
        import concurrent.futures
        threading.Thread(target=forever).start()
        concurrent.futures.ThreadPoolExecutor().submit(forever)
        atexit.register(forever)
"""


@pytest.mark.parametrize("command", ["simulate", "explain"])
def test_nothing_that_a_plugin_leaves_behind_keeps_the_program_alive(command: str, tmp_path: Path) -> None:
    prepare(tmp_path, LASTING)

    done = subprocess.run(
        [sys.executable, "-m", "scheduler", *COMMANDS[command], "--plugin-dir=plugins"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert done.returncode == 0
    assert "n" in done.stdout


def test_what_raises_at_the_start_is_told_as_ever(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepare(tmp_path, 'start(self, handle):\n        raise ValueError("no")')

    assert main([*COMMANDS["simulate"], "--plugin-dir=plugins"]) == 2

    assert "profile 'loadmaster': plugin 'Mine' did not start: ValueError: no" in capsys.readouterr().err
