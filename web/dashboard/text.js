// Numbers as people read them. Units stand in headings, so these are bare unless they say
// otherwise.

export const number = (value) => globalThis.entremetPlot.number(value);

// A count or rate of things that mostly do not happen: nothing is a dot, not a 0 that asks to be
// read.
export function rare(value) {
  if (value === null || value === undefined) return "–";
  return value === 0 ? "·" : number(value);
}

export function percent(value) {
  if (value === null || value === undefined) return "–";
  if (value !== 0 && value < 0.1) return "<0.1";
  return value.toFixed(1);
}

export function ms(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  return value < 0.001 ? "<0.001" : number(value);
}

const STEPS = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];

export function bytes(value) {
  const [unit, name] = STEPS.find(([unit]) => value >= unit) || [1, "B"];
  return `${number(value / unit)} ${name}`;
}

export function duration(seconds) {
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([unit]) => seconds >= unit);
  if (first < 0) return "0 s";
  const [unit, name] = parts[first];
  const whole = `${Math.floor(seconds / unit)} ${name}`;
  const next = parts[first + 1];
  const rest = next ? Math.floor((seconds % unit) / next[0]) : 0;
  return rest > 0 ? `${whole} ${rest} ${next[1]}` : whole;
}

export function clock(at_ms) {
  return globalThis.entremetPlot.clock(at_ms / 1000);
}

export function plural(count, one, many) {
  return `${count} ${count === 1 ? one : many}`;
}
