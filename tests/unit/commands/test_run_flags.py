"""kube-scheduler's flags, from the command line to what a run is told."""

import subprocess
import sys
from pathlib import Path

import pytest

from plugins import IN_TREE
from scheduler.__main__ import WRONG_INPUT, main
from scheduler.commands import run as app
from scheduler.config.load import load_config
from scheduler.config.options import RunOptions
from scheduler.framework.errors import ConfigError
from tests.unit.config.faulty import HEADER


def run(*arguments: str) -> tuple[int, str]:
    """What a process of its own ends with, and what it says: it sets up logging and signals."""
    command = [sys.executable, "-m", "scheduler", "run", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stderr


def options_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> RunOptions:
    runs: list[RunOptions] = []

    def run(options: RunOptions) -> int:
        runs.append(options)
        return 0

    monkeypatch.setattr(app, "run", run)
    assert main(["run", *arguments]) == 0
    return runs[0]


def test_flags_that_were_not_given_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    options = options_of(monkeypatch)

    assert options.deprecated == {}
    assert options.feature_gates == []
    assert load_config(None, IN_TREE, options.leader_election, options.deprecated) == load_config(None, IN_TREE)


def test_a_flag_may_be_given_again_where_it_is_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    options = options_of(monkeypatch, "--feature-gates=A=true", "--feature-gates=B=false", "--vmodule=x=1,y.*=2")

    assert options.feature_gates == ["A=true", "B=false"]
    assert options.modules == (("x", 1), ("y.*", 2))


def test_all_flags_are_shown_as_go_writes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = options_of(
        monkeypatch,
        "--leader-elect=false",
        "--leader-elect-lease-duration=90s",
        "--vmodule=x=1,y=2",
        "--plugin-dir=/a",
        "--plugin-dir=/b",
        "-v",
        "2",
    ).flags

    shown = ("leader-elect", "leader-elect-lease-duration", "vmodule", "plugin-dir", "v", "secure-port", "config")
    assert [flags[name] for name in shown] == ["false", "1m30s", "x=1,y=2", "[/a,/b]", "2", "10259", ""]
    assert "authorization-always-allow-paths" in flags


def test_deprecated_flags_count_without_a_file_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deprecated = options_of(
        monkeypatch,
        "--kube-api-qps=7",
        "--profiling=false",
        "--pod-max-in-unschedulable-pods-duration=1m",
    ).deprecated
    path = tmp_path / "config.yaml"
    path.write_text(HEADER + "clientConnection: {qps: 9}\nloadmaster: {podMaxInUnschedulablePodsSeconds: 5}\n")

    without, beside = load_config(None, IN_TREE, {}, deprecated), load_config(str(path), IN_TREE, {}, deprecated)

    assert (without.client_connection.qps, without.enable_profiling) == (7, False)
    assert (beside.client_connection.qps, beside.enable_profiling) == (9, True)
    assert without.loadmaster.pod_max_in_unschedulable_pods_seconds == 60
    assert beside.loadmaster.pod_max_in_unschedulable_pods_seconds == 60


def test_a_deprecated_flag_is_checked_like_the_field(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEADER)

    for given in (None, str(path)):
        with pytest.raises(ConfigError, match="podMaxInUnschedulablePodsSeconds: Invalid value"):
            load_config(given, IN_TREE, {}, {"loadmaster.podMaxInUnschedulablePodsSeconds": -1.0})


def test_what_would_be_in_effect_is_written_instead_of_scheduling(tmp_path: Path) -> None:
    written = tmp_path / "written.yaml"

    code, _ = run(
        "--leader-elect-resource-name=mine",
        "--pod-max-in-unschedulable-pods-duration=1m",
        f"--write-config-to={written}",
    )

    assert code == 0
    assert load_config(str(written), IN_TREE).leader_election.resource_name == "mine"


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        (
            "--feature-gates=GangSchedulin=true",
            "unrecognized feature gate: GangSchedulin; did you mean 'GangScheduling'?",
        ),
        ("--feature-gates=GangScheduling=true", "GangScheduling changes how pods are scheduled"),
    ],
)
def test_a_wrong_gate_ends_with_one_line(argument: str, problem: str) -> None:
    code, told = run(argument)

    assert code == WRONG_INPUT
    (line,) = told.splitlines()
    assert line.startswith(f"--feature-gates: {problem}")


@pytest.mark.parametrize("argument", ["--vmodule=x", "--profiling=2", "--pod-max-in-unschedulable-pods-duration=5"])
def test_a_flag_that_cannot_be_read_is_refused(argument: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", argument])

    assert ended.value.code == WRONG_INPUT
