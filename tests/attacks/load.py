"""Plain pods at full rate: as many as a scheduler binds, and what it needs for them."""

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import orjson

from tests.bench import usage
from tests.bench.api import CONNECTIONS, Api
from tests.bench.board import Board, Group, PodRecord
from tests.bench.wire import Job, Request, Server, send_all
from tests.controlplane import Component, a_pod

BACKLOG: Final = 1_000
"""Pods that wait for the scheduler at any time: enough that it never has nothing to do."""

LOOK_SECONDS: Final = 0.02
"""Between two looks at what was bound, while the backlog is full."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What happened while plain pods came for a while."""

    seconds: float
    pods: int
    """Plain pods that were bound."""
    cpu_seconds: float
    """What the scheduler used."""
    peak_memory: int
    """The most that the scheduler had, in bytes, at the times it was looked at."""
    longest_pause: float
    """The longest time without a binding of a plain pod, in seconds."""

    @property
    def rate(self) -> float:
        """Pods per second."""
        return self.pods / self.seconds

    @property
    def cpu_per_pod(self) -> float:
        """Seconds; infinite without any pod."""
        return self.cpu_seconds / self.pods if self.pods else float("inf")


class MemoryMeter:
    """Looks at a process's memory in a thread of its own. A context manager."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.peak = 0

    def __enter__(self) -> "MemoryMeter":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            try:
                self.peak = max(self.peak, usage.resident_memory(self._pid))
            except (OSError, ValueError):
                return  # it has ended, which those who wait for its bindings find out
            if self._end.wait(0.1):
                return


class PlainLoad:
    """Creates plain pods as quickly as they are bound."""

    def __init__(self, server: Server, api: Api, scheduler: Component, board: Board) -> None:
        self._server = server
        self._api = api
        self._scheduler = scheduler
        self._board = board

    def run(self, namespace: str, seconds: float) -> Figures:
        """Create pods in a namespace for that long, and delete them. Raises Refused or WireError."""
        group = Group()
        with MemoryMeter(self._scheduler.pid) as memory:
            cpu, start = usage.cpu_seconds(self._scheduler.pid), time.monotonic()
            send_all(self._server, self._jobs(namespace, group, start + seconds), CONNECTIONS, lambda *_: None)
            self._board.refresh()
            now = time.monotonic()
            spent = usage.cpu_seconds(self._scheduler.pid) - cpu
        bound = sorted(record.bound for record in group.pods if record.bound is not None)
        pause = max(after - before for before, after in pairwise((start, *bound, now)))
        path, what = self._api.path("v1/Pod", namespace)
        self._api.send(Request("DELETE", f"{path}?gracePeriodSeconds=0", what))
        return Figures(now - start, len(bound), spent, memory.peak, pause)

    def _jobs(self, namespace: str, group: Group, end: float) -> Iterator[Job]:
        path, what = self._api.path("v1/Pod", namespace)
        plain = a_pod("")
        labels: Mapping[str, str] = {}
        while time.monotonic() < end:
            self._board.refresh()
            if len(group) - group.bound >= BACKLOG:
                time.sleep(LOOK_SECONDS)
                continue
            name = f"plain-{len(group)}"
            self._board.expect(PodRecord(namespace, name, labels), group)
            plain["metadata"] = {"name": name}
            yield [Request("POST", path, what, orjson.dumps(plain))]
