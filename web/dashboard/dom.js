// Elements. Text only ever enters as text, so a tenant's name cannot become markup.

// h("a.name#id", {href}, child, ...): an element; children are elements or text, null is left out.
export function h(what, attributes = {}, ...children) {
  const [, tag, rest] = /^([a-z0-9]+)(.*)$/.exec(what);
  const element = document.createElement(tag);
  for (const part of rest.match(/[.#][^.#]+/g) || []) {
    if (part[0] === "#") element.id = part.slice(1);
    else element.classList.add(part.slice(1));
  }
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// Writes only what changed: an unchanged cell costs no layout and keeps a reader's selection.
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function toggle(element, name, on) {
  if (element.classList.contains(name) !== on) element.classList.toggle(name, on);
}

// Makes `parent` hold exactly `wanted`, in that order, moving as little as possible.
export function arrange(parent, wanted) {
  let at = parent.firstElementChild;
  for (const element of wanted) {
    if (element === at) at = at.nextElementSibling;
    else parent.insertBefore(element, at);
  }
  while (at) {
    const next = at.nextElementSibling;
    at.remove();
    at = next;
  }
}

// A bar from 0 to `max` with a tick at `mark`: what was got, and what it is entitled to.
export function meter() {
  const fill = h("i.fill");
  const tick = h("i.tick");
  const element = h("span.meter", { "aria-hidden": "true" }, fill, tick);
  const percent = (value, max) => `${max > 0 ? Math.min(100, (100 * value) / max) : 0}%`;
  return {
    element,
    set(value, max, mark = null) {
      fill.style.width = percent(value, max);
      tick.hidden = mark === null;
      if (mark !== null) tick.style.left = percent(mark, max);
    },
  };
}
