"""The debugger: what it logs, and that it never does harm."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from scheduler.engine.dumper import Line
from scheduler.framework.errors import ClusterError
from scheduler.kube import debugger as module
from scheduler.kube.debugger import MAX_NAMES, Debugger
from scheduler.kube.informers.comparer import CacheComparison, Comparer, Difference
from scheduler.process.logs import TextFormatter
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from tests.fakes import run, settle

AGREED = CacheComparison(Difference(), Difference(), 3, 5)


class FakeComparer:
    def __init__(self, found: CacheComparison | Exception = AGREED) -> None:
        self.found = found
        self.asked = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def compare(self) -> CacheComparison:
        self.asked += 1
        await self.gate.wait()
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def one_line() -> Iterator[Line]:
    yield Line("Dump of cached node", {"node": "a"})


def a_debugger(
    comparer: FakeComparer, dump: Callable[[], Iterator[Line]] = one_line, *, synced: bool = True
) -> Debugger:
    return Debugger(dump, cast("Comparer", comparer), lambda: synced, Tasks(Metrics()))


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The lines so far, as operators see them, without time and durations."""
    caplog.set_level(logging.INFO, logger=module.__name__)

    def lines() -> list[str]:
        texts = [TextFormatter().format(record).partition(" ")[2] for record in caplog.records]
        return [text.partition(" seconds=")[0].splitlines()[0] for text in texts]

    return lines


async def test_it_dumps_then_compares(logged: Callable[[], list[str]]) -> None:
    await a_debugger(FakeComparer()).run()

    assert logged() == [
        'INFO Dump of cached node node="a"',
        "INFO Dump finished",
        "INFO Cache comparer finished mismatch=false nodes=3 pods=5",
    ]


async def test_a_mismatch_is_told_in_kube_schedulers_words(logged: Callable[[], list[str]]) -> None:
    nodes = Difference(missed={"b": "b"}, redundant={})
    pods = Difference(missed={}, redundant={"uid-1": "default/web"})

    await a_debugger(FakeComparer(CacheComparison(nodes, pods, 3, 5))).run()

    assert logged()[2:] == [
        'INFO Cache mismatch missedNodes=["b"] redundantNodes=[] missed=1 redundant=0',
        'INFO Cache mismatch missedPods=[] redundantPods=["default/web (uid-1)"] missed=0 redundant=1',
        "INFO Cache comparer finished mismatch=true nodes=3 pods=5",
    ]


async def test_a_great_mismatch_is_counted_and_named_in_part(logged: Callable[[], list[str]]) -> None:
    nodes = Difference(missed={str(number): str(number) for number in range(5 * MAX_NAMES)})

    await a_debugger(FakeComparer(CacheComparison(nodes, Difference(), 3, 5))).run()

    (line,) = [line for line in logged() if "mismatch " in line]

    assert line.count('"') == 2 * MAX_NAMES
    assert line.endswith("redundantNodes=[] missed=5000 redundant=0")


async def test_an_api_server_in_trouble_costs_one_line(logged: Callable[[], list[str]]) -> None:
    await a_debugger(FakeComparer(ClusterError("403: may not"))).run()

    assert logged()[1:] == ["INFO Dump finished", 'WARNING Cache comparer failed err="403: may not"']


async def test_whatever_fails_costs_that_run_only(logged: Callable[[], list[str]]) -> None:
    dumps = iter([RuntimeError("a bug"), None])

    def broken_once() -> Iterator[Line]:
        if problem := next(dumps):
            raise problem
        yield from one_line()

    debugger = a_debugger(FakeComparer(), broken_once)
    debugger.start()
    await settle()
    debugger.start()
    await settle()

    assert logged()[0] == 'ERROR A job failed unexpectedly operation="debugger" task="debugger"'
    assert logged()[-1].startswith("INFO Cache comparer finished")


async def test_nothing_is_compared_before_the_first_list(logged: Callable[[], list[str]]) -> None:
    comparer = FakeComparer()

    await a_debugger(comparer, synced=False).run()

    assert comparer.asked == 0
    assert logged()[-1] == "INFO Cache comparer has nothing to compare before the first list is complete"


async def test_a_second_signal_while_it_works_is_ignored(logged: Callable[[], list[str]]) -> None:
    comparer = FakeComparer()
    debugger = a_debugger(comparer)
    comparer.gate.clear()
    debugger.start()
    await settle()
    debugger.start()
    comparer.gate.set()
    await settle()
    debugger.start()  # the first is done: this one counts
    await settle()

    assert comparer.asked == 2
    assert logged().count("WARNING The debugger is running already; signal ignored") == 1


def test_others_get_their_turn_during_a_long_dump() -> None:
    """A dump whose lines take 1 ms each lets others run between them."""
    turns = 0

    def slow() -> Iterator[Line]:
        for _ in range(20):
            began = time.perf_counter()
            while time.perf_counter() - began < 0.001:
                continue
            yield Line("Dump of cached node", {"node": "a"})

    async def scenario() -> int:
        async def others() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        task = asyncio.create_task(others())
        await a_debugger(FakeComparer(), slow).run()
        task.cancel()
        return turns

    assert run(scenario()) >= 3


async def test_closing_breaks_it_off() -> None:
    comparer = FakeComparer()
    comparer.gate.clear()
    debugger = a_debugger(comparer)
    await debugger.close()  # nothing has begun yet
    debugger.start()
    await settle()
    await debugger.close()

    assert "debugger" not in {task.get_name() for task in asyncio.all_tasks()}
