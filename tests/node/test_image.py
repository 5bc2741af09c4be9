"""The image itself, before anybody runs it in a pod."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.image.contents import problems
from tests.realnode.images import LOADMASTER
from tests.realnode.node import RealNode

LARGEST_MB = 340


@pytest.fixture(scope="module")
def root(node: RealNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The image's files."""
    target = tmp_path_factory.mktemp("image")
    node.ctr("images", "mount", LOADMASTER, str(target))
    yield target
    node.ctr("images", "unmount", "--rm", str(target))


def test_it_is_no_larger_than_it_should_be(root: Path) -> None:
    usage = subprocess.run(["du", "--summarize", "--bytes", root], capture_output=True, text=True, check=True)

    megabytes = int(usage.stdout.split()[0]) / 1_000_000

    print(f"{megabytes:.0f} MB")
    assert megabytes <= LARGEST_MB


def test_it_holds_what_the_lock_file_names_and_nothing_else(root: Path) -> None:
    assert problems(root) == []


def test_it_answers_its_version_without_a_cluster_a_user_or_a_place_to_write(node: RealNode) -> None:
    told = node.ctr("run", "--rm", "--read-only", LOADMASTER, "asked", "/opt/loadmaster/bin/loadmaster", "--version")

    assert told.startswith("loadmaster ")
