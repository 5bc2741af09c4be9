"""What a user of the page sees and does with the mouse."""

from playwright.sync_api import Page, expect

from tests.browser.stage import Stage, some_pods
from tests.browser.visitor import SOON_MS, Visitor


def test_the_first_picture_has_everything(visitor: Visitor) -> None:
    assert visitor.text("#tile-nodes") == "20"
    assert visitor.text("#map-count") == "20 nodes in 3 zones"
    assert visitor.text("#connection") == "Live"
    assert visitor.text("#queue-unschedulable") == "unschedulable\n5"
    assert visitor.text("#queue-gated") == "gated\n1"
    expect(visitor.page.locator("#queue tbody tr")).to_have_count(5)
    expect(visitor.page.locator("#queue tbody tr").first).to_contain_text("Insufficient cpu")


def test_a_node_shows_its_pods_when_it_is_pointed_at(visitor: Visitor) -> None:
    visitor.page.hover("#map", position={"x": 20, "y": 40})

    tip = visitor.page.locator("#map-tip")
    expect(tip.locator("strong")).to_have_text("node-0000")
    expect(tip.locator("li").first).to_contain_text("shop/", timeout=SOON_MS)
    expect(tip).to_contain_text("europe-west1-b")


def test_decisions_appear_as_they_are_made(visitor: Visitor, small: Stage) -> None:
    small.see(*some_pods("fresh", 3))

    first = visitor.page.locator("#decisions li[data-result=bound]", has_text="shop/fresh-0")
    expect(first).to_contain_text("→ node-", timeout=SOON_MS)
    expect(first).to_contain_text("decided in")


def test_decisions_can_be_paused(visitor: Visitor, small: Stage) -> None:
    visitor.page.click("#decisions-pause")
    small.see(*some_pods("unseen", 1))
    expect(visitor.page.locator("#decisions-more")).to_have_text("paused: new ones wait")

    expect(visitor.page.locator("#decisions", has_text="unseen")).to_have_count(0)
    visitor.page.click("#decisions-pause")
    expect(visitor.page.locator("#decisions li", has_text="shop/unseen-0")).to_have_count(1)


def test_decisions_wait_for_who_points_at_one(visitor: Visitor, small: Stage) -> None:
    small.see(*some_pods("pointed", 1))
    visitor.page.hover("#decisions li >> text=shop/pointed-0")
    small.see(*some_pods("later", 1))
    expect(visitor.page.locator("#decisions-more")).to_have_text("new ones wait")

    expect(visitor.page.locator("#decisions", has_text="later-0")).to_have_count(0)
    visitor.page.mouse.move(5, 5)
    expect(visitor.page.locator("#decisions li", has_text="shop/later-0")).to_have_count(1)


def test_rows_that_have_not_changed_stay_and_so_does_the_focus(reader: Page) -> None:
    script = """async () => {
      const { redraw } = await import("./rows.js");
      const { link, make } = await import("./text.js");
      const body = make("tbody");
      document.body.append(make("table", {}, body));
      const row = ({ name, count }) => make("tr", {}, make("td", {}, link(name, () => {}), String(count)));
      redraw(body, [{ name: "a", count: 1 }, { name: "b", count: 1 }, { name: "c", count: 1 }], row);
      const [a, b] = body.rows;
      b.querySelector("button").focus();
      redraw(body, [{ name: "a", count: 1 }, { name: "b", count: 2 }], row);
      const found = [body.rows[0] === a, body.rows[1] === b, document.activeElement.dataset.key, body.textContent];
      body.parentNode.remove();
      return found;
    }"""

    assert reader.evaluate(script) == [True, False, "b", "a1b2"]


def test_groups_of_pods_have_a_tab_once_there_are_any_and_open_by_themselves(reader: Page) -> None:
    script = """async () => {
      const { Queues } = await import("./queues.js");
      const opened = [];
      const queues = new Queues(() => opened.push("pod"), (namespace, name) => opened.push(`${namespace}/${name}`));
      const tab = document.getElementById("queue-groups");
      const before = tab.hidden;
      const message = "64 pods are needed at once";
      const group = { namespace: "shop", name: "training", since: 1, attempts: 2, plugins: ["unschedulable"], message };
      queues.heard({ part: "groups", count: 1, pods: [group] });
      tab.click();
      document.querySelector("#queue tbody button").click();
      return [before, tab.hidden, tab.textContent, opened, document.querySelector("#queue tbody").textContent];
    }"""

    before, after, tab, opened, row = reader.evaluate(script)
    assert (before, after, tab, opened) == (True, False, "groups1", ["shop/training"])
    assert "64 pods are needed at once" in row


def test_a_group_is_explained_with_its_pods_and_a_pod_with_its_group(reader: Page) -> None:
    script = """async () => {
      const { Details } = await import("./details.js");
      const group = { found: true, namespace: "shop", name: "training", state: "incomplete",
        text: "3 pods are needed at once, and there are 2", about: ["2 pods: 0 with a node, 2 without"],
        waiting: [{ name: "w-0", state: "gated" }, { name: "w-1", state: "gated" }] };
      const told = (parts) => parts.filter(Boolean).map((each) => each.textContent).join("|");
      const pod = { found: true, state: "gated", about: [], group };
      const details = Details.prototype;
      return [told(details.explainedGroup(group)), told(details.explained(pod))];
    }"""

    group, pod = reader.evaluate(script)
    sentence = "incomplete|3 pods are needed at once, and there are 2|2 pods: 0 with a node, 2 without"
    assert group == f"{sentence}|Pods without a node|shop/w-0 gatedshop/w-1 gated"
    assert f"Its group, training|{sentence}" in pod


def test_why_a_pod_is_pending_opens_from_the_queue(visitor: Visitor) -> None:
    visitor.page.click("#queue >> text=shop/batch-0")

    dialog = visitor.page.get_by_role("dialog", name="shop/batch-0")
    expect(dialog).to_contain_text("Why nodes don't fit, the nearest miss first")
    expect(dialog).to_contain_text("What would help, each tried out")
    expect(dialog).to_contain_text("attempt 1: unschedulable: 0/20 nodes are available")


def test_a_pod_can_be_asked_for_by_name_and_near_names_are_offered(visitor: Visitor) -> None:
    visitor.page.get_by_role("textbox", name="Explain a pod").fill("shop/bach-1")
    visitor.press("Enter")

    dialog = visitor.page.get_by_role("dialog")
    expect(dialog).to_contain_text("There is no such pod.")
    dialog.get_by_role("button", name="shop/batch-1").click()
    expect(visitor.page.get_by_role("dialog", name="shop/batch-1")).to_contain_text("unschedulable")
    visitor.complaints[:] = [each for each in visitor.complaints if "404" not in each]  # Chromium's own line


def test_plugins_show_what_they_cost(visitor: Visitor) -> None:
    visitor.page.locator("#plugins-title").scroll_into_view_if_needed()

    expect(visitor.page.locator("#costs tbody")).to_contain_text("NodeResourcesFit")
    expect(visitor.page.locator("#profiles")).to_contain_text("Profile loadmaster")
    visitor.page.get_by_text("Configuration in effect").click()
    expect(visitor.page.locator("#config")).to_contain_text('"apiVersion": "kubescheduler.config.k8s.io/v1"')
