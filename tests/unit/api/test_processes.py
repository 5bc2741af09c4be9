"""How another process ended."""

import pytest

from scheduler.api.processes import ending


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (0, "with exit code 0"),
        (3, "with exit code 3"),
        (-2, "by the signal SIGINT"),
        (-9, "by the signal SIGKILL"),
        (-40, "by the signal 40"),
    ],
)
def test_a_code_is_an_exit_code_or_a_signal(code: int, text: str) -> None:
    assert ending(code) == text
