"""Judge an unpacked image: it holds what it should, and nothing else.

The tree must have been unpacked with its owners and modes, as root does, or be mounted: who may write what is part of
what is judged. What runs when the image is started is for the tests on kind.
"""

import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.image.locks import PROJECT, installed_by, locked

USER: Final = 65532
"""User and group that the image runs as."""

PROGRAM: Final = "opt/loadmaster/bin/loadmaster"
NEEDED: Final = {
    PROGRAM: "the entry point",
    "bin/sh": "the operations page sends a signal with it",
    "etc/ssl/certs/ca-certificates.crt": "the certificate authorities of kubeconfig files that name none",
}

UNWANTED_PROGRAMS: Final = frozenset(
    {"apt", "apt-get", "as", "c++", "cc", "clang", "cpp", "easy_install", "g++", "gcc", "ld", "make", "perl", "pip"}
)
UNWANTED_MODULES: Final = frozenset(
    {"_pytest", "ensurepip", "idlelib", "lib2to3", "pip", "pkg_resources", "pytest", "setuptools", "tkinter", "wheel"}
)
UNWANTED_SUFFIXES: Final = frozenset({".a", ".c", ".h", ".pxd", ".pyi", ".pyx"})
"""Of files beside Python's modules: what only compilers and type checkers read."""

FOR_EVERYBODY: Final = frozenset({"tmp", "var/tmp", "run/lock"})
"""Directories that everybody may write to on any Linux. On a read-only root nobody can."""

UNCHECKED: Final = 0b01
"""Of bytecode's second word: it was made from a known source, and is not compared with the source at each import."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or directory of the image."""

    path: PurePosixPath
    """Relative to the image's root."""
    status: os.stat_result
    """Its own, where it is a link."""

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.status.st_mode)


def problems(root: Path, project: Path = PROJECT) -> list[str]:
    """Return what is wrong with the image in `root`, of the project whose lock and pyproject.toml are in `project`."""
    entries = list(_walk(root))
    libraries = _libraries(root)
    found = [f"/{path} is missing: {use}" for path, use in NEEDED.items() if not _exists(root, path)]
    found += [problem for entry in entries if (problem := _wrong_mode(entry))]
    found += [problem for entry in entries if (problem := _unwanted(entry, libraries))]
    found += _wrong_bytecode(root, entries, libraries)
    found += _wrong_distributions(root, entries, libraries, project)
    return found


def wanted(project: Path, python: str) -> dict[str, str]:
    """Return the distributions of an image with this Python: our own, and the lock's except what builds."""
    described = tomllib.loads((project / "pyproject.toml").read_text())
    tools = {canonicalize_name(Requirement(line).name) for line in described["build-system"]["requires"]}
    lock = installed_by(locked(project / "requirements.lock"), python)
    ours = {described["project"]["name"]: described["project"]["version"]}
    return {name: version for name, version in lock.items() if name not in tools} | ours


def _walk(root: Path) -> Iterator[Entry]:
    for directory, directories, files in os.walk(root):
        if directory == str(root):  # the runtime mounts its own here
            directories[:] = [name for name in directories if name not in ("dev", "proc", "sys")]
        for name in (*directories, *files):
            path = Path(directory, name)
            yield Entry(PurePosixPath(path.relative_to(root)), path.lstat())


def _libraries(root: Path) -> dict[PurePosixPath, str]:
    """Return the directories that Python imports from, with the version of each, such as `3.12`."""
    found = [
        path for base in ("opt/loadmaster/lib", "usr/local/lib", "usr/lib") for path in root.glob(f"{base}/python3.*")
    ]
    return {PurePosixPath(path.relative_to(root)): path.name.removeprefix("python") for path in found}


def _exists(root: Path, path: str) -> bool:
    """Whether a file is there for one whose root is the image: links lead to places in it."""
    pending, here = list(PurePosixPath(path).parts), root
    for _ in range(100):  # more links than that are a circle
        if not pending:
            return here.is_file()
        here = here / pending.pop(0)
        if here.is_symlink():
            target = PurePosixPath(os.readlink(here))
            here = root if target.is_absolute() else here.parent
            pending = [part for part in target.parts if part != "/"] + pending
    return False


def _wrong_mode(entry: Entry) -> str | None:
    mode, path = entry.status.st_mode, f"/{entry.path}"
    if entry.is_file and mode & (stat.S_ISUID | stat.S_ISGID):
        return f"{path} runs as its owner or group, whoever starts it"
    if stat.S_ISLNK(mode) or str(entry.path) in FOR_EVERYBODY:
        return None
    writable = (
        mode & stat.S_IWOTH
        or (entry.status.st_uid == USER and mode & stat.S_IWUSR)
        or (entry.status.st_gid == USER and mode & stat.S_IWGRP)
    )
    return f"{path} can be written by the user that the image runs as" if writable else None


def _unwanted(entry: Entry, libraries: Mapping[PurePosixPath, str]) -> str | None:
    path = entry.path
    if path.parent.name in ("bin", "sbin") and _program(path.name) in UNWANTED_PROGRAMS:
        return f"/{path} has no use in the image"
    if not any(path.is_relative_to(directory) for directory in libraries):
        return None
    top_level = path.parent.name == "site-packages" or path.parent in libraries
    if top_level and path.stem in UNWANTED_MODULES:
        return f"/{path} has no use in the image"
    if path.name in ("test", "tests") and stat.S_ISDIR(entry.status.st_mode):
        return f"/{path} are tests"
    if entry.is_file and path.suffix in UNWANTED_SUFFIXES:
        return f"/{path} is for developers"
    return None


def _program(name: str) -> str:
    """Return `pip` for `pip3.12`, and `gcc` for `x86_64-linux-gnu-gcc-14`."""
    return name.rstrip("0123456789.-").split("-linux-gnu-")[-1]


def _wrong_bytecode(root: Path, entries: list[Entry], libraries: Mapping[PurePosixPath, str]) -> Iterator[str]:
    for entry in entries:
        path = entry.path
        version = next((version for directory, version in libraries.items() if path.is_relative_to(directory)), None)
        if version is None or path.suffix != ".py":
            continue
        name = f"{path.stem}.cpython-{version.replace('.', '')}.pyc"
        compiled = root / path.parent / "__pycache__" / name
        if not compiled.is_file():
            yield f"/{path} is not compiled"
        elif int.from_bytes(_start(compiled, 8)[4:], "little") != UNCHECKED:
            yield f"/{path} is compared with its bytecode whenever it is imported"


def _start(path: Path, count: int) -> bytes:
    with path.open("rb") as file:
        return file.read(count)


def _wrong_distributions(
    root: Path, entries: list[Entry], libraries: Mapping[PurePosixPath, str], project: Path
) -> Iterator[str]:
    ours = [(path, version) for path, version in libraries.items() if path.is_relative_to("opt/loadmaster")]
    if len(ours) != 1:
        yield f"/opt/loadmaster must have one Python, not {len(ours)}"
        return
    ((library, python),) = ours
    packages = library / "site-packages"
    for entry in entries:
        if entry.path.suffix in (".dist-info", ".egg-info") and entry.path.parent != packages:
            yield f"/{entry.path} is installed in the wrong place"
    # Pairs, as two versions of one may be there.
    have = {
        (canonicalize_name(distribution.name), distribution.version)
        for distribution in metadata.distributions(path=[str(root / packages)])
    }
    want = set(wanted(project, python).items())
    yield from (f"{name} {version} is not installed" for name, version in sorted(want - have))
    yield from (f"{name} {version} is not in requirements.lock" for name, version in sorted(have - want))
