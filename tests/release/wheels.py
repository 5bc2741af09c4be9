"""Ask PyPI whether each locked library has a wheel for each Python and each architecture that we promise.

The image installs wheels only, so a library without one for arm64 breaks the build there, and nowhere else.
"""

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.release.dist import ROOT, ReleaseError

PLATFORMS: Final = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")
"""amd64 and arm64, on what is as old as RHEL 8."""

PYTHON: Final = "Programming Language :: Python :: 3."


def pythons() -> list[str]:
    """The versions that pyproject.toml names, such as `3.12`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [line.rpartition(" ")[2] for line in project["classifiers"] if line.startswith(PYTHON)]


def missing(lock: Path) -> Iterator[str]:
    """Yield a line for each Python and platform for which something of the lock has no wheel. Raises ReleaseError."""
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        raise ReleaseError(f"{uv}: not there; `make wheels` installs it")
    what = ["--dry-run", "--no-deps", "--only-binary=:all:", "--require-hashes", f"--requirement={lock}"]
    for python in pythons():
        for platform in PLATFORMS:
            with tempfile.TemporaryDirectory() as nowhere:
                target = [f"--target={nowhere}", f"--python-version={python}", f"--python-platform={platform}"]
                command = [str(uv), "pip", "install", "--quiet", *what, *target]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                yield f"Python {python}, {platform}: {done.stderr.strip()}"
