"""Periodic work of plugins that asks a server: what is said while it is down."""

import asyncio
import logging
from collections.abc import Iterator

import pytest

from scheduler.framework.errors import ApiError
from scheduler.process.metrics import Metrics
from scheduler.process.sources import REMIND_SECONDS
from scheduler.process.tasks import Tasks
from scheduler.process.virtual_time import VirtualTimeLoop
from tests.fakes import sample

PERIOD = 30.0
FAULTS = "loadmaster_plugin_data_faults_total"


class Prices:
    """Asked each half minute; the answers are None or the error."""

    def __init__(self, *answers: Exception | None) -> None:
        self._answers: Iterator[Exception | None] = iter(answers)
        self.metrics = Metrics()

    async def ask(self) -> None:
        if error := next(self._answers, None):
            raise error

    def for_periods(self, periods: int) -> None:
        async def scenario() -> None:
            tasks = Tasks(self.metrics)
            repetition = tasks.repeat("prices", 10, PERIOD, self.ask)
            await asyncio.sleep(PERIOD * (periods - 0.5))
            repetition.stop()

        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(scenario())


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.message) for record in caplog.records]


def test_a_server_that_is_down_is_one_line_without_a_traceback_and_another_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "scheduler.process.sources")
    down = ApiError(0, "http://prices.example: Cannot connect")
    prices = Prices(None, *[down] * 10, None, None)

    prices.for_periods(13)

    assert lines(caplog) == [("WARNING", "What a plugin asks fails"), ("INFO", "What a plugin asks answers again")]
    assert (caplog.records[0].exc_info, caplog.records[0].__dict__["err"]) == (None, str(down))
    assert sample(prices.metrics, FAULTS, plugin="prices", reason="no answer") == 10
    assert sample(prices.metrics, "loadmaster_task_failures_total", operation="prices") in (None, 0)


def test_it_is_said_again_after_a_while_and_when_it_is_another_error(caplog: pytest.LogCaptureFixture) -> None:
    periods = int(REMIND_SECONDS / PERIOD)
    prices = Prices(*[ApiError(503, "busy")] * (periods + 1), ApiError(0, "gone"))

    prices.for_periods(periods + 2)

    assert [record.__dict__["err"] for record in caplog.records] == ["busy", "busy", "gone"]


def test_a_server_that_flaps_is_no_line_each_time(caplog: pytest.LogCaptureFixture) -> None:
    prices = Prices(*[ApiError(503, "busy"), None] * 9)

    prices.for_periods(18)

    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


def test_a_bug_of_the_work_itself_is_still_an_error_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    Prices(ValueError("a bug")).for_periods(1)

    (record,) = caplog.records
    assert (record.message, record.levelname) == ("A job failed unexpectedly", "ERROR")
    assert record.exc_info is not None
