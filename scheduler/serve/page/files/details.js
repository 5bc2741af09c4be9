// The dialog: why a pod is pending and what would help, or what a node has and which pods are there.

import { keyed } from "./rows.js";
import { fetched } from "./stream.js";
import { amount, count, link, make, put, seconds, shown } from "./text.js";

export class Details {
  constructor() {
    this.dialog = document.getElementById("details");
    this.title = document.getElementById("details-title");
    this.body = document.getElementById("details-body");
    this.asked = 0;
    this.opener = null;
    document.getElementById("details-close").addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    this.dialog.addEventListener("close", () => this.closed());
  }

  pod(namespace, name) {
    const query = new URLSearchParams({ namespace, name });
    return this.open(`${namespace}/${name}`, `../explain?${query}`, (document) => this.explained(document));
  }

  group(namespace, name) {
    const query = new URLSearchParams({ namespace, podgroup: name });
    return this.open(`${namespace}/${name}`, `../explain?${query}`, (document) => this.explainedGroup(document));
  }

  node(name) {
    return this.open(name, `node?name=${encodeURIComponent(name)}`, (document) => this.described(document));
  }

  async open(title, url, tell) {
    const asked = ++this.asked;
    this.title.textContent = shown(title, 300);
    this.body.replaceChildren(make("p", { className: "sub" }, "Asking the scheduler…"));
    this.body.setAttribute("aria-busy", "true");
    put("details-said", "");
    if (!this.dialog.open) {
      const opener = document.activeElement;
      this.opener = { opener, section: opener.closest("section") };
      this.dialog.showModal();
    }
    this.title.focus();
    let parts;
    try {
      parts = tell(await fetched(url));
    } catch (error) {
      parts = [make("p", { className: "problem" }, shown(error.message, 500))];
    }
    if (asked !== this.asked) return;
    this.body.replaceChildren(...parts.filter(Boolean));
    this.body.removeAttribute("aria-busy");
    put("details-said", this.body.firstElementChild?.textContent ?? "");
  }

  // The browser gives the focus back to what had it, unless that was drawn anew meanwhile.
  closed() {
    const { opener, section } = this.opener;
    if (opener.isConnected || !section) return;
    const heir = keyed(section, opener.dataset.key) ?? section.querySelector(".scroll");
    heir.focus({ preventScroll: true });
  }

  link(namespace, name) {
    return link(`${namespace}/${name}`, () => this.pod(namespace, name), 200);
  }

  // --- a pod: the document of /debug/explain

  explained(document) {
    if (!document.found) {
      const near = (document.near ?? []).map((each) => {
        const [namespace, name] = each.split("/");
        return make("li", {}, this.link(namespace, name ?? ""));
      });
      return [make("p", { className: "problem" }, "There is no such pod."), near.length ? make("h3", {}, "Did you mean") : null, make("ul", {}, ...near)];
    }
    const found = document.explanation;
    return [
      make("p", { className: "state" }, shown(document.state, 300)),
      document.leading === false ? make("p", { className: "problem" }, "This replica does not lead: it knows no history.") : null,
      list(document.about),
      ...(document.group ? [make("h3", {}, `Its group, ${shown(document.group.name, 300)}`), ...this.ofGroup(document.group)] : []),
      ...(found ? this.against(found) : []),
      ...history(document.history ?? []),
    ];
  }

  // --- a group of pods: the same document, with `podgroup`

  explainedGroup(document) {
    if (!document.found) return [make("p", { className: "problem" }, "No pod names this group.")];
    const pods = (document.waiting ?? []).map((each) => make("li", {}, this.link(document.namespace, each.name), ` ${shown(each.state, 60)}`));
    return [
      ...this.ofGroup(document),
      document.leading === false ? make("p", { className: "problem" }, "This replica does not lead: it knows no history.") : null,
      pods.length ? make("h3", {}, "Pods without a node") : null,
      make("ul", {}, ...pods),
    ];
  }

  ofGroup(group) {
    return [make("p", { className: "state" }, shown(group.state, 300)), group.text ? make("p", {}, shown(group.text, 1000)) : null, list(group.about)];
  }

  against(found) {
    const nodes = found.nodes ?? { fitting: 0, count: 0, names: [] };
    const parts = [];
    if (nodes.fitting) parts.push(make("p", {}, `It would fit ${nodes.fitting} of ${count(nodes.count, "node")}: ${names(nodes)}`));
    const everywhere = [...(found.gates ?? []), ...(found.obstacles ?? [])];
    if (everywhere.length) parts.push(make("h3", {}, "Blocked on every node"), make("ul", {}, ...everywhere.map(obstacle)));
    const groups = found.groups ?? [];
    if (groups.length) {
      parts.push(make("h3", {}, "Why nodes don't fit, the nearest miss first"));
      parts.push(make("ul", { className: "groups" }, ...groups.slice(0, 30).map((group) =>
        make("li", {}, make("strong", {}, count(group.count, "node")), ` ${names(group)}`, make("ul", {}, ...group.obstacles.slice(0, 20).map(obstacle))))));
      const more = groups.length - 30 + (found.moreGroups ?? 0);
      if (more > 0) parts.push(make("p", { className: "sub" }, `and ${count(more, "other group")}`));
    }
    const help = found.suggestions ?? [];
    if (help.length) parts.push(make("h3", {}, "What would help, each tried out"), make("ul", { className: "help" }, ...help.map(suggestion)));
    if (found.failures?.length) parts.push(make("h3", {}, "Plugins that failed"), list(found.failures));
    return parts;
  }

  // --- a node

  described(node) {
    const amounts = node.amounts.map(({ resource, offered, asked }) => {
      const share = offered ? Math.min(1, asked / offered) : 0;
      const meter = make("meter", { min: 0, max: 1, value: share, "aria-label": shown(resource, 60), "aria-valuetext": `${Math.round(share * 100)} %` });
      return make("tr", {}, make("th", { scope: "row" }, shown(resource, 60)), make("td", {}, meter), make("td", { className: "number" }, `${amount(resource, asked)} of ${amount(resource, offered)}`));
    });
    const pods = node.pods.map((pod) =>
      make("tr", {}, make("th", { scope: "row" }, this.link(pod.namespace, pod.name)), make("td", { className: "number" }, amount("cpu", pod.cpu)), make("td", { className: "number" }, amount("memory", pod.memory)), make("td", { className: "number" }, String(pod.priority)), make("td", {}, pod.deleting ? "being deleted" : "")));
    const head = make("tr", {}, ...["Pod", "CPU", "Memory", "Priority", ""].map((text, i) => make(text ? "th" : "td", text ? { scope: "col", className: i ? "number" : "" } : {}, text)));
    const more = node.podCount - node.pods.length;
    return [
      make("p", { className: "sub" }, [shown(node.zone || "no zone", 60), `${node.podCount} of ${count(node.podsAllowed, "pod")}`, node.unschedulable ? "cordoned" : ""].filter(Boolean).join(" · ")),
      make("table", {}, make("caption", { className: "hidden" }, "What its pods ask for"), make("tbody", {}, ...amounts)),
      node.taints.length ? make("h3", {}, "Taints") : null,
      list(node.taints),
      make("h3", {}, "Pods, the largest first"),
      make("table", {}, make("caption", { className: "hidden" }, "Pods"), make("thead", {}, head), make("tbody", {}, ...pods)),
      more > 0 ? make("p", { className: "sub" }, `and ${count(more, "other")}`) : null,
      make("details", {}, make("summary", {}, "Labels"), list(Object.entries(node.labels).map(([key, value]) => `${key}=${value}`))),
    ];
  }
}

function list(texts) {
  return texts?.length ? make("ul", {}, ...texts.slice(0, 60).map((text) => make("li", {}, shown(text, 600)))) : null;
}

function names({ names: all, count: number }) {
  const some = all.slice(0, 4).map((name) => shown(name, 80));
  const total = number ?? all.length;
  return `(${some.join(", ")}${total > some.length ? ", …" : ""})`;
}

function obstacle(each) {
  return make("li", {}, make("span", { className: "tag" }, shown(each.plugin, 60)), shown(each.fact, 400));
}

function suggestion(each) {
  const parts = [shown(each.text, 400)];
  if (each.count) parts.push(`: fits ${count(each.count, "node")} ${names(each)}`);
  const code = each.command ? shown(each.command, 2000) : each.patch ? shown(JSON.stringify(each.patch), 2000) : "";
  const item = make("li", {}, make("span", {}, ...parts));
  if (each.obstacle) item.append(make("p", { className: "sub" }, `But ${shown(each.obstacle, 300)}`));
  if (code) item.append(make("pre", { tabIndex: 0 }, code));
  return item;
}

function history(records) {
  if (!records.length) return [];
  const items = [...records].reverse().map((record) => {
    const scores = Object.entries(record.scores ?? {}).map(([plugin, score]) => make("span", { className: "tag" }, `${shown(plugin, 60)} ${score}`));
    const took = record.milliseconds === undefined ? "" : `, decided in ${seconds(record.milliseconds / 1000)}`;
    return make("li", {}, make("time", {}, shown(record.at, 40)), make("span", { className: "sub" }, took), make("p", {}, shown(record.text, 1000)), scores.length ? make("p", {}, ...scores) : null);
  });
  return [make("h3", {}, "History, the latest first"), make("ol", { className: "history" }, ...items)];
}
