"""No request, whatever it says, makes a core look at more than so many words, bytes and records before others get their turn.

The requests are made from the server's own table of commands, in their longest, largest and most repeated forms. What a turn
took is counted by the server, so that the result is the same on every machine: nothing here is timed.
"""

import functools
import os
import threading
import time

import pytest
from bystander import Bystander

from harness.dump import compressed, length, signed, string
from harness.resp import ServerError, encode
from harness.server import BETA, Tenant
from harness.turns import STEPS_MAX, is_bounded, largest_turn
from harness.waiting import eventually

pytestmark = pytest.mark.ours

# `make soak` goes up to what a request may be: a million words, 128 MiB.
WORDS = int(os.environ.get("ENTREMET_HOSTILE_WORDS", "3000"))
BYTES = int(os.environ.get("ENTREMET_HOSTILE_BYTES", str(2 << 20)))
MEMBERS = int(os.environ.get("ENTREMET_HOSTILE_MEMBERS", "20000"))
ROOT = Tenant("root", extra="admin = true")

# A client that has no whole answer by then leaves: some of what follows is a day's work, and some
# answers are gigabytes.
PATIENCE_S = 30

NUMBERS = [str(number) for number in range(WORDS)]
PAIRS = [word for number in NUMBERS[: WORDS // 2] for word in (number, f"m{number}")]
LARGE = b"x" * BYTES
# There is room for what APPEND and SETRANGE add.
STOCKED_BYTES = BYTES - 1_024
# Dumps: of a long string, of a hash of many fields, and of one that is some kilobytes until it is
# written out.
DUMPS = [
    signed(b"\x00" + string(LARGE)),
    signed(b"\x04" + length(len(PAIRS) // 2) + b"".join(string(word.encode()) for word in PAIRS)),
    signed(b"\x00" + compressed(BYTES // 264)),
]
ALL_SCORES, ALL_NAMES = ("-inf", "+inf"), ("-", "+")
UNTIL_THE_END = ("0", "-1")

# What a command does at worst to data that is there: `string` is long, `hash` and `zset` have many
# members.
FORMS = {
    "append": [("string", "x"), ("string", LARGE)],
    "getrange": [("string", *UNTIL_THE_END), ("string", "7", "7")],
    "substr": [("string", *UNTIL_THE_END)],
    "setrange": [("string", "7", "x"), ("new", str(BYTES - 1), "x"), ("string", "0", LARGE)],
    "lcs": [("a", "b"), ("a", "b", "LEN"), ("a", "b", "IDX", "WITHMATCHLEN"), ("string", "string", "LEN")],
    "bitop": [("OR", "to", *["string"] * 40), ("NOT", "to", "string"), ("XOR", "to", *NUMBERS)],
    "bitcount": [("string",), ("string", *UNTIL_THE_END, "BIT")],
    "bitpos": [("string", "1"), ("string", "0", *UNTIL_THE_END)],
    "setbit": [("string", "7", "1"), ("string", str(BYTES * 8 - 1), "1")],
    "bitfield": [
        ("string", *["INCRBY", "u8", "#7", "1"] * (WORDS // 4)),
        ("string", *(word for place in range(WORDS // 3) for word in ("GET", "i64", str(place * (BYTES * 8 // WORDS))))),
        ("string", *(word for place in range(30) for word in ("SET", "u63", str(place * (BYTES // 4)), "1"))),
        ("new", "SET", "i64", str(STOCKED_BYTES * 8), "-1"),
    ],
    "bitfield_ro": [("string", *(word for place in range(40) for word in ("GET", "u63", str(place * (BYTES // 8)))))],
    "dump": [("string",), ("hash",), ("zset",)],
    "restore": [("to", "0", dump, "REPLACE") for dump in DUMPS],
    "getbit": [("string", str(BYTES * 8 - 1))],
    "copy": [("string", "to", "REPLACE"), ("hash", "to", "REPLACE"), ("zset", "to", "REPLACE")],
    "keys": [("*",), ("*a*b*c*d*e*f*g",), (b"*a" * 2_000,)],
    "scan": [("0", "COUNT", "1000000"), ("0", "MATCH", b"*a" * 2_000, "COUNT", "1000000")],
    "entremet.range": [("-", "+", "COUNT", "100000"), ("-", "+", "COUNT", "100000", "VALUES")],
    "del": [("string",), ("hash",), ("zset",)],
    "unlink": [("hash",)],
    "rename": [("hash", "string"), ("zset", "hash")],
    "hscan": [("hash", "0", "COUNT", "1000000")],
    "hrandfield": [("hash", "1000000", "WITHVALUES"), ("hash", "-1000000")],
    "zdiff": [("2", "zset", "zset2"), (str(WORDS), *NUMBERS)],
    "zdiffstore": [("to", "2", "zset", "zset2"), ("to", str(WORDS), *NUMBERS)],
    "zinter": [("2", "zset", "zset2"), (str(WORDS), *NUMBERS)],
    "zintercard": [("2", "zset", "zset2"), (str(WORDS), *NUMBERS)],
    "zinterstore": [("to", "2", "zset", "zset2"), ("to", str(WORDS), *NUMBERS)],
    "zunion": [("2", "zset", "zset2"), (str(WORDS), *NUMBERS), (str(WORDS), *["zset"] * WORDS)],
    "zunionstore": [("to", "2", "zset", "zset2"), ("to", str(WORDS), *NUMBERS)],
    "zmpop": [("1", "zset", "MIN", "COUNT", "1000000"), (str(WORDS), *NUMBERS, "MAX"), (str(WORDS), *["zset2"] * WORDS, "MIN")],
    "zpopmax": [("zset", "1000000")],
    "zpopmin": [("zset", "1000000")],
    "zadd": [("zset", *PAIRS), ("zset", "1", LARGE), ("zset", "INCR", "1", "m1")],
    "zcount": [("zset", *ALL_SCORES)],
    "zlexcount": [("zset", *ALL_NAMES)],
    "zrandmember": [("zset", "1000000"), ("zset", "-1000000")],
    "zrange": [("zset", *UNTIL_THE_END), ("zset", *UNTIL_THE_END, "WITHSCORES"), ("zset", str(MEMBERS // 2), str(MEMBERS // 2))],
    "zrangebylex": [("zset", *ALL_NAMES), ("zset", *ALL_NAMES, "LIMIT", str(MEMBERS - 1), "1")],
    "zrangebyscore": [("zset", *ALL_SCORES), ("zset", *ALL_SCORES, "LIMIT", str(MEMBERS - 1), "1")],
    "zrangestore": [("to", "zset", *UNTIL_THE_END)],
    "zrank": [("zset", f"m{MEMBERS // 2}")],
    "zrevrank": [("zset", f"m{MEMBERS // 2}")],
    "zremrangebylex": [("zset", *ALL_NAMES)],
    "zremrangebyrank": [("zset", *UNTIL_THE_END)],
    "zremrangebyscore": [("zset", *ALL_SCORES)],
    "zrevrange": [("zset", *UNTIL_THE_END)],
    "zrevrangebylex": [("zset", *reversed(ALL_NAMES))],
    "zrevrangebyscore": [("zset", *reversed(ALL_SCORES))],
    "zscan": [("zset", "0", "COUNT", "1000000")],
    "hset": [("hash", *PAIRS), ("hash", "f", LARGE)],
    "hmset": [("hash", *PAIRS)],
    "hmget": [("hash", *NUMBERS)],
    "hdel": [("hash", *NUMBERS)],
    "zmscore": [("zset", *NUMBERS)],
    "zrem": [("zset", *NUMBERS)],
    "set": [("new", LARGE), ("string", LARGE, "GET")],
    "mget": [["string"] * 40, NUMBERS],
    "command|docs": [["client"] * WORDS],
    "command|info": [["zadd"] * WORDS],
    "command|getkeys": [("MSET", *PAIRS)],
    "command|getkeysandflags": [("MSET", *PAIRS)],
    "command|list": [("FILTERBY", "PATTERN", b"*a" * 2_000)],
    "client|list": [("ID", *["1"] * WORDS)],
    "config|get": [["*"] * WORDS, (b"*a" * 2_000,)],
    "info": [["everything"] * WORDS],
    "auth": [("alpha", LARGE)],
    "ping": [(LARGE,)],
    "echo": [(LARGE,)],
    "client|setname": [(LARGE,)],
    "entremet|tenant": [("LIST",), ("SET", "new", *["WEIGHT", "2"] * WORDS)],
}
# Ends the server; that it is for operators is tested elsewhere.
LEFT_OUT = {"shutdown"}
# Not answered, by what was asked for.
SILENT = {("client|reply", "OFF"), ("client|reply", "SKIP")}


def in_parts(wire, *words, rest):
    """A command with more words than a request may have."""
    for first in range(0, len(rest), 500_000):
        wire.ask(*words, *rest[first : first + 500_000])


def enough(members):
    return not isinstance(members, ServerError) and members >= MEMBERS


def stock(server, tenant):
    """The data that FORMS work on: what is missing of it is made again."""
    with server.wire(tenant, timeout=600) as wire:
        if wire.attempt("STRLEN", "string") != STOCKED_BYTES:
            wire.ask("SET", "string", LARGE[:STOCKED_BYTES])
        if wire.ask("MSETNX", "a", "ab" * 3_000, "b", "ba" * 3_000):
            in_parts(wire, "MSET", rest=PAIRS)
        if not enough(wire.attempt("HLEN", "hash")):
            wire.ask("DEL", "hash")
            in_parts(wire, "HSET", "hash", rest=[word for number in range(MEMBERS) for word in (f"{number}", f"v{number}")])
        for key in ("zset", "zset2"):
            if not enough(wire.attempt("ZCARD", key)):
                wire.ask("DEL", key)
                in_parts(wire, "ZADD", key, rest=[word for number in range(MEMBERS) for word in (number, f"m{number}")])


def generic(arity):
    """Forms that need no knowledge of the command: many words, one word many times, a large word in each place."""
    yield NUMBERS
    yield ["k"] * WORDS
    yield ["hash"] * WORDS
    for place in range(min(abs(arity), 4)):
        words = ["1"] * max(abs(arity) - 1, place + 1)
        words[place] = LARGE
        yield words


def forms(server):
    """Every command with its worst words."""
    with server.wire(ROOT) as wire:
        names = [name.decode() for name in wire.ask("COMMAND", "LIST")]
        arities = {name: (wire.ask("COMMAND", "INFO", name)[0] or [None, 4])[1] for name in names}
    unknown = set(FORMS) - set(names)
    assert not unknown, f"forms of commands that are not there: {unknown}"
    assert len(names) > 150
    for name in names:
        if name not in LEFT_OUT:
            for words in [*generic(arities[name]), *FORMS.get(name, [])]:
                yield name, tuple(words)


@functools.lru_cache(16)
def body(words):
    """A request's words after its name, as they are sent."""
    return encode(*words).split(b"\r\n", 1)[1]


def skim(wire, until):
    """Reads a reply and keeps hardly anything of it: it may be gigabytes."""
    if time.monotonic() > until:
        raise TimeoutError
    line = wire.input.readline()
    if not line.endswith(b"\r\n"):
        raise EOFError
    kind, rest = line[:1], line[1:-2]
    if kind in b"$=!" and rest != b"-1":
        left = int(rest) + 2
        while left > 0:
            left -= len(wire.input.read(min(left, 1 << 20))) or left
    elif kind in b"*%~>" and rest != b"-1":
        for _ in range(int(rest) * (2 if kind == b"%" else 1)):
            skim(wire, until)
    return line[:80]


def ask(server, tenant, name, words, transaction):
    """One request on a connection of its own, and how its answer begins if there is one."""
    names = name.split("|")
    with server.wire(tenant, timeout=PATIENCE_S) as wire:
        number = wire.ask("CLIENT", "ID")
        try:
            wire.raw(encode("MULTI") if transaction else b"")
            wire.raw(b"*%d\r\n" % (len(names) + len(words)) + body(tuple(names)))
            wire.raw(body(words))
            if transaction:
                wire.raw(encode("EXEC"))
            if transaction or (name, str(words[0])) not in SILENT:
                until = time.monotonic() + PATIENCE_S
                return [skim(wire, until) for _ in range(3 if transaction else 1)][-1]
        except TimeoutError:
            with server.wire(tenant) as other:
                other.attempt("CLIENT", "KILL", "ID", number)
            return "it had not the patience"
        except (EOFError, ConnectionError) as cut:
            return repr(cut)  # it was told and cut off, as for QUIT or a request beyond a limit


@pytest.mark.parametrize("transaction", [False, True], ids=["alone", "in-a-transaction"])
def test_no_request_makes_a_turn_longer(start, transaction):
    server = start(tenants=(BETA, ROOT), server_options="cores = 1")
    stock(server, ROOT)
    with Bystander(server, BETA):
        for name, words in forms(server):
            reply = ask(server, ROOT, name, words, transaction)
            turn = largest_turn(server)
            said = f"{name} with {len(words)} words, the first {words[0][:20]!r}, was answered {str(reply)[:80]} and took {turn}"
            assert is_bounded(turn), said
            stock(server, ROOT)
    assert server.running()


def test_pipelines_of_the_largest_that_a_core_runs_itself_end_a_turn(start):
    """Each is within the bounds; together they are not one turn."""
    server = start(tenants=(BETA, ROOT), server_options="cores = 1")
    keys = [f"k{number}" for number in range(127)]
    with server.wire(ROOT, timeout=60) as wire, Bystander(server, BETA):
        for first in range(0, 500, 50):
            wire.ask("ZADD", "walk", *(word for member in range(first, first + 50) for word in (member, member)))
        for words in (("MGET", *keys), ("ZCOUNT", "walk", *ALL_SCORES), ("PING",), ("NOSUCH", *keys)):
            wire.raw(encode(*words) * 500)
            for _ in range(500):
                wire.read()
        wire.raw(encode("SET", "k", b"x" * 60_000) + encode("GET", "k") * 200)
        assert [len(wire.read()) for _ in range(201)][1:] == [60_000] * 200
    turn = largest_turn(server)
    assert is_bounded(turn), turn
    assert turn["steps"] > 400 and turn["words"] > 128, f"the test asks for too little: {turn}"


@pytest.mark.parametrize("words", [("INCRBYFLOAT", "number"), ("HINCRBYFLOAT", "numbers", "number")], ids=["string", "hash"])
def test_sums_of_long_numbers_end_a_turn(start, words):
    """Thousands of digits are read, added and printed for a request of a few bytes."""
    server = start(tenants=(BETA, ROOT), server_options="cores = 1")
    with server.wire(ROOT, timeout=60) as wire, Bystander(server, BETA):
        assert len(wire.ask(*words, "1e4931")) > 4_900
        wire.raw(encode(*words, "1") * 200)
        assert {len(wire.read()) for _ in range(200)} == {4_932}
    turn = largest_turn(server)
    assert 400 < turn["steps"] <= STEPS_MAX, turn


def test_parameters_are_asked_for_by_few_patterns(start):
    """Each is compared with every parameter, without a pause: 10,000 long ones took a handler's thread seconds."""
    server = start(tenants=(BETA, ROOT))
    with server.wire(ROOT, timeout=60) as wire:
        for patterns in (["*"] * WORDS, [b"*[" + b"\\~" * 2_000] * 20):
            for words in (("CONFIG", "GET", *patterns), ("CONFIG", "SET", *patterns)):
                with pytest.raises(ServerError, match="takes at most 128 words and 65536 bytes"):
                    wire.ask(*words)
        assert wire.ask("CONFIG", "GET", *["timeout"] * 100) == [b"timeout", b"0"]


def test_a_thousand_queued_commands_are_dropped_and_run_elsewhere(start):
    """MULTI, WATCH and what ends them, with more than a core would look at."""
    server = start(tenants=(BETA, ROOT), server_options="cores = 1")
    with server.wire(ROOT, timeout=120) as wire, Bystander(server, BETA):
        for end in (("EXEC",), ("DISCARD",), ("RESET",), ("EXEC", "too", "many")):
            if end == ("RESET",):
                wire.ask("AUTH", ROOT.name, ROOT.password)
            wire.ask("WATCH", *NUMBERS)
            # Nobody reads requests of a client that does not take its replies.
            sending = threading.Thread(target=wire.raw, args=(encode("MULTI") + encode("INCR", "n") * WORDS + encode(*end),))
            sending.start()
            replies = [wire.read() for _ in range(WORDS + 2)]
            sending.join()
            assert replies[0] == b"OK" and set(replies[1:-1]) == {b"QUEUED"}
            if end == ("EXEC",):
                assert replies[-1] == list(range(1, WORDS + 1))
            wire.ask("AUTH", ROOT.name, ROOT.password)
        gone = server.wire(ROOT, timeout=120)
        gone.ask("WATCH", *NUMBERS)
        gone.close()
        eventually(lambda: b"connected_clients:1\r" in wire.ask("INFO", "clients"), 20, "it is gone")
        assert int(wire.ask("GET", "n")) == WORDS
        assert isinstance(wire.attempt("CLIENT", "SETNAME", b"x" * 2_000), ServerError)
    turn = largest_turn(server)
    assert is_bounded(turn), turn
