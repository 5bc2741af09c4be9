"""The processes of a test control plane end with whoever asked for them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane import (
    ControlPlane,
    wait_until,
)

ROOT = Path(__file__).parents[2]

WAIT = 30.0
"""Seconds for what takes one or two on a machine that does nothing else."""


CALLER = """
import json, time
from tests.controlplane import ControlPlane
with ControlPlane() as cp:
    supervisor = cp.supervisor.pid
    print(json.dumps({"directory": str(cp.directory), "supervisor": supervisor,
                      "children": [cp.etcd.pid, cp.apiserver.pid]}), flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_caller_that_is_killed_leaves_nothing(controlplane: ControlPlane, signum: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CALLER], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as caller:
        assert caller.stdout is not None
        started = json.loads(caller.stdout.readline())

        caller.send_signal(signum)
        caller.wait(timeout=60)

    processes = [started["supervisor"], *started["children"]]
    wait_until(lambda: not any(exists(pid) for pid in processes), WAIT, "the end of its processes")
    assert not Path(started["directory"]).exists()


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_a_supervisor_that_is_killed_takes_its_processes_along() -> None:
    with ControlPlane() as cp:
        processes = [cp.etcd.pid, cp.apiserver.pid]

        os.kill(cp.supervisor.pid, signal.SIGKILL)

        wait_until(lambda: not any(exists(pid) for pid in processes), WAIT, "the end of its processes")
    assert not cp.directory.exists()


def exists(pid: int) -> bool:
    """Whether a process has this id. One that has ended but was not waited for (a zombie) does not count."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
