"""The page of 5,000 nodes with 20,000 pods: how fast it is there, how smoothly it goes on, and what it keeps."""

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.stage import Stage, some_pods
from tests.browser.visitor import FRAMES, WORK, visiting

pytestmark = pytest.mark.alone


def test_a_large_cluster_is_there_within_a_second(browser: Browser, large: Stage) -> None:
    with visiting(browser, large.url) as warm:
        warm.ready()
    with visiting(browser, large.url) as visitor:
        first = visitor.ready()
        nodes_told = visitor.text("#tile-nodes")
        assert visitor.complaints == []

    print(f"first picture of 5,000 nodes after {first:.0f} ms")
    assert nodes_told == "5,000"
    assert first <= 1000


def test_frames_of_a_large_cluster_at_work_take_50_ms_at_most(browser: Browser, large: Stage) -> None:
    with visiting(browser, large.url) as visitor:
        visitor.ready()
        visitor.page.wait_for_timeout(500)
        visitor.page.evaluate(f"(() => {{ ({WORK})(2500).then((spent) => (window.spent = spent)); }})()")
        visitor.page.evaluate(f"(() => {{ ({FRAMES})(2500).then((gaps) => (window.gaps = gaps)); }})()")
        for turn in range(9):
            large.see(*some_pods(f"busy-{turn}", 25))
            visitor.page.mouse.move(60 + 20 * turn, 300 + 10 * turn)
            visitor.page.wait_for_timeout(250)
        visitor.until("Boolean(window.gaps && window.spent)")
        gaps, spent = visitor.page.evaluate("[window.gaps, window.spent]")
        assert visitor.complaints == []

    gaps.sort()
    slow = gaps[int(len(gaps) * 0.98)]
    print(f"{len(gaps)} frames, p98 {slow:.0f} ms, worst {gaps[-1]:.0f} ms; drawing {max(spent):.0f} ms at most")
    assert max(spent) <= 50
    assert slow <= 50


def test_a_day_of_decisions_keeps_no_more_than_an_hour_of_them(reader: Page) -> None:
    """What comes in a day, in seconds: the numbers of elements and entries stay where they are."""
    script = """async (rounds) => {
      const page = await import("./decisions.js");
      const figures = await import("./charts.js");
      const list = new page.Decisions(() => {});
      const lines = new figures.Figures();
      for (let i = 0; i < rounds; i += 1) {
        list.heard({more: 0, decisions: [{uid: `u${i}`, attempt: 1, at: i, result: "bound", ms: 1, name: "n",
          namespace: "ns", node: "x", feasible: 3}]});
        lines.add({at: [i], scheduled: [1]});
      }
      return [document.querySelectorAll("#decisions li").length, list.items.size, lines.columns.at.length];
    }"""
    shown, kept, samples = reader.evaluate(script, 20_000)

    assert shown <= 160  # of this list, and of the page's own
    assert (kept, samples) == (80, 600)


@pytest.mark.parametrize(("zones", "nodes"), [(5000, 1), (3, 2000), (100, 3), (1, 60)])
def test_a_map_of_any_cluster_can_be_drawn(reader: Page, zones: int, nodes: int) -> None:
    """A browser draws nothing at all on a canvas of more than some 16,000 pixels."""
    script = """async ([zones, nodes]) => {
      const { layout, rowAt } = await import("./layout.js");
      const all = Array.from({ length: zones }, (_, i) => ({ zone: `z${i}`,
        rows: Array.from({ length: nodes }, (_, j) => i * nodes + j) }));
      const map = layout(all, 900);
      const found = [...map.places].filter(([row, { x, y }]) => rowAt(map, x + 1, y + 1) === row);
      return [map.places.size, found.length, map.height, map.panels.at(-1).zone];
    }"""

    placed, found, height, last = reader.evaluate(script, [zones, nodes])
    assert placed == found == zones * nodes
    assert height <= 8000
    assert last == ("4901 other zones" if zones == 5000 else f"z{zones - 1}")
