"""Clients that mean harm, or behave as if they did: each gets a clear error, and its neighbours notice nothing."""

import socket
import struct

import pytest
from bystander import Bystander

from harness.process import resident_bytes
from harness.resp import ServerError, encode
from harness.server import ALPHA, BETA
from harness.waiting import eventually

MEBIBYTE = 1 << 20
# A request that is refused must not have been given memory first.
GROWTH_MAX = 64 * MEBIBYTE


@pytest.fixture
def victim(start):
    return start()


def closes(wire):
    """True once the server has closed the connection."""
    try:
        while wire.read():
            pass
    except (EOFError, ConnectionError):
        return True
    return False


@pytest.mark.parametrize(
    "header,error",
    [
        # Redis 7 takes this many words, and waits for them.
        pytest.param(b"*1000000000\r\n", "ERR Protocol error: invalid multibulk length", marks=pytest.mark.ours),
        (b"*9223372036854775808\r\n", "ERR Protocol error: invalid multibulk length"),
        (b"*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$1073741824\r\n", "ERR Protocol error: invalid bulk length"),
        (b"*1\r\n$-5\r\n", "ERR Protocol error: invalid bulk length"),
        (b"*1\r\n!3\r\n", "ERR Protocol error: expected '$', got '!'"),
        (b'SET a "open\r\n', "ERR Protocol error: unbalanced quotes in request"),
        (b"x" * 70_000, "ERR Protocol error: too big inline request"),
        (b"*" + b"1" * 70_000, "ERR Protocol error: too big mbulk count string"),
    ],
    ids=["billion-elements", "overflowing-count", "gibibyte-value", "negative", "wrong-type", "open-quote", "long-line", "long-count"],
)
def test_broken_requests_are_named(victim, header, error):
    before = resident_bytes(victim.pid)
    with Bystander(victim, BETA), victim.wire(ALPHA) as wire:
        wire.raw(header)
        reply = wire.read()
        assert isinstance(reply, ServerError) and str(reply) == error, reply
        assert closes(wire)
    assert resident_bytes(victim.pid) - before < GROWTH_MAX


def test_the_largest_count_that_is_allowed_reserves_nothing(victim):
    """A million words are announced, by many clients, and never sent."""
    before = resident_bytes(victim.pid)
    with Bystander(victim, BETA):
        wires = [victim.wire(ALPHA) for _ in range(50)]
        for wire in wires:
            wire.raw(b"*1048576\r\n$100000000\r\nabc")
        with victim.wire(ALPHA) as wire:
            assert wire.ask("PING") == b"PONG"
        assert resident_bytes(victim.pid) - before < GROWTH_MAX
        for wire in wires:
            wire.close()


def test_a_gibibyte_is_streamed_all_the_same(victim):
    """The client ignores the refusal and goes on sending. The server must not keep what it gets."""
    before = resident_bytes(victim.pid)
    chunk = b"x" * MEBIBYTE
    with Bystander(victim, BETA), victim.wire(ALPHA) as wire:
        sent = 0
        try:
            wire.raw(b"*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$1073741824\r\n")
            while sent < 1024:
                wire.raw(chunk)
                sent += 1
        except (ConnectionError, TimeoutError):
            pass
        assert sent < 1024, "the server took a gibibyte that it had refused"
    assert resident_bytes(victim.pid) - before < GROWTH_MAX
    with victim.wire(ALPHA) as wire:
        assert wire.ask("EXISTS", "big") == 0


def test_a_large_value_does_not_hold_up_others(victim):
    """64 MiB in and out is legitimate, and is served in chunks between the others' requests."""
    value = bytes(range(256)) * (64 * MEBIBYTE // 256)
    with Bystander(victim, BETA), victim.wire(ALPHA, timeout=120) as wire:
        assert wire.ask("SET", "large", value) == b"OK"
        for _ in range(3):
            assert wire.ask("GET", "large") == value


def test_half_open_connections(victim):
    """Clients that vanish: in the middle of a request, with and without saying so, and before a reply."""
    with Bystander(victim, BETA) as bystander:
        for index in range(300):
            wire = victim.wire(ALPHA if index % 2 else None)
            wire.raw((b"*2\r\n$3\r\nGET\r\n$10\r\nabc", encode("GET", "k"), b"*3\r\n$3\r\nSE")[index % 3])
            if index % 4 == 0:
                # Reset instead of an orderly end.
                wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if index % 5 == 0:
                wire.sock.shutdown(socket.SHUT_WR)
            wire.close()
        bystander.check()
    with victim.wire(ALPHA) as wire:
        eventually(lambda: connected(wire) <= 2, 30, "connections whose clients are gone are closed")


def connected(wire):
    """Clients that the server counts for this tenant."""
    for line in wire.ask("INFO", "clients").decode().splitlines():
        if line.startswith("connected_clients:"):
            return int(line.partition(":")[2])
    raise AssertionError("INFO clients does not tell connected_clients")


@pytest.mark.ours
def test_a_client_that_never_reads(victim):
    """It asks for 2 GiB and reads nothing. What waits for it is bounded, and so is what is read from it."""
    before = resident_bytes(victim.pid)
    with victim.wire(ALPHA) as wire:
        wire.ask("SET", "big", b"x" * MEBIBYTE)
    with Bystander(victim, BETA), victim.wire(ALPHA, receive_buffer=4096, timeout=2) as deaf:
        request = encode("GET", "big") * 100
        try:
            for _ in range(20):
                deaf.raw(request)
        except (TimeoutError, ConnectionError):
            pass  # it is no longer read from, or was cut off: both will do
        with victim.wire(ALPHA) as wire:
            assert len(wire.ask("GET", "big")) == MEBIBYTE
        grown = resident_bytes(victim.pid) - before
        assert grown < 2 * GROWTH_MAX, f"{grown >> 20} MiB are kept for a client that does not read"


def test_a_slow_consumer_gets_everything(victim):
    """A client with a tiny window reads in small pieces; its replies arrive whole and in order."""
    value = bytes(range(256)) * 4096
    with Bystander(victim, BETA), victim.wire(ALPHA, receive_buffer=4096, timeout=60) as slow:
        slow.ask("SET", "value", value)
        for number in range(8):
            slow.send("GET", "value")
            slow.send("ECHO", number)
        for number in range(8):
            assert slow.read() == value
            assert slow.read() == b"%d" % number


def test_many_idle_connections(victim):
    """They cost little and disturb nobody."""
    with Bystander(victim, BETA):
        wires = [victim.wire(ALPHA) for _ in range(500)]
        assert all(wire.ask("PING") == b"PONG" for wire in wires[::50])
        for wire in wires:
            wire.close()
