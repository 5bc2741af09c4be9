"""Somebody who looks at the page, and notes whatever a browser complains about."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, ViewportSize

SIZE: Final[ViewportSize] = {"width": 1440, "height": 1000}
SOON_MS: Final = 5000

FRAMES: Final = """
(ms) => new Promise((done) => {
  const gaps = [];
  let before = performance.now();
  const end = before + ms;
  const frame = (now) => {
    gaps.push(now - before);
    before = now;
    if (now < end) requestAnimationFrame(frame);
    else done(gaps.slice(1));
  };
  requestAnimationFrame(frame);
})
"""
"""Milliseconds between two frames."""

WORK: Final = """
(ms) => new Promise((done) => {
  const real = window.requestAnimationFrame;
  const spent = [];
  window.requestAnimationFrame = (draw) => real((now) => {
    const began = performance.now();
    draw(now);
    spent.push(performance.now() - began);
  });
  setTimeout(() => { window.requestAnimationFrame = real; done(spent); }, ms);
})
"""
"""Milliseconds that the page's own work took in frames."""


@dataclass
class Visitor:
    """A page in the browser."""

    page: Page
    origin: str
    complaints: list[str] = field(default_factory=list)
    """Of the console, and uncaught errors."""
    strangers: list[str] = field(default_factory=list)
    """Requests that leave the origin."""

    def open_anew(self) -> None:
        """Forget what was done with the page, and open it again."""
        self.page.unroute_all()
        self.page.mouse.move(0, 0)
        self.page.set_viewport_size(SIZE)
        self.page.goto(self.page.url)
        self.complaints.clear()

    def ready(self) -> float:
        """Wait for the first whole picture; milliseconds since the address was opened."""
        self.page.wait_for_selector("html[data-ready]", state="attached", timeout=3 * SOON_MS)
        return float(self.page.evaluate("Number(document.documentElement.dataset.ready)"))

    def until(self, script: str) -> None:
        """Wait until a script is true. Playwright's own way needs `eval`, which the page's policy forbids."""
        for _ in range(SOON_MS // 50):
            if self.page.evaluate(script):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"not within {SOON_MS} ms: {script}")

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)


@contextmanager
def visiting(
    browser: Browser,
    url: str,
    scheme: str = "light",
    prepare: Callable[[Page], object] = lambda page: None,
    **options: Any,
) -> Iterator[Visitor]:
    """Open the page, as `prepare` has left it; nothing may be asked of anybody else meanwhile."""
    context = browser.new_context(viewport=SIZE, ignore_https_errors=True, color_scheme=scheme, **options)  # type: ignore[arg-type]
    page = context.new_page()
    parts = urlsplit(url)
    visitor = Visitor(page, f"{parts.scheme}://{parts.netloc}")

    def complained(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            visitor.complaints.append(message.text)

    def asked(dialog: Dialog) -> None:
        visitor.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def requested(request: Request) -> None:
        if not request.url.startswith(f"{visitor.origin}/"):
            visitor.strangers.append(request.url)

    page.on("console", complained)
    page.on("pageerror", lambda error: visitor.complaints.append(str(error)))
    page.on("dialog", asked)
    page.on("request", requested)
    prepare(page)
    try:
        page.goto(url)
        yield visitor
    finally:
        context.close()
    assert visitor.strangers == []
