// What both Node clients share: reading the suite, printing replies. The contract is in
// ../README.md.

import { readFileSync } from "node:fs";

export const settings = {
  port: Number(process.env.SUITE_PORT),
  username: process.env.SUITE_USER,
  password: process.env.SUITE_PASSWORD,
  protocol: Number(process.env.SUITE_PROTOCOL),
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
