"""Writers that know, at any moment, which states of each key are possible after a crash."""

import random
import threading

from harness.resp import ServerError, encode

KEYS = 30
BATCH_MAX = 8
# Mostly small; sometimes larger than one write of the log.
SIZES = (8,) * 12 + (500,) * 3 + (100_000,)
# Strings of which parts are written, so long that they lie in pieces.
LONG_KEYS = 3
LONG_BYTES_MAX = 200_000
GAP_BYTES_MAX = 40_000


class Possible:
    """The states that a key may be in: the one last acknowledged, and those of writes sent since."""

    def __init__(self):
        self.states = [None]

    def sent(self, state):
        self.states.append(state)

    def acknowledged(self):
        del self.states[0]

    def settle(self, found, key):
        """After a restart: what is there must be possible; from now on it is what is known."""
        assert found in self.states, (
            f"{key}: found {brief(found)}; last acknowledged {brief(self.states[0])}, "
            f"sent since: {[brief(state) for state in self.states[1:]]}"
        )
        self.states = [found]


def brief(state):
    return state if state is None else state[:24] + (b"..." if len(state) > 24 else b"")


class Writer:
    """One connection's worth of writes to keys that nobody else writes, in random batches."""

    def __init__(self, name, tenant, seed):
        self.name, self.tenant, self.random = name, tenant, random.Random(seed)
        self.possible = {}
        self.pairs = [(f"{name}:pair{i}a", f"{name}:pair{i}b") for i in range(4)]
        self.count, self.acknowledged = 0, 0

    def of(self, key):
        return self.possible.setdefault(key, Possible())

    def operation(self):
        """The next command(s), the keys that they change, and the state that they leave behind."""
        self.count += 1
        kind = self.random.random()
        key = f"{self.name}:{self.random.randrange(KEYS)}"
        value = (b"%s-%d-" % (self.name.encode(), self.count)).ljust(self.random.choice(SIZES), b"x")
        if kind < 0.1:
            return [("DEL", key)], (key,), None
        if kind > 0.85:
            return self.part(f"{self.name}:long{self.random.randrange(LONG_KEYS)}", value)
        if kind < 0.2:
            first, second = self.random.choice(self.pairs)
            return [("MULTI",), ("SET", first, value), ("SET", second, value), ("EXEC",)], (first, second), value
        if kind < 0.3:
            first, second = self.random.choice(self.pairs)
            return [("MSET", first, value, second, value)], (first, second), value
        return [("SET", key, value)], (key,), value

    def part(self, key, value):
        """A command on a part of a long string, and what the whole is after it."""
        whole = self.of(key).states[-1] or b""
        if len(whole) > LONG_BYTES_MAX:
            return [("SET", key, value)], (key,), value
        if self.random.random() < 0.5:
            return [("APPEND", key, value)], (key,), whole + value
        at = self.random.randrange(len(whole) + GAP_BYTES_MAX)
        changed = whole.ljust(at, b"\0")[:at] + value + whole[at + len(value) :]
        return [("SETRANGE", key, at, value)], (key,), changed

    def send(self):
        """The next operation; from now on its states are possible."""
        commands, keys, state = self.operation()
        for key in keys:
            self.of(key).sent(state)
        return commands, keys

    def run(self, server, progress):
        """Writes until the connection breaks; calls `progress` after each acknowledged batch."""
        try:
            with server.wire(self.tenant) as wire:
                while True:
                    batch = [self.send() for _ in range(self.random.randint(1, BATCH_MAX))]
                    wire.raw(b"".join(encode(*command) for commands, _ in batch for command in commands))
                    for commands, keys in batch:
                        self.read(wire, commands, keys)
                    progress(len(batch))
        except (OSError, EOFError):
            return  # the server was killed, as it should be

    def read(self, wire, commands, keys):
        """One operation counts as acknowledged once its last reply is there, and is no error."""
        replies = [wire.read() for _ in commands]
        errors = [reply for reply in replies if isinstance(reply, ServerError)]
        if errors:
            raise AssertionError(f"{commands[0][0]} was refused: {errors[0]}")
        for key in keys:
            self.of(key).acknowledged()
        self.acknowledged += 1

    def verify(self, server):
        """After a restart: every key is in a possible state, and transactions were whole or not at all."""
        keys = sorted(self.possible)
        if not keys:
            return
        with server.wire(self.tenant) as wire:
            found = dict(zip(keys, wire.ask("MGET", *keys)))
        for key in keys:
            self.possible[key].settle(found[key], key)
        for first, second in self.pairs:
            assert found.get(first) == found.get(second), f"{first} and {second} were written together"


class Crowd:
    """Several writers at once, each in its own thread."""

    def __init__(self, tenants, each, seed):
        self.writers = [
            Writer(f"{tenant.name}{number}", tenant, seed * 1000 + index * 100 + number)
            for index, tenant in enumerate(tenants)
            for number in range(each)
        ]

    def acknowledged(self):
        return sum(writer.acknowledged for writer in self.writers)

    def write_until(self, server, wanted, then):
        """Writes until `wanted` operations were acknowledged, calls `then` in the middle of it all, and ends."""
        reached, lock, left = threading.Event(), threading.Lock(), [wanted]
        failures = []

        def progress(done):
            with lock:
                left[0] -= done
                if left[0] <= 0:
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
        assert reached.wait(60), f"{left[0]} of {wanted} operations were not acknowledged within 60 s"
        then()
        for thread in threads:
            thread.join(30)
        assert not failures, failures[0]

    def verify(self, server):
        for writer in self.writers:
            writer.verify(server)
