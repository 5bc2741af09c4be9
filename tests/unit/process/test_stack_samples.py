"""Stacks by weight: what runs, not what waits, within bounds."""

import sys
import threading
from types import FrameType

import pytest

from scheduler.process import stack_samples
from scheduler.process.stack_samples import OTHERS, Samples, profile
from tests.fakes import folded

LOOP, OTHER = 1, 2
NAMES = {LOOP: "MainThread", OTHER: "a;b\nc"}


class Time:
    """Clocks that a test sets."""

    def __init__(self) -> None:
        self.cpu, self.wall = 0.0, 0.0

    def samples(self) -> Samples:
        return Samples(LOOP, lambda: self.cpu, lambda: self.wall)


def here() -> FrameType:
    return sys._getframe(1)


def deep(levels: int) -> FrameType:
    return deep(levels - 1) if levels else here()


def test_the_event_loop_weighs_what_cpu_it_used_and_nothing_while_it_waits() -> None:
    time = Time()
    samples = time.samples()
    for cpu in (0.002, 0.002, 0.005):  # in between it waited
        time.cpu, time.wall = cpu, time.wall + 0.01
        samples.look({LOOP: here()}, NAMES)

    (line,) = samples.folded().decode().splitlines()
    assert line.startswith("event loop;")
    assert "test_the_event_loop_weighs_what_cpu_it_used_and_nothing_while_it_waits (" in line
    assert line.endswith(" 5000")


def test_other_threads_weigh_the_time_that_passed_unless_they_wait() -> None:
    time = Time()
    samples = time.samples()
    waiting = threading.Thread(target=(end := threading.Event()).wait, daemon=True)
    waiting.start()
    while not stack_samples._waits(sys._current_frames()[waiting.ident or 0]):
        pass
    time.wall = 0.01
    samples.look({OTHER: here(), 3: sys._current_frames()[waiting.ident or 0]}, NAMES)
    end.set()

    (line,) = samples.folded().decode().splitlines()
    assert line.startswith("a,b c;")
    assert line.endswith(" 10000")


def test_the_heaviest_stack_comes_first_and_tools_can_read_them() -> None:
    time = Time()
    samples = time.samples()
    for cpu, frame in ((0.001, here()), (0.004, deep(3))):
        time.cpu = cpu
        samples.look({LOOP: frame}, NAMES)

    stacks = list(folded.stacks(samples.folded().decode()))

    assert [weight for _, weight in stacks] == [3000, 1000]
    assert [frame.partition(" ")[0] for frame in stacks[0][0][-4:]] == ["deep"] * 4


def test_of_a_deep_stack_the_innermost_frames_are_kept() -> None:
    time = Time()
    samples = time.samples()
    time.cpu = 0.001
    samples.look({LOOP: deep(300)}, NAMES)

    assert samples.folded().count(b";") == stack_samples.MAX_FRAMES


def test_there_is_a_bound_on_different_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_samples, "MAX_STACKS", 2)
    time = Time()
    samples = time.samples()
    for level in range(5):
        time.cpu += 0.001
        samples.look({LOOP: deep(level)}, NAMES)

    lines = samples.folded().decode().splitlines()
    assert len(lines) == 3
    assert lines[0] == f"{OTHERS} 3000"


def test_a_busy_thread_is_seen_where_it_is() -> None:
    found: list[bytes] = []
    busy = threading.get_ident()
    taking = threading.Thread(target=lambda: found.append(profile(0.3, busy, threading.Event())))
    taking.start()
    while taking.is_alive():
        sum(range(1000))
    taking.join()

    stacks = list(folded.stacks(found[0].decode()))
    assert any("test_a_busy_thread_is_seen_where_it_is" in stack[-1] for stack, _ in stacks)
    assert 1_000 < sum(weight for stack, weight in stacks if stack[0] == "event loop") < 600_000


def test_a_profile_ends_when_it_is_told_to() -> None:
    ended = threading.Event()
    ended.set()

    assert profile(1000.0, threading.get_ident(), ended) == b""
