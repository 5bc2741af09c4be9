"""`/debug/pprof/profile?seconds=N` and `/debug/memory`: what the running program does, and what it keeps.

The first one's address is Go's, and kube-scheduler's; its answer is not in Go's format but has folded stacks, which
speedscope, flamegraph.pl and inferno read. One profile goes on at a time: it costs a hundredth of a core.
"""

import asyncio
import gc
import json
import resource
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Final

from scheduler.files.reading import read
from scheduler.process import stack_samples
from scheduler.serve.port.answers import JSON, NOT_FOUND, TEXT, Answer

DEFAULT_SECONDS: Final = 10
MAX_SECONDS: Final = 25
"""The port gives a request 30."""

_MAX_BYTES: Final = 4096
"""Of Linux' file about the memory of a process."""

BUSY: Final = Answer(429, b"a profile is being taken; one goes on at a time\n")
BAD_SECONDS: Final = Answer(400, f"seconds: expected a whole number from 1 to {MAX_SECONDS}\n".encode())

Look = Callable[[float, int, threading.Event], bytes]
"""scheduler.process.stack_samples.profile."""


class Profile:
    """Folded stacks of the next seconds."""

    def __init__(self, is_on: Callable[[], bool], look: Look = stack_samples.profile) -> None:
        """`is_on`: whether the configuration wants it."""
        self._is_on = is_on
        self._look = look
        self._is_busy = False

    async def __call__(self, query: Mapping[str, str]) -> Answer:
        if not self._is_on():
            return NOT_FOUND
        text = query.get("seconds", str(DEFAULT_SECONDS))
        if not (text.isascii() and text.isdigit() and len(text) <= 4 and 0 < int(text) <= MAX_SECONDS):
            return BAD_SECONDS
        if self._is_busy:
            return BUSY
        self._is_busy = True
        ended = threading.Event()
        try:
            return Answer(200, await self._taken(int(text), ended), TEXT)
        finally:
            ended.set()
            self._is_busy = False

    async def _taken(self, seconds: float, ended: threading.Event) -> bytes:
        """Return the thread's result. Raises the thread's exception.

        A thread of its own, not the pool's: the end of the program does not wait for it.
        """
        loop_thread = threading.get_ident()
        found: Future[bytes] = Future()
        found.set_running_or_notify_cancel()  # its reader may go meanwhile

        def look() -> None:
            try:
                found.set_result(self._look(seconds, loop_thread, ended))
            except Exception as error:  # noqa: BLE001  the answer reports it
                found.set_exception(error)

        threading.Thread(target=look, name="profile", daemon=True).start()
        return await asyncio.wrap_future(found)


class Memory:
    """A summary of the program's memory, cheap to make."""

    def __init__(
        self, caches: Callable[[], Iterable[tuple[str, int]]], counts: Callable[[], Mapping[str, int]]
    ) -> None:
        """`caches`: bytes by kind; `counts`: of what the cluster brings."""
        self._caches, self._counts = caches, counts

    async def __call__(self, _accept: str) -> Answer:
        caches, resident = dict(self._caches()), resident_bytes()
        shown: dict[str, Any] = {
            "residentBytes": resident,
            "peakResidentBytes": max(resident, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024),
            "cacheBytes": {"total": sum(caches.values()), **caches},
            "counts": dict(self._counts()),
            "garbageCollector": {
                "tracked": dict(zip(("young", "middle", "old"), gc.get_count(), strict=True)),
                "frozen": gc.get_freeze_count(),
                "collections": [each["collections"] for each in gc.get_stats()],
            },
        }
        return Answer(200, json.dumps(shown, indent=1).encode() + b"\n", JSON)


def resident_bytes() -> int:
    """Of the process, by Linux' books; 0 elsewhere."""
    try:
        return int(read("/proc/self/statm", _MAX_BYTES).split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0
