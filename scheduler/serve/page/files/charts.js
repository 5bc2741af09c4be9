// Throughput and latency of the last ten minutes, as lines on canvases; what they say is also their label.

import { age, put, seconds, short } from "./text.js";

const KEPT = 600;
const SHORTEST = 60; // seconds

const CHARTS = [
  { id: "chart-rate", unit: short, series: [["scheduled", "bound", "--good"], ["unschedulable", "unschedulable", "--warn"], ["error", "failed", "--bad"]] },
  { id: "chart-latency", unit: seconds, series: [["waited99", "queue to bound", "--accent"], ["binding99", "binding", "--violet"], ["decision99", "decision", "--good"]], isLog: true },
  { id: "chart-pending", unit: short, series: [["pending", "waiting", "--accent"]] },
];

export class Figures {
  constructor() {
    this.columns = { at: [] };
    this.drawing = 0;
    this.legends();
    for (const { id } of CHARTS) new ResizeObserver(() => this.changed()).observe(document.getElementById(id));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.legends();
      this.changed();
    });
  }

  clear() {
    this.columns = { at: [] };
  }

  add(columns) {
    for (const [name, values] of Object.entries(columns)) {
      const kept = (this.columns[name] ??= []);
      for (const value of values) kept.push(value);
      if (kept.length > KEPT) kept.splice(0, kept.length - KEPT);
    }
    this.changed();
  }

  // Of the last seconds.
  mean(name) {
    const values = (this.columns[name] ?? []).slice(-5);
    return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : 0;
  }

  // The latest value that there is, of the last minute.
  latest(name) {
    const values = this.columns[name] ?? [];
    for (let i = values.length - 1; i >= Math.max(0, values.length - 60); i -= 1) if (values[i] !== null) return values[i];
    return null;
  }

  legends() {
    const style = getComputedStyle(document.documentElement);
    for (const chart of CHARTS) {
      const key = document.getElementById(`${chart.id}-key`);
      key.replaceChildren(
        ...chart.series.map(([, text, colour]) => {
          const item = document.createElement("span");
          const mark = document.createElement("i");
          mark.style.background = style.getPropertyValue(colour);
          item.append(mark, text);
          return item;
        }),
      );
    }
  }

  changed() {
    if (!this.drawing) this.drawing = requestAnimationFrame(() => {
      this.drawing = 0;
      for (const chart of CHARTS) this.draw(chart);
    });
  }

  draw({ id, unit, series, isLog }) {
    const canvas = document.getElementById(id);
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (!width || !height) return;
    const scale = Math.min(2, devicePixelRatio || 1);
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const at = this.columns.at;
    const end = at.at(-1) ?? 0;
    const span = Math.max(SHORTEST, end - (at[0] ?? end));
    let most = 0;
    let least = Infinity;
    for (const [name] of series)
      for (const value of this.columns[name] ?? [])
        if (value !== null) {
          most = Math.max(most, value);
          if (value > 0) least = Math.min(least, value);
        }
    const low = isLog ? Math.log10(Math.min(least, 0.001) || 0.001) : 0;
    const high = isLog ? Math.ceil(Math.log10(Math.max(most, 0.01))) : nice(most);
    const place = (value) => {
      const share = isLog ? (Math.log10(Math.max(value, 1e-6)) - Math.floor(low)) / (high - Math.floor(low)) : value / high;
      return height - 16 - Math.max(0, Math.min(1, share)) * (height - 30);
    };
    context.font = "10px system-ui, sans-serif";
    const ticks = isLog ? range(Math.floor(low), high).map((power) => 10 ** power) : [0, high / 2, high];
    const each = Math.ceil(ticks.length / 5);
    ticks.forEach((tick, i) => {
      if (isLog && i % each) return;
      const y = Math.round(place(tick)) + 0.5;
      context.strokeStyle = colour("--line");
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(0, y);
      context.lineTo(width, y);
      context.stroke();
      context.fillStyle = colour("--sub");
      context.fillText(unit(tick), 2, y - 3);
    });
    context.fillStyle = colour("--sub");
    context.textAlign = "right";
    context.fillText("now", width - 2, height - 3);
    context.textAlign = "left";
    context.fillText(`${age(span)} ago`, 2, height - 3);
    for (const [name, , paint] of [...series].reverse()) {
      const values = this.columns[name] ?? [];
      context.strokeStyle = colour(paint);
      context.lineWidth = 1.75;
      context.lineJoin = context.lineCap = "round"; // so that a value alone is a dot that is seen
      context.beginPath();
      let isDrawing = false;
      let before = 0;
      values.forEach((value, i) => {
        if (value === null) return;
        const x = width - ((end - at[i]) / span) * width;
        const y = place(value);
        if (isDrawing && at[i] - before < 30) context.lineTo(x, y);
        else {
          context.moveTo(x, y);
          context.lineTo(x + 1, y);
        }
        isDrawing = true;
        before = at[i];
      });
      context.stroke();
    }
    const said = series.map(([name, text]) => `${text} ${unit(this.latest(name))}`).join(", ");
    canvas.setAttribute("aria-label", `Now: ${said}`);
  }

  tiles() {
    put("tile-bound", short(this.mean("scheduled")));
    const failing = this.mean("unschedulable") + this.mean("error");
    put("tile-bound-sub", failing ? `${short(failing)} refused` : "");
    put("tile-decision", seconds(this.latest("decision99")));
    put("tile-decision-sub", `p50 ${seconds(this.latest("decision50"))}`);
    put("tile-waited", seconds(this.latest("waited99")));
    put("tile-waited-sub", `p50 ${seconds(this.latest("waited50"))}`);
  }
}

function nice(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}

function range(first, last) {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
