// Decisions as they are made, the newest first; a pod that was placed is told again once it is bound.

import { clock, count, make, put, seconds, shown } from "./text.js";

const KEPT = 80;

export class Decisions {
  constructor(open) {
    this.open = open;
    this.list = document.getElementById("decisions");
    this.items = new Map();
    this.waiting = [];
    this.missed = 0;
    this.pause = document.getElementById("decisions-pause");
    this.pause.addEventListener("click", () => this.toggle());
  }

  get isPaused() {
    return this.pause.getAttribute("aria-pressed") === "true";
  }

  toggle() {
    const isPaused = !this.isPaused;
    this.pause.setAttribute("aria-pressed", String(isPaused));
    if (!isPaused) this.add(this.waiting.splice(0), 0);
  }

  clear() {
    this.items.clear();
    this.waiting = [];
    this.list.replaceChildren();
  }

  heard({ decisions, more }) {
    put("decisions-more", more ? `and ${count(more, "other")} in the last second` : "");
    if (this.isPaused) {
      this.waiting.push(...decisions);
      this.waiting.splice(0, this.waiting.length - KEPT);
    } else this.add(decisions);
  }

  add(decisions) {
    const fresh = [];
    for (const decision of decisions) {
      const key = `${decision.uid} ${decision.attempt}`;
      const item = this.item(decision);
      const before = this.items.get(key);
      if (before?.parentNode) {
        if (before.contains(document.activeElement)) before.replaceWith(item), item.querySelector("button")?.focus();
        else before.replaceWith(item);
      } else fresh.unshift(item);
      this.items.delete(key);
      this.items.set(key, item);
    }
    this.list.prepend(...fresh);
    while (this.items.size > KEPT) {
      const [key, item] = this.items.entries().next().value;
      this.items.delete(key);
      item.remove();
    }
    while (this.list.childElementCount > KEPT) this.list.lastElementChild.remove();
  }

  item(decision) {
    const { namespace, name, node, message, result } = decision;
    const pod = name === undefined ? make("span", {}, "a pod that is gone") : make("button", { type: "button", className: "link" }, shown(`${namespace}/${name}`, 160));
    if (name !== undefined) pod.addEventListener("click", () => this.open(namespace, name));
    const where = node ? make("span", { className: "where" }, `→ ${shown(node, 120)}`) : null;
    const times = [`decided in ${seconds(decision.ms / 1000)}`];
    if (node) times.push(`${decision.feasible.toLocaleString("en")} fit`);
    if (decision.boundMs !== undefined) times.push(`bound after ${seconds(decision.boundMs / 1000)}`);
    if (decision.attempt > 1) times.push(`attempt ${decision.attempt}`);
    const why = message && result !== "bound" ? make("p", { className: "why" }, shown(message, 300)) : null;
    const item = make("li", {}, make("span", { className: "result" }, result), make("time", {}, clock(decision.at)), pod, where, make("p", { className: "sub" }, times.join(" · ")), why);
    item.dataset.result = result;
    return item;
  }
}
