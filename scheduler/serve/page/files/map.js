// The map of the cluster, on a canvas: drawn in the next frame after something has changed, and not otherwise. What is
// selected with keys is read aloud.

import { layout, rowAt } from "./layout.js";
import { CORDONED, NOT_READY, TAINTED, flagsInWords, percent } from "./nodes.js";
import { amount, count, make, put, say, shown } from "./text.js";
import { fetched } from "./stream.js";

const HOVER_MS = 120;
const MAX_ASKED = 40; // nodes whose pods are remembered
const FRESH_MS = 5000;
const PODS_IN_TIP = 8;
const MAX_SIDE = 16384; // pixels of a canvas; browsers draw nothing at all on one that is too large
const STEPS = [0, 100, 250, 400, 550, 700, 850, 950]; // thousandths, each with a colour

export class ClusterMap {
  // `open(name)`: somebody wants to see more of a node.
  constructor(nodes, open) {
    this.nodes = nodes;
    this.open = open;
    this.resource = "cpu";
    this.canvas = document.getElementById("map");
    this.rings = document.getElementById("map-rings");
    this.frame = document.getElementById("map-frame");
    this.tip = document.getElementById("map-tip");
    this.here = document.getElementById("map-here");
    this.selected = null;
    this.hovered = null;
    this.asked = new Map();
    this.drawing = 0;
    this.isLaidOut = false;
    this.stale = null; // rows to be drawn again; null: all
    new ResizeObserver(() => this.changed(true)).observe(this.frame);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.themed());
    this.canvas.addEventListener("pointermove", (event) => this.pointed(event));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("click", (event) => this.clicked(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("focus", () => this.entered());
    this.canvas.addEventListener("blur", () => this.left());
    this.themed();
  }

  themed() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    this.colours = STEPS.map((_, i) => value(`--use-${i}`));
    this.theme = { none: value("--use-none"), text: value("--text"), sub: value("--sub"), tile: value("--tile"), line: value("--line"), mark: value("--accent"), cordoned: value("--violet"), bad: value("--bad"), card: value("--card") };
    this.legend();
    this.changed();
  }

  // The resources to choose from are others.
  choose() {
    const box = document.getElementById("map-resource");
    const { resources } = this.nodes;
    if (String(resources) === this.offered) return; // whoever is about to choose keeps the focus
    this.offered = String(resources);
    if (!resources.includes(this.resource)) this.resource = resources[0];
    const legend = box.firstElementChild;
    box.replaceChildren(
      legend,
      ...resources.map((resource) => {
        const input = make("input", { type: "radio", name: "resource", value: resource, checked: resource === this.resource });
        input.addEventListener("change", () => {
          this.resource = resource;
          this.changed();
          say(`Coloured by ${shown(resource, 60)}`);
        });
        return make("label", {}, input, make("span", {}, shown(resource, 40)));
      }),
    );
  }

  legend() {
    const box = document.getElementById("map-legend");
    const parts = STEPS.map((step, i) => {
      const swatch = make("i");
      swatch.style.background = this.colours[i];
      return make("span", {}, swatch, i === STEPS.length - 1 ? `${step / 10} % and more` : String(step / 10));
    });
    const marks = [["not-ready", "not ready"], ["cordoned", "cordoned"], ["tainted", "tainted"]];
    box.replaceChildren(...parts, ...marks.map(([kind, text]) => make("span", {}, make("i", { className: kind }), text)));
  }

  // Everything is to be drawn again; with `isOther` nodes, they are laid out again, too.
  changed(isOther = false) {
    if (isOther) this.isLaidOut = false;
    this.stale = null;
    this.soon();
  }

  // These rows are.
  used(rows) {
    if (this.stale) for (const row of rows) this.stale.add(row);
    this.soon();
  }

  soon() {
    if (!this.drawing) this.drawing = requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.drawing = 0;
    const { canvas, nodes } = this;
    const zones = nodes.byZone();
    const stale = this.isLaidOut && this.zones === zones ? this.stale : null;
    this.stale = new Set();
    if (!this.isLaidOut || this.zones !== zones) {
      this.zones = zones;
      this.isLaidOut = true;
      const style = getComputedStyle(this.frame);
      this.map = layout(zones, Math.max(200, this.frame.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)));
      this.scale = Math.min(2, devicePixelRatio || 1, MAX_SIDE / Math.max(this.map.width, this.map.height));
      for (const each of [canvas, this.rings]) {
        each.width = Math.round(this.map.width * this.scale);
        each.height = Math.round(Math.max(1, this.map.height) * this.scale);
        each.style.width = `${this.map.width}px`;
        each.style.height = `${this.map.height}px`;
      }
      document.getElementById("map-empty").hidden = zones.length > 0;
    }
    const context = canvas.getContext("2d");
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    if (stale === null) context.clearRect(0, 0, this.map.width, this.map.height);
    const rows = stale === null ? [...this.map.places.keys()] : [...stale].filter((row) => this.map.places.has(row));
    if (stale === null || rows.length) this.labels(context);
    if (this.map.tile) this.tiles(context, rows);
    else this.squares(context, rows);
    this.ringed();
  }

  // What is pointed at or selected, above the nodes.
  ringed() {
    const context = this.rings.getContext("2d");
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    context.clearRect(0, 0, this.map.width, this.map.height);
    this.ring(context, this.hovered, this.theme.text);
    if (this.canvas === document.activeElement) this.ring(context, this.selected, this.theme.mark);
  }

  labels(context) {
    context.textBaseline = "alphabetic";
    for (const panel of this.map.panels) {
      context.clearRect(panel.x, panel.y, panel.w, 20);
      const mean = this.nodes.mean(this.resource, panel.rows);
      context.font = "600 12px system-ui, sans-serif";
      context.fillStyle = this.theme.text;
      const zone = fitted(context, shown(panel.zone || "no zone", 60), panel.w * 0.55);
      context.fillText(zone, panel.x, panel.y + 13);
      const width = context.measureText(zone).width;
      context.font = "12px system-ui, sans-serif";
      context.fillStyle = this.theme.sub;
      context.fillText(`${count(panel.rows.length, "node")} · ${percent(mean)}`, panel.x + width + 8, panel.y + 13, panel.w - width - 8);
    }
  }

  squares(context, rows) {
    const { w, h } = this.map.size;
    const byColour = new Map();
    const column = this.nodes.use[this.resource];
    for (const row of rows) {
      const place = this.map.places.get(row);
      const colour = this.colour(column[row]);
      const places = byColour.get(colour);
      if (places) places.push(place);
      else byColour.set(colour, [place]);
    }
    for (const [colour, places] of byColour) {
      context.fillStyle = colour;
      for (const { x, y } of places) context.fillRect(x, y, w, h);
    }
    const mark = Math.max(2, Math.round(w / 3));
    for (const row of rows) {
      const flags = this.nodes.flags[row];
      if (!flags) continue;
      const place = this.map.places.get(row);
      this.mark(context, flags, place.x, place.y, w, mark);
    }
  }

  // As in the legend: a band for what takes no pods, with a line below it, as a full node may have its colour; a corner for a taint.
  mark(context, flags, x, y, w, high) {
    const isOut = flags & (NOT_READY | CORDONED);
    if (isOut) {
      context.fillStyle = flags & NOT_READY ? this.theme.bad : this.theme.cordoned;
      context.fillRect(x, y, w, high);
      context.fillStyle = this.theme.card;
      context.fillRect(x, y + high, w, 1);
    }
    if (flags & TAINTED && !isOut) {
      context.fillStyle = this.theme.sub;
      context.beginPath();
      context.moveTo(x + w - 1.5 * high, y);
      context.lineTo(x + w, y);
      context.lineTo(x + w, y + 1.5 * high);
      context.fill();
    }
  }

  tiles(context, rows) {
    const { w, h } = this.map.size;
    const bars = this.nodes.resources.slice(0, 2).includes(this.resource) ? this.nodes.resources.slice(0, 2) : [this.nodes.resources[0], this.resource];
    for (const row of rows) {
      const { x, y } = this.map.places.get(row);
      context.clearRect(x, y, w, h);
      context.fillStyle = this.theme.tile;
      context.beginPath();
      context.roundRect(x, y, w, h, 6);
      context.fill();
      const flags = this.nodes.flags[row];
      context.save();
      context.clip();
      context.fillStyle = this.colour(this.nodes.use[this.resource][row]);
      context.fillRect(x, y, 4, h);
      this.mark(context, flags, x, y, w, flags & (NOT_READY | CORDONED) ? 5 : 9);
      context.restore();
      context.font = "500 12px system-ui, sans-serif";
      context.fillStyle = this.theme.text;
      context.fillText(fitted(context, shown(this.nodes.names[row], 80), w - 22), x + 12, y + 17);
      context.font = "10px system-ui, sans-serif";
      bars.forEach((resource, i) => {
        const value = this.nodes.use[resource][row];
        const top = y + 26 + i * 14;
        context.fillStyle = this.theme.sub;
        context.fillText(fitted(context, shown(resource, 20), 44), x + 12, top + 8);
        const room = w - 104;
        context.fillStyle = this.theme.line;
        context.fillRect(x + 60, top + 2, room, 6);
        context.fillStyle = this.colour(value);
        context.fillRect(x + 60, top + 2, (room * Math.max(0, Math.min(1000, value))) / 1000, 6);
        context.fillStyle = this.theme.sub;
        context.textAlign = "right";
        context.fillText(percent(value), x + w - 8, top + 8);
        context.textAlign = "left";
      });
    }
  }

  ring(context, row, colour) {
    const place = row === null ? null : this.map.places.get(row);
    if (!place) return;
    const { w, h } = this.map.size;
    context.strokeStyle = this.theme.card;
    context.lineWidth = 4;
    context.strokeRect(place.x - 1.5, place.y - 1.5, w + 3, h + 3);
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.strokeRect(place.x - 1.5, place.y - 1.5, w + 3, h + 3);
  }

  colour(value) {
    if (!(value >= 0)) return this.theme.none;
    let step = STEPS.length - 1;
    while (value < STEPS[step]) step -= 1;
    return this.colours[step];
  }

  // --- somebody points, clicks, types

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return this.map ? rowAt(this.map, event.clientX - box.left, event.clientY - box.top) : null;
  }

  pointed(event) {
    this.point(this.at(event));
  }

  clicked(event) {
    const row = this.at(event);
    if (row === null) return;
    this.selected = row;
    this.open(this.nodes.names[row]);
  }

  point(row) {
    if (row === this.hovered) return;
    this.hovered = row;
    clearTimeout(this.asking);
    this.soon();
    if (row === null) {
      this.tip.hidden = true;
      return;
    }
    this.show(row, null);
    this.asking = setTimeout(() => this.ask(row), HOVER_MS);
  }

  async ask(row) {
    const name = this.nodes.names[row];
    if (name === null) return;
    let known = this.asked.get(name);
    if (!known || performance.now() - known.at > FRESH_MS) {
      known = { at: performance.now(), node: fetched(`node?name=${encodeURIComponent(name)}`) };
      this.asked.delete(name);
      this.asked.set(name, known);
      if (this.asked.size > MAX_ASKED) this.asked.delete(this.asked.keys().next().value);
    }
    try {
      const node = await known.node;
      if (this.hovered === row || this.isSelected(row)) this.show(row, node);
    } catch {
      this.asked.delete(name);
    }
  }

  // `node`: what is asked for; null as long as it is.
  show(row, node) {
    const { nodes, tip } = this;
    const place = this.map.places.get(row);
    if (!place || nodes.names[row] === null) return;
    const lines = nodes.resources
      .filter((resource) => nodes.use[resource][row] >= 0)
      .map((resource) => make("span", {}, `${shown(resource, 40)} ${percent(nodes.use[resource][row])}`));
    const words = [shown(nodes.zones[row] || "no zone", 60), flagsInWords(nodes.flags[row])].filter(Boolean).join(" · ");
    const parts = [make("strong", {}, shown(nodes.names[row], 120)), make("p", {}, words), make("p", { className: "uses" }, ...lines)];
    if (node) {
      const items = node.pods.slice(0, PODS_IN_TIP).map((pod) =>
        make("li", {}, make("span", {}, shown(`${pod.namespace}/${pod.name}`, 80)), make("em", {}, `${amount("cpu", pod.cpu)}, ${amount("memory", pod.memory)}`)));
      parts.push(make("ul", {}, ...items));
      const more = node.podCount - items.length;
      parts.push(make("p", {}, more > 0 ? `and ${count(more, "more pod", "more pods")}` : items.length ? "" : "no pods"));
    } else parts.push(make("p", {}, "…"));
    tip.replaceChildren(...parts);
    tip.hidden = false;
    const left = place.x + this.map.size.w + 14;
    tip.style.left = `${left + tip.offsetWidth > this.frame.clientWidth ? Math.max(0, place.x - tip.offsetWidth - 6) : left}px`;
    const top = place.y - this.frame.scrollTop;
    tip.style.top = `${this.frame.scrollTop + Math.max(4, Math.min(top, this.frame.clientHeight - tip.offsetHeight - 8))}px`;
  }

  isSelected(row) {
    return this.selected === row && this.canvas === document.activeElement;
  }

  first() {
    return this.map?.panels[0]?.rows[0] ?? null;
  }

  select(row) {
    if (row === null) return;
    this.selected = row;
    this.bringIntoView(this.map.places.get(row));
    this.show(row, null);
    clearTimeout(this.asking);
    this.asking = setTimeout(() => this.ask(row), HOVER_MS);
    this.soon();
    const { nodes } = this;
    const uses = nodes.resources.filter((each) => nodes.use[each][row] >= 0).map((each) => `${shown(each, 40)} ${percent(nodes.use[each][row])}`);
    say([shown(nodes.names[row], 120), shown(nodes.zones[row], 60), ...uses, flagsInWords(nodes.flags[row])].filter(Boolean).join(", "));
  }

  // The map may be larger than its frame, and the window smaller than both.
  bringIntoView({ x, y }) {
    const { style } = this.here;
    [style.left, style.top, style.width, style.height] = [x, y, this.map.size.w, this.map.size.h].map((each) => `${each}px`);
    this.here.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  // With keys: a click selects what it is on.
  entered() {
    if (this.canvas.matches(":focus-visible")) this.select(this.map?.places.has(this.selected) ? this.selected : this.first());
  }

  // The node stays selected, for who comes back.
  left() {
    this.point(null);
    clearTimeout(this.asking);
    this.tip.hidden = true;
    this.soon();
  }

  key(event) {
    if (!this.map) return;
    const panel = this.map.panels.findIndex((each) => each.rows.includes(this.selected));
    if (panel < 0) {
      if (event.key.startsWith("Arrow")) this.select(this.first());
      return;
    }
    const { rows, columns } = this.map.panels[panel];
    const at = rows.indexOf(this.selected);
    const beside = (step) => this.map.panels[panel + step]?.rows;
    const steps = {
      ArrowRight: () => rows[at + 1] ?? beside(1)?.[0],
      ArrowLeft: () => rows[at - 1] ?? beside(-1)?.at(-1),
      ArrowDown: () => rows[at + columns] ?? beside(1)?.[0],
      ArrowUp: () => rows[at - columns] ?? beside(-1)?.at(-1),
      PageDown: () => beside(1)?.[0],
      PageUp: () => beside(-1)?.[0],
      Home: () => this.first(),
      End: () => this.map.panels.at(-1).rows.at(-1),
      Enter: () => (this.open(this.nodes.names[this.selected]), undefined),
      Escape: () => ((this.tip.hidden = true), undefined),
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const row = step();
    if (row !== undefined && row !== null) this.select(row);
  }
}

function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let length = Math.max(1, Math.floor((text.length * width) / context.measureText(text).width));
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return `${text.slice(0, length)}…`;
}
