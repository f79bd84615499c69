// One tenant's page: what it does, its settings, where its time goes, who else is there.

import { Attainment } from "./attainment.js";
import { TenantCluster } from "./cluster.js";
import { TenantDevice } from "./device.js";
import { h, write } from "./dom.js";
import { Explained } from "./explained.js";
import { span } from "./overview.js";
import { pairs } from "./pairs.js";
import { Promises, targets } from "./promises.js";
import { DRAWN_MAX, FRAMES_MAX } from "./state.js";
import { bytes, ms, number, percent, plural, rare } from "./text.js";
import { badges } from "./table.js";

// How the parts of a mean request's time look, in the order in which the server tells them.
const PART_LOOKS = [6, 4, 0, 5, 7, 1, 11, 2, 8, 3, 9, 10];

const CLASS_COLUMNS = [
  ["class", "", (c) => c.class],
  ["rate", "req/s", (c) => number(c.requests_per_s)],
  ["p50", "ms", (c) => ms(c.latency.count ? c.latency.p50_ms : null)],
  ["p90", "ms", (c) => ms(c.latency.count ? c.latency.p90_ms : null)],
  ["p99", "ms", (c) => ms(c.latency.count ? c.latency.p99_ms : null)],
  ["p99.9", "ms", (c) => ms(c.latency.count ? c.latency.p999_ms : null)],
  ["turn p99", "ms", (c) => ms(c.queue.count ? c.queue.p99_ms : null)],
  ["disk p99", "ms", (c) => ms(c.disk.count ? c.disk.p99_ms : null)],
  ["needed disk", "%", (c) => percent(c.latency.count ? (100 * c.disk.count) / c.latency.count : null)],
  ["throttled", "/s", (c) => rare(c.throttled_per_s)],
  ["errors", "/s", (c) => rare(c.errors_per_s)],
  ["in", "/s", (c) => bytes(c.bytes_in_per_s)],
  ["out", "/s", (c) => bytes(c.bytes_out_per_s)],
];

function panel(title, ...children) {
  return h("section.panel", { "aria-label": title }, h("div.panel-head", {}, h("h2", {}, title)), ...children);
}

// Children of a table's body made again from text: small tables, and nothing in them is focused.
function fill(body, lines, nothing) {
  if (lines.length === 0) return body.replaceChildren(h("tr", {}, h("td.none", { colspan: "20" }, nothing)));
  const rows = lines.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, first), ...rest.map((cell) => h("td.number", {}, cell))));
  return body.replaceChildren(...rows);
}

export class TenantPage {
  constructor({ history }, name) {
    this.history = history;
    this.name = name;
    this.times = [];
    this.badges = h("span.badges");
    this.figures = h("dl.figures", { "aria-label": "In the last seconds" });
    this.places = ["Rate", "Latency", "Share", "Time of a mean request", "Permits in use", "Mean wait"].map((title) => h("section.panel.plot-panel", { "aria-label": title }));
    this.bar = h("div.stack", { role: "img" });
    this.parts = h("dl.parts");
    this.classes = h("tbody");
    this.settings = h("dl.pairs");
    this.held = h("dl.pairs");
    this.promises = new Promises();
    this.attainment = new Attainment(name);
    this.explained = new Explained(name);
    this.device = new TenantDevice();
    this.cluster = new TenantCluster(name);
    this.stages = h("tbody");
    this.lines = h("tbody");
    this.others = h("tbody");
    this.missing = h("p.none");
    const heads = CLASS_COLUMNS.map(([label, unit]) => h("th", { scope: "col" }, label, unit ? h("small", {}, ` ${unit}`) : null));
    const simple = (labels, body, label) => h("table", { "aria-label": label }, h("thead", {}, h("tr", {}, ...labels.map((text) => h("th", { scope: "col" }, text)))), body);
    this.content = h(
      "div.page-content", {},
      this.figures,
      h("div.plots", {}, ...this.places),
      this.promises.element,
      this.attainment.element,
      this.explained.element,
      panel("Where its time goes", this.bar, this.parts),
      panel("Classes", h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Classes" }, h("table", { "aria-label": "Classes" }, h("thead", {}, h("tr", {}, ...heads)), this.classes))),
      h("div.columns", {},
        panel("At the stages", h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Stages of the tenant" }, simple(["stage", "asked /s", "let through /s", "wait ms", "permits busy", "waiting"], this.stages, "At the stages"))),
        panel("Where it waits now", simple(["stage", "its own", "in line, all"], this.lines, "Where it waits now")),
        panel("Others with the largest shares", simple(["tenant", "rate req/s", "got %", "entitled to %", "queue"], this.others, "Others")),
        panel("Settings", this.settings),
        panel("Held", this.held),
        this.device.element,
        this.cluster.element),
    );
    this.element = h("div.page", {}, h("div.title", {}, h("a.back", { href: "#/" }, "← All tenants"), h("h2.name", {}, name), this.badges), this.missing, this.content);
  }

  update() {}

  detail(detail) {
    this.content.hidden = detail === null;
    write(this.missing, detail === null ? "There is no tenant of this name (any more)." : "");
    if (detail === null) return;
    const { live, tenant, time } = detail;
    badges(this.badges, live);
    this.tellFigures(live);
    this.tellTime(time);
    this.times.push({ at: detail.at_ms / 1000, time, stages: live.stages });
    this.times.splice(0, this.times.length - FRAMES_MAX);
    fill(this.classes, detail.classes.map((one) => CLASS_COLUMNS.map(([, , text]) => text(one))), "No request in the last seconds.");
    fill(this.stages, live.stages.map((one) => [one.stage, number(one.asked_per_s), number(one.admitted_per_s), ms(one.wait_mean_ms), number(one.permits_busy), rare(one.waiting)]), "It was never let through.");
    fill(this.lines, detail.places.map((place) => [`${place.stage}${place.stage === "device" ? "" : `, core ${place.core}`}${place.explanation ? `: ${place.explanation}` : ""}`, rare(place.waiting), rare(place.waiting_all)]), "Nothing of it waits or is outstanding.");
    fill(this.others, detail.others.map((other) => [link(other.name), rare(other.requests_per_s), percent(other.share.got_percent), percent(other.share.entitled_percent), rare(other.stages.reduce((sum, stage) => sum + stage.waiting, 0))]), "Nobody else was served.");
    pairs(this.settings, set(detail.settings));
    pairs(this.held, held(tenant));
    this.promises.update(tenant.promises);
    this.device.update(tenant.device);
    this.draw(tenant);
  }

  tellFigures(live) {
    const share = `${percent(live.share.got_percent)} | ${percent(live.share.entitled_percent)} %`;
    pairs(this.figures, [
      ["rate", `${number(live.requests_per_s)} req/s`],
      [`p50 ${live.class ?? ""}`, live.p50_ms === null ? "–" : `${ms(live.p50_ms)} ms`],
      [`p99 ${live.class ?? ""}`, live.p99_ms === null ? "–" : `${ms(live.p99_ms)} ms`],
      ["share got | entitled", share],
      ["asked for", `${number(live.asked_per_s)} req/s`],
      ["occupancy", `${percent(100 * live.occupancy)} %`],
      ["throttled", `${number(live.throttled_per_s)} /s`],
      ["errors", live.errors_per_s === null ? "–" : `${number(live.errors_per_s)} /s`],
      ["CPU charged", `${number(1000 * live.cpu_charged_per_s)} ms/s`],
      ["connections", String(live.connections)],
    ]);
  }

  tellTime(time) {
    const shown = time.parts.map((part, place) => ({ ...part, look: PART_LOOKS[place] })).filter((part) => part.mean_ms > 0);
    this.bar.replaceChildren(...shown.map(({ mean_ms, look }) => {
      const part = h(`i.look-${look}`);
      // Below 1 in all, growth would leave a part of the bar empty.
      part.style.flexGrow = String((1000 * mean_ms) / time.mean_ms);
      return part;
    }));
    this.bar.setAttribute("aria-label", shown.length === 0 ? "no requests" : shown.map(({ words, mean_ms }) => `${words} ${ms(mean_ms)} ms`).join(", "));
    this.parts.replaceChildren(
      h("div", {}, h("dt", {}, "mean request"), h("dd", {}, time.mean_ms > 0 ? `${ms(time.mean_ms)} ms` : "none lately")),
      ...shown.map(({ words, about, look, mean_ms }) => h("div", { title: about }, h("dt", {}, h(`i.swatch.look-${look}`, { "aria-hidden": "true" }), words), h("dd", {}, `${ms(mean_ms)} ms`, h("small", {}, ` ${percent((100 * mean_ms) / time.mean_ms)} %`)))),
    );
  }

  // The parts that took the most in what is kept: more than an eye can follow would only hide them.
  drawnParts() {
    const total = (place) => this.times.reduce((sum, one) => sum + one.time.parts[place].mean_ms, 0);
    const parts = (this.times.at(-1)?.time.parts ?? []).map(({ short }, place) => ({ short, place, total: total(place) }));
    return parts.filter((part) => part.total > 0).sort((a, b) => b.total - a.total).slice(0, DRAWN_MAX).sort((a, b) => a.place - b.place);
  }

  // A line for each stage that it was let through since the page was opened.
  atStages(of) {
    const at = this.times.map((one) => one.at);
    const names = ["request", "handler", "device"];
    const lines = names.map((name, look) => ({ name, look, x: at, y: this.times.map((one) => of(one.stages.find((stage) => stage.stage === name) ?? {}) ?? null) }));
    return lines.filter((line) => line.y.some((value) => value !== null));
  }

  draw(tenant) {
    const x = this.history.times();
    const line = (name, field, look) => ({ name, look, x, y: this.history.series(this.name, field) });
    const base = { compact: true, height: 150, sync: "tenant", x: { label: "time", scale: "time", ...span(x) } };
    const rates = line("requests", "rate", 0);
    const highest = Math.max(...rates.y.map((value) => value ?? 0));
    // A line far above would press the plot flat.
    const limit = (value, label) => (value === undefined || value > 4 * highest ? [] : [{ axis: "y", value, label: `${label} ${number(value)}` }]);
    const at = this.times.map((one) => one.at);
    const specs = [
      { title: "Rate, req/s", y: { label: "rate", unit: "req/s", min: 0 }, series: [rates], targets: [...limit(tenant.limit_requests_per_s, "limit"), ...limit(tenant.contract_per_s, "contract")] },
      { title: "Latency, ms", y: { label: "latency", unit: "ms", scale: "log" }, series: [line("p50", "p50", 0), line("p99", "p99", 1)], targets: targets(tenant.promises) },
      { title: "Share, %", y: { label: "share", unit: "%", min: 0 }, series: [line("got", "got", 0), line("entitled to", "entitled", 4)] },
      { title: "Time of a mean request, ms", y: { label: "time", unit: "ms", min: 0 }, series: this.drawnParts().map(({ short, place }) => ({ name: short, look: PART_LOOKS[place] % 8, x: at, y: this.times.map((one) => one.time.parts[place].mean_ms) })), x: { label: "time", scale: "time", ...span(x) } },
    ];
    specs.push(
      { title: "Permits in use", y: { label: "permits", min: 0 }, series: this.atStages((stage) => stage.permits_busy) },
      { title: "Mean wait, ms", y: { label: "wait", unit: "ms", scale: "log" }, series: this.atStages((stage) => stage.wait_mean_ms) },
    );
    this.plots ??= [];
    specs.forEach((spec, place) => {
      if (this.plots[place]) this.plots[place].update({ ...base, ...spec });
      else this.plots[place] = entremetPlot(this.places[place], { ...base, ...spec });
    });
  }

  leave() {
    for (const plot of this.plots ?? []) plot.destroy();
    this.plots = undefined;
    this.cluster.leave();
    this.attainment.leave();
    this.explained.leave();
  }
}

function link(name) {
  return h("a.tenant-link", { href: `#/tenant/${encodeURIComponent(name)}` }, name);
}

function set(settings) {
  return settings.map((one) => [one.key, one.set_at_run_time ? `${one.text} (set at run time)` : one.text, one.effect]);
}

function lent(used, granted, allotment) {
  return `${bytes(used)} of ${bytes(granted)} granted, ${bytes(allotment)} its own`;
}

function held(tenant) {
  const reads = tenant.cache_hits + tenant.cache_misses;
  return [
    ["keys, about", number(tenant.keys)],
    ["object cache", lent(tenant.cache_bytes, tenant.cache_granted_bytes, tenant.cache_allotment_bytes)],
    ["found there", reads === 0 ? "–" : `${percent((100 * tenant.cache_hits) / reads)} % of ${number(reads)} reads since the start`],
    ["block cache", lent(tenant.block_cache_bytes, tenant.block_cache_granted_bytes, tenant.block_cache_allotment_bytes)],
    ["write buffers", lent(tenant.write_buffer_bytes, tenant.write_buffer_granted_bytes, tenant.write_buffer_allotment_bytes)],
    ["not committed yet", bytes(tenant.uncommitted_bytes)],
    ["files", bytes(tenant.disk_bytes)],
    ["connections", plural(tenant.connections, "connection", "connections")],
    ["writes", tenant.write_error ? `refused: ${tenant.write_error}` : "taken"],
  ];
}
