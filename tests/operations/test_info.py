"""What INFO counts of commands and errors is what Redis counts, for the tenant that asks and nobody else."""

import pytest

from harness.resp import ServerError, encode
from harness.server import ALPHA, BETA
from harness.waiting import eventually


def section(wire, name):
    """The lines of a section of INFO: {name: {figure: number}}."""
    lines = wire.ask("INFO", name).decode().split("\r\n")
    pairs = [line.split(":", 1) for line in lines if ":" in line]
    return {key: dict(figure.split("=") for figure in value.split(",")) for key, value in pairs}


def calls(wire, command):
    """Calls, rejected calls and failed calls of a command; none if it was never sent."""
    stat = section(wire, "commandstats").get(f"cmdstat_{command}")
    return stat and tuple(int(stat[figure]) for figure in ("calls", "rejected_calls", "failed_calls"))


def errors(wire):
    """Errors by their code."""
    return {name.removeprefix("errorstat_"): int(stat["count"]) for name, stat in section(wire, "errorstats").items()}


def test_calls_are_counted_by_how_they_end(server):
    with server.wire(ALPHA) as wire:
        wire.ask("CONFIG", "RESETSTAT")
        wire.ask("SET", "info:s", "v")
        wire.ask("HSET", "info:h", "f", "v")
        for words in (["GET", "info:s"], ["GET", "info:h"], ["GET"], ["NOSUCH"], ["CLIENT", "GETNAME"]):
            wire.attempt(*words)
        assert calls(wire, "set") == (1, 0, 0)
        assert calls(wire, "get") == (2, 1, 1)
        assert calls(wire, "client|getname") == (1, 0, 0)
        assert calls(wire, "config|resetstat") == (1, 0, 0)
        assert calls(wire, "nosuch") is None
        assert errors(wire) == {"ERR": 2, "WRONGTYPE": 1}
        stat = section(wire, "commandstats")["cmdstat_get"]
        assert float(stat["usec_per_call"]) == pytest.approx(int(stat["usec"]) / 2, abs=0.01)


def test_commands_of_a_transaction_are_counted_when_they_run(server):
    with server.wire(ALPHA) as wire:
        wire.ask("HSET", "info:h", "f", "v")
        wire.ask("CONFIG", "RESETSTAT")
        wire.ask("MULTI")
        wire.ask("SET", "info:s", "v")
        wire.ask("GET", "info:h")
        with server.wire(ALPHA) as other:
            assert calls(other, "set") is None
        replies = wire.ask("EXEC")
        assert replies[0] == b"OK" and isinstance(replies[1], ServerError)
        assert calls(wire, "set") == (1, 0, 0)
        assert calls(wire, "get") == (1, 0, 1)
        assert calls(wire, "exec") == (1, 0, 0)
        wire.ask("MULTI")
        wire.attempt("SET", "info:s")
        wire.attempt("EXEC")
        assert calls(wire, "set") == (1, 1, 0)
        assert calls(wire, "exec") == (2, 0, 1)
        assert errors(wire) == {"ERR": 1, "EXECABORT": 1, "WRONGTYPE": 1}


@pytest.mark.ours
def test_what_a_handler_ran_is_counted_once(server):
    keys = [f"info:many:{i}" for i in range(200)]
    with server.wire(ALPHA) as wire:
        wire.ask("CONFIG", "RESETSTAT")
        wire.ask("MGET", *keys)
        wire.ask("KEYS", "info:none*")
        assert calls(wire, "mget") == (1, 0, 0)
        assert calls(wire, "keys") == (1, 0, 0)


@pytest.mark.ours
def test_a_tenant_sees_and_resets_its_own_counts_only(server):
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        alpha.ask("CONFIG", "RESETSTAT")
        beta.ask("CONFIG", "RESETSTAT")
        alpha.ask("SETRANGE", "info:r", "0", "v")
        beta.attempt("HGET", "info:h")
        assert calls(beta, "setrange") is None and errors(beta) == {"ERR": 1}
        assert calls(alpha, "hget") is None and errors(alpha) == {}
        beta.ask("CONFIG", "RESETSTAT")
        assert calls(alpha, "setrange") == (1, 0, 0)
        assert calls(beta, "hget") is None


@pytest.mark.ours
def test_a_pipeline_is_counted_for_who_it_is_of(server):
    """For nobody who comes later in the same bytes."""
    with server.wire(ALPHA) as wire, server.wire(BETA) as beta:
        for tenant in (wire, beta):
            tenant.ask("CONFIG", "RESETSTAT")
            tenant.ask("HSET", "info:h", "f", "v")
        words = [["GET", "info:none"]] * 3 + [["GET", "info:h"], ["GET", "info:none"], ["INFO", "commandstats"]]
        words += [["AUTH", ALPHA.name, ALPHA.password], ["AUTH", BETA.name, BETA.password], ["GET", "info:none"], ["GET", "info:none"]]
        wire.raw(b"".join(encode(*each) for each in words))
        replies = [wire.read() for _ in words]
        assert b"cmdstat_get:calls=5," in replies[5] and b"failed_calls=1" in replies[5]
        assert calls(beta, "get") == (2, 0, 0)
        with server.wire(ALPHA) as alpha:
            assert calls(alpha, "get") == (5, 0, 1)


def test_commandstats_are_shown_to_who_asks(server):
    with server.wire(ALPHA) as wire:
        for words, shown in (([], False), (["default"], False), (["all"], True), (["commandstats"], True)):
            assert (b"# Commandstats" in wire.ask("INFO", *words)) == shown
        assert b"# Errorstats" in wire.ask("INFO")


def test_a_write_that_changes_nothing_keeps_a_watch(server):
    with server.wire(ALPHA) as watcher, server.wire(ALPHA) as writer:
        writer.ask("SET", "info:w", "a")
        for words, kept in (
            (["SETBIT", "info:w", 1, 1], True),
            (["SETBIT", "info:w", 0, 1], False),
            (["SETBIT", "info:w", 100, 0], False),
            (["GETEX", "info:w", "PERSIST"], True),
            (["GETEX", "info:w", "EX", 100], False),
            (["GETEX", "info:w", "PERSIST"], False),
        ):
            watcher.ask("WATCH", "info:w")
            writer.ask(*words)
            watcher.ask("MULTI")
            watcher.ask("PING")
            assert (watcher.ask("EXEC") is not None) == kept, words


def test_what_keys_were_found_missed_and_expired_is_counted(server):
    with server.wire(ALPHA) as wire, server.wire(BETA) as other:
        for who in (wire, other):
            who.ask("CONFIG", "RESETSTAT")
        wire.ask("SET", "info:lasting", "v")
        wire.ask("SET", "info:brief", "v", "PX", 1)
        wire.ask("MGET", "info:lasting", "info:absent", "info:never")

        def stats(who):
            lines = who.ask("INFO", "stats").decode().split("\r\n")
            figures = dict(line.split(":", 1) for line in lines if ":" in line)
            return tuple(int(figures[name]) for name in ("keyspace_hits", "keyspace_misses", "expired_keys"))

        eventually(lambda: stats(wire) == (1, 2, 1), 20, "the brief key is deleted")
        assert stats(other) == (0, 0, 0)
