"""kill -9 in the middle of writes: with sync = "always" nothing that was acknowledged may be missing."""

import os
import random

import pytest
from writers import Crowd

from harness.server import Server, Tenant

ROUNDS = int(os.environ.get("ENTREMET_KILL_ROUNDS", "50"))
TENANTS = (Tenant("alpha", sync="always"), Tenant("beta", sync="always"))
WRITERS_EACH = 4
# The kill falls after a random number of acknowledged operations, so that rounds end in different states of the files.
OPERATIONS_MIN, OPERATIONS_MAX = 50, 1500


# Without a stage under the databases, and with one over an emulated SSD: every I/O then goes through the hook.
@pytest.mark.parametrize(("device", "rounds"), [("", ROUNDS), ('[device]\nmodel = "ssd"', ROUNDS // 5)], ids=["bare", "staged"])
def test_no_acknowledged_write_is_lost(tmp_path, device, rounds):
    seed = int(os.environ.get("ENTREMET_SEED", "1"))
    chance, crowd = random.Random(seed), Crowd(TENANTS, WRITERS_EACH, seed)
    server = Server(tmp_path, tenants=TENANTS, engine_options=device)
    try:
        for number in range(rounds):
            server.start()
            crowd.verify(server)
            crowd.write_until(server, chance.randint(OPERATIONS_MIN, OPERATIONS_MAX), then=server.kill)
        server.start()
        crowd.verify(server)
    except AssertionError as problem:
        raise AssertionError(f"round {number + 1} of {rounds}, ENTREMET_SEED={seed}: {problem}\n{server.said()[-3000:]}") from None
    finally:
        server.kill()
    print(f"{rounds} rounds of kill -9: {crowd.acknowledged()} operations acknowledged, none lost")
    assert crowd.acknowledged() >= rounds * OPERATIONS_MIN


def test_sigterm_loses_nothing_whatever_the_sync(tmp_path):
    """An ordered end writes out what `every 1s` and `never` still had in memory."""
    tenants = (Tenant("alpha", sync="every 1s"), Tenant("beta", sync="never"))
    server = Server(tmp_path, tenants=tenants)
    crowd = Crowd(tenants, 2, seed=7)
    server.start()
    crowd.write_until(server, 2000, then=server.stop)
    assert server.process.returncode == 0, server.said()[-3000:]
    if server.is_reference:
        return  # it was started without a log, so it has nothing to show
    server.start()
    crowd.verify(server)
    server.kill()
