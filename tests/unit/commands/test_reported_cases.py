"""What people have reported about schedulers, each as a file: what `simulate` and `explain` must say of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from scheduler.__main__ import main

FILES: Final = Path(__file__).parent / "reported"


class Case(NamedTuple):
    """A file, what is asked about it, and parts of the answer."""

    file: str
    said: Sequence[str]
    never: Sequence[str] = ()


SIMULATED: Final = (
    Case("namespace-not-in", ["blue/new: placed on n1"]),
    Case("all-devices-partly-used", ["default/a: 0/1 nodes are available: 1 cannot allocate all claims."]),
    Case("budget-of-two-preemptors", ["would preempt default/w2", "would preempt default/other"], ["default/w1"]),
    Case("image-volume", ["n2 fits 470 300 97 0 73", "n1 fits 446 300 97 0 49"]),
)


@pytest.mark.parametrize("case", [pytest.param(each, id=each.file) for each in SIMULATED])
def test_a_simulation_decides_right(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    check(case, ["simulate", "--explain"], capsys)


def test_each_file_is_of_a_case() -> None:
    assert {path.stem for path in FILES.glob("*.yaml")} == {case.file for case in SIMULATED}


def check(case: Case, command: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Ask about the file, and compare the answer regardless of white space."""
    assert main([*command, str(FILES / f"{case.file}.yaml")]) == 0

    answer = " ".join(capsys.readouterr().out.split())
    assert [part for part in case.said if part not in answer] == [], answer
    assert [part for part in case.never if part in answer] == [], answer
