"""Random sessions of several tenants at once, against a model of each tenant's data and of what others may notice.

A seed stands for a schedule. `ENTREMET_SEED=N` begins with that one; a failure names its seed, and the smallest part of the
schedule that still fails.
"""

import os
import shutil
import time
import traceback

import pytest
from schedule import TENANTS, make
from session import HANG_S, brief
from shrink import Shrinker
from words import tables
from world import World

from harness.server import ALPHA, Server

pytestmark = pytest.mark.ours
SEED = int(os.environ.get("ENTREMET_SEED", "1"))
SECONDS = int(os.environ.get("ENTREMET_SESSION_SECONDS", "40"))
SHRINK_SECONDS = 120
# The last schedule may begin when the time is over, and something may hang in it and in the last
# try of a part.
LIMIT_SECONDS = SECONDS + SHRINK_SECONDS + 4 * HANG_S


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A redis-server for each tenant."""
    folder = tmp_path_factory.mktemp("models")
    servers = {name: Server(folder / name, tenants=(), program="redis-server") for name in TENANTS}
    yield {name: server.start() for name, server in servers.items()}
    for server in servers.values():
        server.kill()


def attempt(schedule, models, folder, to_its_end=True):
    """What is wrong with a run of a schedule, or None."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        World(folder, schedule, models).run(to_its_end)
    except AssertionError as problem:
        return str(problem)
    except Exception:  # noqa: BLE001 - a server that does not start, or what is no reply: it must not hide the seed either
        return f"an exception: {traceback.format_exc(limit=-4)}"
    return None


def listing(schedule):
    """A schedule as one reads it."""
    lines = [schedule.options, f"cores = {schedule.cores}"]
    for now in schedule.rounds:
        lines.append(f"round {now.number}{', solo' * now.solo}{f': {now.event} at {now.part:.2f}' if now.event else ''}")
        for packet in now.packets:
            lines.append(f"  connection {packet.connection}{', deaf' * packet.deaf}, {packet.cuts} cuts, {packet.ending or 'goes on'}: {' '.join(map(brief, packet.items))}")
        lines += [f"  stranger {stranger}: {brief(commands)}" for stranger, commands in now.noise]
    return "\n".join(lines)


@pytest.mark.timeout(LIMIT_SECONDS)
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
            shutil.copytree(tmp_path / "data", tmp_path / "first")
            to_its_end = not problem.startswith("round ")
            shrinker = Shrinker(lambda part: attempt(part, models, tmp_path / "data", to_its_end), SHRINK_SECONDS)  # noqa: B023 - used in this turn
            least, again = shrinker.shrunk(schedule, problem)
            again = f"the least that fails: {again}" if again else f"run again {shrinker.tries} times, it failed no more in this way"
            pytest.fail(f"seed {seed}: {problem}\n{again}\n{listing(least)}", pytrace=False)
        seed, rounds = seed + 1, rounds + len(schedule.rounds)
    print(f"{seed - SEED} schedules, {rounds} rounds, from seed {SEED}")
    assert seed > SEED
