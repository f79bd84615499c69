"""kill -9 in the middle of writes: nothing that was acknowledged may be missing, and nothing may be there in part."""

import os
import random

import pytest
from writers import Crowd

from harness.server import Server, Tenant

ROUNDS = int(os.environ.get("ENTREMET_KILL_ROUNDS", "50"))
# A kill takes nothing from a tenant of whichever durability; "default" is whose a connection is
# after RESET.
TENANTS = (Tenant("alpha", sync="always"), Tenant("beta", sync="every 1s"), Tenant("default", sync="always"))
OWNED = (Tenant("gamma", sync="always"), Tenant("delta", sync="never"))
WRITERS_EACH = 2
# The kill falls after a random number of acknowledged operations, so that rounds end in different
# states of the files.
OPERATIONS_MIN, OPERATIONS_MAX = 20, 600


# Without a stage under the databases, and with one over an emulated SSD: every I/O then goes
# through the hook. With small memtables, so that logs end and go and files are merged all the time.
@pytest.mark.ours
@pytest.mark.parametrize(
    ("options", "rounds"),
    [("", ROUNDS), ('[device]\nmodel = "ssd"', ROUNDS // 5), ('memtable = "1MiB"', ROUNDS // 5)],
    ids=["bare", "staged", "flushing"],
)
def test_no_acknowledged_write_is_lost(tmp_path, options, rounds):
    """Writers switch between tenants in the middle of a pipeline; transactions and large writes are there whole or not at all."""
    seed = int(os.environ.get("ENTREMET_SEED", "1"))
    chance, crowd = random.Random(seed), Crowd(TENANTS, WRITERS_EACH, seed, OWNED)
    server = Server(tmp_path, tenants=TENANTS + OWNED, engine_options=options)
    try:
        for number in range(rounds):
            server.start()
            crowd.verify(server)
            crowd.write_until(server, chance.randint(OPERATIONS_MIN, OPERATIONS_MAX), then=server.kill)
        server.start()
        crowd.verify(server)
    except AssertionError as problem:
        raise AssertionError(f"round {number + 1} of {rounds}, ENTREMET_SEED={seed}: {problem}\n{server.said()[-3000:]}") from None
    finally:
        server.kill()
    print(f"{rounds} rounds of kill -9: {crowd.acknowledged()} operations acknowledged, none lost")
    assert crowd.acknowledged() >= rounds * OPERATIONS_MIN


FIELDS = 5_000
# What they leave of a hash "big" and a string "small", were they never to be interrupted.
CHANGES = {
    ("FLUSHALL",): {},
    ("RENAME", "big", "moved"): {"moved", "small"},
    ("RENAME", "big", "small"): {"small"},
    ("COPY", "big", "copy"): {"big", "copy", "small"},
    ("COPY", "big", "small", "REPLACE"): {"big", "small"},
    ("DEL", "big"): {"small"},
}


@pytest.mark.parametrize("change", CHANGES, ids=" ".join)
def test_a_large_change_is_there_whole_or_not_at_all(tmp_path, change):
    chance = random.Random(int(os.environ.get("ENTREMET_SEED", "1")))
    fields = {b"%d" % index: b"v" * 100 for index in range(FIELDS)}
    words = [word for pair in fields.items() for word in pair]
    server = Server(tmp_path, tenants=TENANTS)
    try:
        for _ in range(ROUNDS // 10):
            server.start()
            with server.wire(TENANTS[0]) as wire, server.wire(TENANTS[0]) as clock:
                wire.ask("FLUSHALL")
                wire.ask("HSET", "big", *words)
                wire.ask("SET", "small", "x")
                wire.send(*change)
                # The kill falls before it, in it, or behind it.
                for _ in range(chance.randrange(40)):
                    clock.ask("PING")
                server.kill()
            server.start()
            with server.wire(TENANTS[0]) as wire:
                found = {key.decode() for key in wire.ask("KEYS", "*")}
                assert found in ({"big", "small"}, set(CHANGES[change])), found
                for key in found:
                    if wire.ask("TYPE", key) == b"hash":
                        flat = wire.ask("HGETALL", key)
                        assert dict(zip(flat[::2], flat[1::2])) == fields and wire.ask("HLEN", key) == FIELDS
                    else:
                        assert (key, wire.ask("GET", key)) == ("small", b"x")
            server.kill()
    finally:
        server.kill()


def test_sigterm_loses_nothing_whatever_the_sync(tmp_path):
    """An ordered end writes out what `every 1s` and `never` still had in memory."""
    tenants = (Tenant("alpha", sync="every 1s"), Tenant("beta", sync="never"))
    server = Server(tmp_path, tenants=tenants)
    crowd = Crowd(tenants, 2, seed=7)
    server.start()
    crowd.write_until(server, 2000, then=server.stop)
    assert server.process.returncode == 0, server.said()[-3000:]
    if server.is_reference:
        return  # it was started without a log, so it has nothing to show
    server.start()
    crowd.verify(server)
    server.kill()
