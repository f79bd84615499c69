"""All real clients at once as clients of a cluster, without TLS and with it: three fronts, a tenant each, and partitions that move while they ask."""

import pytest
from programs import CLUSTER, COMMANDS, PROTOCOLS, WITH_TLS, report_of, start

from harness.cluster import BothFront, Cluster, know_each_other, others, place
from harness.encrypted import certificate
from harness.engine import engines
from harness.server import Tenant
from harness.waiting import eventually

pytestmark = pytest.mark.ours
TENANTS = {client: Tenant(client, extra="partitions = 8") for client in COMMANDS}
# Those that come in each way.
CLIENTS = {"plain": tuple(COMMANDS), "tls": WITH_TLS}
LAST_COUNTER = "g31"


@pytest.fixture(scope="module", params=CLIENTS)
def way(request):
    """How clients come."""
    return request.param


@pytest.fixture(scope="module")
def trio(way, tmp_path_factory):
    """Three engines, and a front before each."""
    folder = tmp_path_factory.mktemp("cluster")
    pair = certificate(folder, "fronts")
    cluster = Cluster(folder, engines()[0])
    fronts = []
    try:
        cluster.start()
        for node in cluster.masters:
            front = BothFront(folder / f"front{len(fronts)}", cluster, node, pair, tls=way == "tls", tenants=tuple(TENANTS.values()))
            fronts.append(front)
            front.start()
        know_each_other(fronts, TENANTS["redis-py"])
        yield cluster, fronts
    finally:
        for one in fronts:
            one.kill()
        cluster.kill()


@pytest.fixture(scope="module")
def reports(way, trio, tmp_path_factory):
    """What each of them said."""
    cluster, fronts = trio
    tenants = {client: TENANTS[client] for client in CLIENTS[way]}
    stop = tmp_path_factory.mktemp("stop") / "stop"
    programs = {}
    try:
        for client, tenant in tenants.items():
            newest = PROTOCOLS[client][-1]
            programs[client] = start(client, newest, fronts[0].usual, tenant.name, tenant.password, stop=stop, ca=fronts[0].ca)
            goes_on(fronts, tenant, programs[client], "counts")
        moved = [(tenant, *move(cluster, slot)) for tenant in tenants.values() for slot in slots(cluster, tenant)[:2]]
        tenant, source, name = moved[-1]
        # Clients that have not read the map again by now are sent on, as this one would be.
        with next(front for front in fronts if front.node is source).aware_wire(tenant) as wire:
            eventually(lambda: str(wire.attempt("GET", name)).startswith("MOVED "), 60, "an old home sends on")
        for client, program in programs.items():
            goes_on(fronts, tenants[client], program, "goes on")
        stop.touch()
        return {client: report_of(program) for client, program in programs.items()}
    finally:
        for program in programs.values():
            program.kill()


def goes_on(fronts, tenant, program, what):
    """Waits until a program counts on. Who has ended is not waited for."""
    with fronts[0].wire(tenant) as wire:
        count = lambda: int(wire.ask("GET", LAST_COUNTER) or 0)
        before = count()
        eventually(lambda: program.poll() is not None or count() > before, 60, f"{tenant.name} {what}")


def slots(cluster, tenant):
    """Those of the tenant's partitions that have something."""
    begin = b"{@" + tenant.name.encode() + b"/"
    marks = {key.split(b"}")[0] + b"}" for key in cluster.keys() if key.startswith(begin)}
    return sorted(cluster.nodes[0].ask("CLUSTER", "KEYSLOT", mark) for mark in marks)


def move(cluster, slot):
    """Moves it to another node. Returns whose it was, and what its tenant calls a key of it."""
    source = cluster.owner(slot)
    name = source.ask("CLUSTER", "GETKEYSINSLOT", slot, 1)[0].partition(b"}")[2]
    status, said = cluster.entremet("move", slot, "--to", place(others(cluster, source)[0]))
    assert status == 0, said
    return source, name


@pytest.mark.parametrize("client", COMMANDS)
def test_nothing_fails_and_nothing_is_lost(way, reports, client):
    if client not in CLIENTS[way]:
        pytest.skip("it is built without TLS")
    said = reports[client]
    for case in CLUSTER:
        assert case in said, f"{client} ended with status {said['status']} before this case: {said['stderr'][-3000:]}"
        assert said[case]["problem"] == "", case
