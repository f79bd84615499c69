// What the page knows: the last minutes of everybody, who is drawn how, which rows come in which
// order. No elements here.

// Seconds are kept for five minutes; before them there are the server's own steps, up to an hour.
export const SPAN_MS = 300_000;
export const HOUR_MS = 3_600_000;
// Of one a second.
export const FRAMES_MAX = SPAN_MS / 1000;
// Of the server's own history.
const STEP_MS = 5000;
// Of the plots.
const LOOKS = 8;
// Steps that tell who was busy lately: five minutes.
const BUSY_STEPS = 60;
// Lines in one plot that an eye can follow.
export const DRAWN_MAX = 6;
// Of older seconds so many ms are one.
const THINNED_MS = 30_000;
// A longer silence is drawn as a gap.
const GAP_MS = 3500;

const FIELDS = {
  rate: (t) => t.requests_per_s,
  p50: (t) => t.p50_ms,
  p99: (t) => t.p99_ms,
  got: (t) => t.share.got_percent,
  entitled: (t) => t.share.entitled_percent,
};
const NAMES = Object.keys(FIELDS);
// Of whoever a step that lists everybody does not list.
const IDLE = NAMES.map((name) => (name === "rate" || name === "got" ? 0 : null));

export class History {
  constructor() {
    this.frames = [];
    this.whole = true;
    // Whether the last frame came from the stream.
    this.live = false;
  }

  // Takes over what the server kept, in steps of some seconds, for the time before what was heard.
  // What is older than its first step stays: it may have been started anew.
  begin(steps) {
    const heard = this.frames.filter((frame) => frame.heard);
    const values = (tenant) => [tenant.requests_per_s, tenant.p50_ms, tenant.p99_ms, tenant.got_percent, null];
    const past = steps.map((step) => ({ at_ms: step.at_ms, tenants: new Map(step.tenants.map((tenant) => [tenant.name, values(tenant)])), absent: step.others === 0 ? IDLE : undefined }));
    const first = past[0]?.at_ms ?? heard[0]?.at_ms ?? Infinity;
    const older = this.frames.filter((frame) => !frame.heard && frame.at_ms < first);
    this.frames = [...older, ...past.filter((frame) => heard.length === 0 || frame.at_ms < heard[0].at_ms), ...heard];
    this.trim();
  }

  // Seconds that are older than five minutes go, but for one in thirty until the server's step for
  // them has come.
  trim() {
    const newest = this.frames.at(-1)?.at_ms ?? 0;
    let last = -Infinity;
    this.frames = this.frames.filter((frame) => {
      const age = newest - frame.at_ms;
      if (age >= HOUR_MS) return false;
      if (age < SPAN_MS) return true;
      if (frame.heard && frame.at_ms - last < THINNED_MS) return false;
      last = frame.at_ms;
      return true;
    });
    for (const frame of this.frames) if (frame.heard && newest - frame.at_ms >= SPAN_MS) frame.heard = false;
  }

  push(live) {
    const last = this.frames.at(-1);
    if (last && live.at_ms <= last.at_ms) return;
    if (last && live.at_ms - last.at_ms > (this.live ? GAP_MS : STEP_MS + GAP_MS)) this.frames.push({ at_ms: last.at_ms + 1000, heard: true, tenants: new Map() });
    const values = (tenant) => NAMES.map((name) => FIELDS[name](tenant));
    this.frames.push({ at_ms: live.at_ms, heard: true, tenants: new Map(live.tenants.map((tenant) => [tenant.name, values(tenant)])) });
    this.live = true;
    this.trim();
  }

  // What plots show: all of it, or the last five minutes.
  shown() {
    const newest = this.frames.at(-1)?.at_ms ?? 0;
    return this.whole ? this.frames : this.frames.filter((frame) => newest - frame.at_ms < SPAN_MS);
  }

  times() {
    return this.shown().map((frame) => frame.at_ms / 1000);
  }

  // One tenant's values of one field, null where it was not listed.
  series(tenant, field) {
    const place = NAMES.indexOf(field);
    return this.shown().map((frame) => {
      const values = frame.tenants.get(tenant) ?? frame.absent;
      return values?.[place] ?? null;
    });
  }
}

// Who is drawn, and in which look. A tenant's look is that of its number, in every browser and at
// every time, if nobody who is drawn has it; else another, which it keeps while it is drawn. A
// place is only taken from one who has become clearly smaller: lines must not change their meaning
// because two tenants are alike.
export class Looks {
  constructor(max = DRAWN_MAX) {
    this.max = max;
    this.drawn = new Map();
    this.weight = new Map();
  }

  // As if it had been there for these steps: who was busy shortly before the page was opened is
  // drawn.
  begin(steps, tenants) {
    for (const step of steps.slice(-BUSY_STEPS)) {
      const got = new Map(step.tenants.map((tenant) => [tenant.name, tenant.got_percent]));
      this.update(tenants.map(({ name, number }) => ({ name, number, throttled_per_s: 0, share: { got_percent: got.get(name) ?? 0 } })));
    }
  }

  update(tenants) {
    const names = new Set(tenants.map((tenant) => tenant.name));
    for (const known of [this.weight, this.drawn]) for (const name of known.keys()) if (!names.has(name)) known.delete(name);
    for (const tenant of tenants) {
      const before = this.weight.get(tenant.name) ?? 0;
      this.weight.set(tenant.name, 0.8 * before + 0.2 * tenant.share.got_percent);
    }
    const heavy = tenants.filter((tenant) => this.weight.get(tenant.name) > 0 || tenant.throttled_per_s > 0);
    heavy.sort((a, b) => this.weight.get(b.name) - this.weight.get(a.name) || (a.name < b.name ? -1 : 1));
    for (const tenant of heavy) {
      if (this.drawn.has(tenant.name)) continue;
      if (this.drawn.size >= this.max && !this.leaves(this.weight.get(tenant.name))) break;
      this.drawn.set(tenant.name, this.free(tenant.number));
    }
  }

  // The look of that number, or the next one that nobody has.
  free(number) {
    const taken = new Set(this.drawn.values());
    const looks = Array.from({ length: LOOKS }, (_, step) => (number - 1 + step) % LOOKS);
    return looks.find((look) => !taken.has(look));
  }

  // Whether the smallest one drawn has made room for a newcomer that is half as heavy again.
  leaves(weight) {
    const [name] = [...this.drawn].reduce((least, one) => (this.weight.get(one[0]) < this.weight.get(least[0]) ? one : least));
    return weight > 1.5 * this.weight.get(name) && this.drawn.delete(name);
  }

  of(name) {
    return this.drawn.get(name);
  }
}

export function isIdle(tenant) {
  return tenant.requests_per_s === 0 && tenant.throttled_per_s === 0 && tenant.stages.every((stage) => stage.waiting === 0);
}

export function wait(tenant, stage) {
  return tenant.stages.find((one) => one.stage === stage)?.wait_mean_ms ?? null;
}

export function waiting(tenant) {
  return tenant.stages.reduce((sum, stage) => sum + stage.waiting, 0);
}

// The rows to show: those whose name holds `filter`, in the order of `value`. What has no value
// comes last either way.
export function rows(tenants, { filter, hideIdle, value, descending }) {
  const wanted = filter.toLowerCase();
  const kept = tenants.filter((tenant) => tenant.name.toLowerCase().includes(wanted) && !(hideIdle && isIdle(tenant)));
  const none = (one) => one === null || one === undefined;
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
  return kept.sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (none(a) || none(b)) return none(a) - none(b) || one.name.localeCompare(other.name);
    return (descending ? compare(b, a) : compare(a, b)) || one.name.localeCompare(other.name);
  });
}
