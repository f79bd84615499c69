"""Transactions beside others, and over a restart: as Redis has them."""

import time

import pytest

from harness.server import ALPHA, Tenant
from harness.waiting import eventually

pytestmark = pytest.mark.ours


def now_ms(wire):
    seconds, micros = wire.ask("TIME")
    return int(seconds) * 1_000 + int(micros) // 1_000


@pytest.mark.parametrize("restart", [False, True], ids=["in memory", "after a restart"])
def test_exec_is_refused_once_a_watched_key_has_expired(start, restart):
    """Whether or not memory knows of the key when it is watched."""
    server = start()
    at_ms = int(time.time() * 1_000) + 4_000
    with server.wire(ALPHA) as wire:
        # Each in a block of its own, so that memory does not get to know of it by the way.
        wire.ask("MSET", *(word for number in range(200) for word in (f"{'lmst'[number % 4]}{number}", str(number) * 4_000)))
        wire.ask("SET", "short", "1" * 8_000, "PXAT", at_ms)
        wire.ask("SET", "long", "1" * 8_000, "PXAT", at_ms + 10_000_000)
    if restart:
        server.stop()
        server.start()
    with server.wire(ALPHA) as first, server.wire(ALPHA) as second, server.wire(ALPHA) as clock:
        for wire, key in ((first, "short"), (second, "long")):
            assert wire.ask("WATCH", key) == b"OK"
        assert now_ms(clock) < at_ms, "this machine is too slow for this test"
        eventually(lambda: now_ms(clock) > at_ms, 30, "its time has come")
        for wire in (first, second):
            wire.ask("MULTI")
            wire.ask("SET", "written", "1")
        assert first.ask("EXEC") is None
        assert second.ask("EXEC") == [b"OK"]


def test_session_commands_of_an_aborted_exec_do_not_run(start):
    server = start()
    with server.wire(ALPHA) as wire, server.wire(ALPHA) as other, server.wire(ALPHA) as victim:
        number = victim.ask("CLIENT", "ID")
        victim.ask("CLIENT", "SETNAME", "before")
        wire.ask("WATCH", "key")
        other.ask("SET", "key", "1")
        wire.ask("MULTI")
        for command in (("CLIENT", "KILL", "ID", number), ("CLIENT", "SETNAME", "after"), ("CLIENT", "REPLY", "OFF"), ("HELLO", "3")):
            wire.attempt(*command)
        assert wire.ask("EXEC") is None
        assert wire.ask("CLIENT", "GETNAME") is None
        assert victim.ask("CLIENT", "GETNAME") == b"before"


def test_every_command_that_can_be_queued_is_answered_by_exec(start):
    """With as many words as it needs and no more: with others `UNWATCH`, for one, is never queued."""
    server = start(tenants=(Tenant("root", extra="admin = true"),))
    with server.wire(server.tenants[0]) as wire:
        names = [name.decode() for name in wire.ask("COMMAND", "LIST")]
        least = [(*name.split("|"), *["1"] * (abs(wire.ask("COMMAND", "INFO", name)[0][1]) - 1 - name.count("|"))) for name in names]
    queued = []
    for words in least:
        with server.wire(server.tenants[0]) as wire:
            wire.ask("MULTI")
            if wire.attempt(*words) == b"QUEUED":
                queued.append(words)
                try:
                    assert len(wire.ask("EXEC")) == 1, words
                except (EOFError, ConnectionError):
                    raise AssertionError(f"{words} ended the connection: {server.said()[-1500:]}") from None
    assert ("UNWATCH",) in {tuple(word.upper() for word in words) for words in queued} and len(queued) > 150, len(queued)
    with server.wire(server.tenants[0]) as wire:
        wire.ask("WATCH", "key")
        wire.ask("MULTI")
        wire.ask("UNWATCH")
        with server.wire(server.tenants[0]) as other:
            other.ask("SET", "key", "1")
        assert wire.ask("EXEC") is None, "in a transaction it undoes nothing, as in Redis"


@pytest.mark.parametrize("write", [("SET", "known", "2"), ("DEL", "known")], ids=["there", "absent"])
def test_watch_of_keys_of_which_memory_knows_only_the_first(start, write):
    server = start()
    # Each in a block of its own.
    keys = ["known", *(f"key{number}" for number in range(20))]
    with server.wire(ALPHA) as wire:
        wire.ask("MSET", *(word for key in keys for word in (key, "1" * 8_000)))
    server.stop()
    server.start()
    with server.wire(ALPHA) as wire, server.wire(ALPHA) as other:
        wire.ask(*write)
        assert wire.ask("WATCH", "known", "key10") == b"OK"
        other.ask("SET", "key10", "2")
        wire.ask("MULTI")
        assert wire.ask("EXEC") is None


def test_a_bad_exec_ends_what_there_is_and_says_so(start):
    """Also where there is no transaction: what was watched is watched no more."""
    server = start()
    bad = "EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command"
    with server.wire(ALPHA) as wire, server.wire(ALPHA) as other:
        wire.ask("WATCH", "key")
        assert bad in str(wire.attempt("EXEC", "x"))
        other.ask("SET", "key", "1")
        wire.ask("MULTI")
        assert wire.ask("GET", "key") == b"QUEUED"
        assert wire.ask("EXEC") == [b"1"]
        wire.ask("MULTI")
        assert bad in str(wire.attempt("EXEC", "x"))
        assert "ERR EXEC without MULTI" in str(wire.attempt("EXEC"))
