"""What a machine must have for a kind cluster, what it lacks, and how to get it."""

import os
import shutil
import subprocess
import sys
from typing import Final

from tests.kind import engine

ENGINE_PACKAGES: Final = {"dockerd": "docker.io", "docker": "docker-cli", "iptables": "iptables", "runc": "runc"}
"""A command to Debian's package that brings it; older releases have `docker` in docker.io."""
MAKING: Final = {"mmdebstrap": "mmdebstrap", "gcc": "gcc libc6-dev"}
"""The same for what makes images where none can be pulled."""

TOOLS: Final = {"prometheus": "prometheus"}
"""The same for what tests of alerts use; they are skipped without it."""


def missing() -> list[str]:
    """What this machine lacks, a line for each; none if a cluster can run.

    Whether images can be pulled is seen when they are: what makes them is not asked for here.
    """
    if sys.platform != "linux":
        return [f"these tests need Linux, this is {sys.platform}"]
    if engine.find() or engine.can_start():
        return []
    lacking = [package for command, package in ENGINE_PACKAGES.items() if not shutil.which(command)]
    if not lacking:
        return ["an engine: no Docker or podman answers; start it, or run this as root, which starts one of its own"]
    return ["an engine: Docker or podman, or the packages that sudo make kind-deps installs (Debian, Ubuntu)"]


def install() -> int:
    """Install Debian's packages for what is not there; return the exit code."""
    commands = TOOLS | MAKING | ({} if engine.find() else ENGINE_PACKAGES)
    packages = [package for command, package in commands.items() if not shutil.which(command)]
    if not packages:
        print("Everything is there.")
        return 0
    if not shutil.which("apt-get"):
        print(f"There is no apt-get here. Install what your distribution calls: {' '.join(packages)}", file=sys.stderr)
        return 1
    apt(["update"])
    names = [name for package in packages for name in package.split() if is_known(name)]
    return apt(["install", "--yes", "--no-install-recommends", *names])


def is_known(package: str) -> bool:
    """Whether the package exists in this release."""
    return subprocess.run(["apt-cache", "show", package], capture_output=True, check=False).returncode == 0


def apt(arguments: list[str]) -> int:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(["apt-get", "--quiet", *arguments], env=environment, check=False).returncode
