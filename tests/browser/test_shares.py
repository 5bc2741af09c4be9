"""Shares of the cluster on the page: the tree, usage over time, many of them, hostile names, and none."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect

from scheduler.explain.documents import ShareAmounts, ShareReport, SharesSeen, ShareStanding
from scheduler.framework.shares import DeclaredShare
from tests.browser.stage import Stage, nodes, scheduled, staged
from tests.browser.test_hostile_names import HOSTILE
from tests.browser.visitor import SOON_MS, Visitor, visiting
from tests.unit.quota.waiting.shares import declaring

COMPANY = DeclaredShare("company", minimum={"cpu": "2"})
SHOP = DeclaredShare("shop", "company", minimum={"cpu": "2"}, namespaces=("shop",))
IDLE = DeclaredShare("idle", "company", minimum={"cpu": "1", "memory": "1Gi"}, namespaces=("idle",))


@contextmanager
def shares_of(*shares: DeclaredShare) -> Iterator[Stage]:
    with staged(0, None, declaring(*shares, elastic_quotas=False)) as stage:
        stage.see(*nodes(3))
        yield stage


@pytest.fixture(scope="module")
def company() -> Iterator[Stage]:
    with shares_of(COMPANY, SHOP, IDLE) as stage:
        yield stage


@pytest.fixture
def looking(browser: Browser, company: Stage) -> Iterator[Visitor]:
    with visiting(browser, company.url) as visitor:
        visitor.ready()
        yield visitor
        assert visitor.complaints == []


def cells(page: Page, row: int) -> list[str]:
    """The texts of a row; empty where there is only a dash."""
    of = page.locator("#shares-table tbody tr").nth(row).locator("th, td")
    return [text.strip("\N{EN DASH}") for text in of.all_inner_texts()]


def test_the_tree_appears_with_the_first_look_and_follows_the_next(looking: Visitor, company: Stage) -> None:
    page = looking.page
    company.look_at_shares()
    page.locator("#shares").scroll_into_view_if_needed(timeout=SOON_MS)
    rows = page.locator("#shares-table tbody tr")
    expect(rows).to_have_count(5, timeout=SOON_MS)
    assert cells(page, 0) == ["company", "", "cpu", "5 cpu", "", "0 cpu", "", "", ""]
    expect(rows.nth(3)).to_contain_text("idle")

    company.see(*(scheduled(f"web-{number}", requests={"cpu": "1"}) for number in range(7)))
    expect(page.locator("#tile-pending")).to_have_text("2", timeout=SOON_MS)
    company.look_at_shares()

    expect(rows.nth(2)).to_contain_text("5 cpu", timeout=SOON_MS)
    assert cells(page, 2) == ["shop", "2", "cpu", "2 cpu", "", "5 cpu", "3 cpu", "", "2 cpu"]
    page.get_by_role("button", name="shop", exact=True).click()
    expect(page.locator("#shares-chosen")).to_have_text("shop over time")
    chart = page.locator("#chart-share")
    expect(chart).to_have_attribute("aria-label", "Now: used 5 cpu, guaranteed 2 cpu, waiting 2 cpu", timeout=SOON_MS)


def test_another_resource_of_a_share_can_be_chosen(looking: Visitor, company: Stage) -> None:
    company.look_at_shares()
    page = looking.page
    page.locator("#shares").scroll_into_view_if_needed(timeout=SOON_MS)
    page.get_by_role("button", name="idle", exact=True).click()

    page.get_by_label("Resource over time").select_option("memory")

    expect(page.locator("#chart-share")).to_have_attribute(
        "aria-label", "Now: used 0 , guaranteed 1 Gi, waiting 0 ", timeout=SOON_MS
    )


def test_names_find_shares_and_say_below_what_they_are(looking: Visitor, company: Stage) -> None:
    company.look_at_shares()
    page = looking.page
    page.locator("#shares").scroll_into_view_if_needed(timeout=SOON_MS)

    page.locator("#shares-filter").fill("SHO")

    expect(page.locator("#shares-table tbody th")).to_have_text(["shop below company"], timeout=SOON_MS)
    expect(page.locator("#shares-place")).to_have_text("1 share")


def test_how_shares_stand_is_a_column_where_the_order_compares_them(browser: Browser) -> None:
    found = [
        ShareReport(name=name, source="shares", standing=ShareStanding("DominantShare", value))
        for name, value in (("a", 333.333), ("b", 2.0**63))
    ]
    with shares_of(COMPANY) as stage:
        stage.do(lambda: stage.engine.stream.publish(SharesSeen(found)))
        with visiting(browser, stage.url) as visitor:
            visitor.ready()
            page = visitor.page
            page.locator("#shares").scroll_into_view_if_needed(timeout=SOON_MS)
            expect(page.locator("#shares-standing")).to_have_text("Dominant share", timeout=SOON_MS)
            assert [cells(page, row)[2] for row in (0, 1)] == ["333.3", "∞"]
            stage.look_at_shares()
            expect(page.locator("#shares-standing")).to_be_hidden(timeout=SOON_MS)
            assert visitor.complaints == []


def test_without_shares_nothing_of_them_is_shown_or_loaded(visitor: Visitor) -> None:
    expect(visitor.page.locator("#shares")).to_be_hidden()
    loaded = visitor.page.evaluate("performance.getEntriesByType('resource').map((each) => each.name)")
    assert any(name.endswith("/queues.js") for name in loaded)
    assert not any("shares" in name for name in loaded)


def test_a_thousand_shares_are_shown_some_at_a_time(browser: Browser) -> None:
    many = [
        DeclaredShare(f"team-{number:04}", minimum={"cpu": "1"}, namespaces=(f"n{number}",)) for number in range(1000)
    ]
    with shares_of(*many) as stage:
        stage.look_at_shares()
        with visiting(browser, stage.url) as visitor:
            visitor.ready()
            page = visitor.page
            page.locator("#shares").scroll_into_view_if_needed(timeout=SOON_MS)
            expect(page.locator("#shares-place")).to_have_text("1 to 50 of 1,000 shares", timeout=SOON_MS)
            page.locator("#shares").get_by_role("button", name="Next").click()
            expect(page.locator("#shares-table tbody tr").first).to_contain_text("team-0050", timeout=SOON_MS)
            expect(page.locator("#shares-table tbody tr")).to_have_count(50)
            page.locator("#shares-filter").fill("0999")
            expect(page.locator("#shares-table tbody tr")).to_have_count(1, timeout=SOON_MS)
            assert visitor.complaints == []


def test_hostile_names_of_shares_and_resources_do_nothing(browser: Browser) -> None:
    amounts = [ShareAmounts(name, 1, None, 1, 0, 0, 0) for name in HOSTILE]
    found = [
        ShareReport(name=name, source=name, parent=name, resources=(each,))
        for name, each in zip(HOSTILE, amounts, strict=True)
    ]
    broken = ShareReport(name="broken", source="shares", problem=HOSTILE[0])
    with shares_of(COMPANY) as stage:
        stage.do(lambda: stage.engine.stream.publish(SharesSeen((*found, broken))))
        with visiting(browser, stage.url) as visitor:
            visitor.ready()
            page = visitor.page
            page.locator("#shares").scroll_into_view_if_needed(timeout=SOON_MS)
            buttons = page.locator("#shares-table tbody button")
            expect(buttons).to_have_count(len(HOSTILE) + 1, timeout=SOON_MS)
            for number, name in enumerate(HOSTILE):
                buttons.nth(number).click()
                beginning = shown_as(page, name)
                expect(page.locator("#shares-chosen")).to_contain_text(beginning, timeout=SOON_MS)
            page.locator("#shares-filter").fill("e")  # parents are shown
            expect(page.locator("#shares-table tbody th .sub").first).to_be_visible(timeout=SOON_MS)
            shown = page.locator("#shares").inner_text()

            assert page.evaluate("window.pwned === undefined && Object.keys(Object.prototype).length === 0")
            assert page.locator("#shares img, #shares script, #shares h1").count() == 0
            assert HOSTILE[0] in shown
            assert "\\u202ereversed\\u202c" in shown
            assert not any(character in shown for character in "\u202e\x1b\x00\u0007")
            assert len(shown) < 20_000
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert visitor.complaints == []


def shown_as(page: Page, name: str) -> str:
    """The beginning of a name, as the page spells it; white space folded, as a reader sees it."""
    script = """async (name) => (await import("./text.js")).shown(JSON.parse(name), 20)"""
    return str(page.evaluate(script, json.dumps(name))).removesuffix("…")
