"""The image itself, before it runs in a pod: Docker unpacks it."""

import subprocess
from pathlib import Path

import pytest

from tests.image.contents import problems
from tests.kind.cluster import KindCluster
from tests.kind.scheduler import Scheduler

LARGEST_MB = 340


@pytest.fixture(scope="module")
def name(loadmaster: Scheduler) -> str:
    """As the pods of the release name it."""
    image: str = loadmaster.pod["spec"]["containers"][0]["image"]
    return image


@pytest.fixture(scope="module")
def root(cluster: KindCluster, name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image's files, with their owners and modes."""
    directory = tmp_path_factory.mktemp("image")
    archive, target = directory / "image.tar", directory / "root"
    target.mkdir()
    container = cluster.engine("create", name).strip()
    try:
        cluster.engine("export", "--output", str(archive), container)
    finally:
        cluster.engine("rm", container)
    subprocess.run(["tar", "--extract", "--same-permissions", f"--file={archive}", f"--directory={target}"], check=True)
    archive.unlink()
    return target


def test_it_is_no_larger_than_it_should_be(root: Path) -> None:
    usage = subprocess.run(["du", "--summarize", "--bytes", root], capture_output=True, text=True, check=True)

    megabytes = int(usage.stdout.split()[0]) / 1_000_000

    print(f"{megabytes:.0f} MB")
    assert megabytes <= LARGEST_MB


def test_it_holds_what_the_lock_file_names_and_nothing_else(root: Path) -> None:
    assert problems(root) == []


def test_it_answers_its_version_without_a_cluster_a_user_or_a_place_to_write(cluster: KindCluster, name: str) -> None:
    assert cluster.engine("run", "--rm", "--read-only", name, "--version").startswith("loadmaster ")
