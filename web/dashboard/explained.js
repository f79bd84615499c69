// What the server says of a tenant in words: where the time goes, what is promised and kept, what
// it would take, and what the controller did.

import { ask } from "./feed.js";
import { h } from "./dom.js";

const EVERY_MS = 5000;

export class Explained {
  constructor(name) {
    this.name = name;
    this.lines = h("ul.explained");
    this.element = h("section.panel", { "aria-label": "In words", hidden: "" }, h("div.panel-head", {}, h("h2", {}, "In words")), this.lines);
    this.look();
    this.timer = setInterval(() => this.look(), EVERY_MS);
  }

  async look() {
    const told = await ask(`/api/explain/${encodeURIComponent(this.name)}`).catch(() => null);
    if (told === null) return;
    this.element.hidden = told.lines.length === 0;
    this.lines.replaceChildren(...told.lines.map((line) => h("li", {}, line)));
  }

  leave() {
    clearInterval(this.timer);
  }
}
