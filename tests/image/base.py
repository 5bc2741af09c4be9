"""A stand-in for python:3.12-slim, where it cannot be pulled: Debian's minimal system and a Python."""

import shutil
import sys
from pathlib import Path
from typing import Final

from tests.image.debian import make_system

PACKAGES: Final = ("ca-certificates", "netbase", "tzdata")
PYTHON_LIBRARIES: Final = (
    *("libbz2-1.0", "libexpat1", "libffi8", "liblzma5", "libncursesw6", "libreadline8", "libsqlite3-0", "libssl3"),
    *("libuuid1", "zlib1g"),
)
"""What a Python that was built on this machine links with."""
PATH: Final = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"


def make_stand_in(directory: Path) -> Path:
    """Return a tar file of the system; made in `directory` if it is not there. Raises ImageError.

    The Python is a 3.12 of this machine if there is one, otherwise Debian's. An image of it needs PATH in its
    environment.
    """
    system = directory / "python-3.12-slim.tar"
    if system.exists():
        return system
    work = directory / "base"
    shutil.rmtree(work, ignore_errors=True)
    python = work / "usr" / "local"
    python.mkdir(parents=True)
    if built := built_python():
        packages = [*PACKAGES, *PYTHON_LIBRARIES]
        copy_python(built, python)
    else:
        packages = [*PACKAGES, "python3", "python3-venv"]
        (python / "bin").mkdir()
        (python / "bin" / "python").symlink_to("/usr/bin/python3")
    hooks = [f'--customize-hook=cp -a {work}/. "$1"', '--customize-hook=chroot "$1" ldconfig']
    make_system(system, packages, "minbase", *hooks)
    shutil.rmtree(work)
    return system


def built_python() -> Path | None:
    """The prefix of a Python 3.12 outside of the system's own directories, such as one of pyenv's."""
    candidates = [Path(sys.base_prefix), *sorted((Path.home() / ".pyenv" / "versions").glob("3.12.*"))]
    fitting = [path for path in candidates if (path / "bin" / "python3.12").exists() and path != Path("/usr")]
    return fitting[-1] if fitting else None


def copy_python(prefix: Path, target: Path) -> None:
    """Copy an installation without what python:3.12-slim does not have either."""
    unwanted = shutil.ignore_patterns("__pycache__", "*.a", "config-3.12*", "test", "site-packages")
    for part in ("bin", "lib"):
        shutil.copytree(prefix / part, target / part, symlinks=True, ignore=unwanted)
    site = "lib/python3.12/site-packages"
    (target / site).mkdir()
    for package in (prefix / site).glob("pip*"):
        shutil.copytree(package, target / site / package.name)
