"""CLIENT PAUSE holds back the tenant that asks for it, for as long as it says, and nobody else."""

import time

import pytest

from harness.resp import ServerError
from harness.server import ALPHA, BETA
from harness.waiting import eventually

pytestmark = pytest.mark.ours
FOREVER = str((1 << 63) - 1)


def clients(wire):
    """Connections of the tenant, and how many of them are held back."""
    lines = dict(line.split(":", 1) for line in wire.ask("INFO", "clients").decode().split("\r\n") if ":" in line)
    return int(lines["connected_clients"]), int(lines["blocked_clients"])


def held(wire, count):
    eventually(lambda: clients(wire)[1] == count, 20, f"{count} connections are held back")


def test_writes_wait_and_reads_do_not(start):
    server = start()
    with server.wire(ALPHA) as alpha, server.wire(ALPHA) as writer, server.wire(BETA) as beta:
        alpha.ask("SET", "k", "before")
        assert alpha.ask("CLIENT", "PAUSE", FOREVER, "WRITE") == b"OK"
        writer.send("SET", "k", "after")
        held(alpha, 1)
        assert alpha.ask("GET", "k") == b"before"
        assert clients(beta) == (1, 0)
        assert beta.ask("SET", "k", "v") == b"OK"
        assert alpha.ask("CLIENT", "UNPAUSE") == b"OK"
        assert writer.read() == b"OK"
        assert alpha.ask("GET", "k") == b"after"
        assert clients(alpha) == (2, 0)


def test_a_transaction_that_writes_waits_as_a_whole(start):
    server = start()
    with server.wire(ALPHA) as alpha, server.wire(ALPHA) as other:
        for words in (["MULTI"], ["SET", "k", "v"]):
            other.ask(*words)
        alpha.ask("CLIENT", "PAUSE", FOREVER, "WRITE")
        other.send("EXEC")
        held(alpha, 1)
        with server.wire(ALPHA) as reader:
            reader.ask("MULTI")
            reader.ask("GET", "k")
            assert reader.ask("EXEC") == [None]
        alpha.ask("CLIENT", "UNPAUSE")
        assert other.read() == [b"OK"]


def test_a_pause_of_all_ends_in_time(start):
    server = start()
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        began = time.monotonic()
        # What was answered before the pause is not held back by it.
        alpha.raw(b"CLIENT PAUSE 700\r\nGET k\r\nPING\r\n")
        assert alpha.read() == b"OK"
        assert beta.ask("PING") == b"PONG"
        assert [alpha.read(), alpha.read()] == [None, b"PONG"]
        assert time.monotonic() - began >= 0.7


def test_a_longer_pause_wins_and_unpause_is_never_held_back(start):
    server = start()
    with server.wire(ALPHA) as alpha, server.wire(ALPHA) as other:
        # From here on nothing of alpha's runs, but for what ends it.
        alpha.raw(b"CLIENT PAUSE %s WRITE\r\nCLIENT PAUSE 1 ALL\r\n" % FOREVER.encode())
        assert [alpha.read(), alpha.read()] == [b"OK", b"OK"]
        other.send("PING")
        assert alpha.ask("CLIENT", "UNPAUSE") == b"OK"
        assert other.read() == b"PONG"
        assert alpha.ask("CLIENT", "UNPAUSE") == b"OK"


def test_who_leaves_while_it_is_held_back_is_gone(start):
    server = start(server_options="cores = 2")
    with server.wire(ALPHA) as alpha:
        alpha.ask("CLIENT", "PAUSE", FOREVER, "WRITE")
        wires = [server.wire(ALPHA) for _ in range(50)]
        for wire in wires:
            wire.send("SET", "k", "v" * 10_000)
        held(alpha, 50)
        for wire in wires[:30]:
            wire.close()
        eventually(lambda: clients(alpha) == (21, 20), 20, "they are gone")
        assert alpha.ask("CLIENT", "KILL", "TYPE", "NORMAL", "SKIPME", "YES") == 20
        eventually(lambda: clients(alpha) == (1, 0), 20, "all are gone")
        for wire in wires[30:]:
            wire.close()
        alpha.ask("CLIENT", "UNPAUSE")
        assert alpha.ask("EXISTS", "k") == 0


def test_a_server_that_ends_holds_nobody_back(start):
    server = start()
    with server.wire(ALPHA) as alpha, server.wire(ALPHA) as writer:
        alpha.ask("CLIENT", "PAUSE", FOREVER, "WRITE")
        writer.send("SET", "k", "v")
        held(alpha, 1)
        assert server.stop() == 0
        assert writer.read() == b"OK"
    server.start()
    with server.wire(ALPHA) as alpha:
        assert alpha.ask("GET", "k") == b"v"
        assert not isinstance(alpha.attempt("SET", "k", "w"), ServerError)
