"""Writers that know, at any moment, which states of their data are possible after a crash."""

import itertools
import random
import threading

from harness.resp import ServerError, encode

BATCH_MAX = 8
KEYS, LONG_KEYS, HASHES = 20, 3, 2
# Mostly small; sometimes larger than one write of the log.
SIZES = (8,) * 12 + (500,) * 3 + (100_000,)
# Strings of which parts are written, so long that they lie in pieces. One key of each writer, with
# its first tenant, is longer by far.
LONG_BYTES_MAX, HUGE_BYTES_MAX = 200_000, 2 << 20
GAP_BYTES_MAX = 40_000
# Words of one write: a core's, a handler's, and so many that it is applied in pieces on a thread of
# its own.
PAIRS = (3, 100, 700)
# Where they are few, their values may be so long that they lie apart from their block.
APART_BYTES = 150_000
STEPS_MAX = 5


class Possible:
    """The states that a writer's data may be in: the one last acknowledged, and those of writes sent since, in order.

    Writes that take effect together are one state apart, so what is found after a crash shows that none was there in part,
    and none before the one in front of it.
    """

    def __init__(self):
        self.states = [{}]

    def sent(self, state):
        self.states.append(state)

    def acknowledged(self):
        del self.states[0]

    def settle(self, found, whose):
        """After a restart: what is there must be possible; from now on it is what is known."""
        assert found in self.states, f"{whose}: {len(self.states) - 1} writes were not acknowledged; what is there differs " + "; ".join(
            f"from the state after {number} of them in {differences(state, found)}" for number, state in enumerate(self.states)
        )
        self.states = [found]


def differences(expected, found):
    keys = sorted(key for key in {*expected, *found} if expected.get(key) != found.get(key))
    return {key: (brief(expected.get(key)), brief(found.get(key))) for key in keys[:4]}


def brief(value):
    if isinstance(value, bytes):
        return f"{value[:24]} ({len(value)} bytes)"
    return value if value is None else f"{len(value)} fields"


class Writer:
    """One connection's worth of writes to keys that nobody else writes, in random batches, for one tenant after another."""

    def __init__(self, name, tenants, seed, alone):
        self.name, self.tenants, self.random, self.alone = name, tenants, random.Random(seed), alone
        self.possible = {tenant.name: Possible() for tenant in tenants}
        self.count, self.acknowledged = 0, 0

    def key(self, kind, number):
        return f"{self.tenant.name}/{self.name}/{kind}{number}".encode()

    def value(self, size):
        self.count += 1
        return (b"%s-%s-%d-" % (self.tenant.name.encode(), self.name.encode(), self.count)).ljust(size, b"x")

    def operation(self):
        """The next commands, which take effect together, and the state that they leave behind."""
        state, kind = dict(self.possible[self.tenant.name].states[-1]), self.random.random()
        if kind < 0.2:
            steps = [self.step(state) for _ in range(self.random.randint(1, STEPS_MAX))]
            return [("MULTI",), *steps, ("EXEC",)], state
        return [self.step(state)], state

    def step(self, state):
        """A command; what it does is done to `state`."""
        kind = self.random.random()
        key, value = self.key("key", self.random.randrange(KEYS)), self.value(self.random.choice(SIZES))
        if kind < 0.1:
            state.pop(key, None)
            return ("DEL", key)
        if kind < 0.25:
            return self.part(state, self.key("long", self.random.randrange(LONG_KEYS)), value, LONG_BYTES_MAX)
        at_home = self.tenant is self.tenants[0]
        if kind < 0.29 and at_home:
            return self.part(state, self.key("huge", 0), value, HUGE_BYTES_MAX)
        if kind < 0.4 and at_home:
            return self.many(state)
        if kind < 0.44 and self.alone:
            state.clear()
            return ("FLUSHALL",)
        if kind < 0.5:
            return self.rename(state)
        state[key] = value
        return ("SET", key, value)

    def part(self, state, key, value, bytes_max):
        """A command on a part of a long string."""
        whole, kind = state.get(key, b""), self.random.random()
        if len(whole) > bytes_max or (bytes_max == HUGE_BYTES_MAX and not whole):
            state[key] = self.value(self.random.randrange(bytes_max))
            return ("SET", key, state[key])
        if kind < 0.5:
            state[key] = whole + value
            return ("APPEND", key, value)
        at = self.random.randrange(len(whole) + GAP_BYTES_MAX)
        state[key] = whole.ljust(at, b"\0")[:at] + value + whole[at + len(value) :]
        return ("SETRANGE", key, at, value)

    def many(self, state):
        """A write of many values, of a hash or of keys, or the removal of the hash."""
        count, key = self.random.choice(PAIRS), self.key("hash", self.random.randrange(HASHES))
        value = self.value(APART_BYTES if count == PAIRS[0] and self.random.random() < 0.3 else 20)
        if self.random.random() < 0.3:
            state.pop(key, None)
            return ("UNLINK", key)
        if self.random.random() < 0.5:
            fields = {b"%d" % number: value for number in range(count)}
            state[key] = {**state.get(key, {}), **fields}
            return ("HSET", key, *(word for pair in fields.items() for word in pair))
        pairs = {self.key("many", number): value for number in range(count)}
        state.update(pairs)
        return ("MSET", *(word for pair in pairs.items() for word in pair))

    def rename(self, state):
        kind, count = self.random.choice((("long", LONG_KEYS), ("hash", HASHES)))
        source, target = (self.key(kind, number) for number in self.random.sample(range(count), 2))
        if source not in state:
            return ("UNLINK", source)
        state[target] = state.pop(source)
        return ("RENAME", source, target)

    def switch(self):
        """Speaks for another of its tenants from now on; a state that nothing was done to is a write as well."""
        self.tenant = self.random.choice(self.tenants)
        if self.tenant.name == "default":
            return [("RESET",)]
        login = ("AUTH", self.tenant.name, self.tenant.password)
        protocol = self.random.choice("23")
        return self.random.choice(([login], [("RESET",), login], [("HELLO", protocol, *login)]))

    def send(self):
        """The next operation, and whose it is; from now on its state is possible."""
        if len(self.tenants) > 1 and self.random.random() < 0.15:
            return self.switch(), None
        commands, state = self.operation()
        possible = self.possible[self.tenant.name]
        possible.sent(state)
        return commands, possible

    def run(self, server, progress):
        """Writes until the connection breaks; calls `progress` after each acknowledged operation."""
        self.tenant = self.tenants[0]
        try:
            with server.wire(self.tenant) as wire:
                while True:
                    batch = [self.send() for _ in range(self.random.randint(1, BATCH_MAX))]
                    wire.raw(b"".join(encode(*command) for commands, _ in batch for command in commands))
                    for commands, possible in batch:
                        self.read(wire, commands)
                        if possible:
                            possible.acknowledged()
                            self.acknowledged += 1
                            progress()
        except (OSError, EOFError):
            return  # the server was killed, as it should be

    def read(self, wire, commands):
        """One operation counts as acknowledged once its last reply is there, and is no error."""
        replies = [wire.read() for _ in commands]
        errors = [reply for reply in [*replies, *listed(replies[-1])] if isinstance(reply, ServerError)]
        if errors:
            raise AssertionError(f"{commands[0][0]} was refused: {errors[0]}")


def listed(reply):
    return reply if isinstance(reply, list) else []


class Crowd:
    """Several writers at once, each in its own thread: `each` of them for every tenant.

    They switch between the tenants all the time. A tenant of `owned` has one writer that keeps to it, and empties it now and then.
    """

    def __init__(self, tenants, each, seed, owned=()):
        seeds = iter(range(seed * 1000, (seed + 1) * 1000))
        self.tenants, self.writers = (*tenants, *owned), []
        for index, tenant in enumerate(tenants):
            turned = (tenant, *tenants[:index], *tenants[index + 1 :])
            self.writers += [Writer(f"{tenant.name}{number}", turned, next(seeds), alone=False) for number in range(each)]
        self.writers += [Writer("owner", (tenant,), next(seeds), alone=True) for tenant in owned]

    def acknowledged(self):
        return sum(writer.acknowledged for writer in self.writers)

    def write_until(self, server, wanted, then):
        """Writes until `wanted` operations were acknowledged, calls `then` in the middle of it all, and ends.

        Whoever has the last acknowledgement in its hands makes the call: before anything else could be done for it.
        """
        reached, left, failures = threading.Event(), itertools.count(wanted - 1, -1), []

        def progress():
            if next(left) == 0:
                then()
                reached.set()

        def work(writer):
            try:
                writer.run(server, progress)
            except Exception as error:  # told to the test below; a thread's own traceback would be lost
                failures.append(error)
                reached.set()

        threads = [threading.Thread(target=work, args=(writer,), daemon=True) for writer in self.writers]
        for thread in threads:
            thread.start()
        assert reached.wait(60), f"{next(left)} of {wanted} operations were not acknowledged within 60 s"
        for thread in threads:
            thread.join(30)
        assert not failures, failures[0]

    def verify(self, server):
        """After a restart: each tenant has what its writers can have left there, and nothing of anybody else's."""
        for tenant in self.tenants:
            found = {writer.name: {} for writer in self.writers}
            for key, value in everything(server, tenant):
                owner, name, _ = key.decode().split("/")
                assert owner == tenant.name, f"{tenant.name} has {key}"
                found[name][key] = value
            for writer in self.writers:
                if tenant.name in writer.possible:
                    writer.possible[tenant.name].settle(found[writer.name], f"{writer.name} with {tenant.name}")


def everything(server, tenant):
    """Each key of a tenant, with its value."""
    with server.wire(None if tenant.name == "default" else tenant) as wire:
        keys = wire.ask("KEYS", "*")
        hashes = {key for key in keys if b"/hash" in key}
        wire.raw(b"".join(encode("HGETALL" if key in hashes else "GET", key) for key in keys))
        for key in keys:
            value = wire.read()
            assert isinstance(value, (bytes, list)), f"{key} of {tenant.name}: {value}"
            yield key, dict(zip(value[::2], value[1::2])) if key in hashes else value
