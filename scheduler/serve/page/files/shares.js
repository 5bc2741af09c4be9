// The shares of the cluster: the tree, some rows at a time, and what the chosen one used over time. Loaded once there
// are shares; asked for while they are seen.

import { Figures } from "./charts.js";
import { redraw } from "./rows.js";
import { fetched } from "./stream.js";
import { amount, count, link, make, put, say, shown } from "./text.js";

const MAX_INDENT = 10;
const AMOUNTS = ["guaranteed", "maximum", "used", "borrowed", "lent", "waiting"];
const STANDINGS = { DominantShare: "Dominant share", DecayedUsage: "Decayed usage" };
const INFINITE = 2 ** 63;
const WHOLE = ["guaranteed", "used"]; // a nothing is told of these

export class Shares {
  constructor() {
    this.section = document.getElementById("shares");
    this.filter = document.getElementById("shares-filter");
    this.choice = document.getElementById("shares-resource");
    this.body = document.querySelector("#shares-table tbody");
    Object.assign(this, { first: 0, atOnce: 0, asked: 0, chosen: null, isSeen: false, isOld: false, past: { at: [], resources: [] } });
    const unit = (value) => (value === null ? "–" : amount(this.choice.value, value));
    const series = [["used", "used", "--accent"], ["guaranteed", "guaranteed", "--good"], ["waiting", "waiting", "--warn"]];
    this.charts = new Figures([{ id: "chart-share", unit, series, joined: Infinity }]);
    this.filter.addEventListener("input", () => this.turn(-this.first));
    this.choice.addEventListener("change", () => this.drawPast());
    document.getElementById("shares-before").addEventListener("click", () => this.turn(-this.atOnce));
    document.getElementById("shares-next").addEventListener("click", () => this.turn(this.atOnce));
    new IntersectionObserver((entries) => {
      this.isSeen = entries.at(-1).isIntersecting;
      if (this.isSeen && this.isOld) this.ask();
    }).observe(this.section);
  }

  heard(message) {
    this.section.hidden = !message.count;
    this.isOld = true;
    if (message.count && this.isSeen) this.ask();
  }

  turn(step) {
    this.first = Math.max(0, this.first + step);
    this.ask();
  }

  choose({ name, source }) {
    this.chosen = { name, source };
    say(`Share ${shown(name, 120)}`);
    this.ask();
  }

  // What was asked before and is answered later does not count.
  async ask() {
    const asked = ++this.asked;
    this.isOld = false;
    try {
      const told = await fetched(`shares?${new URLSearchParams({ filter: this.filter.value.trim(), first: this.first })}`);
      if (asked !== this.asked) return;
      this.draw(told);
      this.chosen ??= told.shares[0] ?? null;
      if (this.chosen) {
        const { name, source } = this.chosen;
        const past = await fetched(`share?${new URLSearchParams({ name, source })}`);
        if (asked !== this.asked) return;
        this.past = past;
        this.drawPast();
      }
      put("shares-note", "");
    } catch (error) {
      if (asked !== this.asked) return;
      this.isOld = true; // so that it is asked for again when it is seen again
      put("shares-note", shown(error.message, 300));
    }
  }

  draw({ count: all, first, atOnce, shares }) {
    Object.assign(this, { first, atOnce });
    put("shares-place", all > atOnce ? `${first + 1} to ${first + shares.length} of ${count(all, "share")}` : count(all, "share"));
    document.getElementById("shares-before").disabled = first === 0;
    document.getElementById("shares-next").disabled = first + shares.length >= all;
    this.order = shares.find(({ standing }) => standing)?.standing.order ?? "";
    document.getElementById("shares-standing").hidden = !this.order;
    put("shares-standing", STANDINGS[this.order] ?? shown(this.order, 80));
    const isTree = !this.filter.value.trim();
    redraw(this.body, shares.flatMap((share) => rowsOf(share, isTree)), (row) => this.row(row));
  }

  // One resource of a share; the first has the share's name, over all of them.
  row({ share, resource, problem }) {
    const cells = [];
    if (share) {
      const rowSpan = share.rows;
      const parent = share.isTree || !share.parent ? null : make("span", { className: "sub" }, ` below ${shown(share.parent, 120)}`);
      const indents = share.isTree ? Array.from({ length: Math.min(MAX_INDENT, share.depth) }, () => make("span", { className: "indent" })) : [];
      const name = link(share.name, () => this.choose(share), 120);
      cells.push(make("th", { scope: "rowgroup", rowSpan }, ...indents, name, parent));
      cells.push(make("td", { rowSpan, className: "number" }, share.waiting ? share.waiting.toLocaleString("en") : "–"));
    }
    if (share && this.order) {
      const value = share.standing?.value ?? null;
      const text = value === null ? "–" : value >= INFINITE ? "∞" : value.toLocaleString("en", { maximumSignificantDigits: 4 });
      cells.push(make("td", { rowSpan: share.rows, className: "number" }, text));
    }
    if (problem) cells.push(make("td", { colSpan: AMOUNTS.length + 1, className: "problem" }, shown(problem, 300)));
    else if (resource) {
      cells.push(make("td", {}, shown(resource.resource, 80)));
      for (const name of AMOUNTS) {
        const value = resource[name];
        const isTold = value !== null && (value || WHOLE.includes(name) || name === "maximum");
        cells.push(make("td", { className: "number" }, isTold ? amount(resource.resource, value) : "–"));
      }
    } else cells.push(make("td", { colSpan: AMOUNTS.length + 1 }, "–"));
    return make("tr", {}, ...cells);
  }

  drawPast() {
    const { at, resources } = this.past;
    const names = resources.map(({ resource }) => resource);
    const before = this.choice.value;
    if ([...this.choice.options].map(({ value }) => value).join("\n") !== names.join("\n")) {
      this.choice.replaceChildren(...names.map((value) => make("option", { value }, shown(value, 80))));
      if (names.includes(before)) this.choice.value = before;
    }
    this.choice.hidden = !names.length;
    put("shares-chosen", `${shown(this.chosen.name, 120)} over time${names.length ? "" : ": nothing is known"}`);
    const { guaranteed = [], used = [], waiting = [] } = resources.find(({ resource }) => resource === this.choice.value) ?? {};
    this.charts.replace({ at, guaranteed, used, waiting });
  }
}

function rowsOf({ name, source, parent, depth, waiting, standing, problem, resources }, isTree) {
  const rows = Math.max(1, problem ? 1 : resources.length);
  const share = { name, source, parent, depth, waiting, standing, rows, isTree };
  if (problem || !resources.length) return [{ share, problem }];
  return resources.map((resource, i) => ({ share: i ? null : share, resource }));
}
