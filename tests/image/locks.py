"""requirements.lock and requirements-dev.lock: packages, versions, and the hashes of their files."""

import re
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT: Final = Path(__file__).parents[2]


def locked(lock: Path) -> list[Requirement]:
    """Return the lock's lines, each `NAME==VERSION`, some with a marker."""
    lines = (line.rstrip("\\ ") for line in lock.read_text().splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith((" ", "#"))]


def hashes(lock: Path) -> dict[str, list[str]]:
    """Return the SHA-256 of each file that pip may take, by the lock's line without its hashes."""
    entries = lock.read_text().replace("\\\n", " ").splitlines()
    return {
        entry.partition(" --hash")[0].strip(): re.findall(r"--hash=sha256:([0-9a-f]{64})", entry)
        for entry in entries
        if entry and not entry.startswith((" ", "#"))
    }


def version(requirement: Requirement) -> str:
    """Return the one version that a lock's line allows."""
    (specifier,) = requirement.specifier
    assert specifier.operator == "==", requirement
    return specifier.version


def installed_by(requirements: list[Requirement], python: str) -> dict[str, str]:
    """Return the version of each package that pip installs on Linux for this Python, such as `3.12`, by its name."""
    environment = {
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "python_full_version": f"{python}.0",
        "python_version": python,
        "sys_platform": "linux",
    }
    return {
        canonicalize_name(requirement.name): version(requirement)
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate(environment)
    }
