"""Small systems of Debian's packages, for images where none can be pulled: tar files by mmdebstrap, as root."""

import hashlib
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

SUITE: Final = "bookworm"
"""Its systemd boots with both versions of control groups."""
LEFT_OUT: Final = ("doc", "man", "locale")


class ImageError(Exception):
    """An image cannot be built here. The text has the end of what was said."""


def make_system(target: Path, packages: Iterable[str], variant: str, *options: str) -> None:
    """Write a system with these packages and what they depend on to the tar file `target`. Raises ImageError.

    `variant` and `options` are those of mmdebstrap.
    """
    mirror = run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]).split()[0]
    left_out = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in LEFT_OUT]
    include = f"--include={','.join(packages)}"
    partial = target.with_name(f"partial-{target.name}")  # mmdebstrap goes by the end of the name
    command = ["mmdebstrap", "--quiet", f"--variant={variant}", "--mode=root", include, *left_out, *options]
    run([*command, SUITE, str(partial), mirror])
    partial.rename(target)


def kept_system(directory: Path, name: str, packages: Sequence[str], variant: str) -> Path:
    """The same, kept in `directory` for the next time."""
    digest = hashlib.sha256(" ".join((SUITE, variant, *packages)).encode()).hexdigest()
    target = directory / f"{name}-{digest[:12]}.tar"
    if not target.exists():
        make_system(target, packages, variant)
    return target


def run(command: list[str], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """Run a command and return what it prints. Raises ImageError with the end of what it said."""
    environment = os.environ | dict(env or {})
    try:
        result = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd, check=False)
    except FileNotFoundError:
        raise ImageError(f"There is no {command[0]} here; Debian's packages have it.") from None
    if result.returncode != 0:
        said = "\n".join((result.stdout + result.stderr).splitlines()[-20:])
        raise ImageError(f"{' '.join(command[:6])} … failed with code {result.returncode}:\n{said}")
    return result.stdout
