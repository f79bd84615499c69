"""`entremet cluster add`: a node that has nothing joins, and gets its part."""

import random
import subprocess

import pytest
import redis

from harness.clients import Aware, Plain, Transactions, all_there, credentials, end, fill
from harness.cluster import clean, place
from harness.server import ALPHA, Tenant
from harness.waiting import eventually

WIDE = Tenant("wide", extra="partitions = 16")
BOTH = (ALPHA, WIDE)


def slots(cluster):
    have = dict.fromkeys((node.port for node in cluster.nodes), 0)
    for begin, end, master, *_ in cluster.nodes[0].ask("CLUSTER", "SLOTS"):
        have[master[1]] += end - begin + 1
    return have


def known(node):
    return int(node.info()["cluster_known_nodes"])


def test_from_one_node_to_four_and_back_while_clients_read_and_write(make_cluster, before):
    cluster = make_cluster(masters=1)
    server = before(cluster, tenants=BOTH)
    with server.wire(WIDE) as wide, server.wire(ALPHA) as alpha:
        for wire in (wide, alpha):
            fill(wire, 2_000, "y" * 200)
        clients = [kind(kind.__name__, server, tenant) for kind in (Plain, Transactions) for tenant in BOTH]
        for client in clients:
            client.start()
        for number in range(3):
            node = cluster.fresh(number)
            status, said = cluster.entremet("add", place(node), "--fill")
            assert status == 0 and f"{place(node)} is a master of the cluster" in said, said
            assert f"{place(node)} has {16384 // (number + 2)} slots" in said, said
            assert clean(cluster)
        counts = list(slots(cluster).values())
        assert len(counts) == 4 and max(counts) - min(counts) <= 4, counts
        # Partitions are where slots are: each node has some.
        status, said = cluster.entremet("status")
        wide_at = said.split("  wide: 16\n")[1].split("\n\n")[0].splitlines()
        assert len(wide_at) == 4 and all(len(line.split()) - 1 in range(2, 7) for line in wide_at), said
        for node in cluster.nodes[:0:-1]:
            status, said = cluster.entremet("drain", place(node))
            assert status == 0, said
            [command] = [line.split() for line in said.splitlines() if "redis-cli" in line]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)
            cluster.nodes.remove(node)
            node.kill()
            eventually(lambda: known(cluster.nodes[0]) == len(cluster.nodes), what="it is forgotten")
            assert clean(cluster)
        end(clients)
        for client, tenant in zip(clients, BOTH * 2):
            with redis.Redis(**credentials(server, tenant)) as after:
                client.kept(after)
        assert all_there(wide, 2_000, "y" * 200) and all_there(alpha, 2_000, "y" * 200)


def test_one_that_is_killed_while_it_fills_is_gone_on_with(make_cluster, before_node):
    cluster = make_cluster()
    fronts = [before_node(cluster, node, tenants=BOTH) for node in cluster.masters[:2]]
    chance = random.Random(22)
    node = cluster.fresh(0)
    with fronts[0].wire(WIDE, timeout=60) as wide:
        fill(wide, 6_000, "y" * 500)
        client = Aware("client", fronts[1], WIDE)
        client.start()
        for _ in range(4):
            with subprocess.Popen(cluster.command("add", place(node), "--fill"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                had = slots(cluster)[node.port]
                eventually(lambda: slots(cluster)[node.port] > had or process.poll() is not None, 60, "it has begun")
                try:
                    process.wait(chance.uniform(0.0, 0.5))
                except subprocess.TimeoutExpired:
                    process.kill()
        finished = lambda: cluster.entremet("move", "--resume")[0] == 0
        assert finished()
        status, said = cluster.entremet("add", place(node), "--fill")
        assert status == 0, said
        assert slots(cluster)[node.port] == 4096, said
        end([client])
        assert all_there(wide, 6_000, "y" * 500) and clean(cluster)


def test_it_joins_and_has_nothing_until_somebody_moves_something(make_cluster, before):
    cluster = make_cluster(masters=2)
    before(cluster, tenants=BOTH)
    node = cluster.fresh(0)
    status, said = cluster.entremet("add", place(node))
    assert status == 0 and "entremet cluster control moves to it" in said, said
    assert slots(cluster)[node.port] == 0 and all(known(one) == 3 for one in cluster.nodes)
    status, said = cluster.entremet("add", place(node))
    assert status == 1 and f"{place(node)} is in the cluster already" in said, said
    status, said = cluster.entremet("move", "alpha", "--to", place(node))
    assert status == 0, said
    assert clean(cluster)


def test_what_must_not_join_is_refused_and_why(make_cluster, before, engine):
    cluster = make_cluster(masters=2)
    before(cluster, tenants=BOTH)
    node = cluster.fresh(0)
    refused = lambda where: cluster.entremet("add", where)

    def says(text, where=None):
        status, said = refused(where or place(node))
        assert status == 1 and text in said, said
        assert known(cluster.nodes[0]) == 2

    says("cannot be reached", "127.0.0.1:1")
    says("is no address of a node", "nowhere")
    says("is not in cluster mode", f"127.0.0.1:{engine.port}")
    says("is in the cluster already", place(cluster.masters[1]))
    node.ask("CONFIG", "SET", "cluster-allow-replica-migration", "yes")
    says("set cluster-allow-replica-migration no")
    node.ask("CONFIG", "SET", "cluster-allow-replica-migration", "no")
    node.ask("CLUSTER", "ADDSLOTS", 5)
    says("has 1 slots, and so is a cluster of its own")
    node.ask("CLUSTER", "ADDSLOTSRANGE", 6, 16383)
    eventually(lambda: node.attempt("SET", "k", "v") == b"OK", what="it serves")
    node.ask("CLUSTER", "DELSLOTSRANGE", 5, 16383)
    says("is not empty: it has 1 keys")
    node.ask("FLUSHALL")
    other = cluster.fresh(1)
    node.ask("CLUSTER", "MEET", "127.0.0.1", other.port, other.bus)
    eventually(lambda: known(node) == 2, what="they have met")
    says("knows 1 other nodes: it is one of another cluster")
    node.ask("CONFIG", "SET", "requirepass", "secret")
    status, said = refused(place(node))
    assert status == 1 and "NOAUTH" in said, said
    for words in ((), ("--fill",), (place(node), place(other))):
        assert cluster.entremet("add", *words)[0] == 2, words


def test_beside_a_controller_a_node_joins_and_is_not_filled(make_cluster, before):
    cluster = make_cluster(masters=2)
    before(cluster, tenants=BOTH)
    node = cluster.fresh(0)
    with subprocess.Popen(cluster.command("control"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as control:
        eventually(lambda: b"{@}control" in cluster.keys(), what="it places partitions")
        status, said = cluster.entremet("add", place(node), "--fill")
        assert status == 1 and "is a master of the cluster" in said and "it is not filled: another process places partitions" in said, said
        assert slots(cluster)[node.port] == 0 and known(node) == 3
        control.terminate()
        assert control.wait(30) == 0
    status, said = cluster.entremet("add", place(node), "--fill")
    assert status == 0 and slots(cluster)[node.port] == 16384 // 3, said
    assert clean(cluster)
