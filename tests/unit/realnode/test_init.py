"""PID 1 of the namespaces: it ends as its command does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.realnode.cgroups import remove_tree

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("program", "code"),
    [
        pytest.param("raise SystemExit(3)", 3, id="an exit code"),
        pytest.param("import os; os.kill(os.getpid(), 9)", 128 + 9, id="a signal"),
        # The orphan's parent is not waited for as a child of ours, yet must not be mistaken for the command.
        pytest.param("import os; os.fork() or os._exit(7); raise SystemExit(0)", 0, id="with a child of its own"),
    ],
)
def test_the_exit_code_is_that_of_the_command(program: str, code: int) -> None:
    command = [sys.executable, "-m", "tests.realnode.init", sys.executable, "-c", program]

    assert subprocess.run(command, cwd=ROOT, check=False).returncode == code


def test_a_group_is_removed_with_those_below_it(tmp_path: Path) -> None:
    (tmp_path / "group" / "kubepods" / "burstable").mkdir(parents=True)

    assert remove_tree(tmp_path / "group")


def test_a_group_that_is_in_use_stays(tmp_path: Path) -> None:
    (tmp_path / "group" / "below").mkdir(parents=True)
    (tmp_path / "group" / "below" / "process").touch()

    assert not remove_tree(tmp_path / "group")
    assert os.path.exists(tmp_path / "group" / "below")
