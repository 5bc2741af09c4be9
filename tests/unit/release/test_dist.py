"""Wheel and sdist, as users install them: into an environment that has the libraries and nothing of this project."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.image.locks import PROJECT
from tests.release import dist

pytestmark = pytest.mark.programs

EPOCH = 1_700_000_000
CLUSTER = """\
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: main, image: web}]}}
"""
PLUGIN = """\
from scheduler import framework as fw


class Mine(fw.FilterPlugin):
    name = "Mine"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        reveal_type(pod.name)
        return None
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dist")
    dist.build(directory, EPOCH)
    return directory


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def sdist(built: Path) -> Path:
    (path,) = built.glob("*.tar.gz")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment with the wheel. It sees the libraries of ours, but not this project."""
    environment = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    (packages,) = environment.glob("lib/python3*/site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python.parent


def run(command: list[str | Path], directory: Path) -> subprocess.CompletedProcess[str]:
    """Run it in a directory that has folders called as our packages are, and with that directory in PYTHONPATH."""
    for name in dist.PACKAGES:
        (directory / name).mkdir()
        (directory / name / "__init__.py").write_text("raise RuntimeError('this is not the one that was meant')\n")
    return subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(directory)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_same_files_give_the_same_bytes(built: Path, tmp_path: Path) -> None:
    again = dist.build(tmp_path, EPOCH)

    assert {path.name: path.read_bytes() for path in again} == {
        path.name: path.read_bytes() for path in built.iterdir()
    }


def test_the_sdist_has_what_the_build_reads_and_the_changes_and_no_caches(sdist: Path) -> None:
    with tarfile.open(sdist) as file:
        names = [name.partition("/")[2] for name in file.getnames()]

    assert {name.split("/")[0] for name in names if name} == {*dist.FILES, "PKG-INFO", "setup.cfg"}
    assert not any("__pycache__" in name or name.endswith(".pyc") for name in names)


def test_the_wheel_has_each_file_of_our_packages(wheel: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "--", *dist.PACKAGES], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout.split()
    with ZipFile(wheel) as file:
        packed = {name for name in file.namelist() if ".dist-info/" not in name}

    assert packed == {*tracked, "loadmaster_start.py"}


def test_the_metadata_says_licence_addresses_and_versions_of_python(wheel: Path) -> None:
    with ZipFile(wheel) as file:
        (name,) = (name for name in file.namelist() if name.endswith("/METADATA"))
        metadata = HeaderParser().parsestr(file.read(name).decode())
        assert name.replace("METADATA", "licenses/LICENSE") in file.namelist()

    urls = dict(line.split(", ") for line in metadata.get_all("Project-URL", []))
    pythons = [line for line in metadata.get_all("Classifier", []) if line.startswith("Programming Language")]
    assert metadata["License-Expression"] == "Apache-2.0"
    assert {"Homepage", "Documentation", "Changelog", "Issues", "Security"} <= urls.keys()
    assert [line.rpartition(" ")[2] for line in pythons] == ["Only", "3.11", "3.12", "3.13", "3.14"]
    assert metadata["Description-Content-Type"] == "text/markdown"


def test_links_of_the_readme_lead_somewhere_on_a_package_index_too(wheel: Path) -> None:
    with ZipFile(wheel) as file:
        (name,) = (name for name in file.namelist() if name.endswith("/METADATA"))
        links = re.findall(r"\]\(([^)\s]+)\)", file.read(name).decode())

    assert f"{dist.HOME}/blob/v{dist.version()}/docs/plugins.md" in links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


@pytest.mark.parametrize("command", ["loadmaster", "kubectl-loadmaster"])
def test_the_command_runs_next_to_folders_with_our_names(installed: Path, tmp_path: Path, command: str) -> None:
    done = run([installed / command, "--version"], tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (0, f"loadmaster {dist.version()}\n", "")


def test_python_runs_our_package_next_to_folders_with_our_names_with_its_option_for_that(
    installed: Path, tmp_path: Path
) -> None:
    python: list[str | Path] = [installed / "python", "-I", "-m", "scheduler", "--version"]

    assert run(python, tmp_path).stdout == f"loadmaster {dist.version()}\n"


def test_simulate_places_a_pod_with_a_plugin_beside_folders_with_our_names(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "cheapest.py").write_text((PROJECT / "docs/examples/cheapest.py").read_text())

    done = run([installed / "loadmaster", "simulate", "cluster.yaml", "--plugin-dir=.", "--output=json"], tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert '"node":"n1"' in done.stdout.replace(" ", "")


def test_mypy_finds_the_types_of_the_framework(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(installed / "python"), "mine.py"]

    done = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert 'Revealed type is "builtins.str"' in done.stdout or 'Revealed type is "str"' in done.stdout
