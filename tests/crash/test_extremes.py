"""Numbers and words at the ends of their ranges, in every place of every command: errors at most, and the server goes on.

A panic ends the server of all tenants, and so does memory that a few digits ask for; a request must be able to cause neither.
"""

import os
import random

import pytest
from bystander import Bystander

from harness.process import peak_bytes
from harness.resp import ServerError, encode
from harness.server import ALPHA, BETA, Tenant

pytestmark = pytest.mark.ours

ROOT = Tenant("root", extra="admin = true")
SEED = int(os.environ.get("ENTREMET_EXTREMES_SEED", "1"))
# Requests of each command beside those with every extreme in every place.
MORE = int(os.environ.get("ENTREMET_EXTREMES", "60"))
# The largest value is 128 MiB; a command and its answer may hold a few.
PEAK_MAX = 1_500 << 20

INTEGERS = [
    *(str(sign * (1 << bits) + more) for bits in (0, 31, 32, 53, 63, 64) for sign in (1, -1) for more in (-1, 0, 1)),
    # As seconds these are too many milliseconds, or just not.
    *(str((1 << 63) // 1000 + more) for more in (-1_700_000_001, 0, 1)),
    # As offsets: the end of the longest string, in bytes and in bits.
    *(str((128 << 20) * unit + more) for unit in (1, 8) for more in (-1, 0)),
    "-0", "+1", "007", "9" * 400,
]  # fmt: skip
DOUBLES = [
    "inf", "-inf", "nan", "-nan", "-0.0", "1e308", "-1e309", "1e-320", "1e-400", "0x1p-99999999999", "-0x1p99999999999",
    "0x1p-1099511627776", "0x.1p-9223372036854775808", "1e-9223372036854775808", "1e9223372036854775807", "1e4932", "1e-4951", "1e-4967",
    "." + "0" * 5_000 + "1", "9" * 5_000 + "e-5000", "0x" + "f" * 5_000 + "p-36445", "1e", "0x", ".", "e1",
]  # fmt: skip
BOUNDS = ["(inf", "(-inf", "(nan", "(0", "(", "[", "[\x00", "(a", "-", "+", "*", "$", "?", "[^", "\\"]
OTHERS = [b"", b" ", b"\0", b"\xff" * 9, "\u0130\u00df".encode(), b"a/../b", b"x" * 70_000]
EXTREMES = [word if isinstance(word, bytes) else word.encode() for word in (*INTEGERS, *DOUBLES, *BOUNDS, *OTHERS)]
KEYS = [b"string", b"number", b"double", b"hash", b"zset", b"long", b"none"]
OPTIONS = (
    b"NX XX GT LT CH INCR GET EX PX EXAT PXAT KEEPTTL PERSIST LIMIT BYSCORE BYLEX REV WITHSCORES WITHVALUES COUNT MATCH TYPE KEYS "
    b"VALUES WEIGHTS AGGREGATE SUM MIN MAX IDX LEN MINMATCHLEN WITHMATCHLEN BIT BYTE DB REPLACE SAMPLES AND OR XOR NOT ID ADDR USER "
    b"SKIPME YES NO OVERFLOW WRAP SAT FAIL INCRBY u8 i64 u63 i1 #1 ABSTTL FREQ IDLETIME LIST SET REMOVE GET WEIGHT CONTRACT FILTERBY PATTERN MODULE ACLCAT ON OFF HELP ASYNC SYNC"
).split()
# These leave, change or silence the connection, or end the server.
ALONE = {"auth", "hello", "quit", "reset", "client|reply", "client|kill", "multi", "exec", "discard"}
# Ends the server; and holds back everything after it for as long as it says
# (operations/test_pause.py).
LEFT_OUT = {"shutdown", "client|pause"}


def stock(server):
    with server.wire(ALPHA, timeout=60) as wire:
        wire.ask("MSET", "string", "some text", "number", str((1 << 63) - 1), "double", "1e4932")
        wire.ask("SET", "long", b"\xff" * 300_000)
        wire.ask("DEL", "hash", "zset")
        wire.ask("HSET", "hash", "", "", "1", str(-(1 << 63)), "double", "-1e4932", *[f"{word}" for word in range(400)])
        wire.ask("ZADD", "zset", "inf", "", "-inf", "1", "0", "\0", "5e-324", "a", *[f"{word}" for word in range(400)])


def requests(name, arity, chance):
    """Every extreme in every place of the shortest form, and random forms of all these words."""
    least = abs(arity) - len(name.split("|"))
    for place in range(max(least, 1)):
        for key in (b"string", b"hash", b"zset") if place > 0 else (b"",):
            for word in EXTREMES:
                words = [chance.choice((b"1", b"0", *KEYS)) for _ in range(max(least, 1))]
                words[0] = key or words[0]
                words[place] = word
                yield words
    for _ in range(MORE):
        words = [chance.choice(KEYS) for _ in range(min(least, 1))]
        for _ in range(chance.choice((0, 1, 1, 2, 2, 3, 4, 5, 7)) + max(least - 1, 0)):
            words.append(chance.choice(chance.choice((EXTREMES, EXTREMES, OPTIONS, KEYS, [b"1", b"2"]))))
        yield words


def commands(server, chance):
    """(the command, its requests) for all that are in the server's table."""
    with server.wire(ALPHA) as wire:
        names = [name.decode() for name in wire.ask("COMMAND", "LIST")]
        assert len(names) > 150
        for name in sorted(set(names) - LEFT_OUT):
            arity = (wire.ask("COMMAND", "INFO", name)[0] or [None, -2])[1]
            yield name, [[*name.encode().split(b"|"), *words] for words in requests(name, arity, chance)]


def talk(server, tenant, name, made, protocol):
    """Sends all these requests. Whether every one of them is answered depends on what they are."""
    at_once = 1 if name in ALONE else 50
    wire = None
    for first in range(0, len(made), at_once):
        if wire is None or at_once == 1:
            wire = wire and wire.close()
            wire = server.wire(tenant, timeout=60)
            wire.ask("HELLO", protocol)
        some = made[first : first + at_once]
        try:
            wire.raw(b"".join(encode(*words) for words in some))
            if name == "client|reply":
                continue
            for words in some:
                wire.read()
        except (EOFError, ConnectionError):
            assert server.running(), f"one of these ended the server: {[shown(words) for words in some]}\n{server.said()[-3000:]}"
            wire = None
    if wire is not None:
        wire.close()
    assert server.running(), f"one of {name}'s ended the server:\n{server.said()[-3000:]}"


def shown(words):
    return b" ".join(word[:40] for word in words)


@pytest.mark.parametrize("protocol", ["2", "3"])
def test_no_number_ends_the_server(start, protocol):
    chance = random.Random(f"{SEED} {protocol}")
    server = start(tenants=(ALPHA, BETA))
    with Bystander(server, BETA):
        for name, made in commands(server, chance):
            stock(server)
            before = peak_bytes(server.pid)
            talk(server, ALPHA, name, made, protocol)
            assert peak_bytes(server.pid) < PEAK_MAX, f"{name} took the server from {before >> 20} to {peak_bytes(server.pid) >> 20} MiB"


SETTINGS = (
    "WEIGHT MAX-CONNECTIONS RESERVED-PERMITS RESERVE-GET RESERVE-PUT LIMIT-REQUESTS LIMIT-BYTES CONTRACT SYNC CACHE BLOCK-CACHE "
    "WRITE-BUFFERS REQUEST-MEMORY LIMIT-BURST LIMIT-MAX-WAIT PASSWORD PASSWORDHASH ADMIN"
).split()


def use(server, tenant):
    """It is served, or told why not."""
    with server.wire(timeout=60) as wire:
        if isinstance(wire.attempt("AUTH", tenant.name, tenant.password), ServerError):
            return
        for words in (["SET", "k", "v" * 1_000], ["GET", "k"], ["KEYS", "*"]) * 4:
            wire.send(*words)
        for _ in range(12):
            wire.read()


def test_no_promise_ends_the_server(start):
    """Settings of a tenant at the ends of what they may be, while it is served, made and removed."""
    server = start(tenants=(BETA, ROOT))
    victim = Tenant("victim")
    made = 0
    with Bystander(server, BETA), server.wire(ROOT, timeout=60) as root:
        for setting in SETTINGS:
            for word in EXTREMES:
                root.ask("ENTREMET", "TENANT", "SET", victim.name, "NOPASS")
                with server.wire(victim) as before:
                    before.ask("SET", "k", "v")
                    if not isinstance(root.attempt("ENTREMET", "TENANT", "SET", victim.name, setting, word), ServerError):
                        use(server, victim)
                        made += 1
                    assert server.running(), f"{setting} {word} ended the server:\n{server.said()[-3000:]}"
                    root.ask("ENTREMET", "TENANT", "DEL", victim.name)
        assert made > 50, "hardly any of these was possible"
        for name in EXTREMES:
            for words in (["SET", name, "NOPASS"], ["GET", name], ["DEL", name]):
                root.attempt("ENTREMET", "TENANT", *words)
    assert server.running()
