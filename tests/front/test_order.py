"""In which order a tenant's requests go to the engine: small ones pass large ones, but none of the same connection."""

import json
import urllib.request

from harness.resp import encode
from harness.server import ALPHA, Tenant
from harness.waiting import eventually

CLIENTS = 400
LARGE = ("MGET", *(f"key{key}" for key in range(100)))
PROMISED = Tenant("alpha", extra='[[tenant.slo]]\nclass = "get"\nlatency = { p = 99.0, at_most = "1ms" }')


def asked(server):
    """How many requests are out at the engine or wait before it."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/api/stages", timeout=10) as answer:
        stages = [stage for stage in json.load(answer) if stage["stage"] == "handler"]
    return sum(one["waiting"] + one["permits_in_use"] for stage in stages for one in stage["principals"])


def test_a_small_request_passes_large_ones_of_its_own_tenant(engine, front):
    """The engine itself says what it did first: replies come at the pace of who reads them."""
    server = front(tenants=(ALPHA,), server_options="cores = 1")
    wires = [server.wire(ALPHA) for _ in range(CLIENTS)]
    with server.wire(ALPHA) as wire, engine.wire() as watcher:
        wire.ask("SET", "key1", "v")
        assert watcher.ask("MONITOR") == b"OK"
        engine.hold()
        for other in wires:
            other.send(*LARGE)
        eventually(lambda: asked(server) == CLIENTS)
        wire.send("GET", "key1")
        eventually(lambda: asked(server) == CLIENTS + 1)
        engine.release()
        assert wire.read() == b"v"
        assert all(len(other.read()) == len(LARGE) - 1 for other in wires)
        before = 0
        while b'"GET"' not in (line := watcher.read()):
            before += b'"MGET"' in line
    assert 0 < before < CLIENTS // 2


def test_no_request_of_a_connection_passes_another_though_only_some_are_promised(front):
    """More wait than may be at the engine, gets with a due time and sets without."""
    server = front(tenants=(PROMISED,), server_options="cores = 1")
    wires = [server.wire(PROMISED) for _ in range(32)]
    for first in range(0, 3_000, 60):
        numbers = range(first, first + 60)
        for name, wire in enumerate(wires):
            wire.raw(b"".join(encode("SET", name, number) + encode("GET", name) for number in numbers))
        for wire in wires:
            replies = [wire.read() for _ in range(120)]
            assert replies == [reply for number in numbers for reply in (b"OK", b"%d" % number)]
