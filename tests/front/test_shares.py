"""Two tenants before one engine share it by weight, not by how many connections each has."""

import threading

from harness.resp import encode
from harness.server import Tenant
from harness.waiting import eventually

GREEDY, MODEST = Tenant("greedy"), Tenant("modest", weight=3)
PIPELINE = 200


def ask_on(server, tenant, request, stop, served):
    """Keeps a pipeline of requests under way on one connection, and counts what was served."""
    with server.wire(tenant, timeout=60) as wire:
        wire.raw(request * PIPELINE)
        while not stop.is_set():
            wire.raw(request * (PIPELINE // 2))
            for _ in range(PIPELINE // 2):
                wire.read()
            served[tenant.name] += PIPELINE // 2


def test_weights_decide_and_not_connections(front):
    server = front(tenants=(GREEDY, MODEST), server_options="cores = 1")
    for tenant in (GREEDY, MODEST):
        with server.wire(tenant) as wire:
            wire.ask("RPUSH", "list", *range(20_000))
    stop, served = threading.Event(), {"greedy": 0, "modest": 0}
    # Long for the engine, and short for everybody else.
    request = encode("LPOS", "list", "none")
    # Four times as many connections as the other has: first come, first served would give it four times as much.
    asking = [GREEDY] * 8 + [MODEST] * 2
    threads = [threading.Thread(target=ask_on, args=(server, tenant, request, stop, served), daemon=True) for tenant in asking]
    for thread in threads:
        thread.start()
    eventually(lambda: sum(served.values()) > 10_000, 120, "enough is served")
    stop.set()
    for thread in threads:
        thread.join(60)
    assert served["modest"] > served["greedy"], served
