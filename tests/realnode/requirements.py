"""What a machine must have for a real node, what it lacks, and how to get it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

CNI_PLUGINS: Final = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
"""Where distributions put them; Debian's place comes first."""

PACKAGES: Final = {
    "containerd": "containerd",
    "runc": "runc",
    "buildah": "buildah",
    "mmdebstrap": "mmdebstrap",
    "gcc": "gcc libc6-dev",
    "ip": "iproute2",
    "unshare": "util-linux",
    "prometheus": "prometheus",
}
"""A command to Debian's packages that bring it."""

CNI_PACKAGE: Final = "containernetworking-plugins"


def missing(
    which: Callable[[str], object] = shutil.which, is_root: Callable[[], bool] = lambda: os.geteuid() == 0
) -> list[str]:
    """What this machine lacks, a line for each; none if a real node can run."""
    if sys.platform != "linux":
        return [f"a real node needs Linux, this is {sys.platform}"]
    lines = []
    if not is_root():
        lines.append("root: namespaces, containers and cgroups need it; run it with sudo")
    packages = [package for command, package in PACKAGES.items() if not which(command)]
    if cni_plugins() is None:
        packages.append(CNI_PACKAGE)
    if packages:
        lines.append(f"packages: sudo make node-deps installs {' '.join(packages)} (Debian, Ubuntu)")
    if not lines and not namespaces_work():
        lines.append("namespaces: unshare(1) may not make them here; in a container, run it privileged")
    return lines


def cni_plugins() -> Path | None:
    """The directory of the CNI plugins `bridge` and `host-local`."""
    return next((path for path in CNI_PLUGINS if (path / "bridge").exists() and (path / "host-local").exists()), None)


def namespaces_work() -> bool:
    """Whether the kernel lets us have namespaces of our own."""
    command = ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "mount", "--make-rshared", "/"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def install() -> int:
    """Install Debian's packages; return the exit code."""
    if not shutil.which("apt-get"):
        names = " ".join((*PACKAGES.values(), CNI_PACKAGE))
        print(f"There is no apt-get here. Install what your distribution calls: {names}", file=sys.stderr)
        return 1
    packages = [name for package in PACKAGES.values() for name in package.split()]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *packages, CNI_PACKAGE]):
        code = subprocess.run(["apt-get", "--quiet", *command], env=environment, check=False).returncode
        if code:
            return code
    return 0
