import pytest

from tests.bench import page
from tests.bench.page import main


def test_it_runs_at_a_tiny_scale(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "AIM", 1e6)
    code = main(["--nodes=3", "--running=4", "--waiting=5", "--new=2", "--rounds=1"])

    printed = capsys.readouterr().out
    assert code == 0
    for what in (
        "without readers",
        "the first picture, ",
        "with 2 new pods",
        "and the queue",
        "a node",
        "configuration",
    ):
        assert what in printed


def test_a_step_that_is_too_long_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "AIM", 0.0)

    assert main(["--nodes=1", "--running=0", "--waiting=0", "--new=1", "--rounds=1"]) == 1
    assert "No step may take more than 0 ms." in capsys.readouterr().out
