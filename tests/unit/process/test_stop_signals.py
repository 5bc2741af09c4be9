"""SIGTERM ends `loadmaster run` within its grace, whatever plugins do.

The program itself runs with each plugin, all at once and without an API server that answers; its times are shorter. Its
modules are loaded once: each program is forked from a process that has them.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.programs

GRACE = 3.0
PATIENCE = 150
"""Seconds for what has to come, however busy the machine is."""

FORKS = f"""\
import os, sys
import scheduler.assembly.scheduling
from scheduler.__main__ import main
from scheduler.process import stop_signals
from scheduler.process.ending import run_to_the_end

stop_signals.GRACE_SECONDS = {GRACE}
stop_signals.LOG_SECONDS = 30.0
stop_signals.LOOK_SECONDS = 0.1
for directory in sys.argv[1:]:
    if child := os.fork():
        print(child, flush=True)
        continue
    os.chdir(directory)
    log = os.open("log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    names = {{}}
    exec(compile(open("mine.py").read(), "mine.py", "exec"), names)
    run_to_the_end(lambda: main(["run", "--config=config.yaml", "--secure-port=0"], {{"Mine": names["Mine"]}}))
for _ in sys.argv[1:]:
    child, status = os.wait()
    print(child, os.waitstatus_to_exitcode(status), flush=True)
"""
PLUGIN = """\
import asyncio, atexit, os, signal, sys, threading, time
from typing import ClassVar
from scheduler import framework as fw

def forever():
    while True:
        time.sleep(0.01)

def ignore(handler):
    later(lambda: signal.signal(signal.SIGTERM, handler))

def later(function):
    if os.path.exists("go"):
        os.rename("go", "gone")
        function()
    else:
        asyncio.get_running_loop().call_later(0.05, later, function)

async def stubborn():
    while True:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            pass

class Mine(fw.FilterPlugin):
    name: ClassVar[str] = "Mine"

    def filter(self, state, pod, node):
        return None

"""
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: KUBECONFIG}
profiles: [{plugins: {multiPoint: {enabled: [{name: Mine}]}}}]
"""
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
"""
BY_ITSELF = {
    "nothing": "    pass",
    "what a plugin leaves behind": (
        "    def start(self, handle):\n"
        "        threading.Thread(target=forever).start()\n        atexit.register(forever)"
    ),
    "a handler in the place of ours": "    def start(self, handle):\n        ignore(lambda *_: None)",
    "a signal that is ignored": "    def start(self, handle):\n        ignore(signal.SIG_IGN)",
}
AT_THE_END = {
    "a loop": ("    def start(self, handle):\n        later(forever)", "mine.py:"),
    "a loop in C": (
        "    def start(self, handle):\n        later(lambda: sum(iter(lambda: 1, 2)))",
        "mine.py:",
    ),
    "a loop at its stop": (
        "    def start(self, handle):\n        later(lambda: setattr(type(self), 'stop', lambda _: forever()))",
        "mine.py:",
    ),
    "a wait": ("    def start(self, handle):\n        later(threading.Event().wait)", "threading.py:"),
    "a task that no cancellation ends": (
        "    def start(self, handle):\n        self.task = asyncio.get_running_loop().create_task(stubborn())",
        "",
    ),
}


@dataclass(frozen=True)
class Ended:
    code: int
    log: str
    seconds: float
    """After the signal."""


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.05)


def prepare(directory: Path, members: str) -> None:
    """Write what a program needs whose plugin has these members."""
    (directory / "mine.py").write_text(f"{PLUGIN}{members}\n")
    (directory / "kubeconfig").write_text(KUBECONFIG)
    (directory / "config.yaml").write_text(CONFIG.replace("KUBECONFIG", str(directory / "kubeconfig")))


def bring_to_work(directory: Path) -> None:
    """Wait until a program runs and its plugin does what it does."""
    log, mine = directory / "log", (directory / "mine.py").read_text()
    wait_until(lambda: log.exists() and "does not answer" in log.read_text())
    (directory / "go").touch()
    if "later(" in mine.partition("class Mine")[2]:
        wait_until((directory / "gone").exists)
    if "ignore(" in mine.partition("class Mine")[2]:
        wait_until(lambda: "it is put back" in log.read_text())


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Ended]:
    """How the program ended with each plugin."""
    members = BY_ITSELF | {what: lines for what, (lines, _) in AT_THE_END.items()}
    directories = [tmp_path_factory.mktemp("run") for _ in members]
    for directory, lines in zip(directories, members.values(), strict=True):
        prepare(directory, lines)
    command = [sys.executable, "-c", FORKS, *map(str, directories)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forks:
        assert forks.stdout is not None
        processes = {int(forks.stdout.readline()): directory for directory in directories}
        ends: dict[Path, Ended] = {}
        try:
            for directory in directories:
                bring_to_work(directory)
            began = time.monotonic()
            for process in processes:
                os.kill(process, signal.SIGTERM)
            for line in forks.stdout:
                process, code = map(int, line.split())
                directory = processes.pop(process)
                ends[directory] = Ended(code, (directory / "log").read_text(), time.monotonic() - began)
        finally:
            for process in processes:
                os.kill(process, signal.SIGKILL)
    return dict(zip(members, (ends[each] for each in directories), strict=True))


@pytest.mark.parametrize("what", BY_ITSELF)
def test_the_program_ends_by_itself_in_spite_of(what: str, ended: Mapping[str, Ended]) -> None:
    end = ended[what]

    assert end.code == 0, end.log


@pytest.mark.parametrize("what", AT_THE_END)
def test_the_program_is_ended_after_its_grace_and_says_where_it_hangs_with(
    what: str, ended: Mapping[str, Ended]
) -> None:
    _, place = AT_THE_END[what]
    end = ended[what]

    assert end.code == 1, end.log
    assert end.seconds < GRACE + 10, end.log
    assert "The program was told to stop and did not end; it is ended" in end.log
    assert place in end.log
