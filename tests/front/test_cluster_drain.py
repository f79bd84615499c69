"""`entremet cluster drain`: all that a node has goes to the others while tenants use it, and whatever ends it in the middle, nothing is lost."""

import random
import re
import signal
import subprocess

import pytest
import redis

from harness.clients import Asynchronous, Aware, Plain, Transactions, all_go_on, all_there, credentials, end, fill
from harness.cluster import clean, know_each_other, others, place
from harness.server import ALPHA, Tenant
from harness.waiting import eventually

WIDE = Tenant("wide", extra="partitions = 16")
BOTH = (ALPHA, WIDE)


@pytest.fixture
def duo(make_cluster, before_node):
    """Three nodes, two fronts that are one cluster before those that stay, and the node that has the most: that of a tenant with one partition."""
    cluster = make_cluster()
    source = cluster.owner(cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@alpha}"))
    fronts = [before_node(cluster, node, tenants=BOTH) for node in others(cluster, source)]
    know_each_other(fronts, ALPHA)
    return cluster, fronts, source


def slots(cluster):
    """How many slots each node has, by its port."""
    have = dict.fromkeys((node.port for node in cluster.nodes), 0)
    for begin, end, master, *_ in cluster.nodes[0].ask("CLUSTER", "SLOTS"):
        have[master[1]] += end - begin + 1
    return have


def is_empty(cluster, node):
    return slots(cluster)[node.port] == 0 and node.ask("DBSIZE") == 0


def test_a_node_is_emptied_while_clients_read_and_write_and_is_taken_away(duo):
    cluster, fronts, source = duo
    with fronts[0].wire(ALPHA) as alpha, fronts[1].wire(WIDE) as wide:
        for wire in (alpha, wide):
            fill(wire, 3_000, "y" * 200)
        before = slots(cluster)
        status, said = cluster.entremet("drain", place(source), "--dry-run")
        assert status == 0 and re.search(r"slot \d+ \(alpha\) would go to .*: 30\d\d keys", said), said
        assert f"{place(source)} has {before[source.port]} slots with " in said, said
        assert slots(cluster) == before and b"{@}control" not in cluster.keys()
        kinds = (Plain, Aware, Transactions, Asynchronous)
        clients = {tenant: [kind(f"{kind.__name__}", fronts[place % 2], tenant) for place, kind in enumerate(kinds)] for tenant in BOTH}
        everybody = sum(clients.values(), [])
        for client in everybody:
            client.start()
        status, said = cluster.entremet("drain", place(source))
        assert status == 0 and f"{place(source)} has nothing any more" in said, said
        assert is_empty(cluster, source)
        # Those that got it have as many slots as each other.
        left = [count for port, count in slots(cluster).items() if port != source.port]
        assert max(left) - min(left) <= 256, left
        all_go_on(everybody, "everybody is served")
        # Once more: there is nothing to do but what it says.
        status, said = cluster.entremet("drain", source.id[:8])
        assert status == 0 and "has gone" not in said, said
        status, said_of_all = cluster.entremet("status")
        assert re.search(rf"{place(source)}  {source.id[:8]}  0 slots, .*, is emptied\n", said_of_all), said_of_all
        assert clean(cluster)
        [command] = [line.split() for line in said.splitlines() if "redis-cli" in line]
        assert command[:3] == ["redis-cli", "--cluster", "del-node"] and command[-1] == source.id
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)
        source.kill()
        all_go_on(everybody, "everybody is served without it")
        end(everybody)
        for tenant, those in clients.items():
            with redis.Redis(**credentials(fronts[0], tenant)) as after:
                for client in those:
                    client.kept(after)
        assert all_there(alpha, 3_000, "y" * 200) and all_there(wide, 3_000, "y" * 200)


def test_one_that_is_killed_anywhere_is_gone_on_with(duo):
    cluster, fronts, source = duo
    chance = random.Random(21)
    with fronts[0].wire(ALPHA, timeout=60) as alpha, fronts[1].wire(WIDE, timeout=60) as wide:
        for wire in (alpha, wide):
            fill(wire, 4_000, "y" * 500)
        clients = [Plain("client", front, tenant) for front, tenant in zip(fronts, BOTH)]
        for client in clients:
            client.start()
        killed, has = 0, slots(cluster)[source.port]
        while slots(cluster)[source.port]:
            with subprocess.Popen(cluster.command("drain", place(source)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
                begun = lambda: slots(cluster)[source.port] < has or process.poll() is not None
                eventually(begun, 60, "it has begun")
                try:
                    process.wait(chance.uniform(0.0, 0.6))
                except subprocess.TimeoutExpired:
                    process.kill()
                    killed += 1
            assert not any(client.wrong for client in clients), [client.wrong[:3] for client in clients]
            has = slots(cluster)[source.port]
        assert killed >= 3
        status, said = cluster.entremet("drain", place(source))
        assert status == 0 and "has nothing any more" in said, said
        assert is_empty(cluster, source)
        assert all_there(alpha, 4_000, "y" * 500) and all_there(wide, 4_000, "y" * 500)
        end(clients)
        for client, front, tenant in zip(clients, fronts, BOTH):
            with redis.Redis(**credentials(front, tenant)) as after:
                client.kept(after)
        assert clean(cluster)


def test_a_row_of_slots_that_is_killed_in_the_middle_is_brought_to_its_end(make_cluster, before):
    """What a killed one leaves of slots that nobody uses: each half, as an intent and as nodes have it."""
    cluster = make_cluster()
    server = before(cluster, tenants=BOTH)
    source, target, _ = cluster.masters
    book = cluster.owner(cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@}"))
    with server.wire(ALPHA) as alpha:
        fill(alpha, 100)
        taken = {cluster.nodes[0].ask("CLUSTER", "KEYSLOT", key) for key in cluster.keys()}
        halves = ([], ["import"], ["import", "migrate"], ["import", "migrate", "take"], ["import", "migrate", "take", "give"])
        for number, half in enumerate(halves):
            row = next(range(first, first + 8) for first in range(100 + 500 * number, 5_000) if not taken & set(range(first, first + 8)))
            book.ask("HSET", "{@}moves", f"{row[0]}-{row[-1]}", f"{source.id} {target.id} 1 - 0")
            # Of the last of them nothing was done yet.
            for slot in row[:-2]:
                for step in half:
                    match step:
                        case "import":
                            target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
                        case "migrate":
                            source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
                        case "take":
                            target.ask("CLUSTER", "SETSLOT", slot, "NODE", target.id)
                        case "give":
                            source.ask("CLUSTER", "SETSLOT", slot, "NODE", target.id)
            status, said = cluster.entremet("check")
            assert status == 1 and f"slots {row[0]}-{row[-1]} are on the way from {place(source)} to {place(target)}" in said, said
            if number % 2:
                status, said = cluster.entremet("move", row[3], "--to", place(cluster.masters[2]))
                assert status == 1 and ("--resume" in said or "is on its way" in said or "in the middle" in said), said
            status, said = cluster.entremet("move", "--resume")
            assert status == 0 and "have gone from" in said, said
            eventually(lambda: all(cluster.owner(slot) is target for slot in row), what="all know it")
            assert clean(cluster)
        assert all_there(alpha, 100)


def test_a_node_that_was_emptied_gets_nothing_until_it_is_added_again(make_cluster, before):
    cluster = make_cluster(masters=2)
    before(cluster, tenants=BOTH)
    first, second = cluster.masters
    status, said = cluster.entremet("drain", place(first))
    assert status == 0, said
    # It was killed when all had gone, and before it could write down that the last move is at its end.
    second.ask("HSET", "{@}moves", "0-7", f"{first.id} {second.id} 1 - 0")
    status, said = cluster.entremet("drain", place(first))
    assert status == 0 and clean(cluster), said
    status, said = cluster.entremet("drain", place(second))
    assert status == 1 and "no other master is there that could have it" in said, said
    status, said = cluster.entremet("drain", place(second), "--to", place(first))
    assert status == 1 and f"{place(first)} is being emptied itself" in said, said
    assert is_empty(cluster, first) and "is emptied" in cluster.entremet("status")[1]
    status, said = cluster.entremet("add", place(first))
    assert status == 0 and "is a master of the cluster" in said, said
    assert "is emptied" not in cluster.entremet("status")[1]
    status, said = cluster.entremet("drain", place(second))
    assert status == 0 and is_empty(cluster, second), said
    assert clean(cluster)


def test_those_that_are_named_get_it(make_cluster, before):
    cluster = make_cluster(masters=4)
    server = before(cluster, tenants=BOTH)
    source, stays, *named = cluster.masters
    with server.wire(WIDE) as wide:
        fill(wide, 500)
        had = slots(cluster)[stays.port]
        status, said = cluster.entremet("drain", place(source), "--to", f"{place(named[0])},{named[1].id[:10]}")
        assert status == 0 and is_empty(cluster, source), said
        assert slots(cluster)[stays.port] == had
        assert all_there(wide, 500) and clean(cluster)


def test_what_does_not_fit_or_is_too_large_is_refused_before_anything_moves(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=BOTH)
    source = cluster.owner(cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@alpha}"))
    with server.wire(ALPHA, timeout=60) as alpha:
        fill(alpha, 100)
        alpha.ask("SET", "large", bytes(8 << 20))
        had = slots(cluster)
        for words in ((), ("--dry-run",)):
            status, said = cluster.entremet("drain", place(source), *words)
            assert status == 1 and "the key {@alpha}large has" in said and "say --allow-stall" in said, said
        stall = ("--allow-stall", said.split("--allow-stall ")[1].split()[0])
        for node in others(cluster, source):
            node.ask("CONFIG", "SET", "maxmemory", "8mb")
        status, said = cluster.entremet("drain", place(source), *stall)
        assert status == 1 and "has no room" in said, said
        assert slots(cluster) == had and b"{@}control" not in cluster.keys()
        others(cluster, source)[1].ask("CONFIG", "SET", "maxmemory", "100mb")
        status, said = cluster.entremet("drain", place(source), *stall)
        assert status == 0 and is_empty(cluster, source), said
        assert all_there(alpha, 100) and alpha.ask("STRLEN", "large") == 8 << 20
        assert clean(cluster)


def test_a_target_that_dies_in_the_middle_is_replaced(make_cluster, before):
    cluster = make_cluster(replicas=1)
    server = before(cluster, tenants=BOTH)
    source = cluster.owner(cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@alpha}"))
    with server.wire(ALPHA, timeout=60) as alpha:
        fill(alpha, 2_000)
        target = next(node for node in others(cluster, source) if node is not cluster.owner(cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@}")))
        slot = cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@alpha}")
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        cluster.owner(cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@}")).ask("HSET", "{@}moves", slot, f"{source.id} {target.id} 1 - 0")
        replica = cluster.replicas[cluster.masters.index(target)]
        target.kill()
        eventually(lambda: b"role:master" in replica.ask("INFO", "replication"), 60, "the replica takes over")

        def emptied():
            status, said = cluster.entremet("drain", place(source))
            assert status == 0, said
            return said

        # Valkey tells replicas of each slot first, which takes a minute on a busy machine.
        said = eventually(emptied, 150, "it is emptied")
        assert is_empty_of(source) and all_there(alpha, 2_000), said
        assert any(line.endswith(cluster.replicas[cluster.masters.index(source)].id) for line in said.splitlines()), said


def is_empty_of(node):
    return node.ask("DBSIZE") == 0 and not node.ask("CLUSTER", "NODES").decode().split("myself")[1].splitlines()[0].split()[7:]


def test_wrong_words_are_explained(make_cluster, before):
    cluster = make_cluster(replicas=1)
    before(cluster, tenants=BOTH)
    first, second, third = cluster.masters
    for words, why in (
        (("127.0.0.1:1",), "is no node of the cluster"),
        ((place(cluster.replicas[0]),), "is a replica"),
        ((place(first), "--to", place(first)), "is being emptied itself"),
        ((place(first), "--to", "127.0.0.1:1"), "is no node of the cluster"),
        ((place(first), "--to", place(cluster.replicas[1])), "is a replica"),
    ):
        status, said = cluster.entremet("drain", *words)
        assert status == 1 and why in said, (words, said)
    for words in ((), (place(first), "--to"), (place(first), "--allow-stall", "x"), (place(first), place(second))):
        assert cluster.entremet("drain", *words)[0] == 2, words
    assert b"{@}control" not in cluster.keys()
    third.kill()
    eventually(lambda: b",fail " in first.ask("CLUSTER", "NODES"), 30, "it is away")
    status, said = cluster.entremet("drain", place(third))
    assert status == 1 and "is away" in said, said


def test_it_ends_when_it_is_told_to_and_goes_on(duo):
    cluster, fronts, source = duo
    with fronts[0].wire(ALPHA, timeout=60) as alpha:
        fill(alpha, 20_000, "y" * 1_500)
        with subprocess.Popen(cluster.command("drain", place(source)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            some = lambda: any(node.ask("CLUSTER", "COUNTKEYSINSLOT", source.ask("CLUSTER", "KEYSLOT", "{@alpha}")) for node in others(cluster, source))
            eventually(some, 60, "some keys have gone")
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=60)
        assert process.returncode == 1 and "stopped: the same command goes on" in said, said
        status, said = cluster.entremet("drain", place(source))
        assert status == 0 and is_empty(cluster, source), said
        assert all_there(alpha, 20_000, "y" * 1_500) and clean(cluster)
