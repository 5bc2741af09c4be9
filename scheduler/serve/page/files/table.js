// The nodes as a table: what a map on a canvas cannot be to everybody.

import { flagsInWords, percent } from "./nodes.js";
import { redraw } from "./rows.js";
import { count, link, make, put, shown } from "./text.js";

const AT_ONCE = 50;
const AGAIN_MS = 5000;

export class NodeTable {
  // `resource()`: by which the nodes are ordered. `open(name)`: somebody wants to see more of a node.
  constructor(nodes, resource, open) {
    Object.assign(this, { nodes, resource, open, page: 0 });
    this.box = document.getElementById("table-details");
    this.filter = document.getElementById("table-filter");
    this.box.addEventListener("toggle", () => this.draw());
    this.filter.addEventListener("input", () => {
      this.page = 0;
      this.draw();
    });
    document.getElementById("table-before").addEventListener("click", () => this.turn(-1));
    document.getElementById("table-next").addEventListener("click", () => this.turn(1));
    setInterval(() => this.draw(), AGAIN_MS);
  }

  turn(step) {
    this.page += step;
    this.draw();
  }

  draw() {
    if (!this.box.open || document.hidden) return;
    const { nodes } = this;
    const rows = this.found();
    const pages = Math.max(1, Math.ceil(rows.length / AT_ONCE));
    this.page = Math.max(0, Math.min(this.page, pages - 1));
    put("table-place", `${this.page + 1} of ${pages}, ${count(rows.length, "node")}`);
    document.getElementById("table-before").disabled = this.page === 0;
    document.getElementById("table-next").disabled = this.page === pages - 1;
    const titles = ["Node", "Zone", ...nodes.resources, "State"];
    redraw(document.querySelector("#table thead"), [titles], (texts) => this.head(texts));
    const shownRows = rows.slice(this.page * AT_ONCE, (this.page + 1) * AT_ONCE);
    redraw(document.querySelector("#table tbody"), shownRows.map((row) => this.told(row)), (told) => this.row(told));
  }

  // The rows that the filter lets through, the fullest first.
  found() {
    const { nodes } = this;
    const wanted = this.filter.value.trim().toLowerCase();
    const column = nodes.use[this.resource()] ?? [];
    const rows = [];
    nodes.names.forEach((name, row) => {
      if (name !== null && (!wanted || name.toLowerCase().includes(wanted) || nodes.zones[row].toLowerCase().includes(wanted))) rows.push(row);
    });
    return rows.sort((a, b) => column[b] - column[a] || (nodes.names[a] < nodes.names[b] ? -1 : 1));
  }

  told(row) {
    const { names, zones, flags, resources, use } = this.nodes;
    return { name: names[row], zone: zones[row], uses: resources.map((each) => percent(use[each][row])), state: flagsInWords(flags[row]) };
  }

  head(titles) {
    const isNumber = (i) => i > 1 && i < titles.length - 1;
    return make("tr", {}, ...titles.map((text, i) => make("th", { scope: "col", className: isNumber(i) ? "number" : "" }, shown(text, 40))));
  }

  row({ name, zone, uses, state }) {
    const button = link(name, () => this.open(name), 120);
    const cells = [zone, ...uses, state].map((text, i) => make("td", { className: i && i <= uses.length ? "number" : "" }, shown(text, 60)));
    return make("tr", {}, make("th", { scope: "row" }, button), ...cells);
  }
}
