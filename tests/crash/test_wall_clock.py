"""The machine's clock is set while the server runs: keys expire by it, as in Redis, and nothing else goes by it."""

import re
import struct

import pytest
from bystander import Bystander

from harness.preload import compiled
from harness.server import ALPHA, BETA, Server
from harness.waiting import eventually

HOUR_S = 3_600
OPTIONS = 'idle_timeout = "10min"\nstalled_timeout = "1min"'

pytestmark = pytest.mark.ours


class WallClock:
    """The shim, and the number that it reads."""

    def __init__(self, folder):
        self.shim, self.control = compiled("wallclock", folder), folder / "wallclock.added"
        self.control.write_bytes(bytes(8))

    def add(self, seconds):
        """The time of day is so far from the true one from now on."""
        with open(self.control, "r+b") as file:  # in place: the server has mapped it
            file.write(struct.pack("=q", seconds))

    @property
    def environment(self):
        return {"LD_PRELOAD": str(self.shim), "WALLCLOCK_CONTROL": str(self.control)}


@pytest.fixture
def clock(tmp_path):
    return WallClock(tmp_path)


@pytest.fixture
def server(tmp_path, clock):
    server = Server(tmp_path, server_options=OPTIONS, environment=clock.environment).start()
    yield server
    server.kill()


def now_s(wire):
    return int(wire.ask("TIME")[0])


def info(wire, section, name):
    return int(re.search(rf"{name}:(\d+)".encode(), wire.ask("INFO", section))[1])


def metric(server, name):
    """A counter of the whole server."""
    return next(int(line.split()[1]) for line in server.metrics() if line.startswith(name + " "))


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S], ids=["forward", "backward"])
def test_keys_expire_by_the_wall_clock_and_nothing_else_goes_by_it(server, clock, jump_s):
    with server.wire(ALPHA) as wire, server.wire(BETA), Bystander(server, BETA):
        began_s = now_s(wire)
        wire.ask("SET", "for ever", "1")
        wire.ask("SET", "soon", "1", "EX", HOUR_S // 2)
        wire.ask("SET", "late", "1", "EX", 2 * HOUR_S)
        wire.ask("HSET", "hash", "field", "1")
        wire.ask("EXPIREAT", "hash", began_s + HOUR_S // 2)
        clock.add(jump_s)
        # A core reads the clock once for each look at its connections.
        eventually(lambda: abs(now_s(wire) - began_s - jump_s) < 60, 5, "the server sees the clock")
        left = {"soon": HOUR_S // 2 - jump_s, "hash": HOUR_S // 2 - jump_s, "late": 2 * HOUR_S - jump_s}
        for key, left_s in left.items():
            expected = left_s if left_s > 0 else -2
            assert abs(wire.ask("TTL", key) - expected) < 60, key
        assert wire.ask("TTL", "for ever") == -1
        # What expired is deleted within seconds, by a timer that goes by the other clock.
        expired = 2 if jump_s > 0 else 0
        eventually(lambda: metric(server, "redis_expired_keys_total") == expired, 20, "what expired is deleted")
        # What was deleted does not come back with the clock.
        clock.add(0)
        eventually(lambda: abs(now_s(wire) - began_s) < 60, 5, "the server sees the clock")
        assert wire.ask("EXISTS", "soon", "hash", "late", "for ever") == 4 - expired
        # Ages and uptime went by another clock, and nobody was closed for silence.
        ages = [int(age) for age in re.findall(rb" (?:age|idle)=(\d+)", wire.ask("CLIENT", "LIST"))]
        assert ages and max(ages) < 60
        assert info(wire, "server", "uptime_in_seconds") < 60


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S], ids=["forward", "backward"])
def test_writes_are_synced_every_second_still(server, clock, jump_s):
    with server.wire(ALPHA) as wire:
        wire.ask("SET", "before", "1")
        clock.add(jump_s)
        for number in range(3):
            before = metric(server, "entremet_commit_syncs_total")
            wire.ask("SET", "after", number)
            eventually(lambda: metric(server, "entremet_commit_syncs_total") > before, 10, "the write is synced")
