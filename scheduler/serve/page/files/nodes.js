// What is known of the nodes: an entry of each array for each row, as the scheduler has them.

export const CORDONED = 1;
export const TAINTED = 2;
export const NOT_READY = 4;

export class Nodes {
  constructor() {
    this.reset({ resources: ["cpu", "memory", "pods"], size: 0 });
  }

  reset({ resources, size }) {
    this.resources = resources;
    this.names = new Array(size).fill(null);
    this.zones = new Array(size).fill("");
    this.flags = new Array(size).fill(0);
    this.use = Object.fromEntries(resources.map((resource) => [resource, new Array(size).fill(-1)]));
    this.ordered = null;
  }

  facts(message) {
    message.rows.forEach((row, i) => {
      this.names[row] = message.names[i];
      this.zones[row] = message.zones[message.zone[i]] ?? "";
      this.flags[row] = message.flags[i];
    });
    this.ordered = null;
    this.used(message);
  }

  used(message) {
    for (const [resource, values] of Object.entries(message.use)) {
      const column = this.use[resource];
      if (column) message.rows.forEach((row, i) => (column[row] = values[i]));
    }
  }

  // [{zone, rows}], zones and the nodes in them by their names, numbers in these by size.
  byZone() {
    if (this.ordered) return this.ordered;
    const zones = new Map();
    const keys = new Map();
    this.names.forEach((name, row) => {
      if (name === null) return;
      keys.set(row, sortKey(name));
      const rows = zones.get(this.zones[row]);
      if (rows) rows.push(row);
      else zones.set(this.zones[row], [row]);
    });
    for (const rows of zones.values()) rows.sort((a, b) => (keys.get(a) < keys.get(b) ? -1 : 1));
    const order = [...zones].map(([zone, rows]) => ({ zone, rows, key: zone === "" ? "\uffff" : sortKey(zone) }));
    order.sort((a, b) => (a.key < b.key ? -1 : 1));
    this.ordered = order;
    return order;
  }

  // The mean of a resource over rows that offer it, in thousandths; null without any.
  mean(resource, rows) {
    const column = this.use[resource] ?? [];
    let sum = 0;
    let offering = 0;
    for (const row of rows) {
      if (column[row] >= 0) {
        sum += column[row];
        offering += 1;
      }
    }
    return offering ? sum / offering : null;
  }
}

function sortKey(text) {
  return text.replace(/\d{1,12}/g, (digits) => digits.padStart(12, "0"));
}

export function percent(thousandths) {
  return thousandths === null || thousandths === undefined || thousandths < 0 ? "–" : `${Math.round(thousandths / 10)} %`;
}

export function flagsInWords(flags) {
  const words = [];
  if (flags & NOT_READY) words.push("not ready");
  if (flags & CORDONED) words.push("cordoned");
  if (flags & TAINTED) words.push("tainted");
  return words.join(", ");
}
