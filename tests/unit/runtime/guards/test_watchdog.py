"""What the log says of an event loop that hangs."""

import asyncio
import logging
import sys
import threading
from contextlib import suppress
from typing import Any

import pytest

from scheduler import framework as fw
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import Diagnosis
from scheduler.runtime.guards import watchdog
from scheduler.runtime.guards.watchdog import HANG_LOOKS, Watchdog, report_hang
from scheduler.testing import a_pod
from tests.fakes import a_framework, plugin


def text_of(record: logging.LogRecord) -> str:
    assert record.exc_info
    return logging.Formatter().formatException(record.exc_info)


def test_a_hang_in_a_plugin_is_told_with_its_name_the_pod_and_the_authors_frames(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def endless(*_: Any) -> None:
        report_hang(sys._getframe(), 5.0)  # as the thread does, while it is here

    framework = a_framework(plugin(fw.PreFilterPlugin, "Endless", pre_filter=endless))
    framework.run_pre_filter(CycleState(), a_pod("web"), Diagnosis(1))

    (record,) = caplog.records
    assert record.levelno == logging.CRITICAL
    told = {key: vars(record)[key] for key in ("plugin", "extensionPoint", "pod", "seconds")}
    assert told == {"plugin": "Endless", "extensionPoint": "PreFilter", "pod": "default/web", "seconds": 5.0}
    assert text_of(record).count("File ") == 1
    assert "in endless" in text_of(record)


def test_a_hang_anywhere_else_is_told_with_the_whole_stack(caplog: pytest.LogCaptureFixture) -> None:
    report_hang(sys._getframe(), 5.0)

    (record,) = caplog.records
    assert "plugin" not in vars(record)
    assert "in test_a_hang_anywhere_else_is_told_with_the_whole_stack" in text_of(record)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when the watchdog's thread has told of a hang."""
    told = threading.Event()
    monkeypatch.setattr(watchdog, "report_hang", lambda frame, seconds: told.set())
    monkeypatch.setattr(watchdog, "HANG_LOOKS", 3)
    return told


async def ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_the_thread_tells_while_the_event_loop_hangs_and_when_it_goes_on(
    told: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    beats = 0

    def look() -> None:
        nonlocal beats
        beats += 1

    goes_on = threading.Event()

    def hear(record: logging.LogRecord) -> bool:
        goes_on.set()
        return True

    caplog.handler.addFilter(hear)
    task = asyncio.create_task(Watchdog(look, beat_seconds=0.01).run())
    await asyncio.sleep(0)

    assert told.wait(10), "this holds the event loop until it is told"
    seen = beats
    assert await asyncio.to_thread(goes_on.wait, 10)

    assert caplog.messages == ["The event loop goes on"]
    assert beats > seen
    await ended(task)


@pytest.mark.parametrize(
    ("beats", "told"),
    [
        pytest.param([1] * (HANG_LOOKS + 4) + [2, 3], ["hangs", "goes on"], id="a hang, and its end, are told once"),
        pytest.param([1 + look // HANG_LOOKS for look in range(100)], [], id="a beat now and then"),
    ],
)
def test_the_thread_counts_its_looks_without_a_beat(
    beats: list[int], told: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dog, left = Watchdog(lambda: None), iter(beats)

    def wait(_: float) -> bool:
        dog._beats = next(left, 0)
        return not dog._beats

    monkeypatch.setattr(dog._ended, "wait", wait)
    dog._watch(threading.get_ident())

    assert [record.message.partition(":")[0] for record in caplog.records] == [
        f"The event loop {each}" for each in told
    ]


async def test_it_looks_for_calls_that_are_awaited_for_too_long_with_each_beat(told: threading.Event) -> None:
    def look() -> None:
        raise LookupError("it is a part: its failure ends the program")

    with pytest.raises(LookupError):
        await Watchdog(look).run()
