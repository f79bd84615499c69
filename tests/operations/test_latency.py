"""Latency counts from when a request came, not from when the server had time for it."""

import json
import time
import urllib.request

import pytest

from harness.server import BETA

pytestmark = pytest.mark.ours

KEYS = 300_000


def longest_get_s(server):
    """The longest latency of a get, by the server's own count."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/api/tenants/{BETA.name}", timeout=10) as answer:
        classes = {one["class"]: one for one in json.load(answer)["classes"]}
    return classes["get"]["latency"]["max_ms"] / 1e3


def test_what_comes_while_a_request_is_under_way_counts_from_then(start):
    server = start(server_options="cores = 1")
    with server.wire(BETA) as wire, server.wire(BETA) as watcher:
        for first in range(0, KEYS, 1_000):
            wire.send("MSET", *(word for key in range(first, first + 1_000) for word in (f"key:{key}", "v")))
        for _ in range(0, KEYS, 1_000):
            assert wire.read() == b"OK"
        for _ in range(20):
            wire.send("KEYS", "*nothing")
            # One core serves both, in order: once it answers, the walk is under way.
            assert watcher.ask("PING") == b"PONG"
            sent_at = time.monotonic()
            wire.send("GET", "nothing")
            assert wire.read() == []
            assert wire.read() is None
            waited_s = time.monotonic() - sent_at
            if waited_s > 0.02:
                break
        else:
            pytest.fail(f"a walk over {KEYS:,} keys was always over when the next request came")
        # The core counts a request after its reply is written: it has when it answers another.
        assert watcher.ask("PING") == b"PONG"
    assert longest_get_s(server) > waited_s / 2
