"""Progress in time, or not: what `/livez` says of it."""

from typing import Any

import pytest

from scheduler.kube.informers.deadlines import FIRST_COMPARISON, Deadlines
from tests.fakes import FakeClock, Metrics, sample


class Setup:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.metrics = Metrics()
        self.deadlines = Deadlines(self.metrics, self.clock)

    def stalled(self, name: str) -> float:
        return sample(self.metrics, "loadmaster_watch_errors_total", resource=name, reason="stalled")


PODS_NODES = [("expect", "pods", 60.0), ("expect", "nodes", 60.0)]


@pytest.mark.parametrize(
    ("steps", "overdue"),
    [
        pytest.param([("progress", "pods"), 1e6], {}, id="not expected"),
        pytest.param([("expect", "pods", 60.0), 60.0], {}, id="in time"),
        pytest.param([("expect", "pods", 60.0), 60.5], {"pods": 60.5}, id="never begins"),
        pytest.param([*PODS_NODES, *[40.0, ("progress", "pods")] * 3], {"nodes": 120.0}, id="progress of one"),
        pytest.param([("expect", "pods", 60.0), ("expect", "pods", 180.0), 180.0], {}, id="expected again"),
        pytest.param([("expect", "pods", 60.0), 61.0, ("drop", "pods"), ("drop", "none")], {}, id="dropped"),
    ],
)
def test_what_has_made_no_progress_in_its_time_is_overdue(steps: list[Any], overdue: dict[str, float]) -> None:
    setup = Setup()

    for step in steps:
        if isinstance(step, float):
            setup.clock.advance(step)
        else:
            getattr(setup.deadlines, step[0])(*step[1:])

    assert setup.deadlines.overdue() == overdue
    assert setup.deadlines.are_met() is not bool(overdue)


def test_trouble_with_a_watch_excuses_the_first_comparison_too_but_no_other_watch() -> None:
    setup = Setup()
    for name in ("pods", "nodes", FIRST_COMPARISON):
        setup.deadlines.expect(name, 60.0)
    setup.clock.advance(61.0)

    setup.deadlines.excuse("pods")

    assert setup.deadlines.overdue() == {"nodes": 61.0}


def test_it_is_told_and_counted_once_when_something_stalls_and_told_when_it_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    setup = Setup()
    setup.deadlines.expect("pods", 60.0)
    setup.deadlines.expect("nodes", 180.0)

    answers = []
    for seconds in (59.0, 10.0, 10.0):
        setup.clock.advance(seconds)
        answers.append(setup.deadlines.are_met())
    setup.deadlines.progress("pods")
    answers.append(setup.deadlines.are_met())

    assert answers == [True, False, False, True]
    logged = [(each.levelname, each.message, vars(each)["resource"]) for each in caplog.records]
    assert logged == [("ERROR", "No progress: /livez fails", "pods"), ("INFO", "Progress again", "pods")]
    assert vars(caplog.records[0])["seconds"] == 69
    assert setup.stalled("pods") == 1
    assert setup.stalled("nodes") == 0
