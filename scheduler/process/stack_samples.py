"""A sampling profiler: a thread looks at all stacks a hundred times a second.

The event loop's thread is weighed by the CPU that it has used since the last look, so a loop that waits weighs nothing,
and one that is busy in C weighs as the function that called it. Of other threads the time itself counts, unless they
wait. The thread gets Python's lock only between two bytecodes of the others, so what runs long in C is seen at its end.
And the holder of the lock may keep it for the switch interval, 5 ms, or until it waits: the steps of our event loop are
shorter, so that nearly every look would find it in `select`. While a profile is made, the interval is a fiftieth.

A look costs some tens of microseconds. The number of looks and the frames of a stack are bounded, and only a number is
kept for each stack, so memory is bounded, too.
"""

import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import Final, TypeAlias

LOOKS_PER_SECOND: Final = 100

SWITCH_SECONDS: Final = 0.0001
"""How long the others may keep Python's lock from a look. An event loop with steps of 0.4 ms was found at work by 98 %
of the looks; by 15 % with Python's own 5 ms."""

MAX_FRAMES: Final = 100
"""Of a stack; of a deeper one, the innermost."""

OTHERS: Final = "(further stacks)"
MAX_STACKS: Final = 10_000
"""Different ones; what comes later is added to `OTHERS`."""

WAITING: Final = frozenset(
    {
        ("threading.py", "wait"),
        ("threading.py", "join"),
        ("threading.py", "_wait_for_tstate_lock"),
        ("queue.py", "get"),
        ("selectors.py", "select"),
        ("socket.py", "accept"),
        ("socket.py", "readinto"),
        ("ssl.py", "read"),
        ("thread.py", "_worker"),
    }
)
"""The file and innermost function of idle threads of the standard library."""

Stack: TypeAlias = tuple[CodeType, ...]
"""The functions, from the outermost."""


def profile(seconds: float, loop_thread: int, ended: threading.Event) -> bytes:
    """Look for so many seconds, or until `ended`, and return folded stacks: a line for each, with its microseconds.

    `loop_thread`: the event loop's. To be called in a thread of its own.
    """
    samples = Samples(loop_thread, cpu_clock(loop_thread), time.perf_counter)
    until = time.monotonic() + seconds
    usual = sys.getswitchinterval()
    sys.setswitchinterval(min(SWITCH_SECONDS, usual))
    try:
        while time.monotonic() < until and not ended.wait(1 / LOOKS_PER_SECOND):
            names = {thread.ident: thread.name for thread in threading.enumerate() if thread.ident is not None}
            samples.look(sys._current_frames(), names)
    finally:
        sys.setswitchinterval(usual)
    return samples.folded()


def cpu_clock(thread: int) -> Callable[[], float]:
    """A clock of the CPU that a thread has used, in seconds; where there is none, all time counts."""
    try:
        clock = time.pthread_getcpuclockid(thread)
    except (AttributeError, OSError):
        return time.perf_counter
    return lambda: time.clock_gettime(clock)


class Samples:
    """The samples."""

    def __init__(self, loop_thread: int, loop_cpu: Callable[[], float], now: Callable[[], float]) -> None:
        self._loop_thread, self._loop_cpu, self._now = loop_thread, loop_cpu, now
        self._seen_cpu, self._seen = loop_cpu(), now()
        self._own = threading.get_ident()
        self._weights: dict[tuple[str, Stack], float] = {}
        self._further = 0.0

    def look(self, frames: Mapping[int, FrameType], names: Mapping[int, str]) -> None:
        """`frames`: the innermost of each thread; `names` of threads."""
        cpu, now = self._loop_cpu(), self._now()
        spent, passed = cpu - self._seen_cpu, now - self._seen
        self._seen_cpu, self._seen = cpu, now
        for thread, frame in frames.items():
            if thread == self._loop_thread:
                self._add("event loop", frame, spent)
            elif thread != self._own and not _waits(frame):
                self._add(names.get(thread, "a thread"), frame, passed)

    def folded(self) -> bytes:
        """`thread;outermost;…;innermost microseconds`, the heaviest first; none that weighs nothing."""
        weights = dict(self._weights)
        lines = [
            (round(weight * 1e6), ";".join((_plain(thread), *map(_name, stack))))
            for (thread, stack), weight in weights.items()
        ]
        lines.append((round(self._further * 1e6), OTHERS))
        lines.sort(reverse=True)
        text = "".join(f"{stack} {weight}\n" for weight, stack in lines if weight > 0)
        return text.encode(errors="replace")

    def _add(self, thread: str, frame: FrameType, seconds: float) -> None:
        if seconds <= 0:
            return
        key = thread, _stack(frame)
        if key in self._weights:
            self._weights[key] += seconds
        elif len(self._weights) < MAX_STACKS:
            self._weights[key] = seconds
        else:
            self._further += seconds


def _stack(innermost: FrameType) -> Stack:
    codes: list[CodeType] = []
    frame: FrameType | None = innermost
    while frame is not None and len(codes) < MAX_FRAMES:
        codes.append(frame.f_code)
        frame = frame.f_back
    return tuple(reversed(codes))


def _waits(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return (file[file.rfind("/") + 1 :], frame.f_code.co_name) in WAITING


def _name(code: CodeType) -> str:
    """As py-spy writes it: `function (path/of/file.py:line)`, here with the function's first line."""
    return _plain(f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})")


def _plain(text: str) -> str:
    """Without what separates frames and lines: a plugin's function may be called anything."""
    return text.replace(";", ",").replace("\n", " ").replace("\r", " ")
