"""SAVE, BGSAVE and LASTSAVE: what they say of the disk is so."""

import urllib.request

import pytest

from harness.resp import ServerError
from harness.server import ALPHA, BETA, Tenant
from harness.waiting import eventually

pytestmark = pytest.mark.ours
# Nobody syncs its log but it itself.
NEVER = Tenant("never", sync="never")


def persistence(wire):
    """Writes that no sync covers, and when the last one was."""
    lines = dict(line.split(":", 1) for line in wire.ask("INFO", "persistence").decode().split("\r\n") if ":" in line)
    return int(lines["rdb_changes_since_last_save"]), int(lines["rdb_last_save_time"])


def test_save_syncs_what_was_written(start):
    server = start(tenants=(NEVER, BETA))
    with server.wire(NEVER) as wire, server.wire(BETA) as other:
        assert wire.ask("SAVE") == b"OK"
        began = wire.ask("LASTSAVE")
        for number in range(10):
            wire.ask("SET", f"k{number}", "v")
        assert persistence(wire)[0] == 10
        assert persistence(other)[0] == 0
        eventually(lambda: int(wire.ask("TIME")[0]) > began + 1, 20, "a second passes")
        assert wire.ask("LASTSAVE") == began
        assert wire.ask("SAVE") == b"OK"
        assert persistence(wire) == (0, wire.ask("LASTSAVE"))
        assert wire.ask("LASTSAVE") > began
        wire.ask("SET", "k", "v")
        assert wire.ask("BGSAVE") == wire.ask("BGSAVE", "SCHEDULE") == b"Background saving started"
        assert persistence(wire)[0] == 0
        for words in (["BGSAVE", "NOW"], ["SAVE", "NOW"], ["BGSAVE", "SCHEDULE", "NOW"]):
            assert isinstance(wire.attempt(*words), ServerError)


def test_a_tenant_that_is_synced_each_second_or_always_has_nothing_to_save(start):
    server = start(tenants=(Tenant("always", sync="always"), ALPHA))
    with server.wire(Tenant("always")) as wire:
        wire.ask("SET", "k", "v")
        assert persistence(wire)[0] == 0
        assert abs(wire.ask("LASTSAVE") - int(wire.ask("TIME")[0])) <= 2
    with server.wire(ALPHA) as wire:
        wire.ask("SET", "k", "v")
        eventually(lambda: persistence(wire)[0] == 0, 20, "the second is over")


def test_who_saves_at_the_same_time_is_told(start):
    """Each has its log synced, or is told that somebody else does."""
    server = start(tenants=(NEVER, BETA))
    wires = [server.wire(NEVER, timeout=60) for _ in range(20)]
    for _ in range(20):
        for wire in wires:
            wire.send("SET", "k", "v" * 100)
            wire.send("SAVE")
        for wire in wires:
            assert wire.read() == b"OK"
            reply = wire.read()
            assert reply == b"OK" or "already in progress" in str(reply)
    assert wires[0].ask("SAVE") == b"OK"
    assert persistence(wires[0])[0] == 0
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/readyz", timeout=20) as page:
        assert page.status == 200
    for wire in wires:
        wire.close()


def test_not_in_a_transaction(start):
    server = start()
    with server.wire(ALPHA) as wire:
        wire.ask("MULTI")
        for words in (["SAVE"], ["BGSAVE"]):
            assert "not allowed inside a transaction" in str(wire.attempt(*words))
        assert "EXECABORT" in str(wire.attempt("EXEC"))
