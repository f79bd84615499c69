"""Commands on long strings hold what they work on, not the whole, and keep nobody waiting."""

import select

import pytest
from bystander import Bystander

from harness.process import forget_peak, peak_bytes, resident_bytes
from harness.server import ALPHA, BETA, Server
from harness.waiting import eventually

MEBIBYTE = 1 << 20
LONG = 64 * MEBIBYTE
# What others get of a MiB, what the heap keeps, what RocksDB writes in the background.
SLACK = 48 * MEBIBYTE

pytestmark = pytest.mark.ours


@pytest.fixture(scope="module")
def stocked(tmp_path_factory):
    """A server whose tenant alpha has a string "long" without a zero in it."""
    server = Server(tmp_path_factory.mktemp("strings"), engine_options='write_buffers = "64MiB"').start()
    with server.wire(ALPHA, timeout=120) as wire:
        wire.ask("SET", "long", b"\x01" * LONG)
    yield server
    server.kill()


def settled(server):
    """What it holds at rest: written out, and the heap's free pages given back."""
    low = [resident_bytes(server.pid)]

    def still():
        low.append(resident_bytes(server.pid))
        return len(low) > 20 and max(low[-20:]) - min(low[-20:]) < MEBIBYTE

    eventually(still, 60, "memory is at rest")
    return low[-1]


def test_many_small_appends_do_not_keep_the_string_each_time(stocked):
    before = settled(stocked)
    with Bystander(stocked, BETA), stocked.wire(ALPHA, timeout=120) as wire:
        for count in range(1, 201):
            assert wire.ask("APPEND", "long", "x") == LONG + count
            assert wire.ask("SETBIT", "long", count * 100_000, 1) in (0, 1)
        assert wire.ask("GETRANGE", "long", LONG - 1, -1) == b"\x01" + b"x" * 200
        assert wire.ask("SETRANGE", "long", LONG, "y" * 200) == LONG + 200
    # Each wrote a piece of 16 KiB.
    assert resident_bytes(stocked.pid) - before < SLACK


@pytest.mark.parametrize("operation", ["OR", "AND", "XOR"])
def test_a_source_named_forty_times_is_not_held_forty_times(stocked, operation):
    settled(stocked)
    forget_peak(stocked.pid)
    before = peak_bytes(stocked.pid)
    with Bystander(stocked, BETA), stocked.wire(ALPHA, timeout=120) as wire:
        length = wire.ask("STRLEN", "long")
        assert wire.ask("BITOP", operation, "result", *["long"] * 40) == length
        ones = wire.ask("BITCOUNT", "result")
        assert ones == (0 if operation == "XOR" else wire.ask("BITCOUNT", "long"))
        assert wire.ask("DEL", "result") == 1
    # The result, the batch that it is written in, memtables, blocks that were read: each once.
    assert peak_bytes(stocked.pid) - before < 6 * LONG + SLACK


READS = [
    ["GET", "long"],
    ["GETRANGE", "long", "1", "-2"],
    ["MGET", "long", "long"],
    ["GETEX", "long", "EX", "1000"],
    ["ENTREMET.RANGE", "[long", "[long", "VALUES"],
]
WRITES = [["GETSET", "{0}", "new"], ["GETDEL", "{0}"], ["SET", "{0}", "new", "GET"]]


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_who_does_not_read_a_long_string_does_not_have_it_held(stocked, words):
    before = settled(stocked)
    deaf = [stocked.wire(ALPHA, receive_buffer=4096) for _ in range(12)]
    try:
        with Bystander(stocked, BETA):
            for client in deaf:
                client.send(*words)
            begun = lambda: select.select([client.sock for client in deaf], [], [], 0)[0]  # noqa: E731
            eventually(begun, 20, "a reply begins")
        assert resident_bytes(stocked.pid) - before < SLACK
    finally:
        for client in deaf:
            client.close()


@pytest.mark.parametrize("words", WRITES, ids=lambda words: words[0].lower())
def test_what_replaces_a_long_string_does_not_hold_the_old_one(stocked, words):
    keys = [f"old:{number}" for number in range(4)]
    with stocked.wire(ALPHA, timeout=120) as wire:
        for key in keys:
            wire.ask("COPY", "long", key, "REPLACE")
        old = wire.ask("GET", "long")
    before = settled(stocked)
    deaf = [stocked.wire(ALPHA, receive_buffer=65536, timeout=60) for _ in keys]
    try:
        with Bystander(stocked, BETA), stocked.wire(ALPHA, timeout=120) as wire:
            for client, key in zip(deaf, keys):
                client.send(*(word.format(key) for word in words))
            new = None if words[0] == "GETDEL" else b"new"
            for key in keys:
                # It is done, though nobody has taken the reply.
                eventually(lambda: wire.ask("STRLEN", key) == len(new or b""), 60, "it is replaced")  # noqa: B023
                assert wire.ask("GET", key) == new
        assert resident_bytes(stocked.pid) - before < SLACK
        assert deaf[0].read() == old
    finally:
        for client in deaf:
            client.close()


def test_a_transaction_sees_the_long_strings_that_it_makes(stocked):
    """What it replaces or deletes may be its own, in pieces that no file has."""
    first, second = b"1" * 100_000, b"2" * 200_000
    steps = [
        (["SET", "mine", first], b"OK"),
        (["APPEND", "mine", "."], 100_001),
        (["GETSET", "mine", second], first + b"."),
        (["SETRANGE", "mine", "199999", "end"], 200_002),
        (["COPY", "mine", "copy"], 1),
        (["SET", "mine", first, "GET"], second[:-1] + b"end"),
        (["GETDEL", "mine"], first),
        (["BITOP", "XOR", "mine", "copy", "copy", "copy"], 200_002),
        (["GETEX", "copy", "EX", "100"], second[:-1] + b"end"),
        (["RENAME", "copy", "mine"], b"OK"),
        (["GET", "mine"], second[:-1] + b"end"),
        (["DEL", "mine"], 1),
    ]
    with stocked.wire(ALPHA) as wire:
        wire.ask("MULTI")
        for words, _ in steps:
            wire.ask(*words)
        assert wire.ask("EXEC") == [reply for _, reply in steps]
        assert wire.ask("EXISTS", "mine", "copy") == 0
