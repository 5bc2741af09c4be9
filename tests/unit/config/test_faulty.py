"""A mistake in a configuration is one clear line with file and line, and whatever a file has, that takes no time."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from plugins import IN_TREE
from scheduler.__main__ import WRONG_INPUT, main
from scheduler.config.load import MAX_BYTES, MAX_PROBLEMS, load_config
from scheduler.framework.errors import ConfigError
from tests.unit.config.fakes import config_from_text
from tests.unit.config.faulty import FAULTY, HEADER, Faulty

SOON = 2.0
"""Seconds of CPU time that any file may take. The slowest, 50,000 fields, takes 1.2 s here, with no other work."""


def problems_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        config_from_text(text, IN_TREE)
    return list(caught.value.problems)


LISTS = {
    "profiles": "profiles: [null]",
    "extenders": "extenders: [null]",
    "profiles[0].plugins.score.enabled": "profiles: [{plugins: {score: {enabled: [null]}}}]",
    "profiles[0].plugins.score.disabled": "profiles: [{plugins: {score: {disabled: [null]}}}]",
    "profiles[0].pluginConfig": "profiles: [{pluginConfig: [null]}]",
    "profiles[0].pluginConfig[0].args.scoringStrategy.resources": (
        "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {resources: [null]}}}]}]"
    ),
    "loadmaster.pluginLimits": "loadmaster: {pluginLimits: [null]}",
    "loadmaster.pluginDirectories": "loadmaster: {pluginDirectories: [null]}",
}


@pytest.mark.parametrize("path", LISTS)
def test_a_null_in_a_list_is_one_problem_with_its_place(path: str) -> None:
    (problem,) = problems_of(HEADER + LISTS[path])

    assert problem.startswith(f"FILE:3: {path}[0]: expected ")
    assert problem.endswith(", got null")


@pytest.mark.parametrize("faulty", FAULTY, ids=[faulty.problem[:60] for faulty in FAULTY])
def test_a_mistake_is_one_line_that_says_where(faulty: Faulty) -> None:
    (problem,) = problems_of(faulty.text)

    place, _, rest = problem.partition(": ")
    assert place.split(":")[:2] == ["FILE", str(faulty.line)]
    assert rest.startswith(faulty.problem)
    assert problem.isprintable()


def test_the_command_says_the_same_and_ends_with_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(HEADER)
    bad.write_text(HEADER + "parallelism: 0\n")

    code = main(["config", "check", str(good), str(bad)])

    told = capsys.readouterr()
    assert code == WRONG_INPUT
    assert told.out == f"{good}: valid; profiles: loadmaster\n"
    assert told.err == f"{bad}:3: parallelism: Invalid value: 0: should be an integer value greater than zero\n"


def test_what_has_no_effect_is_said_of_a_valid_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEADER + "parallelism: 8\n")

    assert main(["config", "check", str(path)]) == 0
    assert capsys.readouterr().err == f"{path}: parallelism has no effect: one thread looks at all nodes at once\n"


def test_what_is_in_effect_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show"]) == 0

    assert config_from_text(capsys.readouterr().out, IN_TREE) is not None


def test_a_configuration_is_read_from_standard_input() -> None:
    command = [sys.executable, "-m", "scheduler", "config", "check", "-"]

    done = subprocess.run(command, input=HEADER + "x: 1\n", capture_output=True, text=True, check=False)

    assert done.returncode == WRONG_INPUT
    assert done.stderr == "standard input:3: x: unknown field\n"


BOMB = (
    HEADER
    + "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            HEADER + "profiles:\n" + "".join(f"  - schedulerName: s{i}\n" for i in range(20_000)),
            "FILE:3: profiles: Too many: 20000",
            id="20,000 profiles",
        ),
        pytest.param(BOMB, "FILE:7:", id="an alias bomb"),
        pytest.param(
            HEADER + "profiles: [{plugins: {filter: {enabled: [" + "x," * 100_000 + "]}}}]\n",
            "FILE:3: profiles[0].plugins.filter.enabled[0]: expected a mapping",
            id="100,000 problems",
        ),
        pytest.param(
            HEADER + "".join(f"field{i}: 1\n" for i in range(50_000)),
            "FILE:3: field0: unknown field",
            id="50,000 fields",
        ),
        pytest.param(HEADER + "x: " + "y" * 900_000 + "\n", "FILE:3: x: unknown field", id="a long value"),
        pytest.param(HEADER + "x" * 900_000 + ": 1\n", "FILE:", id="a long key"),
        pytest.param(HEADER + "x: " + "[" * 400_000, "FILE:3:", id="deep nesting"),
    ],
)
def test_whatever_a_file_has_is_refused_soon(text: str, problem: str) -> None:
    started = time.thread_time()
    problems = problems_of(text)
    seconds = time.thread_time() - started

    assert problems[0].startswith(problem)
    assert len(problems) <= MAX_PROBLEMS + 1
    assert sum(map(len, problems)) < 100_000
    assert seconds < SOON


def test_a_thousand_profiles_are_read_soon() -> None:
    text = HEADER + "profiles:\n" + "".join(f"  - schedulerName: s{i}\n" for i in range(1_000))

    started = time.thread_time()
    config = config_from_text(text, IN_TREE)

    assert len(config.profiles) == 1_000
    assert time.thread_time() - started < SOON


def test_more_than_a_config_map_holds_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEADER + "#" * MAX_BYTES)

    with pytest.raises(ConfigError, match=f"larger than {MAX_BYTES} bytes"):
        load_config(str(path), IN_TREE)


def test_what_has_no_end_is_not_read() -> None:
    with pytest.raises(ConfigError, match="larger than"):
        load_config("/dev/zero", IN_TREE)
