"""Who opens the page is told everything once, and then what changes."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from scheduler.process.metrics import Metrics
from scheduler.serve import page
from scheduler.serve.page.about import About
from scheduler.serve.page.live import MAX_WAITING_BYTES, ROUNDS, Live
from scheduler.serve.page.pages import PATH, ClusterPage
from scheduler.serve.port.answers import LEADING
from scheduler.testing import a_node, a_pod
from tests.unit.cycle.fakes import EngineUnderTest, an_engine
from tests.unit.serve.page.sent_events import events, named

FILES = Path(page.__file__).parent / "files"


class Leader:
    """Says who leads."""

    def __init__(self) -> None:
        self.is_us = True
        self.name = "other_1"

    def about(self) -> About:
        return About("0.2.0", lambda: self.is_us, lambda: self.name)


def live_of(scheduler: EngineUnderTest, leader: Leader | None = None) -> Live:
    return Live(scheduler.engine, scheduler.metrics, (leader or Leader()).about(), 0.0)


async def stream(live: Live) -> AsyncGenerator[bytes, None]:
    body = (await live({})).body
    assert not isinstance(body, bytes)
    return body


async def opened(live: Live) -> tuple[AsyncGenerator[bytes, None], list[tuple[str, Any]]]:
    """A stream, and what it says until everything is told."""
    body = await stream(live)
    told: list[tuple[str, Any]] = []
    while not named("ready", told):
        told += events(await anext(body))
    return body, told


async def test_everything_is_told_first() -> None:
    scheduler = an_engine()
    scheduler.see(a_node("n", cpu="1"), a_pod("web", requests={"cpu": 2}))
    live = live_of(scheduler)
    await scheduler.schedule()
    await live.look()

    body, told = await opened(live)
    await body.aclose()

    assert [name for name, _ in told[:3]] == ["hello", "reset", "nodes"]
    assert named("nodes", told)[0]["names"] == ["n"]
    assert named("decisions", told)[0]["decisions"][0]["result"] == "unschedulable"
    assert {data["part"]: data["count"] for data in named("queue", told)}["unschedulable"] == 1
    assert len(named("figures", told)[0]["at"]) == 1


async def test_what_changes_is_told_to_all_and_nothing_else() -> None:
    scheduler = an_engine()
    scheduler.see(a_node("a"), a_node("b"))
    live = live_of(scheduler)
    await live.look()
    (one, _), (two, _) = [await opened(live) for _ in range(2)]
    scheduler.see(a_pod("p", node_name="b", requests={"cpu": 1}))
    await live.look()

    told = [events(await anext(each)) for each in (one, two)]
    for each in (one, two):
        await each.aclose()

    assert told[0] == told[1]
    assert [data["rows"] for data in named("use", told[0])] == [[1]]
    assert not named("nodes", told[0])


async def test_what_changes_while_the_nodes_are_told_is_not_lost() -> None:
    scheduler = an_engine()
    scheduler.see(*(a_node(f"n{number}", cpu="4") for number in range(2500)))
    live = live_of(scheduler)
    body = await stream(live)
    told: list[tuple[str, Any]] = []
    while len(named("nodes", told)) < 2:
        told += events(await anext(body))
    scheduler.see(a_pod("p", node_name="n0", requests={"cpu": 2}))
    while not named("ready", told):
        told += events(await anext(body))
    await body.aclose()

    assert [(data["rows"], data["use"]["cpu"]) for data in named("use", told)] == [([0], [500])]


async def test_a_replica_that_leads_no_more_says_so_and_who_does() -> None:
    scheduler, leader = an_engine(), Leader()
    live = live_of(scheduler, leader)
    body, told = await opened(live)
    leader.is_us = False
    await live.look()
    later = events(await anext(body))
    await body.aclose()

    assert named("hello", told)[0]["leads"]
    assert {key: named("about", later)[0][key] for key in ("leads", "leader")} == {"leads": False, "leader": "other_1"}
    assert (await live({})).headers == ((LEADING, "false"),)


async def test_who_opens_it_while_too_much_changes_is_told_all_again() -> None:
    scheduler = an_engine()
    scheduler.see(a_node("n", cpu="4"))
    live, pod = live_of(scheduler), a_pod("p", node_name="n", requests={"cpu": 1})
    body = await stream(live)
    told: list[tuple[str, Any]] = []
    while not named("ready", told):
        told += events(await anext(body))
        for _ in range(3000):  # more than the table remembers
            scheduler.engine.cache.table.add_pod("n", pod)
            scheduler.engine.cache.table.remove_pod("n", pod)
    await live.look()
    later = events(await anext(body))
    await body.aclose()

    assert len(named("reset", told)) == ROUNDS
    assert [data["names"] for data in named("nodes", later)] == [["n"]]


async def test_a_reader_that_goes_is_told_nothing_more() -> None:
    live = live_of(an_engine())
    body, _ = await opened(live)
    assert len(live.readers) == 1

    await body.aclose()

    assert not live.readers


async def test_a_reader_that_takes_nothing_keeps_a_bounded_number_of_bytes() -> None:
    scheduler = an_engine()
    live = live_of(scheduler)
    body, _ = await opened(live)
    (reader,) = live.readers
    while not reader.is_over:
        reader.push(b"x" * (MAX_WAITING_BYTES // 10))
    await live.look()

    assert not live.readers
    await body.aclose()


async def test_a_fault_ends_the_streams_as_they_may_have_missed_something() -> None:
    scheduler = an_engine()
    live = live_of(scheduler)
    body, _ = await opened(live)
    scheduler.see(a_node("n"), a_pod("web"))
    await scheduler.schedule()
    scheduler.engine.records.latest = None  # type: ignore[assignment, method-assign]

    with pytest.raises(TypeError):
        await live.look()
    with pytest.raises(StopAsyncIteration):
        await anext(body)


async def test_steps_of_a_large_cluster_are_short() -> None:
    """Counted, not timed: between two steps others have their turn."""
    scheduler = an_engine()
    scheduler.see(*(a_node(f"n{number}") for number in range(5000)))
    live = live_of(scheduler)
    body, _ = await opened(live)
    scheduler.see(*(a_node(f"n{number}", cpu="8") for number in range(5000)))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await live.look()
    counting.cancel()
    await body.aclose()

    assert turns >= 5


# --- what is asked for


def a_page(scheduler: EngineUnderTest, leader: Leader | None = None) -> ClusterPage:
    about = (leader or Leader()).about()
    return ClusterPage(scheduler.engine, Metrics(), about, lambda: {"kind": "Config"}, 0.0)


async def told_of(scheduler: EngineUnderTest, page: str, **query: str) -> Any:
    body = (await a_page(scheduler).queried[f"{PATH}{page}"](query)).body
    assert isinstance(body, bytes)
    return json.loads(body)


@pytest.mark.parametrize("page", ["live", "node", "configuration"])
async def test_a_replica_that_stands_by_says_so_in_what_the_leader_knows_best(page: str) -> None:
    leader = Leader()
    leader.is_us = False

    answer = await a_page(an_engine(), leader).queried[f"{PATH}{page}"]({"name": "nobody"})

    assert answer.headers == ((LEADING, "false"),)


async def test_a_node_is_told_with_its_largest_pods() -> None:
    scheduler = an_engine()
    scheduler.see(a_node("n", cpu="4", labels={"topology.kubernetes.io/zone": "z"}))
    scheduler.see(*(a_pod(f"p{i}", uid=f"u{i}", node_name="n", requests={"cpu": f"{i}m"}) for i in range(105)))

    node = await told_of(scheduler, "node", name="n")

    assert (node["zone"], node["podCount"], len(node["pods"])) == ("z", 105, 100)
    assert node["pods"][0] == {
        "namespace": "default", "name": "p104", "cpu": 104, "memory": 0, "priority": 0, "deleting": False,
    }  # fmt: skip
    assert node["amounts"][0] == {"resource": "cpu", "offered": 4000, "asked": sum(range(105))}


@pytest.mark.parametrize("query", [{}, {"name": ""}, {"name": "nobody"}, {"name": "\ud800"}, {"name": "x" * 100_000}])
async def test_a_node_that_is_not_there_is_one_sentence(query: dict[str, str]) -> None:
    answer = await a_page(an_engine()).queried[f"{PATH}node"](query)

    assert (answer.status, answer.body) == (404, b"there is no such node\n")


async def test_the_configuration_is_told_with_its_plugins() -> None:
    document = await told_of(an_engine(), "configuration")

    (profile,) = document["profiles"]
    assert {"name": "NodeResourcesFit", "weight": 1} in profile["points"]["score"]
    assert {"name": "NodeResourcesFit"} in profile["points"]["filter"]
    assert document["config"] == {"kind": "Config"}


async def test_files_come_with_a_policy_that_lets_nothing_in() -> None:
    pages = a_page(an_engine()).pages

    answer = await pages[PATH]("")

    assert answer.content_type == "text/html; charset=utf-8"
    policy = dict(answer.headers)["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; ")
    assert "unsafe" not in policy
    assert isinstance(answer.body, bytes)
    for name in ("page.js", "page.css", "icon.svg"):
        assert f'"{name}"'.encode() in answer.body
        assert f"{PATH}{name}" in pages


MARKUP = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "://", "onclick=", "style=")


def test_files_hold_no_markup_made_of_text_and_no_address() -> None:
    for file in sorted(FILES.iterdir()):
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert [word for word in MARKUP if word in text] == [], file.name
