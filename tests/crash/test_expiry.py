"""Many keys whose time comes at once: they go, in the background, while others are served."""

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
