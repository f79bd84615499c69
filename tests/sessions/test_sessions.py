"""Random sessions of several tenants at once, against a model of each tenant's data and of what others may notice.

A seed stands for a schedule. `ENTREMET_SEED=N` begins with that one; a failure names its seed, and the smallest part of the
schedule that still fails.
"""

import dataclasses
import os
import re
import shutil
import time

import pytest
from schedule import TENANTS, make
from session import brief
from words import tables
from world import World

from harness.server import ALPHA, Server

pytestmark = pytest.mark.ours
SEED = int(os.environ.get("ENTREMET_SEED", "1"))
SECONDS = int(os.environ.get("ENTREMET_SESSION_SECONDS", "40"))
SHRINK_SECONDS = 120


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A redis-server for each tenant."""
    folder = tmp_path_factory.mktemp("models")
    servers = {name: Server(folder / name, tenants=(), program="redis-server") for name in TENANTS}
    yield {name: server.start() for name, server in servers.items()}
    for server in servers.values():
        server.kill()


def attempt(schedule, models, folder):
    """What is wrong with a run of a schedule, or None."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        World(folder, schedule, models).run()
    except AssertionError as problem:
        return str(problem)
    return None


def places(schedule):
    """All that can be left out of a schedule: items of packets, what strangers send, and what becomes of the server."""
    for number, now in enumerate(schedule.rounds):
        yield from ((number, packet.connection, item) for packet in now.packets for item in range(len(packet.items)))
        yield from ((number, "noise", index) for index in range(len(now.noise)))
        if now.event:
            yield (number, "event", 0)


def part(schedule, kept):
    """A schedule with only these of its places."""
    rounds = []
    for number, now in enumerate(schedule.rounds):
        packets = [
            dataclasses.replace(packet, items=items)
            for packet in now.packets
            if (items := [item for index, item in enumerate(packet.items) if (number, packet.connection, index) in kept])
        ]
        noise = [noise for index, noise in enumerate(now.noise) if (number, "noise", index) in kept]
        event = now.event if (number, "event", 0) in kept else ""
        if packets or noise or event:
            rounds.append(dataclasses.replace(now, packets=packets, noise=noise, event=event))
    return dataclasses.replace(schedule, rounds=rounds)


def kind(problem):
    """Which of the things that may be wrong it is."""
    return re.sub(r"[0-9]+", "N", problem)[:30]


def shrunk(schedule, problem, models, folder):
    """The smallest part that was found to fail (delta debugging), and how it fails."""
    kept, size, end = list(places(schedule)), 2, time.monotonic() + SHRINK_SECONDS
    while size <= len(kept) and time.monotonic() < end:
        step = -(-len(kept) // size)
        for begin in range(0, len(kept), step):
            less = kept[:begin] + kept[begin + step :]
            again = attempt(part(schedule, set(less)), models, folder) if less and time.monotonic() < end else None
            if again and kind(again) == kind(problem):
                kept, problem, size = less, again, max(size - 1, 2)
                break
        else:
            size *= 2
    return part(schedule, set(kept)), problem


def listing(schedule):
    """A schedule as one reads it."""
    lines = [schedule.options, f"cores = {schedule.cores}"]
    for number, now in enumerate(schedule.rounds):
        lines.append(f"round {number}{', solo' * now.solo}{f': {now.event} at {now.part:.2f}' if now.event else ''}")
        for packet in now.packets:
            lines.append(f"  connection {packet.connection}{', deaf' * packet.deaf}, {packet.cuts} cuts, {packet.ending or 'goes on'}: {brief(packet.items)}")
        lines += [f"  stranger {stranger}: {brief(commands)}" for stranger, commands in now.noise]
    return "\n".join(lines)


def test_sessions_of_several_tenants(tmp_path, models):
    server = Server(tmp_path / "tables").start()
    with server.wire(ALPHA) as ours, models["default"].wire() as theirs:
        forms, others = tables(ours, theirs)
    server.kill()
    end, seed, rounds = time.monotonic() + SECONDS, SEED, 0
    while time.monotonic() < end:
        schedule = make(seed, forms, others)
        problem = attempt(schedule, models, tmp_path / "data")
        if problem:
            shutil.copy(tmp_path / "data" / "server.log", tmp_path / "first.log")
            least, again = shrunk(schedule, problem, models, tmp_path / "data")
            pytest.fail(f"seed {seed}: {problem}\nthe least that fails: {again}\n{listing(least)}", pytrace=False)
        seed, rounds = seed + 1, rounds + len(schedule.rounds)
    print(f"{seed - SEED} schedules, {rounds} rounds, from seed {SEED}")
    assert seed > SEED
