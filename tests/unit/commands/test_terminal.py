"""What is shown fits whatever shows it: terminals of any width, with colours or without, pipes, ASCII, nobody."""

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from scheduler.__main__ import main
from scheduler.explain.screen import screen_of_output

pytestmark = pytest.mark.programs

NODE = "kind: Node\nmetadata: {name: n1}\nstatus: {capacity: {cpu: 1, pods: 9}}\n"
LABEL = "example.com/a-rather-long-label-of-nodes"
VALUE = "a-rather-long-value-that-no-node-has"
POD = f"""\
kind: Pod
metadata: {{name: web, namespace: shop}}
spec:
  containers: [{{name: c, resources: {{requests: {{cpu: 2}}}}}}]
  nodeSelector: {{{LABEL}: {VALUE}}}
"""
COLOURS = re.compile(r"\x1b\[\d*m")


@pytest.fixture
def files(tmp_path: Path) -> str:
    path = tmp_path / "cluster.yaml"
    path.write_text(f"{NODE}---\n{POD}")
    return str(path)


@pytest.fixture
def shown(files: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What is printed of the pod, on a terminal if there is an environment."""

    def show(**environment: str) -> str:
        if environment:
            be_a_terminal(monkeypatch, **environment)
        assert main(["explain", "shop/web", "--from", files]) == 0
        return capsys.readouterr().out

    return show


def be_a_terminal(monkeypatch: pytest.MonkeyPatch, **environment: str) -> None:
    """Let standard output, as it is captured, say that it is a terminal."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"COLUMNS": "80", "TERM": "xterm", **environment}.items():
        monkeypatch.setenv(name, value)


def width_of(output: str) -> int:
    """Of the widest line that is no command: those are not broken."""
    return max(len(line) for line in COLOURS.sub("", output).splitlines() if not line.startswith("      kubectl "))


def test_in_a_pipe_there_are_no_colours_and_lines_are_of_100_characters(shown: Callable[..., str]) -> None:
    output = shown()

    assert "\x1b" not in output
    assert 80 < width_of(output) <= 100


def test_on_a_terminal_there_are_colours(shown: Callable[..., str]) -> None:
    output = shown(TERM="xterm")

    assert output.startswith("\x1b[1mshop/web\x1b[0m  ")
    assert COLOURS.sub("", output).isascii()


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_who_wants_no_colours_gets_none(environment: dict[str, str], shown: Callable[..., str]) -> None:
    assert "\x1b" not in shown(**environment)


@pytest.mark.parametrize(
    ("columns", "widest"),
    [
        *(("1", 40), ("40", 40), ("72", 72), ("80", 80), ("120", 120), ("1000000", 400), ("1" * 30, 400)),
        *((none, 100) for none in ("0", "-5", "wide", "", "\uff11\uff12")),
    ],
)
def test_lines_are_as_wide_as_the_terminal(columns: str, widest: int, shown: Callable[..., str]) -> None:
    output = shown(COLUMNS=columns)

    assert width_of(output) <= widest
    assert f"      kubectl label node n1 {LABEL}={VALUE}" in COLOURS.sub("", output).splitlines()


def test_the_width_is_that_of_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    widths = []
    for columns in ("50", "90"):
        be_a_terminal(monkeypatch, COLUMNS=columns)
        widths.append(screen_of_output().width)

    assert widths == [50, 90]


def explained(files: str, stdout: int, environment: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "scheduler", "explain", "shop/web", "--from", files],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=environment,
        check=False,
    )


def test_a_real_terminal_is_filled_to_its_width(files: str) -> None:
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    without = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    done = explained(files, theirs, {**without, "TERM": "xterm"})
    os.close(theirs)
    output = os.read(ours, 1 << 16).decode()
    os.close(ours)

    assert (done.returncode, done.stderr) == (0, b"")
    assert output.startswith("\x1b[1mshop/web\x1b[0m")
    assert 50 < width_of(output) <= 60


def test_a_terminal_of_ascii_shows_the_rest_spelled_out(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(f"{NODE}---\n{POD}".replace("metadata: {name: n1}", "metadata: {name: kno\u0308ten-ä}"))
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = explained(str(path), subprocess.PIPE, {**os.environ, **environment})

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()
    assert b"kno\\u0308ten-\\xe4" in done.stdout
