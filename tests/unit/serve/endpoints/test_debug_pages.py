"""The profile of the running program, and what it keeps: to whom, how long, one at a time."""

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from scheduler.process.stack_samples import SWITCH_SECONDS
from scheduler.serve.endpoints.debug_pages import MAX_SECONDS, Look, Memory, Profile
from tests.unit.serve.port.test_http import ADMIN
from tests.unit.serve.serving import FakeReviews, Served, a_server

PATH = "/debug/pprof/profile"


class Looking:
    """A look that ends when a test says so."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.began = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, seconds: float, loop_thread: int, ended: threading.Event) -> bytes:
        self.seconds.append(seconds)
        self.began.set()
        self.go_on.wait(10)
        return b"event loop;run (app.py:1) 7\n"


@asynccontextmanager
async def served(look: Look, *, is_on: bool = True, always_allow: str = "*") -> AsyncIterator[Served]:
    reviews = FakeReviews({"a": ADMIN})
    pages = {PATH: Profile(lambda: is_on, look)}
    async with a_server(tokens=reviews, rights=reviews, always_allow=(always_allow,), queried=pages) as server:
        yield server


async def test_a_profile_is_folded_stacks_of_as_many_seconds_as_are_asked_for() -> None:
    looking = Looking()
    looking.go_on.set()
    async with served(looking) as server:
        answer = await server.answer(f"{PATH}?seconds=3")
        text = await answer.text()
        await server.get(PATH)

    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert text == "event loop;run (app.py:1) 7\n"
    assert looking.seconds == [3, 10]


@pytest.mark.parametrize("seconds", ["0", "-1", str(MAX_SECONDS + 1), "1.5", "", "x", "9" * 5000, "%D9%A3"])
async def test_no_profile_lasts_longer_than_a_request_may(seconds: str) -> None:
    looking = Looking()
    async with served(looking) as server:
        status, text = await server.get(f"{PATH}?seconds={seconds}")

    assert (status, text) == (400, "seconds: expected a whole number from 1 to 25\n")
    assert looking.seconds == []


async def test_one_profile_is_taken_at_a_time_and_the_next_one_after_it() -> None:
    looking = Looking()
    async with served(looking) as server:
        first = asyncio.create_task(server.get(PATH))
        await asyncio.to_thread(looking.began.wait, 10)
        second = await server.get(PATH)
        looking.go_on.set()
        first_answer = await first
        third = await server.get(PATH)

    assert second == (429, "a profile is being taken; one goes on at a time\n")
    assert (first_answer[0], third[0]) == (200, 200)


@pytest.mark.parametrize(("is_on", "always_allow", "status"), [(True, "/livez", 403), (False, "*", 404)])
async def test_without_the_right_or_with_profiling_off_there_is_none(
    is_on: bool, always_allow: str, status: int
) -> None:
    looking = Looking()
    async with served(looking, is_on=is_on, always_allow=always_allow) as server:
        assert (await server.get(PATH))[0] == status

    assert looking.seconds == []


async def test_a_look_that_fails_costs_its_answer_and_the_next_one_is_taken() -> None:
    def failing(*_: object) -> bytes:
        raise MemoryError

    page = Profile(lambda: True, failing)

    for _ in range(2):
        with pytest.raises(MemoryError):
            await page({})


async def test_an_event_loop_that_works_in_short_steps_is_found_at_work_and_has_its_steps_back_afterwards() -> None:
    page = Profile(lambda: True)
    usual = sys.getswitchinterval()
    intervals = set()

    async def busy() -> None:
        while True:
            intervals.add(sys.getswitchinterval())
            for _ in range(20_000):  # less than a millisecond, after which it waits in `select` for nothing
                pass
            await asyncio.sleep(0)

    working = asyncio.create_task(busy())
    answer = await page({"seconds": "1"})
    working.cancel()

    assert isinstance(answer.body, bytes)
    assert b";busy (" in answer.body
    assert min(intervals) <= SWITCH_SECONDS < usual
    assert sys.getswitchinterval() == usual


async def test_memory_is_told_by_kind() -> None:
    page = Memory(lambda: (("stored answers", 5), ("pod counts", 7)), lambda: {"nodes": 3})

    answer = await page("")

    assert isinstance(answer.body, bytes)
    shown = json.loads(answer.body)
    assert shown["cacheBytes"] == {"total": 12, "stored answers": 5, "pod counts": 7}
    assert shown["counts"] == {"nodes": 3}
    assert 10_000_000 < shown["residentBytes"] <= shown["peakResidentBytes"]
    assert shown["garbageCollector"]["frozen"] >= 0
