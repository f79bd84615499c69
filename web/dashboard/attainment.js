// How well one tenant's promises were kept, drawn: by the minute over the last hour, by the quarter
// of a day over 30 days; and what is left of the requests that may be late (the error budget).

import { ask } from "./feed.js";
import { h } from "./dom.js";
import { whose } from "./promises.js";
import { DRAWN_MAX } from "./state.js";
import { plural } from "./text.js";

const EVERY_MS = 30_000;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
// A budget that is overdrawn ten times would press all others flat.
const OVERDRAWN_MAX = -100;

const SPANS = [
  { field: "hour", unit: "min", unit_ms: MINUTE_MS, step_ms: MINUTE_MS, length: 60, words: "last hour" },
  { field: "days", unit: "days", unit_ms: DAY_MS, step_ms: DAY_MS / 4, length: 30, words: "30 days" },
];

// Of the windows that said something in each step, those in which the promise was kept, percent.
export function kept(steps) {
  return steps.map((step) => {
    const judged = step.windows_met + step.windows_missed;
    return judged === 0 ? null : (100 * step.windows_met) / judged;
  });
}

// What was left after each step of the requests that may be late, percent: of those that came in
// the whole time, as the table has it. Null where no latency is promised, or nothing came.
export function budget(steps, percentile) {
  const requests = steps.reduce((sum, step) => sum + step.requests, 0);
  const allowed = percentile === null ? 0 : (1 - percentile / 100) * requests;
  let late = 0;
  return steps.map((step) => {
    late += step.requests_late;
    return allowed === 0 ? null : Math.max(OVERDRAWN_MAX, 100 * (1 - late / allowed));
  });
}

// The points of a line that holds each value for its step's length, until now at most, and has gaps
// where steps are missing.
export function drawn(steps, values, step_ms, now) {
  return steps.flatMap(({ at_ms }, place) => {
    const end_ms = at_ms + step_ms;
    const next = steps[place + 1];
    if (next !== undefined && next.at_ms <= end_ms) return [[at_ms, values[place]]];
    const until = Math.min(end_ms, now);
    const gap = next === undefined ? [] : [[until + 1, null]];
    return [[at_ms, values[place]], [until, values[place]], ...gap];
  });
}

export class Attainment {
  constructor(name) {
    this.name = name;
    const titles = SPANS.flatMap(({ words }) => [`Windows kept, ${words}`, `Error budget left, ${words}`]);
    this.places = titles.map((title) => h("section.panel.plot-panel", { "aria-label": title }));
    this.element = h("div.plots.four", { hidden: "" }, ...this.places);
    this.look();
    this.timer = setInterval(() => this.look(), EVERY_MS);
  }

  async look() {
    const promises = await ask(`/api/attainment/${encodeURIComponent(this.name)}`).catch(() => null);
    if (promises !== null && !this.left) this.draw(promises, Date.now());
  }

  draw(promises, now) {
    this.element.hidden = promises.length === 0;
    if (promises.length === 0) return;
    const shown = promises.slice(0, DRAWN_MAX);
    const cut = shown.length < promises.length ? `, the first ${plural(shown.length, "promise", "promises")}` : "";
    const specs = SPANS.flatMap(({ field, unit, unit_ms, step_ms, length, words }) => {
      const line = (steps, values) => drawn(steps, values, step_ms, now).map(([at_ms, value]) => [(at_ms - now) / unit_ms, value]);
      const lines = (of, chosen) => chosen.map((promise) => {
        const points = line(promise[field], of(promise));
        return { name: whose(promise), look: promises.indexOf(promise), kind: "step", x: points.map(([x]) => x), y: points.map(([, y]) => y) };
      });
      // A compact plot names no axis.
      const base = { note: `${unit}${cut}`, compact: true, height: 150, x: { label: unit, min: -length, max: 0 } };
      const timed = shown.filter((promise) => promise.percentile !== null);
      return [
        { ...base, title: `Windows kept, ${words}, %`, y: { label: "kept", unit: "%", min: 0, max: 100 }, series: lines((promise) => kept(promise[field]), shown) },
        { ...base, title: `Error budget left, ${words}, %`, y: { label: "left", unit: "%", max: 100 }, targets: [{ axis: "y", value: 0, label: "none left" }], series: lines((promise) => budget(promise[field], promise.percentile), timed) },
      ];
    });
    this.plots ??= [];
    specs.forEach((spec, place) => {
      if (this.plots[place]) this.plots[place].update(spec);
      else this.plots[place] = entremetPlot(this.places[place], spec);
    });
  }

  leave() {
    this.left = true;
    clearInterval(this.timer);
    for (const plot of this.plots ?? []) plot.destroy();
  }
}
