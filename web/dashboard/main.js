// The dashboard: wires the feed to the page, and the page to keys and buttons.

import { write } from "./dom.js";
import { Feed, ask } from "./feed.js";
import { listen, move } from "./keys.js";
import { Overview } from "./overview.js";
import { pairs } from "./pairs.js";
import { History, Looks } from "./state.js";
import { TenantPage } from "./tenant.js";
import { bytes, clock, duration, number, percent } from "./text.js";

const byId = (id) => document.getElementById(id);
const [state, banner, facts, main, pauseButton, themeButton] = ["state", "banner", "facts", "main", "pause", "theme"].map(byId);
const spanButton = byId("span");

const REFRESH_MS = 120_000;

const history = new History();
const looks = new Looks();
// What was before the page, until it is known who is who.
let past = [];
const seen = { live: null, detail: null, status: "connecting" };
let page = null;
let paused = false;

const feed = new Feed({
  live(live) {
    history.push(live);
    looks.begin(past, live.tenants);
    past = [];
    looks.update(live.tenants);
    seen.live = live;
    if (!paused) showLive();
  },
  tenant(detail) {
    seen.detail = detail;
    if (!paused && page.detail) page.detail(detail);
  },
  status(status) {
    if (status === seen.status) return;
    seen.status = status;
    showStatus();
  },
});

// What connections took that have not logged in, if that can be seen: it is nobody's share.
function beforeLogin({ share }) {
  return share.got_percent < 0.1 ? [] : [["before log-in", `${percent(share.got_percent)} %`]];
}

function showLive() {
  const { server } = seen.live;
  pairs(facts, [
    ["requests", `${number(server.requests_per_s)}/s`],
    ["throttled", `${number(server.throttled_per_s)}/s`],
    ["CPU", `${number(server.cpu_per_s)} of ${server.cores} ${server.cores === 1 ? "core" : "cores"}`],
    ["connections", number(server.connections)],
    ["memory", `${bytes(server.memory_resident)} of ${bytes(server.memory_process_max)}`],
    ["caches", `${bytes(server.memory_used)} of ${bytes(server.memory_max)}`],
    ...beforeLogin(seen.live.newcomers),
    ["scheduler", server.scheduler],
    ["up", duration(server.uptime_s)],
  ]);
  write(byId("version"), `Entremet ${server.version}. `);
  showStatus();
  page.update(seen.live);
}

// One word beside the name, and a banner when the numbers are not to be trusted.
function showStatus() {
  const { live, status } = seen;
  const lost = status === "lost";
  const server = live?.server;
  const word = lost ? "no answer" : paused ? "paused" : !server ? "connecting" : server.state === "ready" ? "live" : server.state;
  write(state, word);
  state.dataset.kind = lost ? "bad" : paused || (server && server.state !== "ready") ? "warn" : "good";
  const said = [];
  if (lost) said.push(`The server does not answer at ${location.host}. ${live ? `These numbers are of ${clock(live.at_ms)}.` : ""} Trying again.`);
  else if (server?.reason) said.push(`The server is ${server.state}: ${server.reason}.`);
  if (server?.control_failure) said.push(`The ${server.control_failure}.`);
  if (status === "polling") said.push("No stream is to be had; asking each second instead.");
  banner.hidden = said.length === 0;
  write(banner, said.join(" "));
  main.classList.toggle("stale", lost);
}

function pause() {
  paused = !paused;
  pauseButton.setAttribute("aria-pressed", String(paused));
  write(pauseButton, paused ? "Go on" : "Pause");
  if (!paused && seen.live) {
    showLive();
    if (page.detail && seen.detail !== null) page.detail(seen.detail);
  } else showStatus();
}

// --- light and dark
// ----------------------------------------------------------------------------------------------------------

const THEMES = ["auto", "light", "dark"];

// A browser may forbid storage; the choice then lasts as long as the page.
function stored(value) {
  try {
    if (value !== undefined) localStorage.setItem("entremet-theme", value);
    return localStorage.getItem("entremet-theme");
  } catch {
    return null;
  }
}

let theme = THEMES.includes(stored()) ? stored() : "auto";

function setTheme(next) {
  theme = next;
  stored(next);
  if (next === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  write(themeButton, { auto: "Theme: auto", light: "Theme: light", dark: "Theme: dark" }[next]);
}

// --- pages
// -------------------------------------------------------------------------------------------------------------------

// A name that is not well encoded is a name of nobody; it must not stop the page.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function go() {
  const match = /^#\/tenant\/(.+)$/.exec(location.hash);
  const name = match ? decoded(match[1]) : null;
  if (page) page.leave();
  seen.detail = null;
  page = name === null ? new Overview({ history, looks }) : new TenantPage({ history }, name);
  document.title = name === null ? "Entremet" : `${name} · Entremet`;
  main.replaceChildren(page.element);
  scrollTo(0, 0);
  if (seen.live) page.update(seen.live);
  feed.open(name);
}

function back() {
  if (page.table && page.table.clear()) return;
  if (page.table) document.activeElement.blur();
  else location.hash = "#/";
}

function onTable(act) {
  return () => page.table && act(page.table);
}

// The last hour, or its last five minutes.
function changeSpan() {
  history.whole = !history.whole;
  write(spanButton, history.whole ? "1 hour" : "5 minutes");
  if (!seen.live) return;
  if (page.detail) seen.detail && page.detail(seen.detail);
  else page.draw();
}

pauseButton.addEventListener("click", pause);
spanButton.addEventListener("click", changeSpan);
themeButton.addEventListener("click", () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]));
byId("help").addEventListener("click", () => byId("keys").showModal());
addEventListener("hashchange", go);
listen({
  p: pause,
  h: () => spanButton.click(),
  t: () => themeButton.click(),
  "?": () => byId("keys").showModal(),
  "/": onTable((table) => table.filter.focus()),
  i: onTable((table) => table.toggleIdle()),
  s: onTable((table) => table.sortNext(1)),
  S: onTable((table) => table.sortNext(-1)),
  r: onTable((table) => table.reverse()),
  j: () => move(1),
  k: () => move(-1),
  Escape: back,
});
// What was before the page: plots that begin empty tell nothing of why somebody opened it. A server
// that has none to tell is no reason not to begin.
async function begin() {
  const kept = await ask("/api/history").catch(() => null);
  if (kept === null) return;
  history.begin(kept.steps);
  past = kept.steps;
}

setTheme(theme);
go();
begin();
// What is older than the page's own seconds comes from the server in steps, and is asked for again
// as they pass.
setInterval(() => ask("/api/history").then((kept) => kept && history.begin(kept.steps)).catch(() => null), REFRESH_MS);
