"""SIGTERM ends `loadmaster run` within its grace, whatever plugins do.

Each test runs the program itself, with a plugin and without an API server that answers; the grace is made shorter.
"""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

GRACE = 4.0
BEGIN = 150
"""Seconds for the program to begin, however busy the machine is."""

PROGRAM = f"""\
import sys
from scheduler.process import stop_signals
stop_signals.GRACE_SECONDS = {GRACE}
import loadmaster_start
sys.exit(loadmaster_start.main())
"""
PLUGIN = """\
import asyncio, atexit, signal, sys, threading, time
from typing import ClassVar
from scheduler import framework as fw

def forever():
    while True:
        time.sleep(0.01)

def ignore(handler):
    later(lambda: signal.signal(signal.SIGTERM, handler))

def later(function):
    asyncio.get_running_loop().call_later(0.5, function)

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
    "a thread": "    def start(self, handle):\n        threading.Thread(target=forever).start()",
    "what runs at exit": "    def start(self, handle):\n        atexit.register(forever)",
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


def stopped(directory: Path, members: str) -> tuple[int, str, float]:
    """Run with a plugin that has these members, stop it, and return the exit code, its log, and how long that took."""
    (directory / "plugins").mkdir()
    (directory / "plugins" / "mine.py").write_text(f"{PLUGIN}{members}\n")
    (directory / "kubeconfig").write_text(KUBECONFIG)
    (directory / "config.yaml").write_text(CONFIG.replace("KUBECONFIG", str(directory / "kubeconfig")))
    arguments = ["run", "--config", "config.yaml", "--plugin-dir", "plugins", "--secure-port", "0"]
    log = directory / "log"
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments], cwd=directory, stdout=stderr, stderr=stderr
        ) as process,
    ):
        try:
            deadline = time.monotonic() + BEGIN
            while "does not answer" not in log.read_text() and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.1)
            time.sleep(2.5)  # what comes later has begun, and handlers of signals were looked at
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            code = process.wait(BEGIN)
            return code, log.read_text(), time.monotonic() - began
        finally:
            process.kill()


@pytest.mark.parametrize("what", BY_ITSELF)
def test_the_program_ends_by_itself_in_spite_of(what: str, tmp_path: Path) -> None:
    code, log, seconds = stopped(tmp_path, BY_ITSELF[what])

    assert code == 0, log
    assert seconds < GRACE, log


@pytest.mark.parametrize("what", AT_THE_END)
def test_the_program_is_ended_after_its_grace_and_says_where_it_hangs_with(what: str, tmp_path: Path) -> None:
    members, place = AT_THE_END[what]

    code, log, seconds = stopped(tmp_path, members)

    assert code == 1, log
    assert seconds < GRACE + 10, log
    assert "The program was told to stop and did not end; it is ended" in log
    assert place in log
