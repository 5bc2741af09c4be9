// Decisions as they are made, the newest first; a pod that was placed is told again once it is bound.

import { clock, count, link, make, put, seconds, shown } from "./text.js";

const KEPT = 80;
const MORE_MS = 2000;

export class Decisions {
  constructor(open) {
    this.open = open;
    this.list = document.getElementById("decisions");
    this.box = this.list.closest(".scroll");
    this.items = new Map();
    this.waiting = [];
    this.isOver = false; // what is shown is of the connection before
    this.pause = document.getElementById("decisions-pause");
    this.pause.addEventListener("click", () => {
      this.pause.setAttribute("aria-pressed", String(!this.isPaused));
      this.release();
    });
    this.box.addEventListener("pointerleave", () => this.release());
    this.box.addEventListener("focusout", () => setTimeout(() => this.release()));
  }

  get isPaused() {
    return this.pause.getAttribute("aria-pressed") === "true";
  }

  // A list that moves away under the pointer, or under the keyboard's focus, cannot be read or clicked.
  get isHeld() {
    return this.isPaused || this.box.matches(":hover, :focus-visible, :has(:focus-visible)");
  }

  clear() {
    this.isOver = true;
    this.waiting = [];
    this.release();
  }

  heard({ decisions, more }) {
    this.waiting.push(...decisions);
    if (this.waiting.length > KEPT) this.waiting.splice(0, this.waiting.length - KEPT);
    this.release(more ? `and ${count(more, "other")} in the last second` : "");
  }

  // Shows what waits, and says that for a while, unless the list is held.
  release(said = "") {
    if (this.isHeld) {
      if (this.waiting.length) this.note(this.isPaused ? "paused: new ones wait" : "new ones wait");
      return;
    }
    this.note(said);
    this.saying = setTimeout(() => this.note(""), MORE_MS);
    if (this.isOver) {
      this.items.clear();
      this.list.replaceChildren();
      this.isOver = false;
    }
    if (this.waiting.length) this.add(this.waiting.splice(0));
  }

  note(text) {
    clearTimeout(this.saying);
    put("decisions-more", text);
  }

  add(decisions) {
    const fresh = [];
    // A pod may be there twice, as placed and as bound: the later one counts.
    const latest = new Map(decisions.map((decision) => [`${decision.uid} ${decision.attempt}`, decision]));
    for (const [key, decision] of latest) {
      const item = this.item(decision);
      const before = this.items.get(key);
      if (before) before.replaceWith(item);
      else fresh.unshift(item);
      this.items.delete(key);
      this.items.set(key, item);
    }
    this.list.prepend(...fresh);
    while (this.items.size > KEPT) {
      const [key, item] = this.items.entries().next().value;
      this.items.delete(key);
      item.remove();
    }
  }

  item(decision) {
    const { namespace, name, node, message, result } = decision;
    const pod = name === undefined ? make("span", {}, "a pod that is gone") : link(`${namespace}/${name}`, () => this.open(namespace, name));
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
