"""How far a reader follows a pod through the code: from the loop to its node, in a group, and to what its quota says.

    python -m tests.bench.ways      print each way, and how long it may be

A way is read from what runs: files that are entered, and stays in them. A reader who follows the calls one after the
other stays in a file until a call leads to another one, or a return leads back.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Final, NamedTuple

from scheduler.framework.shares import DeclaredShare
from tests.bench.warm_decision import Call, calls_into
from tests.unit.cycle.fakes import EngineUnderTest
from tests.unit.groups.coscheduling import Coscheduled
from tests.unit.quota.waiting.shares import Sharing

BEFORE = 3
"""Pods of the kind that were placed before, so that nothing is loaded or read for the first time."""


class Way(NamedTuple):
    """How much there is to read."""

    stays: int
    files: int
    functions: int

    def is_within(self, limit: "Way") -> bool:
        return all(each <= most for each, most in zip(self, limit, strict=True))


async def of_a_member() -> Way:
    """Return the way of a group of one pod, from the loop until its binding has begun."""
    stage = Coscheduled(nodes=8)
    for number in range(BEFORE + 1):
        stage.create(f"g{number}", minimum=1)
        stage.pods(1, group=f"g{number}")
        way = _tried(stage.under_test)
    return _measured(way, ("scheduler/groups/", "scheduler/queue/", "scheduler/cycle/"))


async def in_a_quota() -> Way:
    """Return the way from the plugin's question about a pod to what its quota says."""
    stage = Sharing(DeclaredShare("a", minimum={"cpu": "8"}, maximum={"cpu": "8"}, namespaces=("a",)))
    for number in range(BEFORE + 1):
        stage.pods(1, first=number)
        way = _tried(stage.under_test)
    asked = next(call for _, call in way.all() if call.function == "CapacityScheduling.pre_filter")
    return _measured(asked, ("",))


def _tried(under_test: EngineUnderTest) -> Call:
    queued, way = under_test.queue.pop_nowait(), list[Call]()
    assert queued is not None, "there is one"
    with calls_into(way):
        under_test.loop.schedule_one(queued)
    assert under_test.cache.is_assumed(queued.pod.uid), queued.pod
    return way[0]


def _measured(way: Call, rooms: tuple[str, ...]) -> Way:
    """Measure what of a way is in these folders: below them is the way that every pod goes."""
    functions, stays = {str(way)}, [way.file]
    for file, function in _read(way, rooms):
        functions.add(function)
        if file != stays[-1]:
            stays.append(file)
    return Way(len(stays), len(set(stays)), len(functions))


def _read(way: Call, rooms: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield file and function in the order of reading: a function again where a call returns to it."""
    seen = set[str]()
    for call in way.calls:
        if not call.file.startswith(rooms) or str(call) in seen:
            continue
        seen.add(str(call))  # read once, however often it is called from here
        yield call.file, str(call)
        yield from _read(call, rooms)
        yield way.file, str(way)


WAYS: dict[str, Callable[[], Coroutine[None, None, Way]]] = {
    "a member of a group": of_a_member,
    "a pod in a quota": in_a_quota,
}


LIMITS: Final = {"a member of a group": Way(45, 17, 64), "a pod in a quota": Way(19, 9, 13)}
"""A little more than the ways are. Those who shorten one lower its limit."""


def main() -> int:
    """Print them."""
    for name, measure in WAYS.items():
        print(f"{name}: {asyncio.run(measure())}, at most {LIMITS[name]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
