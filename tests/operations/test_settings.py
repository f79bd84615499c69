"""Settings of a tenant: set by a command as the file writes it, kept, and shown in the file's words."""

import json
import re
import urllib.request

import pytest

from harness.resp import ServerError
from harness.server import BETA, Tenant

pytestmark = pytest.mark.ours

MASTER = Tenant("master", extra="admin = true")
# Each with another value than its default.
CHANGED = {
    "admin": "true",
    "max_connections": "50",
    "request_memory": "8MiB",
    "weight": "2.5",
    "sync": "always",
    "cache": "5MiB",
    "block_cache": "6MiB",
    "write_buffers": "7MiB",
    "reserved_permits": "2",
    "contract": "1500/s",
    "reserve.get": "20/min",
    "reserve.put": "30/s",
    "limit.requests": "50000/s",
    "limit.bytes": "100MB/s",
    "limit.burst": "20ms",
    "limit.max_wait": "5ms",
}


def option(key):
    return re.sub(r"[._]", "-", key).upper()


def settings(server, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}{path}", timeout=10) as reply:
        return {one["key"]: one for one in json.load(reply)["settings"]}


def fields(wire, name):
    flat = wire.ask("ENTREMET", "TENANT", "GET", name)
    return dict(zip((name.decode() for name in flat[::2]), flat[1::2], strict=True))


def test_settings_are_set_by_command_kept_and_shown(start):
    server = start(tenants=(MASTER, BETA))
    before = settings(server, "/api/tenants/beta")
    assert set(before) >= set(CHANGED) | {"slo"} and not any(one["set_at_run_time"] for one in before.values())
    with server.wire(MASTER) as wire:
        wire.ask("ENTREMET", "TENANT", "SET", "beta", *(word for key, value in CHANGED.items() for word in (option(key), value)))
    for _ in range(2):
        for path in ("/api/tenants/beta", "/api/live/beta"):
            now = settings(server, path)
            assert {key: now[key]["value"] for key in CHANGED} == CHANGED
            differ = {key for key, one in now.items() if one["set_at_run_time"]}
            assert differ == {key for key in CHANGED if before[key]["value"] != CHANGED[key]}
        with server.wire(MASTER) as wire:
            got = fields(wire, "beta")
        assert got["set-at-run-time"].decode().split() == sorted(differ)
        assert (got["limit-burst"], got["limit-max-wait"], got["admin"]) == (b"20ms", b"5ms", b"yes")
        assert {option(key).lower() for key in CHANGED} <= set(got)
        server.stop()
        server.start()


def test_a_command_keeps_the_ranges_of_the_file(start):
    server = start(tenants=(MASTER, BETA))
    with server.wire(MASTER) as wire:
        for words, must in (
            (("LIMIT-REQUESTS", "1e-320"), "LIMIT-REQUESTS must be a rate of requests from 1/h to 100M/s, or NONE"),
            (("RESERVED-PERMITS", "1025"), "RESERVED-PERMITS must be a whole number from 0 to 1024"),
            (("LIMIT-BURST", "20ms"), "LIMIT-BURST limits nothing"),
            (("RESERVED-PERMITS", "900"), "reserved_permits of all tenants come to 900, and with 16 handlers nobody else could read"),
            (("COLOUR", "red"), "unknown option 'COLOUR' of ENTREMET TENANT SET; there are ADMIN, MAX-CONNECTIONS"),
        ):
            refused = wire.attempt("ENTREMET", "TENANT", "SET", "beta", *words)
            assert isinstance(refused, ServerError) and must in str(refused), refused
        assert fields(wire, "beta")["set-at-run-time"] == b""
