"""What Valkey has beside Redis 7.0: what can be kept apart by tenant works through a front, and the rest is refused by name."""

from pathlib import Path

import pytest
from moving import BOTH, WIDE, alpha_at

from harness.clients import Aware, Plain, Transactions, all_go_on, end
from harness.cluster import Cluster, Node, clean, know_each_other, others, place
from harness.engine import engines
from harness.resp import ServerError
from harness.server import ALPHA, BETA
from harness.waiting import eventually


class Databases(Node):
    """A node with several databases that says in which zone it is, as Valkey 9 may."""

    def __init__(self, *words):
        super().__init__(*words)
        self.options += ("--cluster-databases", "4", "--availability-zone", "zone-a")


def needs(engine, command):
    """Only an engine that has this command can be asked."""
    if command not in {name.decode() for name in engine.ask("COMMAND", "LIST")}:
        pytest.skip(f"this engine has no {command.upper()}")


def in_database(engine, number, *words):
    with engine.wire() as direct:
        direct.ask("SELECT", number)
        return direct.ask(*words)


def test_fields_of_hashes_expire(engine, front):
    needs(engine, "hgetdel")
    server = front()
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        assert alpha.ask("HSETEX", "h", "EX", 1_000, "FIELDS", 2, "a", "1", "b", "2") == 1
        assert beta.ask("HGETALL", "h") == []
        assert beta.ask("HSETEX", "h", "FXX", "FIELDS", 1, "a", "theirs") == 0
        assert 990 <= alpha.ask("HTTL", "h", "FIELDS", 1, "a")[0] <= 1_000
        assert alpha.ask("HGETEX", "h", "PERSIST", "FIELDS", 1, "a") == [b"1"]
        assert alpha.ask("HTTL", "h", "FIELDS", 3, "a", "b", "none")[::2] == [-1, -2]
        assert alpha.ask("HPEXPIRE", "h", 500_000, "NX", "FIELDS", 1, "a") == [1]
        assert alpha.ask("HPERSIST", "h", "FIELDS", 1, "a") == [1]
        assert alpha.ask("HPEXPIRETIME", "h", "FIELDS", 1, "a") == [-1]
        assert alpha.ask("HEXPIRE", "h", 0, "FIELDS", 1, "a") == [2]
        assert alpha.ask("HGETDEL", "h", "FIELDS", 2, "a", "b") == [None, b"2"]
        assert alpha.ask("EXISTS", "h") == 0
        alpha.ask("HSETEX", "h", "PX", 1, "FIELDS", 1, "gone", "x")
        eventually(lambda: alpha.ask("HGET", "h", "gone") is None, what="the field has expired")


def test_what_strings_and_shapes_learnt(engine, front):
    needs(engine, "msetex")
    server = front()
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        for wire, text in ((alpha, "mine"), (beta, "theirs")):
            assert wire.ask("SET", "lock", text) == b"OK"
        assert alpha.ask("SET", "lock", "again", "IFEQ", "theirs") is None
        assert alpha.ask("SET", "lock", "again", "IFEQ", "mine", "GET") == b"mine"
        assert alpha.ask("DELIFEQ", "lock", "theirs") == 0
        assert alpha.ask("DELIFEQ", "lock", "again") == 1
        assert beta.ask("GET", "lock") == b"theirs"
        assert alpha.ask("MSETEX", 2, "a", "1", "lock", "2", "NX", "EX", 1_000) == 1
        assert alpha.ask("MSETEX", 1, "a", "3", "NX") == 0
        assert alpha.ask("MGET", "a", "lock") == [b"1", b"2"]
        # Counts that are wrong name no key of whoever it may be.
        for words in ((3, "a", "1"), (-1, "a", "1"), ("x", "a", "1"), (2, "a", "1", "b")):
            assert isinstance(alpha.attempt("MSETEX", *words), ServerError), words
        alpha.ask("GEOADD", "geo", 1, 1, "near", 9, 9, "far")
        assert alpha.ask("GEOSEARCH", "geo", "BYPOLYGON", 3, 0, 0, 0, 3, 3, 0) == [b"near"]
        assert alpha.ask("GEOSEARCHSTORE", "found", "geo", "BYPOLYGON", 3, 0, 0, 0, 3, 3, 0) == 1
        alpha.ask("ZADD", "z", 5, "m")
        assert alpha.ask("ZRANK", "z", "m", "WITHSCORE") == [0, b"5"]
    assert engine.keys() == {b"{@beta}lock"} | {b"{@alpha}" + key for key in (b"a", b"lock", b"geo", b"found", b"z")}


REFUSED = """
CLUSTERSCAN 0
COMMANDLOG GET 10 slow
COMMANDLOG LEN slow
COMMANDLOG RESET slow
COMMANDLOG HELP
CLUSTER MIGRATESLOTS SLOTSRANGE 0 1 NODE x
CLUSTER CANCELSLOTMIGRATIONS
CLUSTER GETSLOTMIGRATIONS
CLUSTER SYNCSLOTS ESTABLISH
CLUSTER FLUSHSLOT 0
CLUSTER SLOT-STATS SLOTSRANGE 0 1
CLUSTER MYSHARDID
CLUSTER SETSLOT 0 STABLE
CLUSTER REPLICATE NO ONE
CLIENT IMPORT-SOURCE ON
CLIENT CACHING YES
SCRIPT SHOW 0123456789012345678901234567890123456789
SELECT 1
COPY a b DB 1
WAITAOF 0 0 0
BGSAVE CANCEL
ACL SETUSER default db=0
"""


def test_what_is_about_the_whole_engine_is_refused_by_name(engine, front):
    needs(engine, "clusterscan")
    with front().wire(ALPHA) as alpha:
        for line in REFUSED.split("\n")[1:-1]:
            said = str(alpha.attempt(*line.split()))
            name = line.lower().split()[0]
            assert said.startswith("ERR") and (name in said.lower() or "database" in said), (line, said)
            assert "keys is not known" not in said, (line, said)
        assert alpha.ask("CLIENT", "CAPA", "redirect", "whatever") == b"OK"
        assert alpha.ask("PING") == b"PONG"


def test_keys_of_several_partitions_and_conditions(make_cluster, before):
    cluster = make_cluster()
    needs(cluster.nodes[0], "msetex")
    with before(cluster, tenants=BOTH).wire(WIDE) as wide:
        for number in range(64):
            assert wide.ask("HSETEX", f"h{number}", "EX", 1_000, "FIELDS", 1, "f", number) == 1
            assert wide.ask("SET", f"k{number}", number) == b"OK"
        assert [wide.ask("HGETDEL", f"h{number}", "FIELDS", 1, "f") for number in range(64)] == [[b"%d" % number] for number in range(64)]
        assert sum(wide.ask("DELIFEQ", f"k{number}", number - number % 2) for number in range(64)) == 32
        said = str(wide.attempt("MSETEX", 8, *(word for number in range(8) for word in (f"k{number}", "x")), "NX"))
        assert said.startswith("CROSSSLOT"), said
        assert wide.ask("MSETEX", 2, "{t}a", "1", "{t}b", "2", "EX", 1_000) == 1
        assert wide.ask("MGET", "{t}a", "{t}b") == [b"1", b"2"]


def test_other_databases_of_a_cluster_are_nobody_s(make_cluster, before):
    needs(make_cluster(masters=1).nodes[0], "clusterscan")
    cluster, server, slot, source, target = alpha_at(make_cluster, before, kind=Databases)
    in_database(source, 2, "SET", "{@alpha}other", "x")
    with server.wire(ALPHA) as alpha, server.wire(WIDE) as wide:
        alpha.ask("SET", "k", "v")
        assert alpha.ask("KEYS", "*") == [b"k"]
        assert alpha.ask("DBSIZE") == 1
        assert "database" in str(alpha.attempt("SELECT", 2))
        # It would not go along: the node would delete it with its slot.
        status, said = cluster.entremet("move", slot, "--to", place(target))
        assert status == 1 and f"{place(source)} has keys in db2" in said, said
        status, said = cluster.entremet("drain", place(source))
        assert status == 1 and f"{place(source)} has keys in db2" in said, said
        assert alpha.ask("FLUSHALL") == b"OK" and wide.ask("FLUSHALL") == b"OK"
        assert in_database(source, 2, "GET", "{@alpha}other") == b"x"
        assert cluster.owner(slot) is source
        alpha.ask("SET", "k", "v")
        in_database(source, 2, "DEL", "{@alpha}other")
        status, said = cluster.entremet("move", slot, "--to", place(target))
        assert status == 0, said
        assert alpha.ask("GET", "k") == b"v"
    assert "{@}moves".encode() not in cluster.keys()


def test_a_front_follows_slots_that_valkey_moves_by_itself(make_cluster, before_node):
    cluster = make_cluster()
    needs(cluster.nodes[0], "clusterscan")
    fronts = [before_node(cluster, node, tenants=BOTH) for node in cluster.masters[:2]]
    know_each_other(fronts, ALPHA)
    slot = cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@alpha}")
    with fronts[0].wire(ALPHA) as alpha:
        names = [f"key:{number}" for number in range(3_000)]
        for name in names:
            alpha.send("SET", name, f"v-{name}")
        assert all(alpha.read() == b"OK" for _ in names)
        clients = [kind(kind.__name__, fronts[number % 2], ALPHA) for number, kind in enumerate((Plain, Aware, Transactions))]
        for client in clients:
            client.start()
        for _ in range(4):
            source = cluster.owner(slot)
            target = others(cluster, source)[0]
            assert source.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", target.id) == b"OK"
            eventually(lambda source=source, target=target: cluster.owner(slot) is target and source.port_of(slot) == target.port, 60, "the slot has gone")
            all_go_on(clients, "everybody is served")
        end(clients)
        assert not any(client.wrong for client in clients), [client.wrong[:3] for client in clients]
        assert alpha.ask("MGET", *names) == [f"v-{name}".encode() for name in names]
    assert clean(cluster)


@pytest.mark.skipif(len(engines()) < 2, reason="Valkey is not found")
def test_a_cluster_of_redis_becomes_one_of_valkey_while_it_is_used(tmp_path, before_node):
    """Replicas of Valkey take the places of masters of Redis 7.0, which are then switched off."""
    redis, valkey = engines()
    older = {f"node{number}" for number in range(3)}
    cluster = Cluster(tmp_path / "mixed", None, 3, 1, lambda folder, _: Node(folder, redis if Path(folder).name in older else valkey))
    try:
        cluster.start()
        # A front stands before each place that has no end.
        fronts = [before_node(cluster, node, tenants=BOTH) for node in cluster.replicas[:2]]
        know_each_other(fronts, ALPHA)
        with fronts[0].wire(ALPHA) as alpha:
            assert "no such command" in str(alpha.attempt("HSETEX", "h", "FIELDS", 1, "f", "v")) or "unknown command" in str(alpha.attempt("HSETEX", "h"))
            clients = [kind(kind.__name__, fronts[number % 2], tenant) for number, kind in enumerate((Plain, Aware, Transactions)) for tenant in BOTH]
            for client in clients:
                client.start()
            for old, new in zip(cluster.masters, cluster.replicas):
                new.ask("CLUSTER", "FAILOVER")
                eventually(lambda new=new: b"role:master" in new.ask("INFO", "replication"), 30, "it has taken over")
                eventually(lambda: len({node.info()["cluster_state"] for node in cluster.living()} - {"ok"}) == 0, 30, "all agree")
                all_go_on(clients, "everybody is served")
                old.kill()
            all_go_on(clients, "everybody is served")
            end(clients)
            eventually(lambda: alpha.attempt("HSETEX", "h", "FIELDS", 1, "f", "v") == 1, 30, "the front knows what Valkey has")
            assert alpha.ask("HGET", "h", "f") == b"v"
    finally:
        cluster.kill()
