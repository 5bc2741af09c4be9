import io

import pytest

from tests.demo.screen import PlainScreen, live_fits
from tests.unit.demo.play import a_model


class Terminal(io.StringIO):
    encoding = "utf-8"

    def __init__(self, *, tty: bool = True) -> None:
        super().__init__()
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty


GOOD = {"TERM": "xterm-256color"}
"""With COLUMNS and LINES set by the test."""


@pytest.mark.parametrize(
    ("environment", "columns", "rows", "tty", "live"),
    [
        pytest.param(GOOD, 100, 40, True, True, id="a terminal"),
        pytest.param(GOOD, 81, 24, True, True, id="just large enough"),
        pytest.param(GOOD, 80, 24, True, False, id="narrow"),
        pytest.param(GOOD, 100, 23, True, False, id="low"),
        pytest.param(GOOD, 100, 40, False, False, id="a pipe"),
        pytest.param({"TERM": "dumb"}, 100, 40, True, False, id="dumb"),
        pytest.param({}, 100, 40, True, False, id="no TERM"),
        pytest.param(GOOD | {"NO_COLOR": "1"}, 100, 40, True, False, id="NO_COLOR"),
        pytest.param(GOOD | {"NO_COLOR": ""}, 100, 40, True, True, id="an empty NO_COLOR, which means nothing"),
        pytest.param(GOOD | {"CI": "true"}, 100, 40, True, False, id="CI"),
    ],
)
def test_the_live_display_is_only_for_terminals_that_can_take_it(
    environment: dict[str, str], columns: int, rows: int, tty: bool, live: bool
) -> None:
    assert live_fits(environment, Terminal(tty=tty), (columns, rows)) is live


def test_plain_lines_have_the_caption_and_the_outcome_and_no_control_characters() -> None:
    out = Terminal(tty=False)
    screen = PlainScreen(out, columns=60)
    model = a_model()

    with screen:
        screen.begin("web: 2 pods.")
        screen.tick(model)
        screen.end(model, model.total())
        screen.end(model, model.total())
        screen.stay(["export KUBECONFIG=/tmp/x"])
    screen.sum_up(model)

    lines = out.getvalue().splitlines()
    assert lines[0] == "* web: 2 pods."
    assert lines[1].startswith("  huge waits: 0/4 nodes")
    assert sum("huge waits" in line for line in lines) == 1  # said once, until it changes
    assert "  export KUBECONFIG=/tmp/x" in lines
    assert max(map(len, lines)) < 100
    assert out.getvalue().replace("\n", "").isprintable()
