"""A connection that speaks for one tenant after another: what it wrote belongs to the log it went to."""

import pytest

from harness.resp import encode
from harness.server import ALPHA, BETA, Server, Tenant

pytestmark = pytest.mark.ours
DEFAULT = Tenant("default")
ATTACKERS = 16
ROUNDS = 10


def switches():
    """Ways to speak for another tenant, with their replies; `default` is open, beta has a password."""
    yield (("RESET",), b"RESET")
    yield (("AUTH", "beta", "beta-secret"), b"OK")
    yield (("HELLO", "2", "AUTH", "beta", "beta-secret"), None)


def known(server, tenant):
    """The tenant's password has been checked once, so that a login does not wait."""
    server.wire(tenant).close()


@pytest.mark.parametrize("ahead", [ALPHA, BETA, DEFAULT], ids=lambda tenant: f"{tenant.name}-ahead")
def test_who_switches_in_the_middle_of_a_write_stops_nobody(start, ahead):
    """The logs of the tenants are at different places, so that a write that waits in the wrong one waits for long."""
    server = start(tenants=(ALPHA, BETA, DEFAULT))
    known(server, BETA)
    with server.wire(None if ahead is DEFAULT else ahead) as wire:
        for number in range(1000):
            wire.send("SET", "ahead", number)
        assert [wire.read() for _ in range(1000)] == [b"OK"] * 1000
    for words, reply in switches():
        wires = [server.wire(ALPHA) for _ in range(ATTACKERS)]
        for number, wire in enumerate(wires):
            wire.raw(encode("SET", f"p{number}", number) + encode(*words) + encode("SET", f"q{number}", number) + encode("GET", f"q{number}"))
        for number, wire in enumerate(wires):
            got = [wire.read() for _ in range(4)]
            assert got[0] == b"OK" and got[2:] == [b"OK", b"%d" % number]
            assert reply is None or got[1] == reply
            wire.close()
        for tenant in (ALPHA, BETA, None):
            # On each core.
            for _ in range(4):
                with server.wire(tenant) as wire:
                    assert wire.ask("SET", "after", "1") == b"OK"
    with server.wire(ALPHA) as wire:
        assert [wire.ask("GET", f"p{number}") for number in range(ATTACKERS)] == [b"%d" % number for number in range(ATTACKERS)]
        assert wire.ask("EXISTS", "q0") == 0
    assert server.stop() == 0


def test_a_write_before_a_switch_is_durable_when_it_is_answered(tmp_path):
    """With sync = "always", whatever the other tenant's durability and wherever its log is."""
    tenants = (Tenant("alpha", sync="always"), Tenant("beta", sync="never"), Tenant("default", sync="never"))
    server = Server(tmp_path, tenants=tenants)
    try:
        for number in range(ROUNDS):
            server.start()
            known(server, tenants[1])
            for words, _ in switches():
                key = f"{words[0]}:{number}"
                with server.wire(tenants[0]) as wire, server.wire() as other:
                    other.raw(encode("SET", "ahead", number) * 50)
                    [other.read() for _ in range(50)]
                    wire.raw(encode("SET", key, number) + encode(*words))
                    assert wire.read() == b"OK"
                    if words[0] == "HELLO" and number % 2:
                        wire.read()
            server.kill()
            server.start()
            with server.wire(tenants[0]) as wire:
                for words, _ in switches():
                    assert wire.ask("GET", f"{words[0]}:{number}") == b"%d" % number
            server.kill()
    finally:
        server.kill()
