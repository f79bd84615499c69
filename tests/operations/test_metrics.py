"""Numbers that /metrics and the admin API show are those of the requests that were made."""

import json
import urllib.request

import pytest

from harness.resp import encode
from harness.server import ALPHA, BETA
from harness.waiting import eventually

pytestmark = pytest.mark.ours


def metrics(server):
    """Every sample of /metrics, by its name and labels as they are written."""
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in server.metrics() if line[:1] not in ("#", ""))}


def reads(server, tenant):
    """Reads of a tenant that found their key, and that did not."""
    now = metrics(server)
    kinds = ("hits", "misses")
    return tuple(now.get(f'entremet_tenant_keyspace_{kind}_total{{tenant="{tenant.name}"}}', 0) for kind in kinds)


def reads_become(server, tenant, found, missed):
    """A request is counted once its reply has left, which is not before its client has it."""
    eventually(lambda: reads(server, tenant) == (found, missed), 20, f"{found} found and {missed} missed")


def test_reads_are_counted_by_what_they_found(start):
    """As in Redis: a key a read names is a hit or a miss, and what a write looks at first is neither."""
    server = start()
    with server.wire(ALPHA) as wire:
        for words in (["SET", "a", "1"], ["INCR", "a"], ["SET", "b", "2", "NX"], ["HSET", "h", "f", "v"]):
            wire.ask(*words)
        for words in (["GET", "a"], ["GET", "none"], ["MGET", "a", "b", "none"], ["STRLEN", "b"], ["HGET", "h", "f"]):
            wire.ask(*words)
        reads_become(server, ALPHA, 5, 2)
        wire.ask("MULTI")
        wire.ask("GET", "a")
        wire.ask("INCR", "a")
        wire.ask("EXEC")
        reads_become(server, ALPHA, 6, 2)
    assert reads(server, BETA) == (0, 0)
    assert metrics(server)["redis_keyspace_hits_total"] == 6


def test_a_request_of_many_keys_is_a_handlers(start):
    """In a turn on a core it would keep everybody else from theirs."""
    server = start()
    handled = f'entremet_tenant_disk_requests_total{{tenant="{ALPHA.name}"}}'
    keys = [f"k{i}" for i in range(300)]
    with server.wire(ALPHA) as wire:
        for key in keys:
            wire.ask("SET", key, key)
        assert wire.ask("MGET", *keys[:100]) == [key.encode() for key in keys[:100]]
        reads_become(server, ALPHA, 100, 0)
        assert metrics(server)[handled] == 0
        assert wire.ask("MGET", *keys, "none") == [key.encode() for key in keys] + [None]
        assert wire.ask("GET", "k7") == b"k7"
        reads_become(server, ALPHA, 401, 1)
        assert metrics(server)[handled] == 1


def test_reads_from_the_disk_are_counted_too(start):
    server = start()
    with server.wire(ALPHA) as wire:
        wire.ask("SET", "a", "1")
    server.stop()
    server.start()
    with server.wire(ALPHA) as wire:
        assert wire.ask("MGET", "a", "none") == [b"1", None]
        reads_become(server, ALPHA, 1, 1)


def test_syncs_are_counted(start):
    server = start()
    with server.wire(ALPHA) as wire:
        before = metrics(server)["entremet_commit_syncs_total"]
        wire.ask("SET", "a", "1")
        eventually(
            lambda: metrics(server)["entremet_commit_syncs_total"] > before, 30, "the log is synced every second"
        )


def load_walk(wire):
    """Makes what a core walks over in a turn of its own, some 100 us each time."""
    for first in range(0, 400, 50):
        wire.ask("ZADD", "walk", *(word for member in range(first, first + 50) for word in (member, member)))


WALK = ("ZCOUNT", "walk", "-inf", "+inf")


def occupancy(server, tenant):
    url = f"http://127.0.0.1:{server.admin_port}/api/tenants/{tenant.name}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)["recent"]["occupancy"]


def test_a_tenant_with_a_queue_occupies_the_stage(start):
    """Two connections of one tenant keep the only core busy: one of them always waits."""
    server = start(server_options="cores = 1")
    with server.wire(ALPHA) as one, server.wire(ALPHA) as two:
        load_walk(one)

        def ask_more():
            for wire in (one, two):
                for _ in range(200):
                    wire.send(*WALK)
            for wire in (one, two):
                for _ in range(200):
                    wire.read()
            return occupancy(server, ALPHA) > 0.2
        eventually(ask_more, 60, "the tenant's queue is seen")
    assert occupancy(server, BETA) == 0


def test_connections_leave_a_core_that_is_busier_than_another(start):
    """Connections are dealt out in turn, so every other one is on the same core. Only those are busy."""
    server = start(server_options="cores = 2")
    wires = [server.wire(ALPHA) for _ in range(8)]
    load_walk(wires[0])
    assert metrics(server)["entremet_connections_moved_total"] == 0
    busy = wires[::2]

    def ask_more():
        for wire in busy:
            wire.raw(encode(*WALK) * 2_000)
        for wire in busy:
            for _ in range(2_000):
                wire.read()
        return metrics(server)["entremet_connections_moved_total"] > 0

    eventually(ask_more, 60, "a connection moves to the idle core")
    for wire in wires:
        assert wire.ask(*WALK) == 400
        wire.close()
