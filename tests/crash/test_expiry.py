"""Many keys whose time comes at once: they go, in the background, while others are served."""

import json
import urllib.request

import pytest
from bystander import Bystander

from harness.server import ALPHA, BETA
from harness.waiting import eventually

pytestmark = pytest.mark.ours
KEYS, AT_ONCE = 60_000, 2_000


def expired(wire):
    lines = wire.ask("INFO", "stats").decode().splitlines()
    return int(next(line for line in lines if line.startswith("expired_keys:")).split(":")[1])


def test_keys_that_nobody_asks_for_go_as_fast_as_they_came(start):
    server = start()
    with server.wire(ALPHA) as wire, Bystander(server, BETA):
        for first in range(0, KEYS, AT_ONCE):
            for number in range(first, first + AT_ONCE):
                wire.send("SET", f"key:{number}", "v" * 20, "PX", "1000")
            assert [wire.read() for _ in range(AT_ONCE)] == [b"OK"] * AT_ONCE
        # A thousand a second, as it once was, would take a minute.
        eventually(lambda: expired(wire) == KEYS, 20, "all have gone")
        assert wire.ask("DBSIZE") == 0
    server.stop()
    server.start()
    with server.wire(ALPHA) as wire:
        assert wire.ask("DBSIZE") == 0 and wire.ask("KEYS", "*") == []


def handlers(server):
    """What the only core wrote down last of its handlers: when, and how much was under way."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/api/stages", timeout=10) as answer:
        stage = next(one for one in json.load(answer) if one["stage"] == "handler")
    return stage["at_ns"], stage["permits_in_use"] + sum(one["waiting"] for one in stage["principals"])


def test_an_idle_core_does_not_put_off_what_it_looks_for(start):
    """For a minute after a key has gone it is looked each second whether there are more. On a core with nothing else to do each
    look waited for the next one, and something was under way whenever the core wrote down what is."""
    server = start(server_options="cores = 1")
    with server.wire(ALPHA) as wire:
        wire.ask("SET", "key", "v", "PX", "10")
        eventually(lambda: expired(wire) == 1, what="it has gone")
    since, _ = handlers(server)
    seen = {}
    eventually(lambda: seen.update([handlers(server)]) or len(seen) > 7, what="the core has looked several times")
    assert sum(busy for at_ns, busy in seen.items() if at_ns > since) <= 1, seen
