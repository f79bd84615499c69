"""Replies of many large values are made as their client takes them: whoever reads slowly, or not at all, fills no memory."""

import socket

import pytest
from bystander import Bystander

from harness.process import resident_bytes
from harness.resp import encode
from harness.server import ALPHA, BETA, Server
from harness.waiting import eventually

MEBIBYTE = 1 << 20
VALUES = 64
VALUE_BYTES = 8 * MEBIBYTE
# All values are 512 MiB. A reply holds two of them at most; RocksDB's blocks and the heap's slack
# come on top: up to 211 MiB were seen where the processors are short.
GROWTH_MAX = 224 * MEBIBYTE

pytestmark = pytest.mark.ours


def value(index):
    """Large values that differ from each other in every byte."""
    return bytes([index]) * VALUE_BYTES


@pytest.fixture(scope="module")
def stocked(tmp_path_factory):
    """A server whose tenant alpha has half a gibibyte, as strings and in a hash, on disk."""
    # Its caches are full by then: what grows is replies.
    server = Server(tmp_path_factory.mktemp("large"), engine_options='block_cache = "32MiB"').start()
    with server.wire(ALPHA, timeout=120) as wire:
        for index in range(VALUES):
            wire.ask("SET", f"large:{index:02}", value(index))
        for index in range(VALUES):
            wire.ask("HSET", "hash", f"{index:02}", value(index))
    yield server
    server.kill()


def read_header(wire, kind):
    line = wire.input.readline()
    assert line[:1] == kind, line
    return int(line[1:])


KEYS = [f"large:{index:02}" for index in range(VALUES)]
FIELDS = [f"{index:02}" for index in range(VALUES)]


@pytest.mark.parametrize(
    ("words", "with_names"),
    [(["MGET", *KEYS], False), (["HMGET", "hash", *FIELDS], False), (["HVALS", "hash"], False), (["HGETALL", "hash"], True)],
    ids=["mget", "hmget", "hvals", "hgetall"],
)
def test_a_reply_of_many_large_values_is_not_held(stocked, words, with_names):
    before = resident_bytes(stocked.pid)
    grown = 0
    with Bystander(stocked, BETA), stocked.wire(ALPHA, receive_buffer=65536, timeout=120) as slow:
        slow.send(*words)
        slow.send("ECHO", "after")
        assert read_header(slow, b"*") == VALUES * (2 if with_names else 1)
        for index in range(VALUES):
            if with_names:
                assert slow.read() == FIELDS[index].encode()
            assert slow.read() == value(index)
            grown = max(grown, resident_bytes(stocked.pid) - before)
        assert slow.read() == b"after"
    assert grown < GROWTH_MAX, f"{grown >> 20} MiB"


@pytest.mark.parametrize("writes", [False, True], ids=["reads", "writes"])
def test_the_replies_of_a_transaction_are_not_held(stocked, writes):
    """They are of one moment, and what it writes is done before its client has taken them."""
    before = resident_bytes(stocked.pid)
    grown = 0
    with (
        Bystander(stocked, BETA),
        stocked.wire(ALPHA, receive_buffer=65536, timeout=120) as slow,
        stocked.wire(ALPHA, timeout=120) as other,
    ):
        first, last = (["INCR", "count"], ["INCR", "count"]) if writes else (["ECHO", "1"], ["ECHO", "2"])
        other.ask("SET", "count", 0)
        commands = [first, *(["GET", key] for key in KEYS), ["HGET", KEYS[0], "x"], last]
        for words in [["MULTI"], *commands]:
            slow.ask(*words)
        slow.send("EXEC")
        slow.send("ECHO", "after")
        assert read_header(slow, b"*") == len(commands)
        assert slow.read() in (1, b"1")
        if writes:
            assert other.ask("INCR", "count") == 3
        other.ask("SET", KEYS[-1], "new")
        for index in range(VALUES):
            assert slow.read() == value(index)
            grown = max(grown, resident_bytes(stocked.pid) - before)
        assert str(slow.read()).startswith("WRONGTYPE")
        assert slow.read() in (2, b"2")
        assert slow.read() == b"after"
        other.ask("SET", KEYS[-1], value(VALUES - 1))
    assert grown < GROWTH_MAX, f"{grown >> 20} MiB"


def test_a_reply_shows_one_moment(stocked):
    """Values written while it is on its way are not in it, nor do they wait for it."""
    with stocked.wire(ALPHA, receive_buffer=65536, timeout=120) as slow, stocked.wire(ALPHA, timeout=120) as writer:
        slow.send("MGET", *KEYS)
        assert read_header(slow, b"*") == VALUES
        assert slow.read() == value(0)
        writer.ask("SET", KEYS[-1], "new")
        assert writer.ask("GET", KEYS[-1]) == b"new"
        for index in range(1, VALUES):
            assert slow.read() == value(index)
        writer.ask("SET", KEYS[-1], value(VALUES - 1))


def begun(client):
    """True when the first byte of a reply has come."""
    client.sock.setblocking(False)
    try:
        return client.sock.recv(1, socket.MSG_PEEK) == b"*"
    except BlockingIOError:
        return False


def test_clients_that_never_read_hold_little_and_others_go_on(stocked):
    """More of them than may have such a reply under way; who reads has its turn when they are gone."""
    before = resident_bytes(stocked.pid)
    deaf = [stocked.wire(ALPHA, receive_buffer=4096) for _ in range(8)]
    with Bystander(stocked, BETA), stocked.wire(ALPHA, timeout=120) as wire:
        for client in deaf:
            client.raw(encode("MGET", *KEYS))
        # Some of them, whichever came first, have a reply under way.
        eventually(lambda: any(begun(client) for client in deaf), 20, "replies begin")
        assert wire.ask("STRLEN", KEYS[0]) == VALUE_BYTES
        grown = resident_bytes(stocked.pid) - before
        assert grown < 2 * GROWTH_MAX, f"{grown >> 20} MiB"
        wire.send("MGET", *KEYS)
        for client in deaf:
            client.close()
        assert read_header(wire, b"*") == VALUES
        for index in range(VALUES):
            assert wire.read() == value(index)
        eventually(lambda: b"connected_clients:1\r" in wire.ask("INFO", "clients"), 20, "the deaf ones are gone")


def test_a_server_stops_with_a_reply_under_way(start):
    server = start()
    with server.wire(ALPHA, timeout=60) as wire:
        for index in range(4):
            wire.ask("SET", KEYS[index], value(index))
        with server.wire(ALPHA, receive_buffer=4096) as deaf:
            deaf.raw(encode("MGET", *KEYS[:4]))
            assert deaf.sock.recv(1) == b"*"
            deaf.close()
        assert server.stop() == 0


MEMBERS = 100_000
NAME_BYTES = 1400
# Their names are 140 MB, which it would grow by if they were gathered first; what was stored just now still is
# flushed and compacted, which takes up to 72 MiB.
NAMES_GROWTH_MAX = 100 * MEBIBYTE


def name(index):
    return b"%0*d" % (NAME_BYTES, index)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """A server whose tenant alpha has many long names: of keys, of fields, of members."""
    server = Server(tmp_path_factory.mktemp("crowded")).start()
    with server.wire(ALPHA, timeout=120) as wire:
        for first in range(0, MEMBERS, 500):
            some = range(first, first + 500)
            wire.ask("MSET", *(word for index in some for word in (name(index), "")))
            wire.ask("ZADD", "set", *(word for index in some for word in (index, name(index))))
            wire.ask("HSET", "hash", *(word for index in some for word in (name(index), "")))
    yield server
    server.kill()


@pytest.mark.parametrize(
    ("words", "beside", "backwards"),
    [
        (["KEYS", "0*"], None, False),
        (["SCAN", "0", "MATCH", "0*", "COUNT", "1000000"], None, False),
        (["ENTREMET.RANGE", "-", "(hash", "COUNT", "100000", "KEYS"], None, False),
        (["ZRANGE", "set", "0", "-1"], None, False),
        (["ZRANGE", "set", "0", "-1", "REV", "WITHSCORES"], int, True),
        (["ZRANGEBYSCORE", "set", "-inf", "+inf"], None, False),
        (["ZREVRANGEBYLEX", "set", "+", "-"], None, True),
        (["ZSCAN", "set", "0", "COUNT", "1000000"], int, False),
        (["HKEYS", "hash"], None, False),
        (["HSCAN", "hash", "0", "COUNT", "1000000"], b"", False),
    ],
    ids=lambda words: words[0].lower() if isinstance(words, list) else "",
)
def test_a_reply_of_many_names_is_not_held(crowded, words, beside, backwards):
    """Whatever walks a keyspace or a collection: it holds a piece, and keeps nobody waiting."""
    count = 100_000 if words[0] == "ENTREMET.RANGE" else MEMBERS
    before = resident_bytes(crowded.pid)
    grown = 0
    with Bystander(crowded, BETA), crowded.wire(ALPHA, receive_buffer=65536, timeout=120) as slow:
        slow.send(*words)
        slow.send("ECHO", "after")
        if words[0] in ("SCAN", "HSCAN", "ZSCAN"):
            assert read_header(slow, b"*") == 2
            assert slow.read() == b"0"
        assert read_header(slow, b"*") == count * (1 if beside is None else 2)
        for index in range(count - 1, -1, -1) if backwards else range(count):
            assert slow.read() == name(index)
            if beside is not None:
                assert slow.read() == (b"%d" % index if beside is int else beside)
            if index % 10_000 == 0:
                grown = max(grown, resident_bytes(crowded.pid) - before)
        assert slow.read() == b"after"
    assert grown < NAMES_GROWTH_MAX, f"{grown >> 20} MiB"
