import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.image.locks import PROJECT, installed_by, locked, version

IMAGE = locked(PROJECT / "requirements.lock")
DEVELOPER = locked(PROJECT / "requirements-dev.lock")
DESCRIPTION: dict[str, Any] = tomllib.loads((PROJECT / "pyproject.toml").read_text())
BUILD: list[str] = DESCRIPTION["dependency-groups"]["build"]
EXTRAS: dict[str, list[str]] = DESCRIPTION["project"]["optional-dependencies"]
RUNS: list[str] = DESCRIPTION["project"]["dependencies"] + EXTRAS["fast"] + EXTRAS["traces"]


@pytest.mark.parametrize("requirement", [*RUNS, *BUILD])
@pytest.mark.parametrize("python", ["3.11", "3.12"])
def test_the_image_gets_what_the_project_requires(requirement: str, python: str) -> None:
    wanted = Requirement(requirement)

    assert wanted.specifier.contains(installed_by(IMAGE, python)[canonicalize_name(wanted.name)])


def test_developers_test_with_the_versions_of_the_image() -> None:
    of_the_image = {(each.name, version(each), str(each.marker or "")) for each in IMAGE}
    of_developers = {(each.name, version(each), str(each.marker or "")) for each in DEVELOPER}

    assert of_the_image - of_developers == set()


def test_the_wheel_is_built_by_what_the_lock_has() -> None:
    assert DESCRIPTION["build-system"]["requires"] == BUILD


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_every_locked_version_has_its_hashes(name: str) -> None:
    lines = (PROJECT / name).read_text().splitlines()
    heads = [number for number, line in enumerate(lines) if line and not line.startswith((" ", "#"))]

    assert [lines[number] for number in heads if "--hash=sha256:" not in lines[number + 1]] == []
    assert not any("://" in line for line in lines)  # no address of a registry
