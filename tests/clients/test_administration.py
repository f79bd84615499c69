"""What operators and libraries ask of a server beside its data: Redis's replies and errors, where there is one answer."""

import pytest

from harness.resp import ServerError
from harness.server import ALPHA, BETA, Server
from harness.waiting import eventually

pytestmark = pytest.mark.ours

SAME = """
ROLE
ROLE now
WAIT 0 0
WAIT 0 10
WAIT x 0
WAIT 0 x
WAIT 0 -1
WAIT 0
MODULE LIST
MODULE NOSUCH
CLIENT UNBLOCK 12345678
CLIENT UNBLOCK 12345678 TIMEOUT
CLIENT UNBLOCK 12345678 error
CLIENT UNBLOCK 12345678 NOSUCH
CLIENT UNBLOCK x
CLIENT UNBLOCK
CLIENT PAUSE
CLIENT PAUSE x
CLIENT PAUSE -1
CLIENT PAUSE 1 NOSUCH
CLIENT PAUSE 0
CLIENT PAUSE 0 WRITE
CLIENT UNPAUSE
CLIENT UNPAUSE now
LATENCY GRAPH nosuch
LATENCY GRAPH
LATENCY LATEST
LATENCY HISTORY nosuch
SAVE
SAVE now
BGSAVE NOW
COMMAND GETKEYS WAIT 1 2
"""


def test_the_same_is_answered_as_by_redis(server, tmp_path):
    redis = Server(tmp_path, tenants=(), program="redis-server").start()
    try:
        for protocol in ("2", "3"):
            with server.wire(ALPHA) as ours, redis.wire() as theirs:
                for wire in (ours, theirs):
                    wire.ask("HELLO", protocol)
                for line in SAME.strip().splitlines():
                    here, there = ours.attempt(*line.split()), theirs.attempt(*line.split())
                    assert str(here) == str(there) and type(here) is type(there), line
    finally:
        redis.kill()


def figures(wire, *sections):
    """The lines of INFO as pairs."""
    text = wire.ask("INFO", *sections).decode()
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


def test_expiring_keys_are_counted(server):
    with server.wire(ALPHA) as wire:
        wire.ask("FLUSHDB")
        assert "db0" not in figures(wire, "keyspace")
        wire.ask("MSET", "a", "1", "b", "2", "c", "3")
        wire.ask("PEXPIRE", "a", 1_000_000)
        wire.ask("PEXPIRE", "b", 3_000_000)
        keys, expires, ttl = (part.split("=") for part in figures(wire, "keyspace")["db0"].split(","))
        assert (keys, expires) == (["keys", "3"], ["expires", "2"])
        assert ttl[0] == "avg_ttl" and 1_900_000 < int(ttl[1]) <= 2_000_000
        wire.ask("FLUSHDB")


def test_figures_are_the_tenants_own(server):
    """Beta's are not moved by what alpha does; a rate is that of the last seconds."""
    names = ("total_connections_received", "total_commands_processed", "instantaneous_ops_per_sec", "rejected_connections")
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        for wire in (alpha, beta):
            wire.ask("CONFIG", "RESETSTAT")
        for _ in range(5):
            server.wire(ALPHA).close()

        def busy():
            for _ in range(200):
                alpha.ask("SET", "rate", "v")
            return int(figures(alpha, "stats")["instantaneous_ops_per_sec"]) > 0

        eventually(busy, 30, "a turn of five seconds is over")
        here, there = figures(alpha, "stats"), figures(beta, "stats")
        assert set(names) <= set(here)
        assert here["total_connections_received"] == "5" and there["total_connections_received"] == "0"
        assert int(here["total_commands_processed"]) > 200 > int(there["total_commands_processed"])
        assert int(here["instantaneous_ops_per_sec"]) > int(there["instantaneous_ops_per_sec"])
        assert here["rejected_connections"] == there["rejected_connections"] == "0"


def test_memory_is_told_by_what_it_is_for(server):
    with server.wire(ALPHA) as wire, server.wire(BETA) as other:
        for who in (wire, other):
            who.ask("FLUSHDB")
            who.ask("HELLO", "3")
        for number in range(100):
            wire.ask("SET", f"memory:{number}", "v" * 1_000)
        stats, idle = wire.ask("MEMORY", "STATS"), other.ask("MEMORY", "STATS")
        assert stats[b"keys.count"] == 100 and idle[b"keys.count"] == 0
        assert stats[b"dataset.bytes"] >= 100_000 > idle[b"dataset.bytes"]
        assert stats[b"total.allocated"] == stats[b"dataset.bytes"] + stats[b"overhead.total"]
        assert 0 < stats[b"dataset.percentage"] <= 100
        memory = figures(wire, "memory")
        assert int(memory["used_memory_rss"]) == int(memory["used_memory"]) >= 100_000
        assert b"no problem" in wire.ask("MEMORY", "DOCTOR")
        assert b"by tenant" in wire.ask("MEMORY", "MALLOC-STATS")
        wire.ask("FLUSHDB")


def test_the_doctor_of_latency_tells_of_this_tenant(server):
    with server.wire(ALPHA) as wire:
        wire.ask("SET", "k", "v")
        said = wire.ask("LATENCY", "DOCTOR").decode()
        assert said.startswith("alpha: weight 1") and "put: " in said and "mostly " in said and "beta" not in said, said


def test_waiting_for_replicas_ends_at_once(server):
    with server.wire(ALPHA, timeout=10) as wire:
        assert wire.ask("WAIT", "3", "3600000") == 0
        assert isinstance(wire.attempt("LATENCY", "GRAPH", "x" * 10_000), ServerError)
