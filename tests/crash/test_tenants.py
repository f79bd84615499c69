"""Tenants that are added while the server runs: none is lost, and thousands of them are ordinary."""

import os
import random

import pytest

from harness.process import resident_bytes
from harness.resp import ServerError
from harness.server import Server, StartFailed, Tenant

OPERATOR = Tenant("boss", extra="admin = true")
ROUNDS = int(os.environ.get("ENTREMET_KILL_ROUNDS", "50")) // 5
CHANGES_MAX = 400
# As many names as make the journal be written anew once in a while.
NAMES = 60
WITH_PASSWORDS = 100
# One hash works over 19 MiB.
GROWTH_MAX = 64 << 20

pytestmark = pytest.mark.ours


def weights(wire):
    """Every tenant but those of the configuration, with its weight."""
    names = {name.decode() for name in wire.ask("ENTREMET", "TENANT", "LIST")} - {"boss"}
    fields = {name: wire.ask("ENTREMET", "TENANT", "GET", name) for name in names}
    return {name: float(pairs[pairs.index(b"weight") + 1]) for name, pairs in fields.items()}


def test_no_acknowledged_change_is_lost(tmp_path):
    seed = int(os.environ.get("ENTREMET_SEED", "1"))
    chance = random.Random(seed)
    known, unknown = {}, {}
    server = Server(tmp_path, tenants=(OPERATOR,))
    try:
        for number in range(ROUNDS + 1):
            server.start()
            with server.wire(OPERATOR) as wire:
                found = weights(wire)
                # The change under way when the server was killed may have been made, or not.
                possible = [known, known | unknown]
                assert found in possible, f"round {number}, ENTREMET_SEED={seed}: {found} is none of {possible}"
                known = found
                for _ in range(chance.randint(1, CHANGES_MAX)):
                    change(wire, chance, known)
                unknown = under_way(wire, chance)
            server.kill()
    finally:
        server.kill()


def change(wire, chance, known):
    name = f"t{chance.randrange(NAMES)}"
    if name in known and chance.random() < 0.3:
        wire.ask("ENTREMET", "TENANT", "DEL", name)
        del known[name]
    else:
        known[name] = float(chance.randint(1, 100))
        wire.ask("ENTREMET", "TENANT", "SET", name, "WEIGHT", f"{known[name]:.0f}")


def under_way(wire, chance):
    """Sends a change and waits for no answer; what it would set."""
    name, weight = f"t{chance.randrange(NAMES)}", float(chance.randint(1, 100))
    wire.send("ENTREMET", "TENANT", "SET", name, "WEIGHT", f"{weight:.0f}")
    return {name: weight}


def test_a_torn_change_is_dropped_and_a_damaged_one_refuses_to_start(tmp_path):
    server = Server(tmp_path, tenants=(OPERATOR,)).start()
    with server.wire(OPERATOR) as wire:
        for name in ("web", "api", "torn"):
            wire.ask("ENTREMET", "TENANT", "SET", name, "WEIGHT", "2")
    server.kill()
    journal = server.data / "tenants.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-30])
    server.start()
    with server.wire(OPERATOR) as wire:
        assert weights(wire) == {"api": 2.0, "web": 2.0}
    server.says("cut short by a crash")
    server.kill()
    journal.write_bytes(b"x" + whole)
    with pytest.raises(StartFailed, match="tenants.jsonl is damaged"):
        server.start()


def test_hashes_of_passwords_are_the_servers_alone(tmp_path):
    """Also of a file that an older version left open to others, and of one that was written anew."""
    server = Server(tmp_path, tenants=(OPERATOR,)).start()
    try:
        with server.wire(OPERATOR) as wire:
            wire.ask("ENTREMET", "TENANT", "SET", "web", "PASSWORD", "web-secret")
        files = [server.data / "tenants.jsonl"]
        assert modes(files) == [0o600]
        server.kill()
        files[0].chmod(0o644)
        server.start()
        assert modes(files) == [0o600] and server.says("others could read this file (mode 644)")
        with server.wire(OPERATOR) as wire:
            for weight in range(300):
                wire.ask("ENTREMET", "TENANT", "SET", "web", "WEIGHT", f"{weight + 1}")
        files.append(server.data / "tenants.json")
        assert modes(files) == [0o600] * 2
    finally:
        server.kill()


def modes(files):
    return [path.stat().st_mode & 0o777 for path in files]


def test_passwords_of_many_tenants_fill_no_memory(tmp_path):
    server = Server(tmp_path, tenants=(OPERATOR,)).start()
    try:
        with server.wire(OPERATOR) as wire:
            wire.ask("ENTREMET", "TENANT", "SET", "first", "PASSWORD", "first-secret")
            before = resident_bytes(server.pid)
            for number in range(WITH_PASSWORDS):
                wire.ask("ENTREMET", "TENANT", "SET", f"t{number}", "PASSWORD", f"t{number}-secret")
        for number in range(WITH_PASSWORDS):
            with server.wire(Tenant(f"t{number}")) as wire:
                wire.ask("PING")
        with server.wire() as wire, pytest.raises(ServerError, match="WRONGPASS"):
            wire.ask("AUTH", "t1", "t2-secret")
        assert resident_bytes(server.pid) - before < GROWTH_MAX
    finally:
        server.kill()
