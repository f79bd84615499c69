// Stages: permits in use on average, and who stands in line.

import { arrange, h, meter, write } from "./dom.js";
import { number, plural } from "./text.js";

// Lines in view; on a machine with more cores the quiet ones are counted.
const LINES_MAX = 12;
const SEGMENTS_MAX = 8;

class Line {
  constructor(stage) {
    this.permits = h("td.number");
    this.meter = meter();
    this.rate = h("td.number");
    this.waiting = h("td.number");
    this.queue = h("div.queue");
    this.element = h(
      "tr", {},
      h("th", { scope: "row" }, stage.stage, stage.stage === "device" ? null : h("small", {}, ` core ${stage.core}`)),
      this.permits, h("td.meter-cell", {}, this.meter.element), this.rate, this.waiting, h("td.queue-cell", {}, this.queue),
    );
  }

  update(stage, looks) {
    write(this.permits, `${number(stage.permits_busy)}/${stage.permits}`);
    this.meter.set(stage.permits_busy, stage.permits);
    write(this.rate, number(stage.admitted_per_s));
    write(this.waiting, stage.waiting === 0 ? "·" : number(stage.waiting));
    const inLine = stage.principals.filter((principal) => principal.waiting > 0).slice(0, SEGMENTS_MAX);
    const rest = stage.waiting - inLine.reduce((sum, principal) => sum + principal.waiting, 0);
    const segments = inLine.map((principal) => segment(principal.name, principal.waiting, looks.of(principal.name), principal.explanation));
    if (rest > 0) segments.push(segment("others", rest));
    this.queue.replaceChildren(...segments);
  }
}

function segment(name, waiting, look, explanation) {
  const element = h("span.segment", { title: `${name}: ${waiting} waiting${explanation ? `; ${explanation}` : ""}` }, h("i", { class: look === undefined ? "swatch" : `swatch look-${look}`, "aria-hidden": "true" }), `${name} ${number(waiting)}`);
  element.style.flexGrow = String(waiting);
  return element;
}

export class Stages {
  constructor() {
    this.lines = new Map();
    this.count = h("span.count");
    this.body = h("tbody");
    const heads = ["stage", "permits busy", "", "let through /s", "waiting", "who waits"].map((text) => h("th", { scope: "col" }, text));
    heads[2].setAttribute("aria-hidden", "true");
    this.quiet = h("p.none");
    const table = h("table.stages", { "aria-label": "Stages" }, h("thead", {}, h("tr", {}, ...heads)), this.body);
    this.element = h("section.panel.stages-panel", { "aria-label": "Stages" }, h("div.panel-head", {}, h("h2", {}, "Stages"), this.count), table, this.quiet);
  }

  update(live, looks) {
    const key = (stage) => `${stage.stage} ${stage.core}`;
    const busy = [...live.stages].sort((a, b) => b.waiting - a.waiting || b.permits_busy - a.permits_busy).slice(0, LINES_MAX).map(key);
    const shown = live.stages.filter((stage) => busy.includes(key(stage))).sort((a, b) => (a.stage === b.stage ? a.core - b.core : a.stage < b.stage ? 1 : -1));
    for (const stage of shown) {
      if (!this.lines.has(key(stage))) this.lines.set(key(stage), new Line(stage));
      this.lines.get(key(stage)).update(stage, looks);
    }
    arrange(this.body, shown.map((stage) => this.lines.get(key(stage)).element));
    const waiting = live.stages.reduce((sum, stage) => sum + stage.waiting, 0);
    write(this.count, `${live.stages[0]?.policy ?? ""}, ${waiting === 0 ? "nobody waits" : `${number(waiting)} waiting`}`);
    const more = live.stages.length - shown.length;
    write(this.quiet, more > 0 ? `${plural(more, "quieter stage is", "quieter stages are")} not shown.` : "");
  }
}
