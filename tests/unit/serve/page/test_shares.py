"""The page's shares: the tree of the last look, some rows at a time, and bounded samples of what each used."""

import json
from typing import Any

import pytest

from scheduler.assembly.share_gauges import ShareGauges
from scheduler.explain.documents import ShareAmounts, ShareReport, SharesSeen
from scheduler.framework.shares import DeclaredShare
from scheduler.process.metrics import Metrics
from scheduler.runtime.event_stream import EventStream
from scheduler.serve.page import shares as page_shares
from scheduler.serve.page.about import About
from scheduler.serve.page.live import Live
from scheduler.serve.page.shares import ShareHistory
from scheduler.serve.port.answers import LEADING
from tests.unit.cycle.fakes import an_engine
from tests.unit.quota.waiting.shares import Sharing
from tests.unit.serve.page.sent_events import events, named

ABOUT = About("0.2.0", lambda: False, lambda: "other")
A = DeclaredShare("team-a", minimum={"cpu": "2"}, namespaces=("a",))
B = DeclaredShare("team-b", "team-a", minimum={"cpu": "1"}, namespaces=("b",))
CPU = {"resource": "cpu", "maximum": None, "borrowed": 0, "lent": 0}


def a_share(name: str, used: int = 0, resource: str = "cpu", **members: Any) -> ShareReport:
    amounts = ShareAmounts(resource, 1000, None, used, 0, 0, 5)
    return ShareReport(name=name, source="shares", resources=(amounts,), **members)


class Looks:
    """A history, and looks that are made up."""

    def __init__(self) -> None:
        self.at = 100.0
        self.stream = EventStream()
        self.history = ShareHistory(self.stream, lambda: self.at)

    async def find(self, *shares: ShareReport) -> None:
        self.stream.publish(SharesSeen(shares))
        await self.history.look()
        self.at += 30.0

    async def used(self, name: str) -> dict[str, list[int | None]]:
        past = await self.history.past({"source": "shares", "name": name})
        assert all(len(each["used"]) == len(past["at"]) for each in past["resources"])
        return {each["resource"]: each["used"] for each in past["resources"]}


async def test_the_tree_is_the_one_that_the_gauges_saw() -> None:
    stage = Sharing(A, B)
    live = Live(stage.engine, Metrics(), ABOUT, 0.0)
    stage.pods(5, "b")
    await stage.schedule()

    await ShareGauges(stage.engine, Metrics()).look()
    await live.look()

    told = await live.shares.rows({})
    a, b = told["shares"]
    assert (a["name"], a["depth"], a["parent"], a["waiting"]) == ("team-a", 0, "", 2)
    assert (b["name"], b["depth"], b["parent"], b["waiting"]) == ("team-b", 1, "team-a", 2)
    assert a["resources"] == [{**CPU, "guaranteed": 3000, "used": 3000, "waiting": 2000}]
    assert b["resources"] == [{**CPU, "guaranteed": 1000, "used": 3000, "borrowed": 2000, "waiting": 2000}]


async def test_who_opens_the_page_hears_of_shares_if_there_are_any() -> None:
    scheduler = an_engine()
    live = Live(scheduler.engine, scheduler.metrics, ABOUT, 0.0)
    before = named("shares", events(*live._others()))
    scheduler.engine.stream.publish(SharesSeen([a_share("a")]))
    await live.look()

    after = named("shares", events(*live._others()))
    assert (before, [each["count"] for each in after]) == ([], [1])


async def test_without_shares_nobody_is_told_anything() -> None:
    seen: list[SharesSeen] = []
    engine = an_engine().engine
    engine.stream.subscribe({SharesSeen: seen.append})

    await ShareGauges(engine, Metrics()).look()

    assert seen == []


async def test_usage_is_kept_from_look_to_look() -> None:
    looks = Looks()
    await looks.find(a_share("a", 10))
    await looks.find(a_share("a", 20), a_share("b", 1))
    assert await looks.history.look() == b"", "no sample before the next look"
    await looks.find(a_share("a", 30), a_share("b", 2))

    assert await looks.used("a") == {"cpu": [10, 20, 30]}
    assert await looks.used("b") == {"cpu": [None, 1, 2]}
    past = await looks.history.past({"source": "shares", "name": "a"})
    assert past["at"] == [100.0, 130.0, 160.0]
    assert past["resources"][0]["guaranteed"] == [1000] * 3
    assert past["resources"][0]["waiting"] == [5] * 3


@pytest.mark.parametrize(
    ("looks", "used"),
    [
        pytest.param(
            [[a_share("a", number)] for number in range(300)],
            {"cpu": list(range(180, 300))},
            id="samples are kept for an hour",
        ),
        pytest.param(
            [[a_share("a", 7)], [ShareReport(name="a", source="shares")], [a_share("a", 8, "memory")]],
            {"cpu": [7, 0, 0], "memory": [None, None, 8]},
            id="a resource of which a share has nothing any more is zero",
        ),
        pytest.param(
            [[a_share("a", 7, f"example.com/{number}")] for number in range(50)],
            {f"example.com/{i}": [*[None] * i, 7, *[0] * (49 - i)] for i in range(page_shares.MAX_RESOURCES)},
            id="resources that change all the time are bounded",
        ),
        pytest.param(
            [[a_share("a", 7), a_share("b")], [a_share("b")], [a_share("a", 8), a_share("b")]],
            {"cpu": [None, None, 8]},
            id="a share that is gone is forgotten",
        ),
    ],
)
async def test_what_is_kept_of_looks(looks: list[list[ShareReport]], used: dict[str, list[int | None]]) -> None:
    kept = Looks()
    for shares in looks:
        await kept.find(*shares)

    assert await kept.used("a") == used


async def test_no_more_is_kept_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_shares, "MAX_SERIES", 2)
    looks = Looks()
    await looks.find(a_share("a"), a_share("b"), a_share("c"))
    assert [list(await looks.used(name)) for name in "abc"] == [["cpu"], ["cpu"], []]

    await looks.find(a_share("b"), a_share("c"))
    assert list(await looks.used("c")) == ["cpu"]


@pytest.mark.parametrize(
    ("query", "count", "names"),
    [
        pytest.param({}, 120, range(50), id="the first"),
        pytest.param({"first": "50"}, 120, range(50, 100), id="the next"),
        pytest.param({"first": "100"}, 120, range(100, 120), id="the last"),
        pytest.param({"first": "999999"}, 120, range(100, 120), id="beyond the last"),
        pytest.param({"first": "-1"}, 120, range(50), id="not a number"),
        pytest.param({"first": "9" * 5000}, 120, range(50), id="absurd"),
        pytest.param({"filter": "TEAM-11"}, 11, [11, *range(110, 120)], id="by name"),
        pytest.param({"filter": "nobody", "first": "50"}, 0, [], id="of no share"),
    ],
)
async def test_an_answer_has_some_rows(query: dict[str, str], count: int, names: range | list[int]) -> None:
    looks = Looks()
    await looks.find(*(a_share(f"team-{number}") for number in range(120)))

    told = await looks.history.rows(query)

    assert told["count"] == count
    assert [each["name"] for each in told["shares"]] == [f"team-{number}" for number in names]


async def test_answers_say_that_another_replica_leads_and_cut_long_names() -> None:
    looks = Looks()
    await looks.find(a_share("x" * 5000, 2**63 - 1, "\ud800"))
    rows, past = (looks.history.pages("/", ABOUT)[f"/{name}"] for name in ("shares", "share"))

    answer = await rows({})

    assert answer.headers == ((LEADING, "false"),)
    assert len(json.loads(answer.body)["shares"][0]["name"]) == 253
    assert json.loads((await past({"source": "shares", "name": "nobody"})).body)["resources"] == []
