// Plots for reports and for the dashboard: one function over uPlot, in plain scripts so that a
// report can carry them inline, in this order: vendor/uPlot.iife.min.js, plot-marks.js, plot.js;
// and for looks vendor/uPlot.min.css, plot.css.
//
//   const plot = entremetPlot(element, spec);   plot.update(spec);   plot.destroy();
//
//   { title, note,                                   note: small print beside the title
//     x: {label, unit, scale: "linear" | "log" | "time" | "category", categories: [...], min, max},     time is Unix seconds
//     y: {label, unit, scale: "linear" | "log", min, max},
//     series: [{name, kind: "line" | "step" | "points" | "bars", x: [...], y: [...], low: [...], high: [...], look}],
//     targets: [{axis: "x" | "y", value, label}],    lines that a measurement is held against
//     height, compact, legend: false, sync }         pixels; smaller type; no legend; plots with one sync share the cursor
//
// A null in y is a gap. For a category axis x holds places in `categories`. `look` (0 to 7) keeps a
// series' colour, dash and marker when others come and go; without it they go by place. A wrong
// spec throws an Error that lists everything wrong with it.
(function (root) {
  "use strict";

  const { LOOKS, DASHES, colours, painter, swatch } = root.entremetPlotMarks;
  const PRINT_WIDTH = 660; // A4 less its margins, in CSS pixels
  const live = new Set();

  // --- numbers
  // ---------------------------------------------------------------------------------------------------------------

  const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

  function plain(value, digits) {
    return String(Number(value.toPrecision(digits)));
  }

  // A number for people: three digits that matter, thousands as k, M, G from ten thousand up.
  function number(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    if (size >= 9999.5) {
      const [unit, prefix] = PREFIXES.find(([unit]) => size >= unit * 0.9995);
      return plain(value / unit, 3) + " " + prefix;
    }
    if (size >= 1000) return String(Math.round(value));
    return plain(value, 3);
  }

  function ticks(values, log) {
    const largest = Math.max(...values.map((value) => Math.abs(value || 0)));
    const [unit, prefix] = log || largest < 10000 ? [1, ""] : PREFIXES.find(([unit]) => largest >= unit);
    return values.map((value) => {
      if (value === null) return "";
      if (log) return number(value);
      return value === 0 ? "0" : plain(value / unit, 6) + prefix;
    });
  }

  function clock(seconds) {
    const at = new Date(seconds * 1000);
    return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
  }

  // --- the spec
  // --------------------------------------------------------------------------------------------------------------

  function check(spec) {
    const wrong = [];
    const oneOf = (value, allowed, what) => {
      if (!allowed.includes(value)) wrong.push(`${what} is ${JSON.stringify(value)}; write one of ${allowed.join(", ")}`);
    };
    const axis = (name) => (spec[name] === undefined ? {} : spec[name]);
    oneOf(axis("x").scale || "linear", ["linear", "log", "time", "category"], "x.scale");
    oneOf(axis("y").scale || "linear", ["linear", "log"], "y.scale");
    if (axis("x").scale === "category" && !Array.isArray(axis("x").categories)) wrong.push("x.categories is missing");
    if (!Array.isArray(spec.series)) wrong.push("series is not a list");
    for (const [place, one] of (Array.isArray(spec.series) ? spec.series : []).entries()) {
      const what = `series ${one.name === undefined ? place : JSON.stringify(one.name)}`;
      oneOf(one.kind || "line", ["line", "step", "points", "bars"], `${what}: kind`);
      const length = Array.isArray(one.x) ? one.x.length : NaN;
      for (const field of ["x", "y", "low", "high"]) {
        if (one[field] === undefined && field !== "x" && field !== "y") continue;
        if (!Array.isArray(one[field])) wrong.push(`${what}: ${field} is not a list`);
        else if (one[field].length !== length) wrong.push(`${what}: x has ${length} values, ${field} ${one[field].length}`);
      }
      if ((one.low === undefined) !== (one.high === undefined)) wrong.push(`${what}: low and high come together`);
    }
    for (const target of spec.targets || []) {
      oneOf(target.axis, ["x", "y"], "a target's axis");
      if (!Number.isFinite(target.value)) wrong.push(`a target's value is ${target.value}`);
    }
    if (wrong.length > 0) throw new Error(`the plot ${JSON.stringify(spec.title || "")} cannot be drawn: ${wrong.join("; ")}`);
  }

  // What must be equal for new values to be drawn into the same axes and legend: all but values,
  // ranges and targets.
  function shape(spec) {
    const moves = (key, value) => ["min", "max", "targets"].includes(key) || (["x", "y", "low", "high"].includes(key) && Array.isArray(value));
    return JSON.stringify(spec, (key, value) => (moves(key, value) ? undefined : value));
  }

  function prepare(spec) {
    check(spec);
    const x = { scale: "linear", ...spec.x };
    const y = { scale: "linear", ...spec.y };
    const drawable = (value, axis) => Number.isFinite(value) && (axis.scale !== "log" || value > 0);
    const series = spec.series.map((one, place) => {
      const order = one.x.map((_, index) => index).filter((index) => drawable(one.x[index], x));
      order.sort((a, b) => one.x[a] - one.x[b]);
      const column = (values, kept) => order.map((index) => (drawable(values[index], kept) ? values[index] : null));
      // A range that reaches below 0 on a log axis ends at the axis, it does not vanish.
      const floor = (values) => order.map((index) => (Number.isFinite(values[index]) ? values[index] : null));
      return {
        name: one.name === undefined ? `series ${place + 1}` : String(one.name),
        kind: one.kind || "line",
        look: (one.look === undefined ? place : one.look) % LOOKS,
        x: order.map((index) => one.x[index]),
        y: column(one.y, y),
        low: one.low && floor(one.low),
        high: one.high && floor(one.high),
        shown: true,
      };
    });
    return { ...spec, x, y, series, targets: spec.targets || [], shape: shape(spec) };
  }

  function aligned(plan) {
    if (plan.series.length === 0) return [[]];
    return root.uPlot.join(plan.series.map((one) => [one.x, one.y]));
  }

  // --- ranges
  // ----------------------------------------------------------------------------------------------------------------

  function extent(values, log) {
    let [min, max] = [Infinity, -Infinity];
    for (const value of values) {
      if (value === null || value === undefined || (log && value <= 0)) continue;
      min = Math.min(min, value);
      max = Math.max(max, value);
    }
    return [min, max];
  }

  function xRange(plan) {
    const { x } = plan;
    if (x.scale === "category") return [-0.6, x.categories.length - 0.4];
    const targets = plan.targets.filter((target) => target.axis === "x").map((target) => target.value);
    let [min, max] = extent([...plan.series.flatMap((one) => one.x), ...targets], x.scale === "log");
    if (min > max) [min, max] = { log: [1, 10], time: [Date.now() / 1000 - 60, Date.now() / 1000] }[x.scale] || [0, 1];
    const bars = [...new Set(plan.series.filter((one) => one.kind === "bars").flatMap((one) => one.x))].sort((a, b) => a - b);
    const half = bars.length > 1 ? Math.min(...bars.slice(1).map((value, place) => value - bars[place])) / 2 : bars.length / 2;
    if (x.scale !== "log") [min, max] = [min - half, max + half];
    [min, max] = [x.min === undefined ? min : x.min, x.max === undefined ? max : x.max];
    if (min < max) return [min, max];
    return x.scale === "log" ? [min / 2, min * 2] : [min - 1, min + 1];
  }

  function yRange(plan) {
    const { y } = plan;
    const log = y.scale === "log";
    const shown = plan.series.filter((one) => one.shown);
    const targets = plan.targets.filter((target) => target.axis === "y").map((target) => target.value);
    const values = shown.flatMap((one) => [...one.y, ...(one.low || []), ...(one.high || [])]);
    let [min, max] = extent([...values, ...targets], log);
    if (min > max) [min, max] = log ? [1, 10] : [0, 1];
    if (log) [min, max] = root.uPlot.rangeLog(min, max, 10, false);
    else {
      // Nearly everything here is a rate or a time: an axis that starts at 0 shows proportions,
      // unless all values lie far from it.
      if (min > 0 && (shown.some((one) => one.kind === "bars") || min < 0.6 * max)) min = 0;
      const room = (max - min || Math.abs(max) || 1) * 0.08;
      max += room;
      if (min !== 0) min -= room;
    }
    return [y.min === undefined ? min : y.min, y.max === undefined ? max : y.max];
  }

  // --- axes
  // ------------------------------------------------------------------------------------------------------------------

  function caption(axis) {
    return [axis.label, axis.unit].filter(Boolean).join(", ");
  }

  // About the width of the longest category, CSS pixels.
  function labelWidth(x) {
    return Math.max(0, ...x.categories.map((name) => String(name).length)) * 7;
  }

  function slantedHeight(x) {
    return Math.min(120, 22 + labelWidth(x) * 0.65);
  }

  function xAxis(plan, look, font) {
    const { x } = plan;
    const base = { stroke: look.faint, font, grid: { stroke: look.grid, width: 1 }, ticks: { stroke: look.grid, width: 1, size: 4 } };
    const label = plan.compact ? {} : { label: caption(x) || undefined, labelFont: font, labelSize: 20 };
    if (x.scale === "category") {
      const longest = labelWidth(x);
      const slanted = (u) => longest > (u.bbox.width / root.uPlot.pxRatio || 600) / Math.max(1, x.categories.length);
      return {
        ...base, ...label, grid: { show: false }, gap: 4,
        splits: () => x.categories.map((_, place) => place),
        values: () => x.categories.map(String),
        rotate: (u) => (slanted(u) ? 40 : 0),
        size: (u) => (slanted(u) ? slantedHeight(x) : 24),
      };
    }
    const values = x.scale === "time" ? (u, splits) => splits.map(clock) : (u, splits) => ticks(splits, x.scale === "log");
    const times = x.scale === "time" ? { incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400], space: 76 } : {};
    return { ...base, ...label, ...times, values, gap: 3, size: 24 };
  }

  // Lines of a log grid: all within two decades, beyond that only the powers of ten.
  function decades(u, splits) {
    const shown = splits.filter((value) => value !== null && value > 0);
    const wide = shown.length > 0 && Math.max(...shown) / Math.min(...shown) >= 50;
    const power = (value) => Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9;
    return splits.map((value) => (!wide || power(value) ? value : null));
  }

  function yAxis(plan, look, font) {
    const size = (u, values, axis, cycle) => {
      if (cycle > 1) return u.axes[axis]._size; // uPlot asks again until sizes settle
      u.ctx.save();
      u.ctx.font = u.axes[axis].font[0];
      const widest = Math.max(0, ...(values || []).map((text) => u.ctx.measureText(text || "").width)) / root.uPlot.pxRatio;
      u.ctx.restore();
      return Math.ceil(widest) + 14;
    };
    const label = plan.compact ? {} : { label: caption(plan.y) || undefined, labelFont: font, labelSize: 22 };
    return {
      stroke: look.faint, font, size, gap: 6, space: plan.compact ? 26 : 36, ...label,
      grid: { stroke: look.grid, width: 1, ...(plan.y.scale === "log" ? { filter: decades } : {}) }, ticks: { show: false }, values: (u, splits) => ticks(splits, plan.y.scale === "log"),
    };
  }

  function options(plan, look, width, hooks) {
    const font = `${plan.compact ? 11 : 12}px system-ui, sans-serif`;
    const paths = { line: root.uPlot.paths.linear(), step: root.uPlot.paths.stepped({ align: 1 }) };
    const series = plan.series.map((one) => ({
      show: one.shown, stroke: look.series[one.look], width: plan.compact ? 1.5 : 2, dash: DASHES[one.look],
      paths: paths[one.kind] || (() => null), points: { show: false },
    }));
    // Long names under the axis cost height; the plot itself should not pay for it.
    const crowded = plan.x.scale === "category" && labelWidth(plan.x) * plan.x.categories.length > width;
    const height = (plan.height || (plan.compact ? 140 : 260)) + (crowded ? slantedHeight(plan.x) - 24 : 0);
    const log = (axis) => (axis.scale === "log" ? { distr: 3, log: 10 } : {});
    return {
      width, height, padding: [8, plan.x.scale === "time" ? 26 : 12, 0, 4], legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 }, ...(plan.sync ? { sync: { key: plan.sync } } : {}) },
      scales: { x: { time: false, range: () => xRange(hooks.plan()), ...log(plan.x) }, y: { range: () => yRange(hooks.plan()), ...log(plan.y) } },
      axes: [xAxis(plan, look, font), yAxis(plan, look, font)],
      series: [{}, ...series],
      hooks: { drawAxes: [hooks.below], draw: [hooks.above], setCursor: [hooks.point] },
    };
  }

  // --- the element
  // -----------------------------------------------------------------------------------------------------------

  function make(tag, name, text) {
    const element = document.createElement(tag);
    element.className = name;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  // What a plot says to who cannot see it.
  function summary(plan) {
    const spans = plan.series.map((one) => {
      const [min, max] = extent(one.y, false);
      return min > max ? `${one.name}: no values` : `${one.name}: ${number(min)} to ${number(max)}`;
    });
    const targets = plan.targets.map((target) => `target ${target.label || number(target.value)}`);
    return [plan.title, `${caption(plan.y)} against ${caption(plan.x)}`, ...spans, ...targets].filter(Boolean).join("; ");
  }

  // The value at, or next to, a place on the x axis; with none given the last one of a moving plot.
  function valueAt(plan, one, at) {
    if (at === null) return plan.x.scale === "time" ? one.y.findLast((value) => value !== null) : undefined;
    let nearest = 0;
    one.x.forEach((value, index) => Math.abs(value - at) < Math.abs(one.x[nearest] - at) && (nearest = index));
    return one.y[nearest];
  }

  class Plot {
    constructor(element, spec) {
      if (!root.uPlot) throw new Error("uPlot is not there: load vendor/uPlot.iife.min.js before plot.js");
      this.plan = prepare(spec);
      this.element = element;
      this.frame = make("div", "plot");
      this.area = make("div", "plot-area");
      this.printing = false;
      element.append(this.frame);
      this.build();
      this.resized = new ResizeObserver(() => this.fit());
      this.resized.observe(this.frame);
      live.add(this);
    }

    update(spec) {
      const next = prepare(spec);
      const same = next.shape === this.plan.shape;
      next.series.forEach((one) => {
        const before = this.plan.series.find((other) => other.name === one.name);
        one.shown = before ? before.shown : true;
      });
      this.plan = next;
      if (!same) return this.build();
      this.marks = painter(this.u, this.plan, this.look);
      this.u.setData(aligned(this.plan));
      this.tell();
    }

    destroy() {
      live.delete(this);
      this.resized.disconnect();
      if (this.u) this.u.destroy();
      this.frame.remove();
    }

    build() {
      if (this.u) this.u.destroy();
      const { plan } = this;
      this.look = colours(this.element);
      this.area.replaceChildren();
      this.area.setAttribute("role", "img");
      const title = make("div", "plot-title", plan.title);
      if (plan.note) title.append(" ", make("small", "", plan.note));
      this.legend = make("div", "plot-legend");
      this.values = plan.legend === false ? [] : plan.series.map((one, place) => this.entry(one, place));
      this.empty = make("div", "plot-empty", "no data");
      this.frame.replaceChildren(...(plan.title || plan.note ? [title] : []), this.area, ...(plan.legend === false ? [] : [this.legend]));
      const hooks = {
        plan: () => this.plan,
        below: () => this.marks.below(),
        above: () => this.marks.above(),
        point: (u) => this.tell(u.cursor.idx === null || u.cursor.idx === undefined ? null : u.data[0][u.cursor.idx]),
      };
      // uPlot draws in a later turn, so the painter is there when the hooks run.
      this.u = new root.uPlot(options(plan, this.look, this.width(), hooks), aligned(plan), this.area);
      this.marks = painter(this.u, plan, this.look);
      this.area.append(this.empty);
      this.tell(null);
    }

    entry(one, place) {
      const button = make("button", "");
      const value = make("span", "plot-value");
      button.type = "button";
      button.title = "Show or hide";
      button.setAttribute("aria-pressed", String(one.shown));
      button.append(swatch(this.plan, one, this.look), make("span", "plot-name", one.name), value);
      button.addEventListener("click", () => {
        const now = this.plan.series[place];
        now.shown = !now.shown;
        button.setAttribute("aria-pressed", String(now.shown));
        this.u.setSeries(place + 1, { show: now.shown });
      });
      this.legend.append(button);
      return value;
    }

    // Writes the values under the cursor (`at` on the x axis; null: nowhere) into the legend.
    tell(at = null) {
      const { plan } = this;
      this.values.forEach((element, place) => {
        const value = valueAt(plan, plan.series[place], at);
        // A compact plot says the unit once, in its title.
        const unit = plan.y.unit && !plan.compact ? ` ${plan.y.unit}` : "";
        element.textContent = value === undefined ? "" : number(value) + (value === null ? "" : unit);
      });
      this.empty.hidden = plan.series.some((one) => one.y.some((value) => value !== null));
      if (at === null) this.area.setAttribute("aria-label", summary(plan));
    }

    width() {
      const room = Math.floor(this.frame.clientWidth) || 600;
      return this.printing ? Math.min(room, PRINT_WIDTH) : room;
    }

    fit() {
      const width = this.width();
      if (width !== this.u.width) this.u.setSize({ width, height: this.u.height });
    }
  }

  // --- what concerns every plot
  // ----------------------------------------------------------------------------------------------

  function rebuild(printing) {
    for (const plot of live) {
      plot.printing = printing;
      plot.build();
    }
  }

  function print(printing) {
    document.documentElement.classList.toggle("plot-printing", printing);
    rebuild(printing);
  }

  if (typeof document !== "undefined") {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => rebuild(false));
    new MutationObserver(() => rebuild(false)).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    addEventListener("beforeprint", () => print(true));
    addEventListener("afterprint", () => print(false));
  }

  root.entremetPlot = (element, spec) => new Plot(element, spec);
  // For those who print the same numbers beside a plot, and for tests.
  Object.assign(root.entremetPlot, { number, ticks, clock, prepare, extent, xRange, yRange });
})(typeof window === "undefined" ? globalThis : window);
