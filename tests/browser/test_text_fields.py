"""Each text that the page is told, in each field, is shown and does nothing else.

What a scheduler tells is taken down once. Then it is told again with every text in it, the keys of mappings included,
replaced by a number in a harmless text, and after that in hostile ones: the page has the same elements with the same
attributes, no script runs, the policy has nothing to forbid, and all that was shown before is shown now.
"""

import json
import re
import ssl
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page, Route

from plugins.contrib.coscheduling.plugin import Coscheduling
from tests.browser.stage import Stage, nodes, scheduled, staged
from tests.browser.visitor import Visitor, visiting

HARMLESS: Final = "text-{}-"
HOSTILE: Final = (
    '<img id={}- src=x onerror="window.pwned=1">',
    "<script>/*{}-*/window.pwned=1</script>",
    "\"'><svg id={}- onload=window.pwned=1>",
    "<h1>{}-</h1></td></table></span></style>",
    "javascript:{}-//window.pwned=1",
    "&lt;{}-&#x3c;i>",
    "${{{}-,window.pwned=1}}{{{{7*7}}}}",
    "url({}-//attacker.example/)",
    "data: {}-",
    "__proto__{}-",
)
"""Each with its number soon, as the page cuts what is long, and before a slash, at which it parts names of pods."""

WORDS: Final = frozenset({"unschedulable", "backoff", "active", "gated", "in flight", "groups"})
"""Of the protocol: the page knows the parts of the queue by these, and draws no other."""

LOOK: Final = """() => {
  const seen = [];
  for (const element of document.querySelectorAll("*")) {
    const names = element.getAttributeNames().filter((name) => name !== "data-stale"); // whether the stream has ended
    seen.push([element.tagName, ...names.sort()].join(" "));
  }
  const labels = [...document.querySelectorAll("[aria-label]")].map((each) => each.getAttribute("aria-label"));
  return { seen, text: [document.body.textContent, ...labels].join("\\n") };
}"""
FORBIDDEN: Final = """
window.forbidden = [];
document.addEventListener("securitypolicyviolation", (event) => window.forbidden.push(event.blockedURI));
"""


class Taken(NamedTuple):
    """What a scheduler told, of everything that the page asks for."""

    url: str
    stream: tuple[tuple[str, Any], ...]
    documents: Mapping[str, Any]
    """By the last part of the path."""


@pytest.fixture(scope="module")
def taken() -> Iterator[Taken]:
    with staged(0, None, Coscheduling) as stage:
        a_busy_cluster(stage)
        documents = {
            "node": told_of(stage, "node?" + urlencode({"name": "node-0003"})),
            "configuration": told_of(stage, "configuration"),
            "explain": told_of(stage, "../explain?" + urlencode({"namespace": "shop", "name": "huge"})),
            "near": told_of(stage, "../explain?" + urlencode({"namespace": "shop", "name": "hug"})),
        }
        yield Taken(stage.url, tuple(stream_of(stage)), documents)


def a_busy_cluster(stage: Stage) -> None:
    """A pod in each part of the queue, half of a group, pods that run, and decisions that were made."""
    stage.see(*nodes(12))
    wide = scheduled("wide", requests={"cpu": "1"}, node_selector={"disk": "ssd"})
    stage.see(scheduled("huge", requests={"cpu": "64"}), scheduled("gated", gates=["example.com/quota"]), wide)
    stage.see(*(scheduled(f"web-{number}", requests={"cpu": "1"}, labels={"app": "web"}) for number in range(6)))
    group = {"loadmaster.dev/pod-group": "training", "loadmaster.dev/pod-group-min-available": "4"}
    stage.see(*(scheduled(f"rank-{number}", requests={"cpu": "1"}, annotations=group) for number in range(2)))
    stage.see(scheduled("there", node_name="node-0003", requests={"cpu": "1"}, labels={"app": "web"}))


def opened(stage: Stage, path: str) -> Any:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return urlopen(urljoin(stage.url, path), context=context, timeout=30)


def told_of(stage: Stage, path: str) -> Any:
    try:
        with opened(stage, path) as answer:
            return json.load(answer)
    except OSError as error:  # a pod that there is not: 404, with a document
        return json.load(error)  # type: ignore[arg-type]


def stream_of(stage: Stage) -> Iterator[tuple[str, Any]]:
    """The events until everything is told, and the decisions that follow."""
    with opened(stage, "live") as answer:
        heard: set[str] = set()
        name = ""
        for line in answer:
            text = line.decode().rstrip("\n")
            if text.startswith("event: "):
                name = text.removeprefix("event: ")
            elif text.startswith("data: "):
                yield name, json.loads(text.removeprefix("data: "))
                heard.add(name)
                if name == "queue":
                    heard.add(f"queue {json.loads(text.removeprefix('data: '))['part']}")
            if {"ready", "decisions", "queue groups", "figures", "nodes"} <= heard:
                return


class Texts:
    """Another text for each, the same for the same."""

    def __init__(self, form: str) -> None:
        self._form = form
        self.numbers: dict[str, int] = {}

    def of(self, text: str) -> str:
        number = self.numbers.setdefault(text, len(self.numbers))
        return self._form.format(number)

    def within(self, value: Any) -> Any:
        """The same with each text replaced, keys of mappings included where these are no names of fields."""
        if isinstance(value, str):
            return value if value in WORDS else self.of(value)
        if isinstance(value, list):
            return [self.within(each) for each in value]
        if isinstance(value, dict):
            return {key: self._inner(key, each) for key, each in value.items()}
        return value

    def _inner(self, field: str, value: Any) -> Any:
        if field in ("labels", "use", "scores") and isinstance(value, dict):
            return {self.of(key): self.within(each) for key, each in value.items()}
        return self.within(value)


def numbered(form: str, number: int) -> str:
    """The part of a text around its number: its beginning may be spelled with backslashes, as JSON, and its end cut."""
    return form.partition("{}-")[0].replace("{{", "{")[-6:] + f"{number}-"


class Look(NamedTuple):
    """What of a page is compared."""

    elements: Counter[str]
    shown: frozenset[int]
    """The numbers of the texts that are there."""


def looks_of(browser: Browser, taken: Taken, form: str) -> tuple[dict[str, Look], Visitor]:
    """Open the page, and everything in it, while each text is told in this form."""
    texts = Texts(form)
    stream = "".join(f"event: {name}\ndata: {json.dumps(texts.within(data))}\n\n" for name, data in taken.stream)
    documents = {name: texts.within(document) for name, document in taken.documents.items()}

    def answer(route: Route) -> None:
        parts = urlsplit(route.request.url)
        name = parts.path.rsplit("/", 1)[-1]
        if name == "explain" and parts.query.endswith("name=nobody"):
            name = "near"
        if name == "live":
            route.fulfill(status=200, content_type="text/event-stream", body=stream)
        elif name in documents:
            route.fulfill(status=200, content_type="application/json", body=json.dumps(documents[name]))
        else:
            route.continue_()

    def prepare(page: Page) -> None:
        page.add_init_script(FORBIDDEN)
        page.route("**/*", answer)

    looks: dict[str, Look] = {}
    with visiting(browser, taken.url, prepare=prepare) as visitor:
        visitor.ready()
        page = visitor.page
        for view in views(page, form, texts):
            found = page.evaluate(LOOK)
            shown = {number for number in texts.numbers.values() if numbered(form, number) in found["text"]}
            looks[view] = Look(Counter(found["seen"]), frozenset(shown))
        assert page.evaluate("window.pwned === undefined && Object.keys(Object.prototype).length === 0")
        assert page.evaluate("window.forbidden") == []
        assert not any(re.search(r" on\w", each) for look in looks.values() for each in look.elements)
    return looks, visitor


def views(page: Page, form: str, texts: Texts) -> Iterator[str]:
    """Go to each part of the page."""
    page.click("#table-details summary")
    page.locator("#plugins-refresh").scroll_into_view_if_needed()
    page.wait_for_selector("#profiles h3")
    page.click(".plugins details summary")
    yield "page"
    page.hover("#map", position={"x": 20, "y": 40})
    page.wait_for_selector("#map-tip li")
    yield "tip of the map"
    for tab in page.locator("#queue-tabs button").all():
        tab.click()
        yield f"queue {tab.get_attribute('id')}"
    page.locator("#table tbody button").first.click()
    page.wait_for_selector("#details-body details")
    page.click("#details-body details summary")
    yield "node"
    page.keyboard.press("Escape")
    for name, inside in (("anybody", "#details-body .history"), ("nobody", "#details-body li")):
        page.fill("#find-pod", name)
        page.click("#find button")
        page.wait_for_selector(inside)
        yield f"pod {name}"
        page.keyboard.press("Escape")


def shown_in(looks: Mapping[str, Look]) -> frozenset[int]:
    """The numbers of the texts that are anywhere on the page, which draws some of them a moment later."""
    return frozenset().union(*(look.shown for look in looks.values()))


@pytest.fixture(scope="module")
def harmless(browser: Browser, taken: Taken) -> dict[str, Look]:
    return looks_of(browser, taken, HARMLESS)[0]


@pytest.mark.parametrize("form", HOSTILE)
def test_a_text_in_any_field_is_shown_and_does_nothing(
    browser: Browser, taken: Taken, harmless: dict[str, Look], form: str
) -> None:
    looks, visitor = looks_of(browser, taken, form)

    assert looks.keys() == harmless.keys()
    for view, look in looks.items():
        assert look.elements == harmless[view].elements, view
    assert shown_in(looks) == shown_in(harmless)
    assert visitor.complaints == []


def test_most_texts_that_are_told_are_shown(taken: Taken, harmless: dict[str, Look]) -> None:
    texts = Texts(HARMLESS)
    for _, data in taken.stream:
        texts.within(data)
    for document in taken.documents.values():
        texts.within(document)
    shown = shown_in(harmless)

    hidden = {text for text, number in texts.numbers.items() if number not in shown}

    assert len(texts.numbers) > 90
    assert len(hidden) < 40, sorted(hidden)
