// What both Node clients share: reading the suite, printing replies. The contract is in
// ../README.md.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";

export const settings = {
  port: Number(process.env.SUITE_PORT),
  username: process.env.SUITE_USER,
  password: process.env.SUITE_PASSWORD,
  protocol: Number(process.env.SUITE_PROTOCOL),
  // Where the checks of clients of a cluster end; without it, those of one server are run.
  stop: process.env.SUITE_STOP,
  // What a client of a cluster trusts; without it, there is no TLS.
  ca: process.env.SUITE_CA && readFileSync(process.env.SUITE_CA),
};

function toBytes(arg) {
  if (typeof arg === "object") return Buffer.alloc(arg.repeat[0].length * arg.repeat[1], arg.repeat[0], "latin1");
  return Buffer.from(arg, "latin1");
}

function adler32(data) {
  let low = 1;
  let high = 0;
  for (const byte of data) {
    low = (low + byte) % 65521;
    high = (high + low) % 65521;
  }
  return high * 65536 + low;
}

// A reply as the JSON that every client program prints.
export function tell(reply) {
  if (reply instanceof Error) return { error: reply.message };
  if (Buffer.isBuffer(reply)) {
    return reply.length <= 4096 ? reply.toString("latin1") : { length: reply.length, adler: adler32(reply) };
  }
  if (typeof reply === "string") return tell(Buffer.from(reply, "latin1"));
  if (typeof reply === "bigint") return Number(reply);
  if (Array.isArray(reply)) return reply.map(tell);
  if (reply instanceof Map) return { map: [...reply].map(([key, value]) => [tell(key), tell(value)]) };
  if (reply !== null && typeof reply === "object") {
    return { map: Object.entries(reply).map(([key, value]) => [key, tell(value)]) };
  }
  return reply;
}

// ask(args) sends one command, askAll(list) sends many at once; both return errors as values.
export async function runSuite({ ask, askAll }) {
  const suite = JSON.parse(readFileSync(process.env.SUITE_FILE, "utf8"));
  for (const one of suite) {
    await ask([Buffer.from("FLUSHDB")]);
    const commands = one.steps.map(([args]) => args.map(toBytes));
    const replies = [];
    if (one.pipeline) replies.push(...(await askAll(commands)));
    else for (const args of commands) replies.push(await ask(args));
    console.log(JSON.stringify({ case: one.name, replies: replies.map(tell) }));
  }
}

export async function runTyped(checks) {
  for (const [name, check] of Object.entries(checks)) {
    let problem = "";
    try {
      await check();
    } catch (error) {
      problem = String(error.stack ?? error);
    }
    console.log(JSON.stringify({ case: name, problem }));
  }
}

// The checks of a client of a cluster: incr(key) and get(key) ask for one key.
export function clusterChecks({ set, incr, get, masters, hashTag }) {
  const names = (prefix, count) => Array.from({ length: count }, (_, index) => `${prefix}${index}`);
  return {
    "cluster-keys": async () => {
      for (const [index, name] of names("k", 200).entries()) await set(name, String(index));
      for (const [index, name] of names("k", 200).entries()) assert.equal(await get(name), String(index));
      assert.equal(await masters(), 3);
    },
    // Neither client sends one pipeline to several nodes. What is not awaited travels together.
    "cluster-pipeline": async () => {
      assert.deepEqual(await Promise.all(names("p", 200).map(incr)), Array(200).fill(1));
    },
    "cluster-hash-tag": hashTag,
    "cluster-to-the-end": async () => {
      const counts = Array(32).fill(0);
      while (!(existsSync(settings.stop) && counts[31] > 0)) {
        for (const [index, name] of names("g", 32).entries()) {
          await incr(name);
          counts[index] += 1;
        }
      }
      assert.deepEqual(await Promise.all(names("g", 32).map(get)), counts.map(String));
    },
  };
}
