"""Shares of the cluster on the page: the tree, usage over time, many of them, hostile names, and none."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect

from scheduler.explain.documents import ShareReport, SharesSeen, ShareStanding
from scheduler.framework.shares import DeclaredShare
from tests.browser.stage import Stage, nodes, scheduled, staged
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
