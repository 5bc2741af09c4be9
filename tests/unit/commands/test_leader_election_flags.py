"""The flags of leader election, from the command line to the options of a run."""

from typing import Any

import pytest

from scheduler.__main__ import main
from scheduler.commands import run as app
from scheduler.config.options import RunOptions
from scheduler.framework.duration import Duration


def flags_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    """What a run is told about `leaderElection`."""
    runs: list[RunOptions] = []

    def run(options: RunOptions) -> int:
        runs.append(options)
        return 0

    monkeypatch.setattr(app, "run", run)
    assert main(["run", *arguments]) == 0
    return runs[0].leader_election


def test_nothing_is_said_without_a_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    assert flags_of(monkeypatch) == {}


def test_every_flag_has_its_field(monkeypatch: pytest.MonkeyPatch) -> None:
    given = flags_of(
        monkeypatch,
        "--leader-elect",
        "--leader-elect-lease-duration=1m",
        "--leader-elect-renew-deadline=40s",
        "--leader-elect-retry-period=500ms",
        "--leader-elect-resource-lock=leases",
        "--leader-elect-resource-name=",
        "--leader-elect-resource-namespace=mine",
    )

    assert given == {
        "leaderElect": True,
        "leaseDuration": Duration(60),
        "renewDeadline": Duration(40),
        "retryPeriod": Duration(0.5),
        "resourceLock": "leases",
        "resourceName": "",
        "resourceNamespace": "mine",
    }


@pytest.mark.parametrize("text", ["false", "F", "0"])
def test_a_truth_is_written_as_in_go(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    assert flags_of(monkeypatch, f"--leader-elect={text}") == {"leaderElect": False}


@pytest.mark.parametrize("flag", ["--leader-elect=no", "--leader-elect-retry-period=2"])
def test_what_cannot_be_read_is_refused(monkeypatch: pytest.MonkeyPatch, flag: str) -> None:
    with pytest.raises(SystemExit) as ended:
        flags_of(monkeypatch, flag)

    assert ended.value.code == 2
