// Promises of latency and throughput: what was promised, how well it was kept, and behind whom late
// requests waited.

import { ask } from "./feed.js";
import { h } from "./dom.js";
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
