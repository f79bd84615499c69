// The cluster behind the server: its nodes, who stands before them, where partitions are and move
// to.

import { h, meter, write } from "./dom.js";
import { ask } from "./feed.js";
import { Together } from "./promises.js";
import { number, percent, plural } from "./text.js";

const EVERY_MS = 2000;
// Tenants in view; the server tells of more, those that take most first.
const TENANTS_MAX = 20;

function heads(labels) {
  return h("thead", {}, h("tr", {}, ...labels.map((text) => h("th", { scope: "col" }, text))));
}

function busy(part) {
  return part === undefined ? "–" : `${percent(100 * part)} %`;
}

function bar(part) {
  const shown = meter();
  shown.set(part ?? 0, 1);
  return h("td.meter-cell", {}, shown.element);
}

function moved(move) {
  const whose = move.tenants.length === 0 ? "" : ` of ${move.tenants.join(", ")}`;
  return `slots ${move.slots}${whose}${move.from === null ? "" : `, now at ${move.from}`}`;
}

// Asks as long as the page is open. Where there is no cluster the answer is nothing.
class Watched {
  constructor(path) {
    this.path = path;
    this.look();
    this.timer = setInterval(() => this.look(), EVERY_MS);
  }

  async look() {
    const cluster = await ask(this.path).catch(() => null);
    if (cluster !== null) this.draw(cluster);
  }

  leave() {
    clearInterval(this.timer);
  }
}

// All of it, for the first page. Hidden where there is no cluster.
export class ClusterPanel extends Watched {
  constructor() {
    super("/api/cluster");
    this.count = h("span.count");
    this.nodes = h("tbody");
    this.tenants = h("table.delays", { "aria-label": "Partitions" });
    this.moves = h("p.none");
    this.promises = new Together();
    const scroll = (label, table) => h("div.scroll", { tabindex: "0", role: "region", "aria-label": label }, table);
    const nodes = h("table", { "aria-label": "Nodes" }, heads(["node", "busy", "", "partitions", "slots", "fronts before it"]), this.nodes);
    this.element = h("section.panel.cluster-panel", { "aria-label": "Cluster", hidden: "" }, h("div.panel-head", {}, h("h2", {}, "Cluster"), this.count), scroll("Nodes of the cluster", nodes), this.moves, scroll("Partitions by node", this.tenants), this.promises.element);
  }

  draw({ nodes, tenants, tenants_total: total, moves }) {
    this.element.hidden = false;
    write(this.count, `${plural(nodes.length, "node", "nodes")}, ${plural(total, "tenant", "tenants")}`);
    this.nodes.replaceChildren(...nodes.map(line));
    write(this.moves, moves.length === 0 ? "Nothing is being moved." : `Being moved: ${moves.map(moved).join("; ")}.`);
    const shown = tenants.slice(0, TENANTS_MAX);
    const rows = shown.map((tenant) => h("tr", {}, h("th", { scope: "row" }, h("a", { href: `#/tenant/${encodeURIComponent(tenant.name)}` }, tenant.name)), weight(tenant), ...nodes.map((node) => at(tenant, node.at))));
    this.promises.draw(shown);
    this.tenants.replaceChildren(heads(["tenant", "weight here, of all", ...nodes.map((node) => node.at)]), h("tbody", {}, ...rows));
  }
}

function line(node) {
  const fronts = node.fronts.length === 0 ? "none" : node.fronts.join(", ");
  const name = h("th", { scope: "row" }, node.at, node.here ? h("b.badge.good", {}, "here") : null);
  return h("tr", {}, name, h("td.number", {}, busy(node.busy)), bar(node.busy), h("td.number", {}, number(node.partitions)), h("td.number", {}, number(node.slots)), h("td", {}, fronts));
}

function weight(tenant) {
  return h("td.number", {}, `${number(tenant.weight_here)} of ${number(tenant.weight)}`);
}

// A tenant's partitions at a node, the darker the more of the node's time they take.
function at(tenant, node) {
  const part = tenant.nodes.find((one) => one.at === node);
  const cell = h("td.number", {}, part === undefined ? "" : `${part.partitions}${part.busy === undefined ? "" : ` · ${busy(part.busy)}`}`);
  if (part?.busy !== undefined) cell.style.setProperty("--part", String(Math.min(1, part.busy)));
  return cell;
}

// One tenant over all nodes. Hidden where there is no cluster.
export class TenantCluster extends Watched {
  constructor(name) {
    super(`/api/cluster/${encodeURIComponent(name)}`);
    this.count = h("span.count");
    this.nodes = h("tbody");
    this.promises = new Together();
    const table = h("table", { "aria-label": "Over all nodes" }, heads(["node", "of its time", "", "partitions"]), this.nodes);
    this.element = h("section.panel", { "aria-label": "Over all nodes", hidden: "" }, h("div.panel-head", {}, h("h2", {}, "Over all nodes"), this.count), table, this.promises.element);
  }

  draw({ tenants: [tenant] }) {
    this.element.hidden = false;
    const waits = tenant.waits ? ", waits before a node" : "";
    write(this.count, `${plural(tenant.partitions, "partition", "partitions")}, weight ${number(tenant.weight_here)} here of ${number(tenant.weight)}${waits}`);
    this.nodes.replaceChildren(...tenant.nodes.map((node) => h("tr", {}, h("th", { scope: "row" }, node.at), h("td.number", {}, busy(node.busy)), bar(node.busy), h("td.number", {}, String(node.partitions)))));
    this.promises.draw([tenant]);
  }
}
