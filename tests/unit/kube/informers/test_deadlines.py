"""Progress in time, or not: what `/livez` says of it."""

import pytest

from scheduler.kube.informers.deadlines import FIRST_COMPARISON, Deadlines
from tests.fakes import FakeClock, Metrics, sample
from tests.unit.serve.serving import a_server


class Setup:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.metrics = Metrics()
        self.deadlines = Deadlines(self.metrics, self.clock)

    def stalled(self, name: str) -> float:
        return sample(self.metrics, "loadmaster_watch_errors_total", resource=name, reason="stalled")


def test_nothing_is_overdue_that_is_not_expected() -> None:
    setup = Setup()

    setup.deadlines.progress("pods")
    setup.clock.advance(1e6)

    assert setup.deadlines.overdue() == {}
    assert setup.deadlines.are_met()


def test_what_never_begins_is_overdue_after_its_time() -> None:
    setup = Setup()
    setup.deadlines.expect("pods", 60.0)

    setup.clock.advance(60.0)
    in_time = setup.deadlines.overdue()
    setup.clock.advance(0.5)

    assert in_time == {}
    assert setup.deadlines.overdue() == {"pods": 60.5}


def test_each_progress_begins_the_time_again() -> None:
    setup = Setup()
    setup.deadlines.expect("pods", 60.0)
    setup.deadlines.expect("nodes", 60.0)

    for _ in range(3):
        setup.clock.advance(40.0)
        setup.deadlines.progress("pods")

    assert setup.deadlines.overdue() == {"nodes": 120.0}


def test_what_is_expected_again_may_have_another_time() -> None:
    setup = Setup()
    setup.deadlines.expect("pods", 60.0)
    setup.deadlines.expect("pods", 180.0)

    setup.clock.advance(180.0)

    assert setup.deadlines.overdue() == {}


def test_what_is_dropped_is_not_overdue() -> None:
    setup = Setup()
    setup.deadlines.expect("pods", 60.0)
    setup.clock.advance(61.0)

    setup.deadlines.drop("pods")
    setup.deadlines.drop("never expected")

    assert setup.deadlines.overdue() == {}


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


async def test_livez_answers_500_while_something_is_overdue() -> None:
    setup = Setup()
    setup.deadlines.expect("pods", 60.0)

    answers = []
    async with a_server({"watches": setup.deadlines.are_met}) as served:
        for seconds in (1.0, 61.0, 1.0):
            setup.clock.advance(seconds)
            answers.append(await served.get("/livez?verbose"))
            setup.deadlines.progress("pods")
    well, ill, well_again = answers

    assert well == (200, "[+]ping ok\n[+]watches ok\nlivez check passed\n")
    assert ill == (500, "[+]ping ok\n[-]watches failed: reason withheld\nlivez check failed\n")
    assert well_again == well
