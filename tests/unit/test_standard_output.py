"""What cannot be written to standard output is never lost in silence, whichever command wanted to."""

import os
import sys
from pathlib import Path

import pytest

from scheduler.__main__ import BROKEN_PIPE, COMMANDS, WRONG_INPUT, main

NODE = "kind: Node\nmetadata: {name: n}\nstatus: {capacity: {cpu: 1, pods: 9}}\n"
POD = "---\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n"

WRITING = [
    ["--help"],
    ["--version"],
    *([command, "--help"] for command in COMMANDS),
    ["plugins", "list"],
    ["plugins", "describe", "NodeResourcesFit"],
    ["plugins", "list", "--help"],
    ["plugins", "new", "--help"],
    ["config", "show", "--help"],
    ["config", "show"],
    ["simulate", "FILE"],
    ["simulate", "FILE", "-o", "json"],
    ["explain", "p", "--from", "FILE"],
    ["explain", "p", "--from", "FILE", "-o", "json"],
]


@pytest.fixture(params=[" ".join(command) for command in WRITING])
def command(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    file = tmp_path / "cluster.yaml"
    file.write_text(NODE + POD)
    return [str(file) if word == "FILE" else word for word in request.param.split()]


@pytest.mark.parametrize("buffering", [1, -1], ids=["line by line", "at once"])
def test_a_full_device_is_said(
    command: list[str], buffering: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w", buffering) as full:
        monkeypatch.setattr(sys, "stdout", full)

        assert main(command) == WRONG_INPUT

    assert capsys.readouterr().err.splitlines()[-1] == "standard output: cannot be written: No space left on device"


def test_a_reader_that_has_seen_enough_is_no_error(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)

        assert main(command) == BROKEN_PIPE

    assert capsys.readouterr().err == ""
