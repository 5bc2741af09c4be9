"""The browser of all tests here, what it looks at, and who looks."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.chromium import chromium
from tests.browser.stage import Stage, nodes, running, scheduled, staged
from tests.browser.visitor import Visitor, visiting


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def small() -> Iterator[Stage]:
    """20 nodes with pods that run, wait and cannot run."""
    with staged() as stage:
        all_nodes = list(nodes(20))
        stage.see(*all_nodes, *running([node.name for node in all_nodes], 65))
        stage.see(*(scheduled(f"batch-{number}", requests={"cpu": "64"}) for number in range(5)))
        stage.see(scheduled("later", gates=["example.com/quota"]))
        yield stage


@pytest.fixture(scope="session")
def large() -> Iterator[Stage]:
    """5,000 nodes with 20,000 pods."""
    with staged() as stage:
        all_nodes = list(nodes(5000))
        stage.see(*all_nodes)
        pods = list(running([node.name for node in all_nodes], 20_000))
        for first in range(0, len(pods), 2000):
            stage.see(*pods[first : first + 2000])
        stage.see(*(scheduled(f"batch-{number}", requests={"cpu": "64"}) for number in range(300)))
        yield stage


@pytest.fixture(scope="session")
def seat(browser: Browser, small: Stage) -> Iterator[Visitor]:
    """A page of the small cluster for one test after the other: a new one for each takes half a second."""
    with visiting(browser, small.url) as visitor:
        yield visitor


@pytest.fixture
def reader(seat: Visitor) -> Page:
    """The page for tests that only call functions of its modules."""
    seat.page.mouse.move(0, 0)
    return seat.page


@pytest.fixture
def visitor(seat: Visitor) -> Iterator[Visitor]:
    """Looks at the small cluster, once the first picture is there; in the end nobody may have complained."""
    seat.open_anew()
    seat.ready()
    yield seat
    assert seat.complaints == []
