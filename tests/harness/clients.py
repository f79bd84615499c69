"""Clients that write and read all the time, and say at their end what was wrong."""

import asyncio
import threading

import redis
import redis.asyncio

from harness.waiting import eventually


def fill(wire, count, value="x"):
    for number in range(count):
        wire.send("SET", f"key:{number}", f"{number}:{value}")
    assert all(wire.read() == b"OK" for _ in range(count))


def all_there(wire, count, value="x"):
    names = [f"key:{number}" for number in range(count)]
    return wire.attempt("MGET", *names) == [f"{number}:{value}".encode() for number in range(count)]


def all_go_on(clients, what):
    """Each of them is served from now on."""
    rounds = [client.rounds for client in clients]

    def served():
        wrong = {client.mine: client.wrong[:3] for client in clients if client.wrong}
        assert not wrong, wrong
        return all(client.rounds > so_far + 3 for client, so_far in zip(clients, rounds))

    eventually(served, 60, what)


def end(clients):
    """They end, and nothing was wrong for any."""
    for client in clients:
        client.stop.set()
    for client in clients:
        client.join(60)
        assert not client.wrong, (client.mine, [str(wrong) for wrong in client.wrong[:3]])


class Client(threading.Thread):
    """A client that writes and reads its own keys until it is stopped. It keeps what is wrong."""

    def __init__(self, name):
        super().__init__(daemon=True)
        self.mine, self.stop, self.wrong, self.rounds = name, threading.Event(), [], 0

    def run(self):
        try:
            self.work()
        except Exception as error:  # noqa: BLE001 (whatever ends it is what the test must see)
            self.wrong.append(error)

    def expect(self, what, got, right):
        if got != right:
            self.wrong.append((what, got, right))

    def work(self):
        with self.connected() as client:
            while not self.stop.is_set():
                self.rounds += 1
                key, text = f"{self.mine}:{self.rounds % 50}", f"{self.rounds}"
                self.expect("set", client.set(key, text), True)
                self.expect("get", client.get(key), text.encode())
                self.expect("incr", client.incr(f"{self.mine}:count"), self.rounds)
                self.expect("list", client.rpush(f"{self.mine}:list", text), self.rounds)
                self.expect("new", client.set(f"{self.mine}:new:{text}", text), True)
                self.expect("delete", client.delete(f"{self.mine}:new:{text}"), 1)

    def kept(self, client):
        """All that was answered is there."""
        assert client.get(f"{self.mine}:count") == b"%d" % self.rounds
        assert client.lrange(f"{self.mine}:list", 0, -1) == [b"%d" % number for number in range(1, self.rounds + 1)]


def credentials(front, tenant):
    return dict(host="127.0.0.1", port=front.port, username=tenant.name, password=tenant.password, socket_timeout=60)


class Plain(Client):
    def __init__(self, name, front, tenant):
        super().__init__(name)
        self.connected = lambda: redis.Redis(**credentials(front, tenant))


class Aware(Client):
    def __init__(self, name, front, tenant):
        super().__init__(name)
        self.connected = lambda: redis.RedisCluster(**credentials(front, tenant))


class Transactions(Client):
    """Several keys at once, in one transaction and in one request."""

    def __init__(self, name, front, tenant):
        super().__init__(name)
        self.connected = lambda: redis.Redis(**credentials(front, tenant))

    def work(self):
        with self.connected() as client:
            count, items = f"{{{self.mine}}}:count", f"{{{self.mine}}}:list"
            while not self.stop.is_set():
                self.rounds += 1
                with client.pipeline(transaction=True) as pipeline:
                    pipeline.incr(count).rpush(items, self.rounds)
                    self.expect("exec", pipeline.execute(), [self.rounds, self.rounds])
                self.expect("mget", client.mget(count, f"{{{self.mine}}}:none"), [b"%d" % self.rounds, None])

    def kept(self, client):
        self.mine = f"{{{self.mine}}}"
        super().kept(client)


class Asynchronous(Client):
    def __init__(self, name, front, tenant):
        super().__init__(name)
        self.options = credentials(front, tenant)

    def work(self):
        asyncio.run(self.works())

    async def works(self):
        async with redis.asyncio.Redis(**self.options) as client:
            while not self.stop.is_set():
                self.rounds += 1
                count = await client.incr(f"{self.mine}:count")
                size = await client.rpush(f"{self.mine}:list", self.rounds)
                self.expect("both", [count, size], [self.rounds] * 2)
