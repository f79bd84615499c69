// ioredis's part of the common suite (RESP2, the only protocol that it opens by default).

import assert from "node:assert/strict";
import { Cluster, Redis } from "ioredis";
import { clusterChecks, runSuite, runTyped, settings } from "./suite.mjs";

const options = { host: "127.0.0.1", port: settings.port, username: settings.username, password: settings.password };
const connect = (more = {}) => new Redis({ ...options, ...more });

async function cluster() {
  const { username, password, ca } = settings;
  const redisOptions = { username, password, tls: ca && { ca } };
  const client = new Cluster([{ host: "127.0.0.1", port: settings.port }], { redisOptions });
  await runTyped(
    clusterChecks({
      set: (key, value) => client.set(key, value),
      incr: (key) => client.incr(key),
      get: (key) => client.get(key),
      masters: async () => client.nodes("master").length,
      hashTag: async () => {
        assert.equal(await client.mset("{t}a", 1, "{t}b", 2), "OK");
        assert.deepEqual(await client.multi().incr("{t}a").incr("{t}b").exec(), [[null, 2], [null, 3]]);
        assert.deepEqual(await client.mget("{t}a", "{t}b"), ["2", "3"]);
      },
    }),
  );
  client.disconnect();
}

async function single() {
  const client = connect();

  await runSuite({
    ask: ([name, ...args]) => client.callBuffer(name.toString("latin1"), ...args).catch((error) => error),
    askAll: async (commands) => {
      const pipeline = client.pipeline();
      for (const [name, ...args] of commands) pipeline.callBuffer(name.toString("latin1"), ...args);
      return (await pipeline.exec()).map(([error, reply]) => error ?? reply);
    },
  });

  await runTyped({
    "typed-set-get": async () => {
      assert.equal(await client.set("ts", "v", "EX", 100), "OK");
      assert.equal(await client.get("ts"), "v");
      assert.equal(await client.set("ts", "w", "NX"), null);
    },
    "typed-hash": async () => {
      assert.equal(await client.hset("th", { a: 1, b: "two" }), 2);
      assert.deepEqual(await client.hgetall("th"), { a: "1", b: "two" });
    },
    "typed-sorted-set": async () => {
      assert.equal(await client.zadd("tz", 1, "a", 2.5, "b"), 2);
      assert.deepEqual(await client.zrange("tz", 0, -1, "WITHSCORES"), ["a", "1", "b", "2.5"]);
    },
    "typed-pipeline": async () => {
      assert.deepEqual(await client.pipeline().set("tp", 1).incr("tp").exec(), [[null, "OK"], [null, 2]]);
      assert.deepEqual(await client.multi().set("tp", 1).incr("tp").exec(), [[null, "OK"], [null, 2]]);
    },
    "typed-watch": async () => {
      const other = connect();
      await client.watch("tw");
      await other.set("tw", 2);
      assert.equal(await client.multi().set("tw", 3).exec(), null);
      other.disconnect();
    },
    "typed-refused-password": async () => {
      const refused = connect({ password: "wrong", lazyConnect: true, retryStrategy: null });
      refused.on("error", () => {});
      await assert.rejects(refused.connect().then(() => refused.ping()));
      refused.disconnect();
    },
    "typed-many-connections": async () => {
      const clients = Array.from({ length: 50 }, () => connect());
      await Promise.all(clients.map((one, index) => one.set(`many:${index}`, index)));
      assert.equal(await clients[0].get("many:49"), "49");
      clients.forEach((one) => one.disconnect());
    },
  });
  client.disconnect();
}

await (settings.stop ? cluster() : single());
