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
from scheduler.runtime.guards.watchdog import HANG_LOOKS, Finding, Looks, Watchdog, report_hang
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


def test_a_hang_is_found_once_and_so_is_its_end() -> None:
    looks = Looks()

    found = [looks.look(beats) for beats in (1, *[1] * (HANG_LOOKS + 3), 2, 3)]

    assert [each for each in found if each is not Finding.NOTHING_NEW] == [Finding.HANGS, Finding.GOES_ON]
    assert found.index(Finding.HANGS) == HANG_LOOKS


def test_an_event_loop_that_beats_now_and_then_does_not_hang() -> None:
    looks = Looks()

    found = {looks.look(1 + look // HANG_LOOKS) for look in range(100)}

    assert found == {Finding.NOTHING_NEW}


async def test_it_looks_for_calls_that_are_awaited_for_too_long_with_each_beat(told: threading.Event) -> None:
    def look() -> None:
        raise LookupError("it is a part: its failure ends the program")

    with pytest.raises(LookupError):
        await Watchdog(look).run()
