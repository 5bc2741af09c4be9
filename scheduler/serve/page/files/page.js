// Puts the page together: what is heard goes to the part that draws it.

import { Decisions } from "./decisions.js";
import { Details } from "./details.js";
import { Figures } from "./charts.js";
import { ClusterMap } from "./map.js";
import { Nodes, percent } from "./nodes.js";
import { Plugins } from "./plugins.js";
import { Queues } from "./queues.js";
import { Stream } from "./stream.js";
import { NodeTable } from "./table.js";
import { count, put, shown } from "./text.js";

const details = new Details();
const nodes = new Nodes();
const map = new ClusterMap(nodes, (name) => details.node(name));
const table = new NodeTable(nodes, () => map.resource, (name) => details.node(name));
const queues = new Queues((namespace, name) => details.pod(namespace, name));
const decisions = new Decisions((namespace, name) => details.pod(namespace, name));
const figures = new Figures();
const plugins = new Plugins();
let instance = "";

const heard = {
  hello(about) {
    if (instance && instance !== about.instance) plugins.clear();
    instance = about.instance;
    decisions.clear();
    figures.clear();
    heard.about(about);
    told("live", "Live");
  },
  about({ version, leads, leader }) {
    put("who", `${shown(version, 40)}${leads ? "" : ", standing by"}`);
    const who = leader ? `The leader is ${shown(leader, 200)}.` : "No leader is known.";
    notice(leads ? "" : `This replica stands by: it knows the cluster and the queue, and decides nothing. ${who}`);
  },
  reset(message) {
    nodes.reset(message);
    map.choose();
    map.changed(true);
  },
  nodes(message) {
    nodes.facts(message);
    map.changed(true);
    summed();
  },
  use(message) {
    nodes.used(message);
    map.used(message.rows);
    summed();
  },
  queue: (message) => queues.heard(message),
  decisions: (message) => decisions.heard(message),
  figures(message) {
    figures.add(message);
    figures.tiles();
  },
  ready() {
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
    table.draw();
  },
};

let summing = 0;

function summed() {
  summing ||= requestAnimationFrame(() => {
    summing = 0;
    const zones = nodes.byZone();
    const rows = zones.flatMap((zone) => zone.rows);
    put("tile-nodes", rows.length.toLocaleString("en"));
    put("tile-nodes-sub", zones.length > 1 ? count(zones.length, "zone") : "");
    put("map-count", `${count(rows.length, "node")} in ${count(zones.length, "zone")}`);
    put("tile-cpu", percent(nodes.mean("cpu", rows)));
    put("tile-cpu-sub", `memory ${percent(nodes.mean("memory", rows))}`);
  });
}

function told(state, text) {
  const status = document.getElementById("connection");
  status.dataset.state = state;
  if (status.textContent !== text) status.textContent = shown(text, 600);
  document.body.dataset.stale = String(state !== "live" && state !== "connecting");
}

function notice(text) {
  const box = document.getElementById("notice");
  box.hidden = !text;
  if (box.textContent !== text) box.textContent = text;
}

document.getElementById("find").addEventListener("submit", (event) => {
  event.preventDefault();
  const [first, second] = document.getElementById("find-pod").value.trim().split("/");
  if (first) details.pod(second ? first : "default", second || first);
});

new Stream("live", (name, data) => heard[name]?.(data), told).open();
