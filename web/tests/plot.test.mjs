// The pure parts of plots: numbers, checks, ranges. What is drawn is looked at in tests/browser.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import vm from "node:vm";

// Of uPlot only its rounding of log ranges is needed; whole decades will do.
const rangeLog = (min, max) => [10 ** Math.floor(Math.log10(min)), 10 ** Math.ceil(Math.log10(max))];
const window = { uPlot: { rangeLog } };
const context = vm.createContext({ window });
for (const name of ["plot-marks.js", "plot.js"]) vm.runInContext(readFileSync(new URL(`../${name}`, import.meta.url), "utf8"), context);
const { number, ticks, prepare, xRange, yRange } = window.entremetPlot;
const plain = (value) => JSON.parse(JSON.stringify(value));
const line = (y, more = {}) => ({ name: "a", x: y.map((_, place) => place), y, ...more });

test("numbers keep three digits that matter", () => {
  const cases = [[0, "0"], [0.000123456, "0.000123"], [1.005, "1"], [12.345, "12.3"], [999.94, "1000"], [9999, "9999"], [9999.6, "10 k"]];
  cases.push([123456, "123 k"], [999999, "1 M"], [2.5e9, "2.5 G"], [-20000, "-20 k"], [null, "–"], [NaN, "–"], [undefined, "–"]);
  for (const [value, text] of cases) assert.equal(number(value), text, String(value));
});

test("ticks of one axis share a prefix", () => {
  assert.deepEqual(plain(ticks([0, 50000, 150000])), ["0", "50k", "150k"]);
  assert.deepEqual(plain(ticks([0, 0.25, 0.5])), ["0", "0.25", "0.5"]);
  assert.deepEqual(plain(ticks([0.1, null, 100000], true)), ["0.1", "", "100 k"]);
});

test("a wrong spec is told everything at once", () => {
  const spec = {
    title: "bad",
    x: { scale: "lin" },
    series: [{ name: "q", x: [1], y: [] }, { kind: "pie", x: [], y: [], low: [] }],
    targets: [{ axis: "z", value: "much" }],
  };
  assert.throws(
    () => prepare(spec),
    (error) => ["x.scale", '"q": x has 1 values, y 0', '"pie"', "low and high", "target's axis", "target's value"].every((part) => error.message.includes(part)),
  );
  assert.throws(() => prepare({ x: { scale: "category" }, series: [] }), /categories is missing/);
});

test("an axis of rates starts at 0, of values far from 0 does not", () => {
  const near = prepare({ series: [line([50, 100])] });
  assert.equal(yRange(near)[0], 0);
  const far = prepare({ series: [line([990, 1000])] });
  assert.ok(yRange(far)[0] > 900);
  assert.equal(yRange(prepare({ series: [line([990, 1000], { kind: "bars" })] }))[0], 0, "the length of a bar is its value");
  assert.deepEqual(plain(yRange(prepare({ y: { min: 5, max: 7 }, series: [] }))), [5, 7]);
});

test("targets, ranges and gaps count, hidden series do not", () => {
  const plan = prepare({ series: [line([1, null, 2], { low: [0.5, 1, 1], high: [1, 1, 30] }), { name: "b", x: [0], y: [900] }], targets: [{ axis: "y", value: 40 }] });
  plan.series[1].shown = false;
  assert.ok(yRange(plan)[1] > 40 && yRange(plan)[1] < 50);
});

test("a log axis drops what it cannot show", () => {
  const plan = prepare({ y: { scale: "log" }, series: [line([0, 5, 50])] });
  assert.deepEqual(plain(plan.series[0].y), [null, 5, 50]);
  assert.deepEqual(plain(yRange(plan)), [1, 100]);
});

test("values are put in the order of x; bars get room at the ends", () => {
  const plan = prepare({ series: [{ name: "s", kind: "bars", x: [20, 0, 10], y: [3, 1, 2] }] });
  assert.deepEqual(plain([plan.series[0].x, plan.series[0].y]), [[0, 10, 20], [1, 2, 3]]);
  assert.deepEqual(plain(xRange(plan)), [-5, 25]);
  assert.deepEqual(plain(xRange(prepare({ series: [] }))), [0, 1]);
  assert.deepEqual(plain(xRange(prepare({ x: { scale: "category", categories: ["a", "b"] }, series: [] }))), [-0.6, 1.6]);
});

test("only values may change without new axes and legend", () => {
  const one = prepare({ title: "t", series: [line([1, 2])] });
  assert.equal(one.shape, prepare({ title: "t", series: [line([3, 4, 5])] }).shape);
  assert.equal(one.shape, prepare({ title: "t", series: [line([3])], targets: [{ axis: "y", value: 1 }] }).shape);
  const moved = (min) => prepare({ title: "t", x: { scale: "time", min, max: min + 60 }, series: [line([1, 2])] }).shape;
  assert.equal(moved(0), moved(1), "a plot that moves stays what it is");
  assert.notEqual(one.shape, prepare({ title: "t", series: [line([1, 2], { name: "b" })] }).shape);
  assert.notEqual(one.shape, prepare({ title: "t", x: { label: "time" }, series: [line([1, 2])] }).shape);
});
