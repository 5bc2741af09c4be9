"""What is said to somebody whose machine cannot run a real node."""

import sys

import pytest

from tests.realnode.requirements import PACKAGES, missing

linux = pytest.mark.skipif(sys.platform != "linux", reason="a real node needs Linux")


@linux
def test_whoever_is_not_root_is_told_so() -> None:
    lines = missing(which=lambda command: f"/usr/bin/{command}", is_root=lambda: False)

    assert any(line.startswith("root: ") and "sudo" in line for line in lines)


@linux
def test_each_package_that_is_missing_is_named_with_the_command_that_installs_it() -> None:
    lines = missing(which=lambda command: None if command in ("buildah", "runc") else command, is_root=lambda: True)

    (line,) = [line for line in lines if line.startswith("packages: ")]
    assert "make node-deps" in line
    assert {"buildah", "runc"} <= set(line.split())
    assert "prometheus" not in line.split()


def test_each_command_has_a_package() -> None:
    assert all(PACKAGES.values())
