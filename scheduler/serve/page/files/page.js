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
import { count, put, say, shown } from "./text.js";

const STALE_MS = 3000; // a connection that is back by then has not been missed
const STANDBY_MS = 30000;

const details = new Details();
const nodes = new Nodes();
const map = new ClusterMap(nodes, (name) => details.node(name));
const table = new NodeTable(nodes, () => map.resource, (name) => details.node(name));
const queues = new Queues(
  (namespace, name) => details.pod(namespace, name),
  (namespace, name) => details.group(namespace, name),
);
const decisions = new Decisions((namespace, name) => details.pod(namespace, name));
const figures = new Figures();
const plugins = new Plugins();
const stream = new Stream("live", (name, data) => heard[name]?.(data), told);
let instance = "";
let loaded = ""; // the version that these scripts are of
let shares = null; // what shows them: loaded once there are any
let hasShares = false; // of the replica that answers

const heard = {
  hello(about) {
    if (instance && instance !== about.instance) plugins.clear();
    instance = about.instance;
    loaded ||= about.version;
    hasShares = false;
    decisions.clear();
    figures.clear();
    heard.about(about);
    told("live", "Live");
  },
  about({ version, leads, leader }) {
    put("who", `${shown(version, 40)}${leads ? "" : ", standing by"}`);
    const who = leader ? `The leader is ${shown(leader, 200)}.` : "No leader is known.";
    const standby = leads ? "" : `This replica stands by: it knows the cluster and the queue, and decides nothing. ${who}`;
    const other = version === loaded ? "" : `Another version of the scheduler answers now: reload this page, which is of ${shown(loaded, 40)}.`;
    notice([other, standby].filter(Boolean).join(" "));
    stream.renew(leads ? 0 : STANDBY_MS * (0.75 + Math.random() / 2));
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
  shares(message) {
    hasShares = true;
    shares ??= import("./shares.js").then(({ Shares }) => new Shares());
    shares.then((each) => each.heard(message));
  },
  ready() {
    if (!hasShares) document.getElementById("shares").hidden = true;
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

let staling = 0;
let isStale = false;
let lost = ""; // why the connection is

// A screen reader is told when the connection is lost and when it is back, not of each attempt.
function told(state, text) {
  document.getElementById("connection").dataset.state = state;
  put("connection", shown(text, 600));
  if (state === "live") {
    clearTimeout(staling);
    staling = 0;
    if (isStale) stale(false, "Connected again");
  } else if (state !== "connecting" && !isStale) {
    lost = shown(text, 600);
    staling ||= setTimeout(() => stale(true, lost), STALE_MS);
  }
}

function stale(is, said) {
  isStale = is;
  document.body.dataset.stale = String(is);
  say(said);
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

stream.open();
document.dispatchEvent(new Event("started"));
