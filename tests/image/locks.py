"""requirements.lock and requirements-dev.lock, read as far as their packages go; hashes are left to pip."""

from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT: Final = Path(__file__).parents[2]


def locked(lock: Path) -> list[Requirement]:
    """Return the lock's lines, each `NAME==VERSION`, some with a marker."""
    lines = (line.rstrip("\\ ") for line in lock.read_text().splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith((" ", "#"))]


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
