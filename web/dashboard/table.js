// The table of tenants: one row each, kept from second to second so that focus and selection stay.

import { arrange, h, meter, toggle, write } from "./dom.js";
import { isIdle, rows, wait, waiting } from "./state.js";
import { ms, number, percent, plural, rare } from "./text.js";

// `wide`: from which width on a column is shown (0 always, 1 tablet, 2 and 3 desk, 4 wide desk). `text` writes a cell,
// `value` sorts.
const FIRST = [
  { key: "name", label: "tenant", wide: 0, value: (t) => t.name, ascending: true },
  { key: "weight", label: "weight", wide: 3, value: (t) => t.weight, text: (t) => number(t.weight) },
  { key: "rate", label: "rate", unit: "req/s", wide: 0, value: (t) => t.requests_per_s, text: (t) => rare(t.requests_per_s) },
  { key: "asked", label: "asks", unit: "req/s", wide: 3, value: (t) => t.asked_per_s, text: (t) => rare(t.asked_per_s), about: "What it asks for: answered, throttled and waiting" },
  { key: "p50", label: "p50", unit: "ms", wide: 1, value: (t) => t.p50_ms, text: (t) => ms(t.p50_ms) },
  { key: "p99", label: "p99", unit: "ms", wide: 0, value: (t) => t.p99_ms, text: (t) => ms(t.p99_ms) },
  { key: "class", label: "of", wide: 4, value: (t) => t.class, text: (t) => t.class ?? "", about: "Latencies are those of the tenant's busiest class" },
  { key: "share", label: "share got | entitled", unit: "%", wide: 0, value: (t) => t.share.got_percent },
];
const LAST = [
  { key: "kept", label: "kept", unit: "% 1 h", wide: 2, value: (t) => t.kept_percent, text: (t) => (t.kept_percent === undefined ? "" : percent(t.kept_percent)), about: "Windows of the last hour in which the promise was kept that was kept least" },
  { key: "waiting", label: "queue", wide: 1, value: waiting, text: (t) => rare(waiting(t)), about: "Waiting now, at all stages" },
  { key: "throttled", label: "throttled", unit: "/s", wide: 1, value: (t) => t.throttled_per_s, text: (t) => rare(t.throttled_per_s) },
  { key: "errors", label: "errors", unit: "/s", wide: 4, value: (t) => t.errors_per_s, text: (t) => rare(t.errors_per_s) },
  { key: "connections", label: "conns", wide: 4, value: (t) => t.connections, text: (t) => rare(t.connections) },
];
// The mean wait before each kind of stage that the server has stands between them.
function waitColumn(stage, place) {
  const mean = (t) => wait(t, stage);
  return { key: stage, label: `wait ${stage}`, unit: "ms", wide: place < 2 ? 2 : 3, value: mean, text: (t) => ms(mean(t)), about: `Mean wait at the ${stage} stage` };
}

// The order changes this often, and not while a hand is on the table: rows that jump cannot be
// read.
const REORDER_FRAMES = 3;

class Row {
  constructor(columns) {
    this.columns = columns;
    this.swatch = h("i.swatch", { "aria-hidden": "true" });
    this.link = h("a.tenant-link", {});
    this.badges = h("span.badges");
    this.meter = meter();
    this.share = h("span.share-text");
    this.cells = columns.map((column) => {
      if (column.key === "name") return h("th", { scope: "row" }, h("div.who", {}, this.swatch, this.link, this.badges));
      if (column.key === "share") return h("td.share", {}, this.meter.element, this.share);
      return h(`td.wide-${column.wide}.col-${column.key}`);
    });
    this.element = h("tr", {}, ...this.cells);
  }

  update(tenant, look, shareMax) {
    if (this.link.textContent !== tenant.name) {
      this.link.textContent = tenant.name;
      this.link.setAttribute("href", `#/tenant/${encodeURIComponent(tenant.name)}`);
    }
    this.swatch.className = look === undefined ? "swatch" : `swatch look-${look}`;
    badges(this.badges, tenant);
    const { got_percent: got, entitled_percent: entitled } = tenant.share;
    this.meter.set(got, shareMax, entitled);
    write(this.share, `${percent(got)} | ${percent(entitled)}`);
    this.columns.forEach((column, place) => column.text && write(this.cells[place], column.text(tenant)));
    toggle(this.element, "idle", isIdle(tenant));
    toggle(this.element, "refused", tenant.throttled_per_s > 0);
  }
}

// What must be seen before any number is read.
export function badges(element, tenant) {
  const wanted = [];
  if (tenant.write_error) wanted.push(["bad", "writes refused"]);
  if (tenant.throttled_per_s > 0) wanted.push(["warn", "throttled"]);
  if (tenant.errors_per_s > 0) wanted.push(["warn", "errors"]);
  const text = wanted.map(([, word]) => word).join(",");
  if (element.dataset.said === text) return;
  element.dataset.said = text;
  element.replaceChildren(...wanted.map(([kind, word]) => h(`b.badge.${kind}`, {}, word)));
}

export class Table {
  constructor() {
    this.by = "rate";
    this.descending = true;
    this.hideIdle = false;
    this.known = new Map();
    this.frames = 0;
    this.headRow = h("tr");
    this.body = h("tbody");
    this.filter = h("input", { type: "search", placeholder: "Filter (/)", "aria-label": "Filter tenants by name", "aria-keyshortcuts": "/", on: { input: () => this.draw(true) } });
    this.count = h("span.count", { role: "status" });
    this.idle = h("button", { type: "button", "aria-pressed": "false", "aria-keyshortcuts": "i", title: "Idle tenants (i)", on: { click: () => this.toggleIdle() } }, "Hide idle");
    this.empty = h("p.none");
    this.table = h("table.tenants", { "aria-label": "Tenants" }, h("thead", {}, this.headRow), this.body);
    this.element = h("section.panel.tenants-panel", { "aria-label": "Tenants" }, h("div.panel-head", {}, h("h2", {}, "Tenants"), this.count, h("span.gap"), this.filter, this.idle), this.table, this.empty);
    this.setStages([]);
  }

  // One column for each kind of stage.
  setStages(stages) {
    if (stages.join() === this.stages?.join()) return;
    this.stages = stages;
    this.columns = [...FIRST, ...stages.map(waitColumn), ...LAST];
    this.heads = this.columns.map((column) => this.head(column));
    this.headRow.replaceChildren(...this.heads);
    this.known.clear();
    this.mark();
  }

  head(column) {
    const unit = column.unit ? h("small", {}, ` ${column.unit}`) : null;
    const button = h("button", { type: "button", title: column.about, on: { click: () => this.sort(column.key) } }, column.label, unit);
    return h(`th.wide-${column.wide}.col-${column.key}`, { scope: "col" }, button);
  }

  column() {
    return this.columns.find((column) => column.key === this.by) ?? this.columns[0];
  }

  sort(key) {
    const again = this.by === key;
    this.by = key;
    this.descending = again ? !this.descending : !this.column().ascending;
    this.mark();
    this.draw(true);
  }

  sortNext(step) {
    const shown = this.columns.filter((column, place) => this.heads[place].offsetParent !== null);
    const at = shown.indexOf(this.column());
    this.sort(shown[(at + step + shown.length) % shown.length].key);
  }

  reverse() {
    this.sort(this.by);
  }

  toggleIdle() {
    this.hideIdle = !this.hideIdle;
    this.idle.setAttribute("aria-pressed", String(this.hideIdle));
    this.draw(true);
  }

  // Clears the filter; false when there was nothing to clear.
  clear() {
    if (this.filter.value === "") return false;
    this.filter.value = "";
    this.draw(true);
    return true;
  }

  mark() {
    this.heads.forEach((head, place) => head.setAttribute("aria-sort", this.columns[place].key === this.by ? (this.descending ? "descending" : "ascending") : "none"));
  }

  update(live, looks) {
    this.live = live;
    this.setStages([...new Set(live.stages.map((stage) => stage.stage))]);
    this.looks = looks;
    this.frames += 1;
    const held = this.table.matches(":hover") || this.table.contains(document.activeElement);
    this.draw(this.frames === 1 || (this.frames % REORDER_FRAMES === 0 && !held));
  }

  draw(reorder) {
    if (!this.live) return;
    const { tenants, tenants_total: total } = this.live;
    const shareMax = Math.max(1, ...tenants.flatMap((t) => [t.share.got_percent, t.share.entitled_percent]));
    const shown = rows(tenants, { filter: this.filter.value, hideIdle: this.hideIdle, value: this.column().value, descending: this.descending });
    const names = new Set(shown.map((tenant) => tenant.name));
    for (const name of this.known.keys()) if (!names.has(name)) this.known.delete(name);
    for (const tenant of shown) {
      if (!this.known.has(tenant.name)) {
        this.known.set(tenant.name, new Row(this.columns));
        reorder = true;
      }
      this.known.get(tenant.name).update(tenant, this.looks.of(tenant.name), shareMax);
    }
    if (reorder || this.body.childElementCount !== shown.length) arrange(this.body, shown.map((tenant) => this.known.get(tenant.name).element));
    const idle = tenants.filter(isIdle).length;
    const cut = total > tenants.length ? `, the busiest ${tenants.length} listed` : "";
    write(this.count, `${shown.length === tenants.length ? "" : `${shown.length} of `}${plural(total, "tenant", "tenants")}, ${idle} idle${cut}`);
    write(this.empty, shown.length > 0 ? "" : this.nobody(total));
  }

  nobody(total) {
    if (total === 0) return "No tenant is configured. Add [[tenant]] to the configuration and send SIGHUP, or use ENTREMET TENANT ADD.";
    return this.filter.value === "" ? "All tenants are idle; press i to show them." : `No tenant's name holds “${this.filter.value}”.`;
  }
}
