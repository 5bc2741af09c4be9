"""Folders of users that are called as our packages are: the command finds its own."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
START = ROOT / "scheduler" / "commands" / "loadmaster_start.py"
PLUGIN = """\
import team_library
from scheduler import framework as fw


class Mine(fw.FilterPlugin):
    name = "Mine"

    def filter(self, state, pod, node):
        return team_library.judge(node)
"""
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: one, plugins: {multiPoint: {enabled: [{name: Mine}]}}}]
"""


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A place on Python's path, with packages of our names, and with a library that a plugin needs."""
    place = tmp_path / "site"
    for name in ("scheduler", "plugins"):
        (place / name).mkdir(parents=True)
        (place / name / "__init__.py").write_text("raise RuntimeError('this is not the one that was meant')\n")
    (place / "team_library.py").write_text("def judge(node):\n    return None\n")
    return place


def command(theirs: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `loadmaster` as its script does, in that place, and with it on the path."""
    script = f"import runpy, sys; sys.exit(runpy.run_path({str(START)!r})['main']())"
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=theirs,
        env={**os.environ, "PYTHONPATH": str(theirs)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_folders_with_our_names_do_no_harm_and_what_is_beside_them_can_be_imported(
    theirs: Path, tmp_path: Path
) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "mine.py").write_text(PLUGIN)
    (tmp_path / "config.yaml").write_text(CONFIG)

    done = command(theirs, "config", "check", str(tmp_path / "config.yaml"), f"--plugin-dir={tmp_path / 'files'}")

    assert (done.returncode, done.stderr) == (0, "")


def test_what_users_have_in_folders_with_our_names_is_not_there(theirs: Path, tmp_path: Path) -> None:
    (theirs / "plugins" / "mine.py").write_text(PLUGIN)
    (tmp_path / "config.yaml").write_text(CONFIG + "loadmaster: {pluginModules: [plugins.mine]}\n")

    done = command(theirs, "config", "check", str(tmp_path / "config.yaml"))

    assert done.returncode == 2
    assert "module plugins.mine: there is no module 'plugins.mine'" in done.stdout + done.stderr


def test_the_command_begins_here() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())

    assert project["project"]["scripts"]["loadmaster"] == f"{START.stem}:main"
    assert START.stem in project["tool"]["setuptools"]["py-modules"]
    assert ROOT / project["tool"]["setuptools"]["package-dir"][""] == START.parent
