// node-redis's part of the common suite.

import assert from "node:assert/strict";
import { createClient, createCluster, RESP_TYPES } from "redis";
import { clusterChecks, runSuite, runTyped, settings } from "./suite.mjs";

async function connect(more = {}) {
  const client = createClient({
    username: settings.username,
    password: settings.password,
    RESP: settings.protocol,
    socket: { host: "127.0.0.1", port: settings.port, reconnectStrategy: false },
    ...more,
  });
  client.on("error", () => {});
  return client.connect();
}

async function cluster() {
  const client = createCluster({
    rootNodes: [{ url: `${settings.ca ? "rediss" : "redis"}://127.0.0.1:${settings.port}` }],
    defaults: {
      username: settings.username,
      password: settings.password,
      RESP: settings.protocol,
      socket: settings.ca ? { tls: true, ca: settings.ca } : {},
    },
  });
  client.on("error", () => {});
  await client.connect();
  await runTyped(
    clusterChecks({
      set: (key, value) => client.set(key, value),
      incr: (key) => client.incr(key),
      get: (key) => client.get(key),
      masters: async () => client.masters.length,
      hashTag: async () => {
        assert.equal(await client.mSet({ "{t}a": "1", "{t}b": "2" }), "OK");
        assert.deepEqual(await client.multi().incr("{t}a").incr("{t}b").exec(), [2, 3]);
        assert.deepEqual(await client.mGet(["{t}a", "{t}b"]), ["2", "3"]);
      },
    }),
  );
  await client.close();
}

async function single() {
  const client = await connect();
  const bytes = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.VERBATIM_STRING]: String });
  const ask = (args) => bytes.sendCommand(args).catch((error) => error);

  // sendCommand writes at once, so commands that are not awaited in between travel together.
  await runSuite({ ask, askAll: (commands) => Promise.all(commands.map(ask)) });

  await runTyped({
    "typed-set-get": async () => {
      assert.equal(await client.set("ts", "v", { expiration: { type: "EX", value: 100 } }), "OK");
      assert.equal(await client.get("ts"), "v");
      assert.equal(await client.set("ts", "w", { condition: "NX" }), null);
    },
    "typed-hash": async () => {
      assert.equal(await client.hSet("th", { a: "1", b: "two" }), 2);
      assert.deepEqual({ ...(await client.hGetAll("th")) }, { a: "1", b: "two" });
    },
    "typed-sorted-set": async () => {
      assert.equal(await client.zAdd("tz", [{ score: 1, value: "a" }, { score: 2.5, value: "b" }]), 2);
      const found = await client.zRangeWithScores("tz", 0, -1);
      assert.deepEqual(found.map(({ value, score }) => [value, score]), [["a", 1], ["b", 2.5]]);
    },
    "typed-pipeline": async () => {
      assert.deepEqual(await client.multi().set("tp", "1").incr("tp").exec(), ["OK", 2]);
      assert.deepEqual(await client.multi().set("tp", "1").incr("tp").execAsPipeline(), ["OK", 2]);
    },
    "typed-watch": async () => {
      const other = await connect();
      await client.watch("tw");
      await other.set("tw", "2");
      await assert.rejects(client.multi().set("tw", "3").exec(), /watched|Watch/i);
      await other.close();
    },
    "typed-refused-password": async () => {
      await assert.rejects(connect({ password: "wrong" }), /WRONGPASS/);
    },
    "typed-many-connections": async () => {
      const clients = await Promise.all(Array.from({ length: 50 }, () => connect()));
      await Promise.all(clients.map((one, index) => one.set(`many:${index}`, String(index))));
      assert.equal(await clients[0].get("many:49"), "49");
      await Promise.all(clients.map((one) => one.close()));
    },
  });
  await client.close();
}

await (settings.stop ? cluster() : single());
