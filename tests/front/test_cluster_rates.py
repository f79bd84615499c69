"""A tenant's rates are those of all fronts together, and go where its clients are."""

import pytest
from floods import flood

from harness.cluster import know_each_other
from harness.server import Tenant
from harness.waiting import eventually

LIMITED = Tenant("limited", extra='limit = { requests = "2000/s", max_wait = "10s" }')
PROMISED = Tenant("promised", extra='contract = "1000/s"')
FREE = Tenant("free")
WIDE = Tenant("wide", extra="partitions = 12")


@pytest.fixture
def pair(make_cluster, before_node):
    cluster = make_cluster()
    return [before_node(cluster, node, tenants=(LIMITED, PROMISED, FREE)) for node in cluster.masters[:2]]


def portion(front, tenant, of="limit"):
    begin = f'entremet_tenant_{of}_portion{{tenant="{tenant.name}"}} '
    return float(next(line for line in front.metrics() if line.startswith(begin)).removeprefix(begin))


def come_to(fronts, tenant, of="limit", **expected):
    """Both fronts' portions of a tenant's rates are nearly what is expected."""
    wanted = [expected["first"], expected["second"]]
    seen = lambda: [portion(front, tenant, of) for front in fronts]
    near = lambda: all(abs(one - want) < 0.02 for one, want in zip(seen(), wanted))
    eventually(near, 30, f"portions of {tenant.name} come to {wanted}")


def test_a_limit_goes_where_clients_are(pair):
    first, second = pair
    come_to(pair, LIMITED, first=0.5, second=0.5)
    with flood(first, LIMITED):
        come_to(pair, LIMITED, first=1, second=0)
        with flood(second, LIMITED):
            come_to(pair, LIMITED, first=0.5, second=0.5)
    with flood(second, LIMITED):
        come_to(pair, LIMITED, first=0, second=1)
    come_to(pair, LIMITED, first=0.5, second=0.5)
    with first.wire(LIMITED) as wire:
        lines = [line.decode() for line in wire.ask("ENTREMET", "EXPLAIN")]
    assert any("several fronts keep its rates and weight together" in line for line in lines), lines
    # Who has no rates and no connection has nothing to divide.
    assert portion(first, FREE) == 1


def test_what_is_promised_goes_where_it_is_asked_for(pair):
    first, second = pair
    come_to(pair, PROMISED, "promised", first=0.5, second=0.5)
    with flood(first, PROMISED):
        come_to(pair, PROMISED, "promised", first=1, second=0)
        assert portion(first, PROMISED) == portion(second, PROMISED) == pytest.approx(0.5, abs=0.02)


def test_a_front_that_is_gone_leaves_its_portion(pair):
    first, second = pair
    with flood(second, LIMITED):
        come_to(pair, LIMITED, first=0, second=1)
    second.kill()
    eventually(lambda: portion(first, LIMITED) == 1, 30, "the other has all of it")
    second.start()
    come_to(pair, LIMITED, first=0.5, second=0.5)


def demand(cluster, tenant):
    """What the slots of a tenant take of a second, ns, as fronts tell whoever places partitions."""
    told = {}
    for node in cluster.masters:
        if b"{@}demand" in node.keys():
            lines = [line.split() for line in b"\n".join(node.ask("HGETALL", "{@}demand")[1::2]).decode().splitlines()]
            mine = [pair.split(":") for line in lines if line[0] == tenant.name for pair in line[3:]]
            told |= {int(slot): max(int(ns), told.get(int(slot), 0)) for slot, ns in mine}
    return told


def test_how_long_another_fronts_node_was_busy_is_not_what_a_request_took(make_cluster, before_node):
    cluster = make_cluster()
    first, second = [before_node(cluster, node, tenants=(WIDE,)) for node in cluster.masters[:2]]
    know_each_other([first, second], WIDE)
    most = 0
    with first.wire(WIDE) as wire:
        for number in range(100):
            wire.ask("SET", f"k{number}", "x")
        home, away = [min(key for key in node.keys() if key.startswith(b"{@wide")) for node in cluster.masters[:2]]
        name = lambda key: key.rpartition(b"}")[2].decode()
        for _ in range(500):
            wire.ask("GET", name(home))
        for _ in range(40):
            # As if it had much to do for others.
            cluster.masters[1].ask("CLIENT", "PAUSE", 100, "ALL")
            assert wire.ask("GET", name(away)) == b"x"
            most = max(most, demand(cluster, WIDE).get(cluster.masters[1].ask("CLUSTER", "KEYSLOT", away), 0))
    assert most < 20_000_000, "it waited nearly all of the time, and took next to nothing"
