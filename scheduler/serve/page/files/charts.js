// Figures over time, such as throughput and latency of the last ten minutes, as lines on canvases; what they say is also their label.

import { age, put, seconds, short } from "./text.js";

const KEPT = 600;
const SHORTEST = 60; // seconds
const JOINED = 30; // seconds between two values, at most

const CHARTS = [
  { id: "chart-rate", unit: short, series: [["scheduled", "bound", "--good"], ["unschedulable", "unschedulable", "--warn"], ["error", "failed", "--bad"]] },
  { id: "chart-latency", unit: seconds, series: [["waited99", "queue to bound", "--accent"], ["binding99", "binding", "--violet"], ["decision99", "decision", "--good"]], isLog: true },
  { id: "chart-pending", unit: short, series: [["pending", "waiting", "--accent"]] },
];

export class Figures {
  constructor(charts = CHARTS) {
    this.charts = charts;
    this.columns = { at: [] };
    this.drawing = 0;
    this.legends();
    for (const { id } of charts) new ResizeObserver(() => this.changed()).observe(document.getElementById(id));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.legends();
      this.changed();
    });
  }

  clear() {
    this.columns = { at: [] };
  }

  // In place of all that was there.
  replace(columns) {
    this.columns = columns;
    this.changed();
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
    for (const chart of this.charts) {
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
      for (const chart of this.charts) this.draw(chart);
    });
  }

  draw(chart) {
    const canvas = document.getElementById(chart.id);
    const size = { width: canvas.clientWidth, height: canvas.clientHeight };
    if (!size.width || !size.height) return;
    const scale = Math.min(2, devicePixelRatio || 1);
    canvas.width = Math.round(size.width * scale);
    canvas.height = Math.round(size.height * scale);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const axes = this.axes(chart, size);
    this.grid(context, chart, axes, size, colour);
    for (const [name, , paint] of [...chart.series].reverse()) this.line(context, this.columns[name] ?? [], axes, colour(paint));
    const said = chart.series.map(([name, text]) => `${text} ${chart.unit(this.latest(name))}`).join(", ");
    canvas.setAttribute("aria-label", `Now: ${said}`);
  }

  // {span: seconds across, x(at), y(value), ticks}
  axes({ series, isLog, joined = JOINED }, { width, height }) {
    const { at } = this.columns;
    const end = at.at(-1) ?? 0;
    const span = Math.max(SHORTEST, end - (at[0] ?? end));
    const values = series.flatMap(([name]) => this.columns[name] ?? []).filter((value) => value > 0);
    const most = values.reduce((before, value) => Math.max(before, value), 0);
    const least = values.reduce((before, value) => Math.min(before, value), 0.001);
    const low = isLog ? Math.floor(Math.log10(least)) : 0;
    const high = isLog ? Math.ceil(Math.log10(Math.max(most, 0.01))) : nice(most);
    const share = (value) => ((isLog ? Math.log10(Math.max(value, 1e-6)) : value) - low) / (high - low);
    return {
      span,
      joined,
      x: (when) => width - ((end - when) / span) * width,
      y: (value) => height - 16 - Math.max(0, Math.min(1, share(value))) * (height - 30),
      ticks: isLog ? every(range(low, high)).map((power) => 10 ** power) : [0, high / 2, high],
    };
  }

  grid(context, { unit }, { span, y, ticks }, { width, height }, colour) {
    context.font = "10px system-ui, sans-serif";
    context.lineWidth = 1;
    context.strokeStyle = colour("--line");
    context.fillStyle = colour("--sub");
    for (const tick of ticks) {
      const top = Math.round(y(tick)) + 0.5;
      context.beginPath();
      context.moveTo(0, top);
      context.lineTo(width, top);
      context.stroke();
      context.fillText(unit(tick), 2, top - 3);
    }
    context.textAlign = "right";
    context.fillText("now", width - 2, height - 3);
    context.textAlign = "left";
    context.fillText(`${age(span)} ago`, 2, height - 3);
  }

  // Values far apart are not joined: nothing is known of the time between.
  line(context, values, { x, y, joined }, paint) {
    const { at } = this.columns;
    context.strokeStyle = paint;
    context.lineWidth = 1.75;
    context.lineJoin = context.lineCap = "round"; // so that a value alone is a dot that is seen
    context.beginPath();
    let before = -Infinity;
    values.forEach((value, i) => {
      if (value === null) return;
      if (at[i] - before >= joined) context.moveTo(x(at[i]), y(value));
      context.lineTo(x(at[i]) + (at[i] - before >= joined ? 1 : 0), y(value));
      before = at[i];
    });
    context.stroke();
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

// Five of them at most.
function every(values) {
  const step = Math.ceil(values.length / 5);
  return values.filter((_, i) => i % step === 0);
}

function range(first, last) {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
