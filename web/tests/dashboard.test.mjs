// What the dashboard decides without a page: whose line is drawn, which rows stand where, how
// numbers read.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import vm from "node:vm";

import { HOUR_MS, History, Looks, SPAN_MS, isIdle, rows } from "../dashboard/state.js";
import { budget, drawn, kept } from "../dashboard/attainment.js";
import { bytes, duration, ms, percent, rare } from "../dashboard/text.js";

for (const name of ["plot-marks.js", "plot.js"]) vm.runInThisContext(readFileSync(new URL(`../${name}`, import.meta.url), "utf8"));

const tenant = (name, got = 0, more = {}) => ({ name, number: 1 + (name.charCodeAt(0) - 97), requests_per_s: got * 10, throttled_per_s: 0, p50_ms: 1, p99_ms: got ? 2 : null, share: { got_percent: got, entitled_percent: 5 }, stages: [], ...more });
const live = (at_ms, ...tenants) => ({ at_ms, tenants });

test("history keeps the seconds of five minutes, with gaps where nothing was heard", () => {
  const history = new History();
  history.whole = false;
  for (let second = 0; second < 305; second += 1) history.push(live(second * 1000, tenant("web", second)));
  assert.equal(history.times().length, SPAN_MS / 1000);
  assert.equal(history.series("web", "got")[0], 5);
  history.push(live(400_000, tenant("batch", 7)));
  assert.deepEqual(history.series("web", "got").slice(-3), [304, null, null]);
  assert.deepEqual(history.series("batch", "rate").slice(-3), [null, null, 70]);
  assert.deepEqual(history.times().slice(-2), [305, 400]);
  history.push(live(400_000, tenant("batch", 9)));
  assert.equal(history.series("batch", "got").at(-1), 7, "a frame that is told again is not new");
});

const past = (name, got) => ({ name, requests_per_s: got * 10, p50_ms: 1, p99_ms: 2, got_percent: got });
const step = (at_ms, others, ...tenants) => ({ at_ms, others, tenants });

test("history begins with what was before the page", () => {
  const history = new History();
  history.push(live(12_500, tenant("web", 9)));
  history.begin([step(5_000, 0, past("batch", 3)), step(10_000, 4, past("web", 6)), step(15_000, 0, past("web", 7))]);
  assert.deepEqual(history.times(), [5, 10, 12.5], "what was heard is not told twice");
  assert.deepEqual(history.series("web", "got"), [0, 6, 9], "who is not in a whole list did nothing");
  assert.deepEqual(history.series("batch", "rate"), [30, null, null], "of a list that is cut nobody knows");
  assert.deepEqual(history.series("web", "p99"), [null, 2, 2]);

  const early = new History();
  early.begin([step(5_000, 0), step(10_000, 0)]);
  early.push(live(16_000, tenant("web", 1)));
  assert.deepEqual(early.times(), [5, 10, 16], "steps of five seconds are no gap");
  early.push(live(SPAN_MS + 8_000, tenant("web", 1)));
  assert.deepEqual(early.times().slice(0, 3), [5, 10, 16], "an hour is shown");
  early.whole = false;
  assert.deepEqual(early.times().slice(0, 2), [10, 16], "or five minutes");
  early.push(live(HOUR_MS + 7_000, tenant("web", 1)));
  early.whole = true;
  assert.deepEqual(early.times().slice(0, 2), [10, 308], "what is older than an hour goes");
});

test("an hour of seconds is kept in few, and the server's steps take their place", () => {
  const history = new History();
  for (let second = 0; second < 3700; second += 1) history.push(live(second * 1000, tenant("web", second)));
  assert.ok(history.frames.length <= 300 + 110 + 1, `${history.frames.length}`);
  assert.ok(history.times()[0] >= 99 && history.times()[0] <= 130);
  const steps = Array.from({ length: 100 }, (_, place) => step(400_000 + 30_000 * place, 0, past("web", 7)));
  history.begin(steps);
  assert.deepEqual(history.times().filter((at) => at >= 400 && at < 3400), steps.map((one) => one.at_ms / 1000));
  assert.ok(history.times()[0] < 400, "what the server does not know any more stays");
  assert.deepEqual([...history.times()].sort((a, b) => a - b), history.times());
});

test("who was busy before the page was opened is drawn", () => {
  const looks = new Looks(2);
  const tenants = [tenant("web"), tenant("batch"), tenant("idle")];
  looks.begin([step(5_000, 0, past("web", 60), past("batch", 40)), step(10_000, 0, past("web", 100))], tenants);
  looks.update(tenants);
  assert.deepEqual([...looks.drawn.keys()], ["web", "batch"]);
});

test("a tenant keeps its look, and small differences move nobody", () => {
  const looks = new Looks(2);
  looks.update([tenant("a", 40), tenant("b", 30), tenant("c", 29)]);
  assert.deepEqual([...looks.drawn], [["a", 0], ["b", 1]]);
  for (let i = 0; i < 20; i += 1) looks.update([tenant("a", 30), tenant("b", 29), tenant("c", 40)]);
  assert.equal(looks.of("c"), undefined, "c is not half as heavy again");
  for (let i = 0; i < 20; i += 1) looks.update([tenant("a", 30), tenant("b", 10), tenant("c", 60)]);
  assert.deepEqual([looks.of("a"), looks.of("b"), looks.of("c")], [0, undefined, 2]);
  looks.update([tenant("b", 10), tenant("c", 60)]);
  assert.deepEqual([looks.of("a"), looks.of("b")], [undefined, 1], "its own again");
  looks.update([]);
  assert.equal(looks.drawn.size, 0);
});

test("a look is that of the tenant's number, whoever came first", () => {
  const [one, other] = [new Looks(), new Looks()];
  one.update([tenant("a", 40), tenant("c", 30)]);
  other.update([tenant("c", 40)]);
  other.update([tenant("c", 40), tenant("a", 30)]);
  assert.deepEqual([one.of("a"), one.of("c")], [other.of("a"), other.of("c")]);
  const ninth = { ...tenant("late", 50), number: 9 };
  one.update([tenant("a", 40), tenant("c", 30), ninth]);
  assert.deepEqual([one.of("a"), one.of("late")], [0, 1], "the next that is free, where it is taken");
});

test("idle tenants are not drawn, refused ones are", () => {
  const looks = new Looks();
  looks.update([tenant("idle"), tenant("refused", 0, { throttled_per_s: 5 })]);
  assert.deepEqual([...looks.drawn.keys()], ["refused"]);
  assert.ok(isIdle(tenant("idle")) && !isIdle(tenant("refused", 0, { throttled_per_s: 5 })));
  assert.ok(!isIdle(tenant("stuck", 0, { stages: [{ waiting: 3 }] })), "who waits is not idle");
});

test("rows are filtered and sorted, what has no value last either way", () => {
  const tenants = [tenant("web", 10), tenant("Batch", 30), tenant("idle"), tenant("batch-2", 20)];
  const names = (options) => rows(tenants, { filter: "", hideIdle: false, value: (t) => t.share.got_percent, descending: true, ...options }).map((t) => t.name);
  assert.deepEqual(names({}), ["Batch", "batch-2", "web", "idle"]);
  assert.deepEqual(names({ filter: "BATCH" }), ["Batch", "batch-2"]);
  assert.deepEqual(names({ hideIdle: true, descending: false }), ["web", "batch-2", "Batch"]);
  const byLatency = { value: (t) => t.p99_ms };
  assert.equal(names({ ...byLatency, descending: true }).at(-1), "idle");
  assert.equal(names({ ...byLatency, descending: false }).at(-1), "idle");
  assert.deepEqual(names({ value: (t) => t.name, descending: false }), ["Batch", "batch-2", "idle", "web"]);
});

test("numbers read as people say them", () => {
  assert.deepEqual([rare(0), rare(null), rare(12345)], ["·", "–", "12.3 k"]);
  assert.deepEqual([percent(0), percent(0.02), percent(12.345), percent(null)], ["0.0", "<0.1", "12.3", "–"]);
  assert.deepEqual([ms(0.0004), ms(0.0456), ms(1234.5), ms(null)], ["<0.001", "0.0456", "1235", "–"]);
  assert.deepEqual([bytes(0), bytes(1023), bytes(1536), bytes(2 ** 31)], ["0 B", "1023 B", "1.5 KiB", "2 GiB"]);
  assert.deepEqual([duration(0), duration(59), duration(3600), duration(90061)], ["0 s", "59 s", "1 h", "1 d 1 h"]);
});

test("a promise's windows and error budget are drawn as the table counts them", () => {
  const step = (windows_met, windows_missed, requests, requests_late) => ({ windows_met, windows_missed, requests, requests_late });
  const steps = [step(6, 0, 400, 1), step(0, 0, 0, 0), step(3, 1, 600, 4)];
  assert.deepEqual(kept(steps), [100, null, 75], "where nothing was asked nothing is drawn");
  assert.deepEqual(budget(steps, 99).map(Math.round), [90, 90, 50], "of the ten that may be late");
  const at = (at_ms) => ({ at_ms });
  assert.deepEqual(drawn([at(0), at(10), at(50)], [1, 2, 3], 10, 54), [[0, 1], [10, 2], [20, 2], [21, null], [50, 3], [54, 3]]);
  assert.deepEqual(drawn([at(40)], [7], 10, 60), [[40, 7], [50, 7]], "one step is a line, too");
  assert.deepEqual(drawn([], [], 10, 60), []);
  assert.deepEqual(budget(steps, null), [null, null, null], "a rate has none");
  assert.deepEqual(budget([step(0, 1, 10, 10)], 99), [-100], "an overdrawn one does not press the others flat");
});
