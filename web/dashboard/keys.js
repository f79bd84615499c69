// Keys, for hands that stay on the keyboard. They are listed in index.html and
// docs/guide/dashboard.md.

// `acts`: a function for each key. Keys typed into a field belong to the field, except Escape.
export function listen(acts) {
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement;
    if (event.ctrlKey || event.metaKey || event.altKey || (typing && event.key !== "Escape")) return;
    if (document.querySelector("dialog[open]")) return;
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

// Moves the focus among the links to tenants.
export function move(step) {
  const links = [...document.querySelectorAll("a.tenant-link")];
  if (links.length === 0) return;
  const at = links.indexOf(document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + step));
  links[next].focus();
}
