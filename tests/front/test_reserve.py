"""What is reserved for a tenant before an engine goes before shares, and of several fronts each has a part of it."""

import threading

import pytest
from floods import flood

from harness.cluster import know_each_other
from harness.resp import ServerError, encode
from harness.server import Tenant
from harness.waiting import at_work, eventually

GREEDY, OPERATOR = Tenant("greedy", weight=20), Tenant("operator", extra="admin = true")
MODEST = Tenant("modest")
RESERVED = Tenant("reserved", extra='reserve = { get = "300/s", put = "300/s" }')
PIPELINE = 40


def ask_on(server, tenant, request, ended, served):
    """Keeps some requests under way on one connection, and counts what was served."""
    with server.wire(tenant, timeout=60) as wire:
        wire.raw(request * PIPELINE)
        while not ended.is_set():
            wire.raw(request * (PIPELINE // 2))
            for _ in range(PIPELINE // 2):
                wire.read()
            served[tenant.name] += PIPELINE // 2


def part_of_modest(served, count):
    """Of so many that are served from now on, the part that is the modest one's."""
    before = dict(served)
    since = lambda: {name: served[name] - before[name] for name in served}
    eventually(lambda: sum(since().values()) >= count, 120, f"{count} are served")
    got = since()
    return got["modest"] / sum(got.values())


def test_what_is_reserved_goes_before_shares(front):
    server = front(tenants=(GREEDY, MODEST, OPERATOR), server_options="cores = 1")
    for tenant in (GREEDY, MODEST):
        with server.wire(tenant) as wire:
            for _ in range(10):
                wire.ask("RPUSH", "list", *range(5_000))
    ended, served = threading.Event(), {"greedy": 0, "modest": 0}
    # Long for the engine, and short for everybody else: so the engine is what is short.
    request = encode("LPOS", "list", "none")
    threads = [threading.Thread(target=ask_on, args=(server, tenant, request, ended, served)) for tenant in (GREEDY, MODEST) for _ in range(4)]
    with at_work(ended, threads):
        eventually(lambda: all(served.values()), 60, "both are served")
        assert part_of_modest(served, 3_000) < 0.15, "by its weight it has a twenty-first"
        with server.wire(OPERATOR) as wire:
            # More than the engine serves: others keep a little.
            assert wire.ask("ENTREMET", "TENANT", "SET", "modest", "RESERVE-GET", "40000/s") == b"OK"
        # How much it asks for depends on how soon its clients come again.
        eventually(lambda: part_of_modest(served, 500) > 0.25, 60, "what is reserved goes first")
        assert part_of_modest(served, 3_000) > 0.25 and served["greedy"] > 0
        with server.wire(OPERATOR) as wire:
            assert wire.ask("ENTREMET", "TENANT", "SET", "modest", "RESERVE-GET", "1/s") == b"OK"
        eventually(lambda: part_of_modest(served, 1_000) < 0.15, 60, "it has its share again")


def part(front, kind):
    """What of the reserved reads or writes is at a front."""
    begin = f'entremet_tenant_reserve_{kind}_portion{{tenant="reserved"}} '
    return float(next(line for line in front.metrics() if line.startswith(begin)).removeprefix(begin))


def test_what_is_reserved_goes_to_the_front_that_is_asked(make_cluster, before_node):
    cluster = make_cluster()
    fronts = [before_node(cluster, node, tenants=(RESERVED,), server_options="cores = 1") for node in cluster.masters]
    know_each_other(fronts, RESERVED)
    first, second, third = fronts

    def come_to(kind, *wanted):
        near = lambda: all(abs(part(front, kind) - want) < 0.02 for front, want in zip(fronts, wanted, strict=True))
        eventually(near, 60, f"{kind} is divided as {wanted}")

    come_to("get", 1 / 3, 1 / 3, 1 / 3)
    with flood(first, RESERVED), flood(second, RESERVED, "SET", "k", "v"):
        come_to("get", 1, 0, 0)
        come_to("put", 0, 1, 0)
        with third.wire(RESERVED) as wire:
            lines = [line.decode() for line in wire.ask("ENTREMET", "EXPLAIN")]
        assert any("of its reserved reads" in line for line in lines), lines
    come_to("put", 1 / 3, 1 / 3, 1 / 3)


def test_more_than_a_front_serves_is_not_reserved(front):
    server = front(tenants=(MODEST, OPERATOR), server_options="cores = 1")
    with server.wire(OPERATOR) as wire, pytest.raises(ServerError, match="reservations of all tenants come to 99000000/s, but 1 core serves"):
        wire.ask("ENTREMET", "TENANT", "SET", "modest", "RESERVE-GET", "99000000/s")
