"""`loadmaster plugins`: what is there, what it is, and a beginning for a new one."""

import subprocess
import sys
from pathlib import Path

import pytest

from plugins import SHIPPED
from scheduler.__main__ import main
from scheduler.plugin_loading.load import load
from scheduler.plugin_loading.sources import read_sources

pytestmark = pytest.mark.programs

MINE = '''\
from typing import ClassVar
from dataclasses import dataclass
from scheduler import framework as fw

@dataclass
class Mine(fw.FilterPlugin, fw.SignPlugin):
    """Keep shops together.

    Really.
    """

    name: ClassVar[str] = "Mine"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.LABELS | fw.Aspect.TAINTS
    reads: ClassVar[tuple[str, ...]] = (fw.SERVICE,)
    writes: ClassVar[tuple[fw.Write, ...]] = (fw.Write("budgets.v1.example.com", ("get", "patch"), "status"),)
    pool: str
    patience: fw.Duration = fw.Duration(15)
    labels: tuple[str, ...] = ("team",)

    def events_to_register(self):
        return (fw.on(fw.NODE, fw.Action.ADD | fw.Action.UPDATE, hint=print), fw.on(fw.POD, fw.Action.DELETE))

    def sign(self, pod):
        return pod.name

    def filter(self, state, pod, node):
        return None
'''
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: shops
  plugins: {filter: {enabled: [{name: Mine}]}}
  pluginConfig: [{name: Mine, args: {pool: blue}}]
- schedulerName: others
"""

Output = pytest.CaptureFixture[str]


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "config.yaml").write_text(CONFIG)
    return [f"--plugin-dir={tmp_path}", f"--config={tmp_path}/config.yaml"]


def test_the_list_has_all_plugins_with_their_profiles_and_where_they_are_from(
    options: list[str], tmp_path: Path, capsys: Output
) -> None:
    assert main(["plugins", "list", *options]) == 0

    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert rows["Mine"] == ["shops", "filter,sign", f"{tmp_path}/mine.py:6"]
    assert rows["NodeName"] == ["shops,others", "pre_filter,filter,sign", "in-tree"]
    assert set(rows) == {"PLUGIN", "Mine", *SHIPPED}


def test_a_description_has_all_that_an_operator_asks(options: list[str], tmp_path: Path, capsys: Output) -> None:
    assert main(["plugins", "describe", "Mine", *options]) == 0

    assert (
        capsys.readouterr().out
        == f"""\
Mine
  Keep shops together.

  Really.

from              {tmp_path}/mine.py:6
extension points  filter, sign
profiles          shops
arguments         pool: string, required
                  patience: a duration such as '15s' = '15s'
                  labels: tuple[str, ...] = ['team']
                  in profile shops: pool: 'blue'
woken by          Node: update, add, as its hint says
                  Pod: delete
reads             Service
writes            budgets.v1.example.com/status: get, patch
answers stored    until a node changes in labels or taints
"""
    )


@pytest.mark.parametrize("name", SHIPPED)
def test_every_plugin_of_ours_can_be_described(name: str, capsys: Output) -> None:
    assert main(["plugins", "describe", name]) == 0

    out = capsys.readouterr().out
    assert out.startswith(f"{name}\n  ")
    assert "known once" not in out


def test_a_plugin_that_is_not_there_is_no_surprise(capsys: Output) -> None:
    assert main(["plugins", "describe", "NodeNam"]) == 2

    assert capsys.readouterr().err == "there is no plugin 'NodeNam'; did you mean 'NodeName'?\n"


def test_a_plugin_that_cannot_be_loaded_is_told(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "mine.py").write_text("x = 1\n1 / 0\n")

    assert main(["plugins", "list", f"--plugin-dir={tmp_path}"]) == 2

    assert capsys.readouterr().err == f"{tmp_path}/mine.py:2: ZeroDivisionError: division by zero\n"


def test_a_new_plugin_works_and_so_does_its_test(tmp_path: Path, capsys: Output) -> None:
    assert main(["plugins", "new", "GPUPool", f"--directory={tmp_path}"]) == 0

    assert capsys.readouterr().out == f"{tmp_path}/gpu_pool.py\n{tmp_path}/test_gpu_pool.py\n"
    problems: list[str] = []
    loaded = load(read_sources([str(tmp_path)], [], [], problems), SHIPPED, {})
    assert problems == []
    assert loaded.origins["GPUPool"] == f"{tmp_path}/gpu_pool.py:13"
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("gpu-guard", "'gpu-guard' is no name for a plugin: it should be one word such as GpuGuard"),
        ("NodeName", "'NodeName' is the name of a plugin that is in-tree: choose another one"),
        ("GpuTest", "'GpuTest' is no name for a plugin: gpu_test.py would be taken for a test"),
        ("Conftest", "'Conftest' is no name for a plugin: conftest.py would be taken for a test"),
        ("Import", "'Import' is no name for a plugin: 'import' is a word of Python, and cannot be imported"),
        ("Json", "'Json' is no name for a plugin: its test would find json.py instead of a library"),
        ("Scheduler", "'Scheduler' is no name for a plugin: its test would find scheduler.py instead of a library"),
        ("Mine", "DIR/mine.py: this file exists already"),
    ],
)
def test_a_new_plugin_stands_in_nobodys_way(name: str, problem: str, tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "mine.py").write_text("precious")

    assert main(["plugins", "new", name, f"--directory={tmp_path}"]) == 2

    assert capsys.readouterr().err == f"{problem.replace('DIR', str(tmp_path))}\n"
    assert (tmp_path / "mine.py").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path, capsys: Output) -> None:
    assert main(["plugins", "new", "Mine", f"--directory={tmp_path}/none"]) == 2

    assert capsys.readouterr().err == f"{tmp_path}/none/mine.py: cannot be written: No such file or directory\n"
