// Promises of latency and throughput: what was promised, how well it was kept, and behind whom late
// requests waited.

import { ask } from "./feed.js";
import { h, meter } from "./dom.js";
import { ms, number, percent } from "./text.js";

const DELAYS_EVERY_MS = 5000;

// Whose requests a promise is for.
export function whose(promise) {
  return promise.workload ? `${promise.class} of ${promise.workload}` : promise.class;
}

function promised(promise) {
  const parts = [];
  if (promise.at_most_ms !== null) parts.push(`p${promise.percentile} ≤ ${ms(promise.at_most_ms)} ms`);
  if (promise.throughput_per_s !== null) parts.push(`≥ ${number(promise.throughput_per_s)}/s`);
  const contract = promise.contract_per_s === null ? "" : `, up to ${number(promise.contract_per_s)}/s`;
  return `${parts.join(" and ")} in ${number(promise.window_s)} s${contract}`;
}

function measured(last) {
  if (last === null) return "–";
  const latency = last.latency_ms === null ? "" : `${ms(last.latency_ms)} ms over ${number(last.sample)}, `;
  return `${latency}${number(last.served_per_s)}/s`;
}

function kept(over) {
  return over.met_percent === null ? "no data" : `${percent(over.met_percent)} %`;
}

function left(over) {
  const { budget_left_percent: part } = over;
  if (part === null) return "–";
  return part < 0 ? `overdrawn by ${percent(-part)} %` : `${percent(part)} %`;
}

const COLUMNS = [
  ["for", whose],
  ["promised", promised],
  ["importance", (p) => String(p.importance)],
  ["last window", (p) => measured(p.last)],
  ["kept, 1 h", (p) => kept(p.hour)],
  ["kept, 30 d", (p) => kept(p.days)],
  ["budget left, 1 h", (p) => left(p.hour)],
  ["budget left, 30 d", (p) => left(p.days)],
  ["late", (p) => number(p.late)],
];

const BADGES = { met: "good", missed: "bad", "no data": "warn" };

function heads(labels) {
  return h("thead", {}, h("tr", {}, ...labels.map((text) => h("th", { scope: "col" }, text))));
}

// What is promised to clients of all fronts together, how much of it is here, and how well all of
// them keep it.
const TOGETHER = [
  ["kept, 1\u00a0h", (p) => kept(p.hour)],
  ["", (p) => bar(p.hour.met_percent === null ? null : p.hour.met_percent / 100)],
  ["kept, 30\u00a0d", (p) => kept(p.days)],
  ["budget left, 1\u00a0h", (p) => left(p.hour)],
  ["last window", (p) => measured(p.last)],
  ["promised", promised],
  ["contract here, of all", (p) => share(p.contract_portion, p.contract_per_s)],
  ["", (p) => bar(p.contract_per_s === null ? null : p.contract_portion)],
  ["throughput here, of all", (p) => share(p.throughput_portion, p.throughput_per_s)],
  ["", (p) => bar(p.throughput_per_s === null ? null : p.throughput_portion)],
  ["fronts", (p) => String(p.fronts)],
];

function share(part, all) {
  return all === null ? "–" : `${number(part * all)} of ${number(all)}/s`;
}

// A part of the whole, 0 to 1; nothing where there is no such thing.
function bar(part) {
  if (part === null) return h("td");
  const shown = meter();
  shown.set(part, 1);
  return h("td.meter-cell", {}, shown.element);
}

// Promises that several fronts keep together, of tenants as the cluster's page has them. Hidden
// where there are none.
export class Together {
  constructor() {
    this.head = h("thead");
    this.body = h("tbody");
    const table = h("table.together", { "aria-label": "Promises at all fronts" }, this.head, this.body);
    this.element = h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Promises of all fronts", hidden: "" }, table);
  }

  draw(tenants) {
    const all = tenants.flatMap((tenant) => tenant.promises.map((promise) => [tenant, promise]));
    this.element.hidden = all.length === 0;
    const several = tenants.length > 1;
    this.head.replaceChildren(...heads([several ? "at all fronts: tenant, for" : "at all fronts: for", ...TOGETHER.map(([label]) => label)]).children);
    this.body.replaceChildren(...all.map(([tenant, promise]) => together(several ? `${tenant.name}, ` : "", promise)));
  }
}

function together(begin, promise) {
  const outcome = promise.last === null ? null : h(`b.badge.${BADGES[promise.last.outcome]}`, {}, promise.last.outcome);
  const cells = TOGETHER.map(([, of]) => {
    const cell = of(promise);
    return typeof cell === "string" ? h("td.number", {}, cell) : cell;
  });
  return h("tr", {}, h("th", { scope: "row" }, `${begin}${whose(promise)}`, " ", outcome), ...cells);
}

// Lines that a latency plot is held against.
export function targets(promises) {
  const lines = promises.filter((promise) => promise.at_most_ms !== null);
  return lines.map((promise) => ({ axis: "y", value: promise.at_most_ms, label: `${whose(promise)}: p${promise.percentile} ≤ ${ms(promise.at_most_ms)} ms` }));
}

// One tenant's promises. Hidden where there are none.
export class Promises {
  constructor() {
    this.body = h("tbody");
    this.late = h("dl.pairs");
    const table = h("table", { "aria-label": "Promises" }, heads(COLUMNS.map(([label]) => label)), this.body);
    this.element = h("section.panel.promises-panel", { "aria-label": "Promises", hidden: "" }, h("div.panel-head", {}, h("h2", {}, "Promises")), h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Promises of the tenant" }, table), this.late);
  }

  update(promises) {
    this.element.hidden = promises.length === 0;
    const rows = promises.map((promise) => {
      const [first, ...rest] = COLUMNS.map(([, text]) => text(promise));
      const outcome = promise.last === null ? null : h(`b.badge.${BADGES[promise.last.outcome]}`, {}, promise.last.outcome);
      return h("tr", {}, h("th", { scope: "row" }, first, " ", outcome), ...rest.map((cell) => h("td.number", {}, cell)));
    });
    this.body.replaceChildren(...rows);
    const late = promises.filter((promise) => promise.late_time.looked_at > 0);
    this.late.replaceChildren(...late.flatMap((promise) => lost(promise)));
  }
}

// Where the time of late requests went, and behind whom.
function lost(promise) {
  const { looked_at: looked, parts, delays } = promise.late_time;
  const all = parts.reduce((sum, part) => sum + part.mean_ms, 0);
  const largest = [...parts].sort((a, b) => b.mean_ms - a.mean_ms).slice(0, 4);
  const spent = largest.map((part) => `${part.words} ${ms(part.mean_ms)} ms (${percent((100 * part.mean_ms) / all)} %)`);
  const behind = delays.slice(0, 4).map((delay) => `${delay.behind} ${ms(delay.mean_ms)} ms (${delay.line})`);
  const entry = (term, value) => h("div", {}, h("dt", {}, term), h("dd", {}, value));
  return [
    entry(`late ${whose(promise)}, ${number(looked)} of the last minutes`, spent.join(", ")),
    ...(behind.length > 0 ? [entry("they waited behind", behind.join(", "))] : []),
  ];
}

// Who delayed whom, all tenants: rows are whose requests were late, columns who had what they
// waited for.
export class Delays {
  constructor() {
    this.table = h("table.delays", { "aria-label": "Who delayed whom" });
    this.element = h("section.panel.delays-panel", { "aria-label": "Who delayed whom", hidden: "" }, h("div.panel-head", {}, h("h2", {}, "Who delayed whom"), h("span.count", {}, "ms a late request waited, in the last minutes")), h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Delays" }, this.table));
    this.look();
    this.timer = setInterval(() => this.look(), DELAYS_EVERY_MS);
  }

  async look() {
    const rows = await ask("/api/delays").catch(() => null);
    if (rows !== null) this.draw(rows);
  }

  draw(rows) {
    this.element.hidden = rows.length === 0;
    const victim = (row) => `${row.tenant}, ${whose(row)}`;
    const sums = new Map();
    const by = new Map();
    for (const row of rows) {
      const of = sums.get(victim(row)) ?? new Map();
      of.set(row.behind, (of.get(row.behind) ?? 0) + row.mean_ms);
      sums.set(victim(row), of);
      by.set(row.behind, (by.get(row.behind) ?? 0) + row.mean_ms);
    }
    const culprits = [...by].sort((a, b) => b[1] - a[1]).slice(0, 12).map(([name]) => name);
    const largest = Math.max(0, ...[...sums.values()].flatMap((of) => [...of.values()]));
    const cell = (value) => {
      const shown = h("td.number", {}, value === undefined ? "" : ms(value));
      // The darker, the longer.
      if (value !== undefined) shown.style.setProperty("--part", String(value / largest));
      return shown;
    };
    const lines = [...sums].map(([name, of]) => h("tr", {}, h("th", { scope: "row" }, name), ...culprits.map((culprit) => cell(of.get(culprit)))));
    this.table.replaceChildren(heads(["late", ...culprits.map((name) => `behind ${name}`)]), h("tbody", {}, ...lines));
  }

  leave() {
    clearInterval(this.timer);
  }
}
