// The parts of the queue: how many wait in each, and those that have waited longest.

import { redraw } from "./rows.js";
import { age, count, link, make, put, shown } from "./text.js";

const PARTS = {
  unschedulable: "refused by every node; an event that may help wakes them",
  backoff: "tried again after a while",
  active: "next in turn",
  gated: "kept out of the queue by a plugin",
  "in flight": "between decision and binding",
  groups: "groups of pods that are scheduled together; their pods are in the other parts, too",
};
const APART = ["in flight", "groups"];

export class Queues {
  // `open(namespace, name)`, `openGroup(namespace, name)`: somebody wants to know why.
  constructor(open, openGroup) {
    this.open = open;
    this.openGroup = openGroup;
    this.parts = new Map();
    this.part = "unschedulable";
    this.tabs = document.getElementById("queue-tabs");
    this.panel = document.getElementById("queue-panel");
    this.body = document.querySelector("#queue tbody");
    this.tabs.replaceChildren(
      ...Object.keys(PARTS).map((part) => {
        const tab = make("button", { type: "button", role: "tab", id: tabId(part), "aria-controls": "queue-panel" }, part, make("span", { className: "number" }, "0"));
        tab.addEventListener("click", () => this.choose(part));
        tab.addEventListener("keydown", (event) => this.key(event));
        tab.hidden = part === "groups"; // until there are any
        return tab;
      }),
    );
    this.choose(this.part);
    setInterval(() => this.ages(), 1000);
  }

  heard(message) {
    if (!(message.part in PARTS)) return;
    this.parts.set(message.part, message);
    const number = document.querySelector(`#${tabId(message.part)} .number`);
    number.parentElement.hidden = false;
    number.textContent = message.count.toLocaleString("en");
    if (message.part === this.part) this.draw();
    const waiting = [...this.parts.values()].filter(({ part }) => !APART.includes(part));
    put("tile-pending", waiting.reduce((sum, each) => sum + each.count, 0).toLocaleString("en"));
    const refused = this.parts.get("unschedulable")?.count ?? 0;
    put("tile-pending-sub", refused ? `${refused.toLocaleString("en")} unschedulable` : "");
  }

  choose(part, isFocused = false) {
    this.part = part;
    for (const each of Object.keys(PARTS)) {
      const tab = document.getElementById(tabId(each));
      tab.setAttribute("aria-selected", String(each === part));
      tab.tabIndex = each === part ? 0 : -1;
      if (each === part && isFocused) tab.focus();
    }
    this.panel.setAttribute("aria-labelledby", tabId(part));
    this.draw();
  }

  key(event) {
    const names = Object.keys(PARTS).filter((part) => !document.getElementById(tabId(part)).hidden);
    const at = names.indexOf(this.part);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.choose(names[(to + names.length) % names.length], true);
  }

  draw() {
    const message = this.parts.get(this.part);
    const pods = message?.pods ?? [];
    const more = (message?.count ?? 0) - pods.length;
    put("queue-note", `${PARTS[this.part]}${more > 0 ? `; the ${pods.length} oldest of ${count(message.count, this.part === "groups" ? "group" : "pod")}` : ""}${pods.length ? "" : "; none"}`);
    redraw(this.body, pods, (pod) => this.row(pod));
    document.getElementById("queue").hidden = !pods.length;
    this.ages();
  }

  row(pod) {
    const open = this.part === "groups" ? this.openGroup : this.open;
    const button = link(`${pod.namespace}/${pod.name}`, () => open(pod.namespace, pod.name));
    const since = make("td", { className: "number" });
    since.dataset.since = pod.since;
    const plugins = (pod.plugins ?? []).map((each) => make("span", { className: "tag" }, shown(each, 60)));
    return make("tr", {}, make("th", { scope: "row" }, button), since, make("td", { className: "number" }, String(pod.attempts)), make("td", { className: "reason" }, ...plugins, shown(pod.message ?? "", 300)));
  }

  ages() {
    if (document.hidden) return;
    const now = Date.now() / 1000;
    for (const cell of this.body.querySelectorAll("[data-since]")) {
      const text = age(now - Number(cell.dataset.since));
      if (cell.textContent !== text) cell.textContent = text;
    }
  }
}

function tabId(part) {
  return `queue-${part.replace(" ", "-")}`;
}
