"""The page for who uses keys alone, has it read aloud, needs contrasts, large letters or rest."""

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.contrast import poor_contrasts
from tests.browser.stage import Stage, some_pods
from tests.browser.visitor import Visitor, visiting


def test_every_control_is_reached_by_tab(visitor: Visitor) -> None:
    reached: list[str] = []
    for _ in range(60):
        visitor.press("Tab")
        reached.append(
            visitor.page.evaluate(
                "(document.activeElement.id || document.activeElement.name || document.activeElement.tagName"
                " + ' ' + (document.activeElement.ariaLabel ?? document.activeElement.textContent.slice(0, 30)))"
            )
        )

    for control in ("find-pod", "map", "decisions-pause", "resource", "queue-unschedulable", "queue-panel"):
        assert control in reached, (control, reached)
    assert any("shop/batch-0" in each for each in reached)
    assert "plugins-refresh" in reached


def test_the_map_is_walked_with_arrows_and_told(visitor: Visitor) -> None:
    visitor.page.focus("#map")
    expect(visitor.page.locator("#said")).to_contain_text("node-0000, europe-west1-b, cpu")
    visitor.press("ArrowRight")
    expect(visitor.page.locator("#said")).to_contain_text("node-0003")
    visitor.press("End")
    expect(visitor.page.locator("#said")).to_contain_text("node-0017, europe-west1-d")
    expect(visitor.page.locator("#said")).to_contain_text("cordoned")
    visitor.press("Enter")

    dialog = visitor.page.get_by_role("dialog", name="node-0017")
    expect(dialog).to_contain_text("Pods, the largest first")
    visitor.press("Escape")
    expect(dialog).to_have_count(0)
    assert visitor.page.evaluate("document.activeElement.id") == "map"


def test_a_node_that_is_selected_with_keys_is_brought_into_view(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 500, "height": 300})
    visitor.page.focus("#map")
    visitor.press("End")
    expect(visitor.page.locator("#said")).to_contain_text("node-0017")

    box = visitor.page.locator("#map-here").bounding_box()
    frame = visitor.page.locator("#map-frame").bounding_box()
    assert box
    assert frame
    assert frame["y"] <= box["y"]
    assert box["y"] + box["height"] <= min(frame["y"] + frame["height"], 300) + 1  # a part of a pixel


def test_the_queue_is_chosen_with_arrows(visitor: Visitor) -> None:
    visitor.page.focus("#queue-unschedulable")
    visitor.press("ArrowRight", "ArrowRight", "ArrowRight")

    assert visitor.page.evaluate("document.activeElement.id") == "queue-gated"
    expect(visitor.page.get_by_role("tabpanel")).to_contain_text("shop/later")
    expect(visitor.page.get_by_role("tabpanel")).to_contain_text("SchedulingGates")


def test_the_map_is_a_table_too(visitor: Visitor) -> None:
    visitor.page.get_by_text("Nodes as a table").click()
    rows = visitor.page.locator("#table tbody tr")
    expect(rows).to_have_count(20)
    visitor.page.get_by_role("textbox", name="Name or zone").fill("west1-c")
    expect(rows).to_have_count(7)
    rows.first.get_by_role("button").click()
    expect(visitor.page.get_by_role("dialog")).to_contain_text("Pods, the largest first")


def test_a_screen_reader_finds_regions_names_and_roles(visitor: Visitor) -> None:
    expect(visitor.page.locator("body")).to_match_aria_snapshot(
        """
        - link "Skip to the cluster map"
        - banner:
          - heading "Loadmaster" [level=1]
          - search:
            - textbox "Explain a pod"
            - button "Explain"
        - main:
          - region "Key figures":
            - term: Nodes
            - definition: "20"
          - region "Cluster":
            - heading "Cluster" [level=2]
            - group "Colour by":
              - radio "cpu" [checked]
              - radio "memory"
            - application "Nodes by zone, coloured by use"
          - region "Decisions":
            - button "Pause"
            - region "Latest decisions":
              - list "Decisions, the newest first"
          - region "Throughput and latency":
            - figure /Attempts per second/:
              - img /bound/
          - region "Queue":
            - tablist "Queue":
              - tab /unschedulable/ [selected]
            - tabpanel /unschedulable/:
              - table "Pods that wait, the oldest first"
          - region "Plugins and configuration":
            - button "Refresh"
        """
    )
    nameless = visitor.page.evaluate(
        """[...document.querySelectorAll("button, input, canvas, [tabindex='0'], dialog, table, meter")]
        .filter((each) => each.checkVisibility() && !each.ariaHidden)
        .filter((each) => !(each.ariaLabel || each.labels?.length || each.textContent.trim()
          || each.getAttribute("aria-labelledby"))).map((each) => each.outerHTML.slice(0, 200))"""
    )
    assert nameless == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_against_its_background(browser: Browser, small: Stage, scheme: str) -> None:
    with visiting(browser, small.url, scheme) as visitor:
        visitor.ready()
        visitor.page.locator("#plugins-title").scroll_into_view_if_needed()
        expect(visitor.page.locator("#costs tbody")).to_contain_text("NodeResourcesFit")
        assert poor_contrasts(visitor.page) == []
        visitor.page.click("#queue >> text=shop/batch-0")
        expect(visitor.page.get_by_role("dialog")).to_contain_text("What would help")
        assert poor_contrasts(visitor.page) == []
        background = visitor.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert visitor.complaints == []

    assert background == {"light": "rgb(244, 246, 249)", "dark": "rgb(14, 19, 27)"}[scheme]


@pytest.mark.parametrize(("motion", "animation"), [("reduce", "none"), ("no-preference", "come")])
def test_nothing_moves_for_who_wants_that(browser: Browser, small: Stage, motion: str, animation: str) -> None:
    with visiting(browser, small.url, reduced_motion=motion) as visitor:
        visitor.ready()
        small.see(*some_pods(f"moving-{motion}", 1))
        visitor.page.wait_for_selector("#decisions li")

        assert (
            visitor.page.evaluate("getComputedStyle(document.querySelector('#decisions li')).animationName")
            == animation
        )


def test_a_narrow_window_needs_no_scrolling_sideways(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 320, "height": 740})

    visitor.until("document.documentElement.scrollWidth <= innerWidth")
    reason = visitor.page.locator("#queue td.reason").first.bounding_box()
    assert reason
    assert reason["width"] > 150


def test_a_narrow_window_has_everything_in_the_page_and_no_button_in_pieces(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 420, "height": 900})
    visitor.page.locator("#table-details summary").click()
    visitor.page.click("#decisions-pause")
    visitor.until("document.getElementById('map').getBoundingClientRect().right <= innerWidth")

    out_of_sight = visitor.page.evaluate(OUT_OF_SIGHT)

    assert out_of_sight == []


OUT_OF_SIGHT = """() => {
  const frame = document.getElementById("map-frame");
  const found = frame.scrollHeight > frame.clientHeight + 1 ? ["the map scrolls"] : [];
  for (const each of document.querySelectorAll("#queue th, #queue td, button:not(.link), #find input")) {
    if (!each.checkVisibility() || each.closest("thead")) continue;
    const box = each.getBoundingClientRect();
    const lines = each.tagName === "BUTTON" && box.height > 2 * parseFloat(getComputedStyle(each).lineHeight);
    const fits = box.left >= 0 && box.right <= document.documentElement.clientWidth;
    const isCut = each.scrollWidth > each.clientWidth + 1;
    if (!fits || lines || isCut) found.push(`${each.tagName} ${each.textContent.slice(0, 30)}`);
  }
  return found;
}"""
"""What is cut off, in an inner scroll box, or broken over several lines."""


def test_forced_colours_leave_what_a_colour_says(browser: Browser, small: Stage) -> None:
    colours = "(chosen) => [...document.querySelectorAll(chosen)].map((each) => getComputedStyle(each).backgroundColor)"
    with visiting(browser, small.url, "dark", forced_colors="active") as visitor:
        visitor.ready()
        legend = visitor.page.evaluate(colours, "#map-legend span:nth-child(-n + 8) i")
        tabs = visitor.page.evaluate(colours, "#queue-tabs button")

    assert len(set(legend)) == len(legend) == 8
    assert tabs[0] not in tabs[1:]
