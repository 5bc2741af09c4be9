"""What a scheduler must not keep when all is quiet: assumptions, tasks, descriptors, memory; and what it may not log.

It is asked from outside: metrics, SIGUSR2 (its own debugger), SIGUSR1 (its tasks, see scheduler_under_test.py), /proc.
"""

import asyncio
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tests.chaos.judge import Judge
from tests.chaos.replica import Line, Replica
from tests.controlplane import ProcessError

ALLOWED_GROWTH: Final = 150 << 20
"""Bytes of memory more than at the start."""

DUMP_SECONDS: Final = 20.0
POLL_SECONDS: Final = 0.1

COMPARED: Final = "Cache comparer finished"
TASKS: Final = "Tasks"

PASSING: Final = re.compile("RequestHandler.start|Event.wait")
"""Tasks that come and go: of those who look at its health, and of waits with an end (Python 3.11's `wait_for`)."""

ALARMS: Final = re.compile("Traceback|never retrieved|was destroyed but it is pending|never awaited")


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a process has when it has just become ready and nothing goes on."""

    tasks: Counter[str]
    threads: Counter[str]
    descriptors: Counter[str]
    memory: int


class Watchdog:
    """Looks after one replica over all rounds."""

    def __init__(self, replica: Replica, baselines: dict[str, Baseline]) -> None:
        """`baselines`: by role, for all replicas; the first that is quiet in a role sets it."""
        self.replica = replica
        self._baselines = baselines
        self._lines: list[Line] = []
        self._others: list[str] = []

    async def dumps(self) -> list[Line]:
        """Let it tell what it believes, and return the lines. Raises TimeoutError."""
        self._collect()
        before = len(self._lines)
        await self.replica.started()  # before, a signal would end it
        for signum, last in ((signal.SIGUSR2, COMPARED), (signal.SIGUSR1, TASKS)):
            self.replica.signal(signum)
            await until(partial(self._has_logged, last, before), DUMP_SECONDS)
        return self._lines[before:]

    async def leads(self) -> bool:
        return await self.replica.metric("leader_election_master_status") == 1

    async def leftovers(self, judge: Judge) -> list[str]:
        """What it has too much of, or believes wrongly, at this moment."""
        try:
            lines = await self.dumps()
        except TimeoutError:
            return [f"it has not told what it believes {DUMP_SECONDS:g} s after it was asked"]
        found = [*mismatches(lines, judge)]
        if assumed := await self.replica.metric("scheduler_cache_size", type="assumed_pods"):
            found.append(f"{assumed:g} pods are still assumed")
        self.replica.proxy.close_idle()
        await asyncio.sleep(POLL_SECONDS)
        try:
            now = self._take_stock(lines)
        except (FileNotFoundError, ProcessError):
            return ["it has ended since it told what it believes"]
        works = any(name.startswith("scheduling loop") for name in now.tasks)
        first = self._baselines.setdefault("leader" if works else "standby", now)
        for what in ("tasks", "threads", "descriptors"):
            more = getattr(now, what) - getattr(first, what)
            found += [f"{what} left over: {dict(more)}"] if more else []
        if fewer := first.tasks - now.tasks:
            found.append(f"tasks ended: {dict(fewer)}")
        if now.memory > first.memory + ALLOWED_GROWTH:
            found.append(f"memory grew from {first.memory >> 20} to {now.memory >> 20} MiB")
        return found

    def alarms(self) -> list[str]:
        """What the log should never have, since the last call."""
        self._collect()
        found = [*alarming(self._lines), *(f"not a log line: {line}" for line in self._others)]
        self._lines.clear()
        self._others.clear()
        return found

    def _has_logged(self, message: str, since: int) -> bool:
        return any(line["msg"] == message for line in self._collect()[since:])

    def _collect(self) -> list[Line]:
        lines, others = self.replica.new_lines()
        self._lines += lines
        self._others += others
        return self._lines

    def _take_stock(self, lines: Sequence[Line]) -> Baseline:
        told = next(line for line in reversed(lines) if line["msg"] == TASKS)
        return Baseline(
            normalized(name for name in told["tasks"] if not PASSING.search(name)),
            normalized(told["threads"]),
            self.replica.descriptors(),
            self.replica.memory(),
        )


def mismatches(lines: Iterable[Line], judge: Judge) -> Iterator[str]:
    """Where its own comparison, or ours of what it counts on nodes, finds a difference from the API server."""
    dumped: dict[str, Line] = {}
    for line in lines:
        if line["msg"] == "Cache mismatch" or (line["msg"] == COMPARED and line["mismatch"]):
            yield f"its tables differ: {line}"
        elif line["msg"] == "Dump of cached node" and not line["deleted"]:
            dumped[line["node"]] = line
    if missing := judge.nodes.keys() - dumped.keys():
        yield f"it does not know the nodes {sorted(missing)}"
    for name in judge.nodes.keys() & dumped.keys():
        counted, there, true = dumped[name], len(judge.on[name]), judge.used(name)["cpu"]
        cpu = round(float(counted["requested"].get("cpu", 0)) * 1000)
        if (counted["pods"], cpu) != (there, true):
            yield f"it counts {counted['pods']} pods with {cpu}m on {name}: there are {there} with {true}m"


def alarming(lines: Iterable[Line]) -> Iterator[str]:
    """Lines that tell of a bug."""
    for line in lines:
        if "exception" in line or is_unforeseen_end(line) or ALARMS.search(line["msg"]):
            yield f"{line['msg']}: {line.get('exception', line)}"


def is_unforeseen_end(line: Line) -> bool:
    """Whether the program ends, other than a leader's that lost the Lease."""
    return line["level"] == "critical" and line.get("part") != "leader election"


def normalized(names: Iterable[str]) -> Counter[str]:
    """Names without their addresses and numbers."""
    return Counter(re.sub(r"0x[0-9a-f]+|\d+", "N", name) for name in names)


async def until(check: Callable[[], bool], seconds: float) -> None:
    """Wait until something is so. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            raise TimeoutError
        await asyncio.sleep(POLL_SECONDS)
