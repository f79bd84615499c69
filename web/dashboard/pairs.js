// Terms and values, each perhaps with a tip; elements are kept, so that only changed text is
// written.

import { arrange, h, write } from "./dom.js";

export function pairs(list, entries) {
  const known = [...list.children];
  const wanted = entries.map(([term, value, tip], place) => {
    const entry = known[place] ?? h("div", {}, h("dt"), h("dd"));
    write(entry.firstElementChild, term);
    write(entry.lastElementChild, value);
    if (tip) entry.title = tip;
    return entry;
  });
  arrange(list, wanted);
}
