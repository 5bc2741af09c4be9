"""Code of plugins that hangs or ends the program outside of a decision, under a time limit of real signals."""

import json
import signal
import time
from collections.abc import Callable
from typing import NoReturn

import pytest

from scheduler.framework.errors import ConfigError
from scheduler.runtime.guards.containment import Contained, TooLong

LIMIT = 0.02
FOREVER = 60.0


def loops() -> NoReturn:
    while True:
        pass


def waits() -> None:
    time.sleep(FOREVER)


def insists() -> None:
    """Catch what is raised, once, and go on."""
    try:
        loops()
    except BaseException:  # noqa: BLE001  as authors do
        loops()


@pytest.mark.parametrize("hangs", [loops, waits, insists])
def test_what_hangs_is_ended_and_named(hangs: Callable[[], None]) -> None:
    said = r"it has not come back for 0.02 s, in .*test_containment.py:\d+"
    with pytest.raises(TooLong, match=said) as raised, Contained(LIMIT):
        hangs()

    assert len(raised.value.problems) == 1


def test_problems_that_were_found_meanwhile_are_kept() -> None:
    def starts_two() -> None:
        try:
            loops()
        except BaseException as error:
            raise ConfigError(["a", f"plugin 'Mine' did not start: {error}"]) from error

    with pytest.raises(TooLong) as raised, Contained(LIMIT):
        starts_two()

    assert raised.value.problems[0] == "a"
    assert raised.value.problems[1].startswith("plugin 'Mine' did not start: it has not come back")


def test_what_would_end_the_program_is_a_problem_of_the_configuration() -> None:
    with pytest.raises(ConfigError, match="SystemExit: 3"), Contained(LIMIT):
        raise SystemExit(3)


def test_what_is_raised_otherwise_stays_as_it_is() -> None:
    with pytest.raises(KeyError), Contained(LIMIT):
        raise KeyError("mine")
    with pytest.raises(KeyboardInterrupt), Contained(LIMIT):
        raise KeyboardInterrupt


def test_our_own_work_takes_as_long_as_it_takes() -> None:
    until = time.monotonic() + 3 * LIMIT

    with Contained(LIMIT):
        while time.monotonic() < until:  # whoever has the `with` is no plugin
            json.dumps([1] * 1_000, indent=1)  # written in Python

    assert time.monotonic() >= until


def test_afterwards_everything_is_as_before() -> None:
    before = signal.getsignal(signal.SIGALRM)

    with Contained(LIMIT):
        pass

    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
