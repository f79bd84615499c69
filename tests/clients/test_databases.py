"""The numbered databases of a tenant, beside redis-server: random commands on several connections, with transactions, watches
and restarts, and what either says of it."""

import os
import random
import re

import pytest

from harness.resp import ServerError
from harness.server import ALPHA, BETA, Server

pytestmark = pytest.mark.ours

SEED = int(os.environ.get("ENTREMET_SEED", "1"))
STEPS = 4_000
CONNECTIONS = 3
KEYS = ("s1", "s2", "h1", "z1", "n", b"\xff" * 8, b"\xff" * 8 + b"\0\0\0\1s1")
# Most of the time few, so that they meet.
NUMBERS = (0, 0, 1, 1, 2, 3)
WRONG_NUMBERS = (15, 16, -1, "x", 99999999999)
# Order is not promised.
UNORDERED = {"KEYS", "HGETALL", "SCAN"}


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    instance = Server(tmp_path_factory.mktemp("redis"), tenants=(), program="redis-server").start()
    yield instance
    instance.kill()


@pytest.fixture(scope="module")
def restartable(tmp_path_factory):
    instance = Server(tmp_path_factory.mktemp("ours"), tenants=(ALPHA, BETA)).start()
    yield instance
    instance.kill()


def ordered(command, reply):
    if command == "SCAN" and isinstance(reply, list):
        return [reply[0], sorted(reply[1])]
    if command == "HGETALL" and isinstance(reply, list):
        return sorted(zip(reply[::2], reply[1::2]))
    return sorted(reply) if isinstance(reply, list) else reply


def comparable(command, reply):
    if isinstance(reply, ServerError):
        return ("error", str(reply))
    return ordered(command, reply) if command in UNORDERED else reply


class Pair:
    """One connection to each of the two servers, which get the same commands."""

    def __init__(self, ours, theirs):
        self.servers = (ours, theirs)
        self.number, self.queued, self.watching = 0, None, False
        self.connect()

    def connect(self):
        ours, theirs = self.servers
        self.wires = (ours.wire(ALPHA, timeout=60), theirs.wire(timeout=60))

    def close(self):
        for wire in self.wires:
            wire.close()

    def both(self, *words):
        return [wire.attempt(*words) for wire in self.wires]

    def act(self, *words):
        """Sends a command to both, and compares."""
        name = words[0]
        ours, theirs = self.both(*words)
        if name == "EXEC" and self.queued is not None and isinstance(theirs, list):
            assert isinstance(ours, list), (ours, theirs)
            for sent, one, other in zip(self.queued, ours, theirs, strict=True):
                assert comparable(sent[0], one) == comparable(sent[0], other), sent
                self.note(sent, other)
        else:
            assert comparable(name, ours) == comparable(name, theirs), words
        if name == "MULTI":
            self.queued = []
        elif name in ("EXEC", "DISCARD"):
            self.queued, self.watching = None, False
        elif self.queued is not None:
            if theirs == b"QUEUED":
                self.queued.append(words)
        else:
            self.note(words, theirs)
            self.watching |= name == "WATCH"

    def note(self, words, reply):
        if words[0] == "SELECT" and reply == b"OK":
            self.number = int(words[1])


def command(chance):
    key, other = chance.choice(KEYS), chance.choice(KEYS)
    number = lambda: chance.choice(NUMBERS if chance.random() < 0.95 else WRONG_NUMBERS)  # noqa: E731
    value = f"v{chance.randrange(1_000)}"
    return chance.choices(
        (
            ("SELECT", number()),
            ("SET", key, value),
            ("GET", key),
            ("DEL", key),
            ("EXISTS", key, other),
            ("RENAME", key, other),
            ("HSET", "h1", f"f{chance.randrange(5)}", value),
            ("HGETALL", chance.choice(("h1", key))),
            ("ZADD", "z1", chance.randrange(9), f"m{chance.randrange(5)}"),
            ("ZRANGE", "z1", 0, -1),
            ("SETRANGE", "s2", 70_000, value),
            ("STRLEN", "s2"),
            ("MOVE", key, number()),
            ("COPY", key, other, *(("DB", number()) if chance.random() < 0.7 else ()), *(("REPLACE",) if chance.random() < 0.5 else ())),
            ("SWAPDB", number(), number()),
            ("FLUSHDB",),
            ("FLUSHALL",),
            ("DBSIZE",),
            ("KEYS", chance.choice(("*", "s*", "[hz]1"))),
            ("SCAN", 0, "COUNT", 1_000),
            ("EXPIRE", key, chance.choice((100_000, -1))),
            ("PERSIST", key),
            ("TYPE", key),
        ),
        (8, 8, 6, 3, 3, 3, 5, 3, 5, 3, 2, 2, 5, 5, 3, 1, 0.3, 3, 2, 2, 2, 1, 2),
    )[0]


def step(chance, pair):
    if pair.queued is not None and chance.random() < 0.25:
        return pair.act(chance.choice(("EXEC", "EXEC", "EXEC", "DISCARD")))
    if pair.queued is None and chance.random() < 0.08:
        return pair.act("MULTI")
    if pair.queued is None and chance.random() < 0.08:
        return pair.act("WATCH", chance.choice(KEYS), chance.choice(KEYS))
    return pair.act(*command(chance))


def keyspace(text):
    """Keys and expiring ones by database, as INFO tells."""
    return re.findall(r"^(db\d+):keys=(\d+),expires=(\d+)", text.decode(), re.MULTILINE)


def check_reports(pair):
    ours, theirs = (keyspace(text) for text in pair.both("INFO", "keyspace"))
    assert ours == theirs
    shown = [re.search(rb" db=(\d+) ", wire.ask("CLIENT", "INFO"))[1] for wire in pair.wires]
    assert shown == [b"%d" % pair.number] * 2


def test_commands_on_databases_do_what_they_do_in_redis(restartable, redis):
    chance = random.Random(SEED)
    for wire in (restartable.wire(ALPHA), redis.wire()):
        wire.ask("FLUSHALL")
        wire.close()
    pairs = [Pair(restartable, redis) for _ in range(CONNECTIONS)]
    for number in range(STEPS):
        pair = chance.choice(pairs)
        try:
            step(chance, pair)
            if chance.random() < 0.02 and pair.queued is None:
                check_reports(pair)
            # What connections remember would go.
            if chance.random() < 0.005 and not any(pair.queued or pair.watching for pair in pairs):
                restart(restartable, pairs)
        except AssertionError as error:
            raise AssertionError(f"seed {SEED}, step {number}: {error}") from error
    for pair in pairs:
        pair.close()


def restart(server, pairs):
    for pair in pairs:
        pair.close()
    server.kill()
    server.start()
    for pair in pairs:
        pair.connect()
        pair.queued = None
        pair.both("SELECT", pair.number)


def test_databases_are_their_tenants_own(server):
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        for wire in (alpha, beta):
            wire.ask("FLUSHALL")
            wire.ask("SELECT", 1)
        alpha.ask("SET", "k", "alpha")
        beta.ask("SET", "k", "beta")
        alpha.ask("SWAPDB", 0, 1)
        assert (alpha.ask("GET", "k"), beta.ask("GET", "k")) == (None, b"beta")
        beta.ask("FLUSHALL")
        alpha.ask("SELECT", 0)
        assert alpha.ask("GET", "k") == b"alpha"
        assert alpha.ask("CONFIG", "GET", "databases") == [b"databases", b"16"]
        alpha.ask("FLUSHALL")


def test_reset_and_a_new_connection_begin_at_the_first(server):
    with server.wire(ALPHA) as wire:
        wire.ask("SELECT", 3)
        assert b" db=3 " in wire.ask("CLIENT", "INFO")
        wire.ask("RESET")
        wire.ask("AUTH", ALPHA.name, ALPHA.password)
        assert b" db=0 " in wire.ask("CLIENT", "INFO")
