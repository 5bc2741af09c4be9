"""What the page does when it cannot be loaded, is refused, is cut off, or reaches another replica."""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.contrast import poor_contrasts
from tests.browser.stage import Stage, Who, nodes, some_pods, staged
from tests.browser.visitor import SOON_MS, Visitor, visiting


def told(name: str, **data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


ABOUT: Final = {"instance": "i", "leads": True, "leader": ""}
HELLO: Final = told("hello", **ABOUT, version="1.0")


def answering(body: str, status: int = 200) -> Callable[[Page], object]:
    """Have every connection begin with that, and end."""
    return lambda page: page.route("**/live", lambda route: route.fulfill(status=status, body=body))


def try_again(visitor: Visitor) -> None:
    """Have the time come that the page has said."""
    connection = visitor.page.locator("#connection")
    expect(connection).to_contain_text("trying again in")
    said = connection.inner_text()
    with visitor.page.expect_response("**/live"):
        visitor.page.clock.run_for(1000 * int(said.split()[-2]))
    visitor.page.clock.run_for(200)
    expect(connection).not_to_have_text("Connecting…")


# --- it cannot be loaded


@pytest.mark.parametrize("name", ["page.js", "charts.js", "page.css"])
def test_a_file_that_cannot_be_loaded_is_named(browser: Browser, small: Stage, name: str) -> None:
    with visiting(
        browser, small.url, prepare=lambda page: page.route(f"**/{name}", lambda route: route.abort())
    ) as visitor:
        alert = visitor.page.get_by_role("alert")
        expect(alert).to_contain_text(f"{name} could not be loaded.")
        visitor.page.unroute(f"**/{name}")
        alert.get_by_role("button", name="Reload").click()
        visitor.ready()
        expect(visitor.page.get_by_role("alert")).to_have_count(0)


def test_a_page_that_does_not_start_says_so(browser: Browser, small: Stage) -> None:
    def prepare(page: Page) -> None:
        page.clock.install()
        page.route("**/page.js", lambda route: route.fulfill(body="", content_type="text/javascript"))

    with visiting(browser, small.url, prepare=prepare) as visitor:
        visitor.page.clock.fast_forward(20_000)
        expect(visitor.page.get_by_role("alert")).to_contain_text("The page has not started yet")


def test_an_error_on_the_page_is_told(visitor: Visitor) -> None:
    visitor.page.evaluate("void setTimeout(() => { throw new Error('oh <b>no</b>'); })")

    expect(visitor.page.get_by_role("alert")).to_contain_text(
        "Something went wrong on this page: Uncaught Error: oh <b>no</b>."
    )
    visitor.complaints.clear()


def test_without_scripts_it_says_what_it_needs(browser: Browser, small: Stage) -> None:
    with visiting(browser, small.url, java_script_enabled=False) as visitor:
        expect(visitor.page.locator("noscript p")).to_be_visible()
        expect(visitor.page.locator("noscript p")).to_have_text("This page needs JavaScript.")
        expect(visitor.page.locator("#connection")).to_be_hidden()


# --- it is cut off


def test_the_page_comes_back_when_the_scheduler_is_started_again(browser: Browser) -> None:
    with staged() as first:
        first.see(*nodes(3))
        port = first.port
        context = visiting(browser, first.url)
        visitor = context.__enter__()
        visitor.ready()
    try:
        expect(visitor.page.locator("#connection")).to_contain_text("trying again in")
        with staged(port) as second:
            second.see(*nodes(5))
            expect(visitor.page.locator("#connection")).to_have_text("Live", timeout=4 * SOON_MS)
            expect(visitor.page.locator("#tile-nodes")).to_have_text("5")
    finally:
        context.__exit__(None, None, None)


def test_a_replica_that_stands_by_says_so_and_who_leads(browser: Browser) -> None:
    who = Who(leads=False)
    with staged(who=who) as stage:
        stage.see(*nodes(3))
        with visiting(browser, stage.url) as visitor:
            visitor.ready()
            alert = visitor.page.get_by_role("alert")
            expect(alert).to_contain_text("This replica stands by")
            expect(alert).to_contain_text("The leader is loadmaster-7d4b9_1c.")
            who.leads = True
            expect(alert).to_have_count(0, timeout=SOON_MS)


def test_another_version_of_the_scheduler_asks_for_a_reload(browser: Browser, small: Stage) -> None:
    body = HELLO + told("about", **ABOUT, version="2.0")
    with visiting(browser, small.url, prepare=answering(body)) as visitor:
        expect(visitor.page.get_by_role("alert")).to_contain_text(
            "Another version of the scheduler answers now: reload this page, which is of 1.0."
        )


def test_a_connection_that_is_renewed_is_not_missed(visitor: Visitor, small: Stage) -> None:
    """As it is every few minutes, when the token ends: what was paused stays, and nothing is read aloud."""
    small.see(*some_pods("kept", 1))
    kept = visitor.page.locator("#decisions li", has_text="shop/kept-0")
    expect(kept).to_have_count(1)
    visitor.page.click("#decisions-pause")
    visitor.page.click("#map-resource >> text=memory")
    visitor.page.evaluate("document.documentElement.removeAttribute('data-ready')")

    small.do(small.end_streams)
    visitor.ready()

    expect(kept).to_have_count(1)
    assert visitor.page.evaluate("document.activeElement.value") == "memory"
    assert visitor.page.evaluate("document.body.dataset.stale") is None
    assert visitor.text("#said") == "Coloured by memory"


def test_a_connection_that_is_lost_is_told_once(browser: Browser, small: Stage) -> None:
    def prepare(page: Page) -> None:
        page.clock.install()
        page.route("**/live", lambda route: route.fulfill(status=503, body="nobody is here"))

    with visiting(browser, small.url, prepare=prepare) as visitor:
        expect(visitor.page.locator("#connection")).to_contain_text("nobody is here; trying again in")
        visitor.page.clock.run_for(4000)
        expect(visitor.page.locator("#said")).to_contain_text("nobody is here")
        first = visitor.text("#said")
        for _ in range(5):
            try_again(visitor)
            assert visitor.text("#said") == first
        assert visitor.page.evaluate("document.body.dataset.stale") == "true"
        assert poor_contrasts(visitor.page) == []


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (
            401,
            '{"kind": "Status", "message": "Unauthorized"}',
            "Your token is not accepted (any more): open the page anew",
        ),
        (
            403,
            '{"kind": "Status", "message": "forbidden: <b>guest</b>"}',
            "You may not see this: forbidden: <b>guest</b>",
        ),
        (429, "too many streams are open; try again later\n", "too many streams are open; try again later"),
        (429, "", "Too many pages are open"),
        (503, "there is no scheduler loadmaster", "there is no scheduler loadmaster"),
        (500, "", "HTTP 500"),
    ],
)
def test_a_refusal_is_a_sentence(reader: Page, status: int, body: str, sentence: str) -> None:
    script = """async ([status, body]) => (await import("./stream.js")).reason(new Response(body, { status }))"""

    assert reader.evaluate(script, [status, body]) == sentence


def test_what_cannot_be_asked_is_told_where_it_was_asked(visitor: Visitor) -> None:
    answer = json.dumps({"message": "forbidden"})
    visitor.page.route("**/explain?*", lambda route: route.fulfill(status=403, body=answer))
    visitor.page.click("#queue >> text=shop/batch-0")

    expect(visitor.page.get_by_role("dialog")).to_contain_text("You may not see this: forbidden")
    visitor.complaints.clear()  # Chromium's own line for a 403
