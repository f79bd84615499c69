// The first page: everybody.

import { ClusterPanel } from "./cluster.js";
import { DevicePanel } from "./device.js";
import { h } from "./dom.js";
import { Delays } from "./promises.js";
import { Stages } from "./stages.js";
import { Table } from "./table.js";

const PLOTS = [
  { field: "rate", title: "Rate", y: { label: "rate", unit: "req/s", min: 0 } },
  { field: "p99", title: "p99 latency", y: { label: "latency", unit: "ms", scale: "log" } },
  { field: "got", title: "Share got", y: { label: "share", unit: "%", min: 0 } },
];

export class Overview {
  constructor({ history, looks }) {
    this.history = history;
    this.looks = looks;
    this.table = new Table();
    this.stages = new Stages();
    this.device = new DevicePanel();
    this.delays = new Delays();
    this.cluster = new ClusterPanel();
    this.places = PLOTS.map(({ title }) => h("section.panel.plot-panel", { "aria-label": title }));
    this.element = h("div.page.overview", {}, h("div.plots", {}, ...this.places), this.table.element, this.delays.element, this.cluster.element, this.stages.element, this.device.element);
  }

  update(live) {
    this.table.update(live, this.looks);
    this.stages.update(live, this.looks);
    this.device.update(live.server);
    this.draw();
  }

  draw() {
    const drawn = [...this.looks.drawn].sort((a, b) => a[1] - b[1]);
    const x = this.history.times();
    const more = (this.history.frames.at(-1)?.tenants.size ?? 0) - drawn.length;
    const note = more > 0 && drawn.length > 0 ? `the ${drawn.length} largest` : "";
    this.plots ??= [];
    PLOTS.forEach(({ field, title, y }, place) => {
      const series = drawn.map(([name, look]) => ({ name, look, x, y: this.history.series(name, field) }));
      const spec = { title: `${title}, ${y.unit}`, note, compact: true, height: 150, sync: "overview", x: { label: "time", scale: "time", ...span(x) }, y, series };
      if (this.plots[place]) this.plots[place].update(spec);
      else this.plots[place] = entremetPlot(this.places[place], spec);
    });
  }

  leave() {
    for (const plot of this.plots ?? []) plot.destroy();
    this.plots = undefined;
    this.delays.leave();
    this.cluster.leave();
  }
}

// A moving plot shows at least a minute, so that its first seconds do not race.
export function span(x) {
  const end = x.at(-1) ?? Date.now() / 1000;
  return { min: Math.min(x[0] ?? end, end - 60), max: end };
}
