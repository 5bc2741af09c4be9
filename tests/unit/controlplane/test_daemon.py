from pathlib import Path

import pytest

from tests.controlplane import ProcessError
from tests.controlplane.__main__ import main, parser
from tests.controlplane.daemon import State, Wishes, current, published_state, state_file


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_the_background_process_is_asked_for_the_same() -> None:
    wishes = Wishes(nodes=7, zones=2, kube_scheduler=True)

    parsed = parser().parse_args(["up", *wishes.arguments()])

    assert Wishes(parsed.nodes, parsed.zones, parsed.kube_scheduler) == wishes


def test_the_export_line_is_safe_for_a_shell() -> None:
    assert State(1, "", "/a b/c").export_line == "export KUBECONFIG='/a b/c'"


def test_a_state_is_seen_while_its_process_holds_it() -> None:
    state = State(1, "https://127.0.0.1:1", "/k")

    with published_state() as publish:
        assert current() is None
        publish(state)
        assert current() == state

    assert current() is None
    assert not state_file().exists()


def test_only_one_is_up_at_a_time() -> None:
    with published_state(), pytest.raises(ProcessError, match="up already"), published_state():
        pass

    assert not state_file().exists()


def test_a_state_that_a_crash_left_is_not_believed(capsys: pytest.CaptureFixture[str]) -> None:
    state_file().parent.mkdir(parents=True)
    state_file().write_text('{"pid": 1, "server": "", "kubeconfig": ""}')

    assert current() is None
    assert main(["down"]) == 1

    assert not state_file().exists()
    assert capsys.readouterr().err == "No control plane is up.\n"
