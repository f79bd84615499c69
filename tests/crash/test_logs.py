"""A log that is damaged in its middle: said, with the file, to the tenant that it belongs to, and mended by its operator."""

import pytest
from bystander import Bystander
from test_disk import tenant_folder

from harness.resp import ServerError
from harness.server import Server, Tenant
from harness.waiting import eventually

pytestmark = pytest.mark.ours
WRITES = 400


def value(number):
    return b"%d:" % number + bytes([number % 251]) * 1000


def killed_server(tmp_path, sync):
    """A server that was killed, with all writes of alpha in its log."""
    tenants = (Tenant("alpha", sync=sync), Tenant("beta", sync="always"))
    server = Server(tmp_path, tenants=tenants).start()
    with server.wire(tenants[0]) as wire:
        for number in range(WRITES):
            wire.ask("SET", f"key:{number}", value(number))
    server.kill()
    return server, tenants


def log_of(server, tenant):
    logs = sorted(path for path in tenant_folder(server, tenant).glob("*.log") if path.stat().st_size)
    assert len(logs) == 1, logs
    return logs[0]


def readable(wire):
    """How many writes are there before the first that is not; none may be there behind it."""
    found = wire.ask("MGET", *(f"key:{number}" for number in range(WRITES)))
    there = [reply is not None for reply in found]
    kept = there.index(False) if False in there else WRITES
    assert not any(there[kept:]), "something behind a hole"
    assert found[:kept] == [value(number) for number in range(kept)]
    return kept


@pytest.mark.parametrize("sync", ["always", "every 1s", "never"])
@pytest.mark.parametrize("damage", ["flip", "zero"])
def test_damage_in_the_middle(tmp_path, sync, damage):
    server, (alpha, beta) = killed_server(tmp_path, sync)
    log = log_of(server, alpha)
    data = bytearray(log.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 100] = bytes(100) if damage == "zero" else bytes(byte ^ 4 for byte in data[middle : middle + 100])
    log.write_bytes(data)
    try:
        server.start()
        with Bystander(server, beta), server.wire(alpha) as wire:
            for command in (("GET", "key:1"), ("SET", "key:1", "x"), ("DBSIZE",)):
                reply = wire.attempt(*command)
                assert isinstance(reply, ServerError), reply
                assert "log is damaged" in str(reply) and "/" not in str(reply), reply
            # Only the operator is told where.
            assert any(log.name in line for line in server.says("CUT_LOG"))
            # The operator gives up what is behind it, without a restart.
            (log.parent / "CUT_LOG").touch()
            eventually(lambda: wire.attempt("GET", "key:1") == value(1), 40, "it is opened again")
            kept = readable(wire)
            assert WRITES // 4 < kept < WRITES * 3 // 4, kept
            server.says("gives up")
            assert list((log.parent / "damaged-logs").iterdir()), "a copy is kept"
            wire.ask("SET", "after", "1")
        assert server.stop() == 0
        server.start()
        with server.wire(alpha) as wire:
            assert wire.ask("GET", "after") == b"1" and readable(wire) == kept
    finally:
        server.kill()


@pytest.mark.parametrize("sync", ["always", "every 1s", "never"])
def test_an_end_that_was_cut_short_is_no_damage(tmp_path, sync):
    server, (alpha, _) = killed_server(tmp_path, sync)
    log = log_of(server, alpha)
    log.write_bytes(log.read_bytes()[:-700])
    try:
        server.start()
        with server.wire(alpha) as wire:
            assert readable(wire) == WRITES - 1
    finally:
        server.kill()
