"""The shares of the cluster as they are shown: what each has, uses, borrows and lends, and who waits for it."""

import msgspec
import pytest

from scheduler.api.wording.text import to_json
from scheduler.explain.documents import ShareAmounts, ShareReport, SharesReport
from scheduler.explain.explainer import Explainer
from scheduler.framework.shares import DeclaredShare
from tests.unit.cycle.fakes import an_engine
from tests.unit.quota.waiting.shares import Sharing

COMPANY = DeclaredShare("company")
A = DeclaredShare("team-a", "company", minimum={"cpu": "2"}, maximum={"cpu": "8"}, namespaces=("a",))
B = DeclaredShare("team-b", "company", minimum={"cpu": "2"}, namespaces=("b",))


async def about(stage: Sharing) -> dict[str, ShareReport]:
    report = await Explainer(stage.engine, stage.clock).about_shares()
    as_sent = msgspec.json.decode(msgspec.json.encode(report), type=SharesReport)
    assert (as_sent.found, as_sent.state) == (True, "on")
    return {each.name: each for each in as_sent.shares}


@pytest.mark.parametrize(
    ("order", "standing"),
    [("Priority", None), ("DominantShare", 500.0), ("DecayedUsage", 4 * (1 - 0.5**0.01))],
)
async def test_a_share_shows_what_it_borrows_or_lends_and_how_it_stands_in_an_order_that_compares_shares(
    order: str, standing: float | None
) -> None:
    stage = Sharing(COMPANY, A, B, arguments={"order": order})
    stage.pods(6, "a")
    await stage.schedule()

    found = await about(stage)

    assert list(found) == ["company", "team-a", "team-b"]
    assert found["team-a"].resources == [ShareAmounts("cpu", 2000, 8000, 4000, 2000, 0, 2000)]
    assert found["team-b"].resources == [ShareAmounts("cpu", 2000, None, 0, 0, 2000, 0)]
    assert (found["team-a"].depth, found["team-a"].parent, found["team-a"].waiting) == (1, "company", 2)
    shown = [found[name].standing for name in ("team-a", "team-b")]
    if standing is None:
        assert shown == [None, None]
    else:
        assert [each and (each.order, each.value) for each in shown] == [(order, pytest.approx(standing)), (order, 0.0)]


async def test_a_parent_shows_all_that_is_below_it_however_much_pods_ask_for() -> None:
    stage = Sharing(COMPANY, A, B)
    stage.pods(6, "a")
    stage.pods(1, "b")
    await stage.schedule()

    found = await about(stage)

    assert found["company"].resources == [ShareAmounts("cpu", 4000, None, 4000, 0, 0, 3000)]
    assert found["company"].waiting == 3

    for number in range(3):
        stage.pod(f"huge-{number}", requests={"cpu": str(2**53)})
    await stage.schedule()
    report = await Explainer(stage.engine, stage.clock).about_shares()
    assert b'"waiting":9223372036854775807' in to_json(msgspec.to_builtins(report))


async def test_quotas_that_cannot_be_used_say_why_and_who_waits() -> None:
    stage = Sharing()
    stage.quota("a", minimum={"cpu": "4"}, maximum={"cpu": "2"})
    stage.quota("b", minimum={"cpu": "1"})
    stage.pods(2, "a")
    await stage.schedule()

    found = await about(stage)

    assert found["a/quota"].problem == "its minimum of cpu, 4000, is above its maximum, 2000"
    assert (found["a/quota"].waiting, found["a/quota"].resources) == (2, [])
    assert found["b/quota"].resources == [ShareAmounts("cpu", 1000, None, 0, 0, 0, 0)]


async def test_what_no_quota_names_is_not_shown_whatever_pods_ask_for() -> None:
    stage = Sharing()
    stage.quota("a", minimum={"cpu": "1"}, maximum={"cpu": "1"})
    stage.pod("odd", requests={"cpu": "1", "example.com/invented": "7"})

    found = await about(stage)

    assert [each.resource for each in found["a/quota"].resources] == ["cpu"]


async def test_without_the_plugin_there_is_nothing_to_show() -> None:
    engine = an_engine()

    report = await Explainer(engine.engine, engine.clock).about_shares()

    assert (report.found, report.state, report.shares) == (False, "off", ())
