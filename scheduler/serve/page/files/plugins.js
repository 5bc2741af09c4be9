// The profiles, what their plugins cost, and the configuration in effect: asked for when they are seen.

import { make, put, seconds, shown } from "./text.js";
import { fetched } from "./stream.js";

const MAX_CONFIG = 200000;

export class Plugins {
  constructor() {
    this.isAsking = false;
    document.getElementById("plugins-refresh").addEventListener("click", () => this.ask());
    new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting) && !this.isKnown) this.ask();
    }).observe(document.querySelector(".plugins"));
  }

  // Another scheduler answers: what is known is of the one before.
  clear() {
    if (this.isKnown) this.ask();
  }

  async ask() {
    if (this.isAsking) return;
    this.isAsking = true;
    try {
      this.draw(await fetched("configuration"));
      this.isKnown = true;
      put("plugins-note", "");
    } catch (error) {
      put("plugins-note", shown(error.message, 300));
    } finally {
      this.isAsking = false;
    }
  }

  draw({ costs, profiles, config }) {
    const total = costs.reduce((sum, each) => sum + each.mean * each.calls, 0) || 1;
    const rows = costs.slice(0, 100).map(({ plugin, point, calls, mean, slow, isMore }) => {
      const share = (mean * calls) / total;
      const meter = make("meter", { min: 0, max: 1, value: share, "aria-label": "Share of the time", "aria-valuetext": `${Math.round(share * 100)} %` });
      return make("tr", {}, make("th", { scope: "row" }, shown(plugin, 80)), make("td", {}, shown(point, 40)), make("td", { className: "number" }, seconds(mean)), make("td", { className: "number" }, `${isMore ? "> " : ""}${seconds(slow)}`), make("td", {}, meter));
    });
    if (!rows.length) rows.push(make("tr", {}, make("td", { colSpan: 5 }, "No plugin was called yet")));
    document.querySelector("#costs tbody").replaceChildren(...rows);
    document.getElementById("profiles").replaceChildren(
      ...profiles.map(({ name, points }) => {
        const terms = Object.entries(points).flatMap(([point, plugins]) => [
          make("dt", {}, point.split("_").map((word) => word[0].toUpperCase() + word.slice(1)).join("")),
          make("dd", {}, ...plugins.map((each) => make("span", { className: "tag" }, shown(each.weight ? `${each.name} × ${each.weight}` : each.name, 80)))),
        ]);
        return make("div", {}, make("h3", {}, `Profile ${shown(name, 120)}`), make("dl", { className: "points" }, ...terms));
      }),
    );
    document.getElementById("config").textContent = shownLines(JSON.stringify(config, null, 1).slice(0, MAX_CONFIG));
  }
}

function shownLines(text) {
  return text.split("\n").map((line) => shown(line, 1000)).join("\n");
}
