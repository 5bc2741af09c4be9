"""Names are up to whoever may create a pod: they do nothing, and are shown as they are."""

import json
import re
from typing import Final

from playwright.sync_api import Browser, Page, expect

from tests.browser.stage import nodes, scheduled, staged
from tests.browser.visitor import visiting

HOSTILE: Final = (
    '<img src=x onerror="window.pwned=1">',
    "<script>window.pwned=1</script>",
    "</td></tr></table><h1>owned</h1>",
    "javascript:window.pwned=1",
    "\u202ereversed\u202c",
    "\x1b[2J\x00\x07 control",
    "x" * 100_000,
    "\u0301" * 5000,
    "__proto__",
    "constructor",
    "${window.pwned=1}{{7*7}}",
    "data: {}\n\nevent: hello\ndata: {}\n\n",
)


def test_hostile_names_do_nothing_and_are_shown_as_they_are(browser: Browser) -> None:
    with staged() as stage:
        stage.see(*nodes(3))
        for number, text in enumerate(HOSTILE):
            pod = scheduled(text, uid=f"u{number}", namespace=text, requests={"cpu": "64"}, labels={text: text})
            stage.see(pod, scheduled(text, uid=f"b{number}", namespace="b", node_name="node-0000", labels={text: text}))
        with visiting(browser, stage.url) as visitor:
            visitor.ready()
            page = visitor.page
            visitor.until("document.querySelectorAll('#queue tbody tr').length === 12")
            page.hover("#map", position={"x": 20, "y": 40})
            page.wait_for_selector("#map-tip li")
            page.click("#map", position={"x": 20, "y": 40})
            expect(page.get_by_role("dialog")).to_contain_text("onerror=")
            page.keyboard.press("Escape")
            for row in page.locator("#queue tbody tr").all():
                row.get_by_role("button").click()
                # A name of more than 253 characters is cut, and no API server takes it.
                expect(page.locator("#details-body")).to_contain_text(re.compile("unschedulable|There is no such pod"))
                page.keyboard.press("Escape")
            shown = page.evaluate("document.body.innerText")

            assert page.evaluate("window.pwned === undefined && Object.keys(Object.prototype).length === 0")
            assert page.locator("main img, main script, h1 + h1, iframe").count() == 0
            assert '<img src=x onerror="window.pwned=1">' in shown
            assert "\\u202ereversed\\u202c" in shown
            assert not any(character in shown for character in "\u202e\x1b\x00\u0007")
            assert len(shown) < 100_000
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert [each for each in visitor.complaints if "404" not in each] == []


def test_what_would_not_be_seen_is_spelled_out(reader: Page) -> None:
    script = """async (texts) => {
      const { shown } = await import("./text.js");
      return JSON.parse(texts).map((each) => shown(each, 10));
    }"""
    spelled = {
        "a\u200bb": "a\\u200bb",
        "\u202e": "\\u202e",
        "\n": "\\u000a",
        "\ud800!": "\\ud800!",
        "\U000e0041": "\\u{e0041}",
        "\u2800": "\\u2800",
        "\U0001f600": "\U0001f600",
        "x" * 8 + "\U0001f600xx": "x" * 8 + "…",
        "e\u0301\u0301\u0301": "e\u0301\u0301…",
    }

    assert reader.evaluate(script, json.dumps(list(spelled))) == list(spelled.values())
