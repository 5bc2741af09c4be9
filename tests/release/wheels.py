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

from packaging.requirements import Requirement

from tests.image.locks import applies, hashes
from tests.release.dist import ROOT

ARCHITECTURES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
"""Kubernetes' names, and Python's."""

GLIBC: Final = (*range(28, 16, -1), 12, 5)
"""Minor versions that Debian 12 and RHEL 8 run, as manylinux tags have them; RHEL 8 has 2.28."""

PYTHON: Final = "Programming Language :: Python :: 3."


def pythons() -> list[str]:
    """The versions that pyproject.toml names, such as `3.12`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [line.rpartition(" ")[2] for line in project["classifiers"] if line.startswith(PYTHON)]


def missing(lock: Path) -> Iterator[str]:
    """Yield a line for each Python and architecture for which something of the lock has no wheel."""
    with tempfile.TemporaryDirectory() as directory:
        for python in pythons():
            requirements = Path(directory, f"{python}.txt")
            requirements.write_text(lines(lock, python))
            for name, machine in ARCHITECTURES.items():
                command = [*_pip(python, machine), f"--requirement={requirements}", f"--target={directory}/nowhere"]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    yield f"Python {python}, {name}: {done.stderr.strip().splitlines()[-1]}"


def lines(lock: Path, python: str) -> str:
    """The lock as it is for one Python, without markers: pip would judge them by the Python that it runs in."""
    return "\n".join(
        " ".join([line.partition(";")[0].strip(), *(f"--hash=sha256:{each}" for each in known)])
        for line, known in hashes(lock).items()
        if applies(Requirement(line), python)
    )


def _pip(python: str, machine: str) -> list[str]:
    """The command that finds the files and installs nothing."""
    platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in GLIBC]
    platforms += [f"--platform=manylinux{year}_{machine}" for year in (2014, 2010, 1)]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    what = ["--dry-run", "--ignore-installed", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    return [*pip, *what, f"--python-version={python}", "--implementation=cp", *platforms]
