"""Owns the processes of one cluster and ends them when whoever asked for them is gone.

Run as a program of its own, in its own session: `python supervisor.py DIRECTORY`. It reads one JSON request a line
from standard input and answers with one JSON line on standard output:

    {"op": "spawn", "name": N, "argv": [...], "env": {...}, "log": PATH}   ->  {"pid": 123} or {"error": "..."}
    {"op": "signal", "name": N, "signal": 15}                              ->  {"code": null} or {"code": -15}
    {"op": "poll", "name": N}                                              ->  {"code": null} or {"code": -9}

The end of standard input is the order to finish, and it comes however the caller ends: the `with` block left, an
exception, Ctrl-C, SIGTERM, SIGKILL. Then every child is killed and DIRECTORY is removed. Nothing in these processes
is worth a graceful end, since their data goes with them.

Why a process, and why like this:

- A caller that is killed with SIGKILL runs no clean-up, so the clean-up must live elsewhere.
- PR_SET_PDEATHSIG kills the children should this process itself be killed. The kernel sends it when the *thread*
  that forked ends, so it cannot be set from a caller with threads; here there is only one thread.
- Only `poll` reaps a child, so a process id is never signalled after it was given to another process.
- Standard library only, and started with `-I -S`: it is up in 30 ms.
"""

import ctypes
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
from typing import Any

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main(directory: str) -> None:
    """Serve requests until standard input ends, then kill every child and remove `directory`."""
    # A terminal that is closed or interrupted ends the caller; this process follows by the end of its input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    children: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line), children)), flush=True)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for child in children.values():
            child.kill()
        for child in children.values():
            child.wait()
        shutil.rmtree(directory, ignore_errors=True)


def answer(request: dict[str, Any], children: dict[str, subprocess.Popen[bytes]]) -> dict[str, Any]:
    """Carry out one request. A request that fails is an answer with `error`, never the end of this process."""
    name = request["name"]
    if request["op"] == "spawn":
        if name in children and children[name].poll() is None:
            return {"error": f"a process named {name} is running"}
        try:
            children[name] = spawn(request["argv"], request["env"], request["log"])
        except OSError as error:
            return {"error": str(error)}
        return {"pid": children[name].pid}
    child = children[name]
    if request["op"] == "signal":
        child.send_signal(request["signal"])
    return {"code": child.poll()}


def spawn(argv: list[str], env: dict[str, str], log: str) -> subprocess.Popen[bytes]:
    """Start a child that dies with this process, its output appended to `log`."""
    with open(log, "ab") as output:
        return subprocess.Popen(
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=functools.partial(die_with_parent, os.getpid()) if sys.platform == "linux" else None,
        )


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before we asked
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
