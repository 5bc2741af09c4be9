"""The pictures of docs/page.md: 20 nodes, and 5,000 nodes with 20,000 pods, both at work for a while."""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from scheduler import framework as fw
from tests.browser.chromium import chromium
from tests.browser.stage import APPS, Stage, nodes, running, scheduled, staged
from tests.browser.visitor import visiting

DOCS: Final = Path(__file__).parents[2] / "docs"
SECONDS: Final = 45.0
"""Of work before the picture."""

MAX_BYTES: Final = 300_000

CASES: Final = ((20, 65, "light"), (5000, 20_000, "dark"))
"""Nodes, pods that run, and the colours."""


def take() -> None:
    """Write them, docs/page-NODES.png."""
    with chromium() as browser:
        for count, pods, scheme in CASES:
            path = DOCS / f"page-{count}.png"
            with staged() as stage:
                _set(stage, count, pods)
                with visiting(browser, stage.url, scheme) as visitor:
                    visitor.ready()
                    _work(stage, count)
                    visitor.page.mouse.move(160, 290)
                    visitor.page.wait_for_timeout(900)
                    visitor.page.screenshot(path=path)
            size = path.stat().st_size
            assert size < MAX_BYTES, f"{path} has {size} bytes"
            print(f"{path.name}: {size:,} bytes")


def _set(stage: Stage, count: int, pods: int) -> None:
    names = []
    for node in nodes(count):
        names.append(node.name)
        stage.see(node)
    found = list(running(names, pods))
    for first in range(0, len(found), 2000):
        stage.see(*found[first : first + 2000])
    stage.see(*(scheduled(f"train-{number}", requests={"nvidia.com/gpu": 4}) for number in range(6)))
    stage.see(*(scheduled(f"batch-{number}", requests={"cpu": "64"}) for number in range(3)))
    stage.see(scheduled("nightly-report", gates=["example.com/quota"]))


def _work(stage: Stage, count: int) -> None:
    chance, end, number = random.Random(7), time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        size = chance.randint(1, 3) if count < 100 else chance.randint(8, 30)
        stage.see(*_arrivals(chance, 50_000 + number, size))
        number += size
        time.sleep(chance.uniform(0.1, 0.6))


def _arrivals(chance: random.Random, first: int, count: int) -> Iterator[fw.Pod]:
    for number in range(first, first + count):
        requests = {"cpu": "60m", "memory": "128Mi"}
        yield scheduled(f"{chance.choice(APPS)}-{number:05}", requests=requests)
