"""Plugins that would end the program, or never come back, while they are made and started."""

import subprocess
import sys

import pytest

from scheduler.framework.errors import ConfigError
from scheduler.runtime.guards.plugin_exits import refused_exits

HANGS = """\
from scheduler.runtime.guards.plugin_exits import ended_hangs
with ended_hangs({seconds}):
    {body}
print("done")
"""


def test_what_would_end_the_program_is_a_problem_of_the_configuration() -> None:
    with pytest.raises(ConfigError, match="SystemExit: 3"), refused_exits():
        raise SystemExit(3)


@pytest.mark.parametrize("error", [KeyError("mine"), KeyboardInterrupt()])
def test_what_is_raised_otherwise_stays_as_it_is(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised, refused_exits():
        raise error

    assert raised.value is error


def ran(**words: object) -> subprocess.CompletedProcess[str]:
    program = HANGS.format(**words)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)


def test_what_hangs_ends_the_program_and_its_line_is_shown() -> None:
    ended = ran(seconds=0.1, body="sum(iter(int, 1))")

    assert ended.returncode == 1
    assert 'File "<string>", line 3' in ended.stderr


def test_what_comes_back_in_time_is_left_alone() -> None:
    assert ran(seconds=30, body="pass").stdout == "done\n"
