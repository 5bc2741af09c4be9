"""Run runc with container specifications that ask for no capability that this machine withholds.

`docker run --privileged` asks for all capabilities. Where the machine itself is a container or a small virtual machine
that lacks some, such as CAP_SYS_RESOURCE, runc refuses to start the container. Our own Docker engine runs this program
in place of runc, under any Python 3 and without the project's libraries.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

CAPABILITIES = (
    *("CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP"),
    *("LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER"),
    *("SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE"),
    *("SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP"),
    *("MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF"),
    "CHECKPOINT_RESTORE",
)
"""In the order of the kernel's bits."""


def bounding_set(status: str) -> frozenset[str]:
    """The capabilities that a process may have at most, from the text of its /proc/PID/status."""
    mask = int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapBnd:")), 16)
    return frozenset(f"CAP_{name}" for bit, name in enumerate(CAPABILITIES) if mask >> bit & 1)


def withheld() -> frozenset[str]:
    """The capabilities that no process of this machine's can have. Empty: runc needs no help."""
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    there = bounding_set(Path("/proc/self/status").read_text())
    return frozenset(f"CAP_{name}" for name in CAPABILITIES[: last + 1]) - there


def narrowed(process: dict[str, Any], without: Iterable[str]) -> dict[str, Any]:
    """The `process` of a container's specification without these capabilities."""
    unwanted = set(without)
    sets = process.get("capabilities") or {}
    capabilities = {name: [each for each in given or () if each not in unwanted] for name, given in sets.items()}
    return {**process, "capabilities": capabilities}


def narrow_specification(arguments: list[str]) -> None:
    """Rewrite the file in which runc, called with these arguments, finds what it runs."""

    def value(*options: str) -> str | None:
        return next((arguments[arguments.index(each) + 1] for each in options if each in arguments), None)

    if "create" in arguments or "run" in arguments:
        path = Path(value("--bundle", "-b") or ".", "config.json")
        specification = json.loads(path.read_text())
        specification["process"] = narrowed(specification["process"], withheld())
        path.write_text(json.dumps(specification))
    elif "exec" in arguments and (process := value("--process", "-p")):
        Path(process).write_text(json.dumps(narrowed(json.loads(Path(process).read_text()), withheld())))


if __name__ == "__main__":
    narrow_specification(sys.argv[1:])
    os.execv(shutil.which("runc") or "runc", ["runc", *sys.argv[1:]])
