"""Before a Redis Cluster: keys lie where the cluster has them, and clients see one server."""

import random
import threading

import pytest

from harness.cluster import SLOTS
from harness.engine import Engine
from harness.resp import ServerError, encode
from harness.server import ALPHA, StartFailed, Tenant
from harness.waiting import eventually

WIDE = Tenant("wide", extra="partitions = 8")
BOTH = (ALPHA, WIDE)


def part(engine, key, parts):
    """The partition of a key, by what an engine says that its slot is."""
    return engine.ask("CLUSTER", "KEYSLOT", key) * parts // SLOTS


def test_keys_lie_in_the_partitions_of_their_tenant(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=BOTH)
    with server.wire(ALPHA) as alpha, server.wire(WIDE) as wide:
        for wire in (alpha, wide):
            for number in range(200):
                assert wire.ask("SET", f"key:{number}", f"{number}") == b"OK"
            assert [wire.ask("GET", f"key:{number}") for number in range(200)] == [b"%d" % number for number in range(200)]
            assert wire.ask("RPUSH", "list", "x", "y") == 2
            assert wire.ask("LMPOP", 1, "list", "LEFT") == [b"list", [b"x"]]
        wide.ask("SET", "{tag}a", "1")
        wide.ask("SET", "{tag}b", "2")
        assert wide.ask("MGET", "{tag}a", "{tag}b") == [b"1", b"2"]
    first = cluster.nodes[0]
    keys = cluster.keys() - {b"{@}catalogue"}
    assert len(keys) == 201 + 203
    one = {key for key in keys if key.startswith(b"{@alpha}")}
    assert len(one) == 201
    for key in keys - one:
        mark, own = key.split(b"}", 1)
        assert mark.startswith(b"{@wide/")
        # The slot that a partition has at the engine is one of its own range.
        assert part(first, key, 8) == part(first, own, 8)
    assert len({first.ask("CLUSTER", "KEYSLOT", key) for key in keys - one}) == 8
    assert all(node.ask("DBSIZE") > 0 for node in cluster.masters)


def test_several_keys_are_asked_for_over_partitions(make_cluster, before):
    server = before(make_cluster(), tenants=BOTH)
    with server.wire(WIDE) as wide:
        names = [f"k{number}" for number in range(100)]
        assert wide.ask("MSET", *(word for name in names for word in (name, f"v-{name}"))) == b"OK"
        assert wide.ask("MGET", *names, "none", names[0]) == [b"v-" + name.encode() for name in names] + [None, b"v-k0"]
        assert wide.ask("EXISTS", *names, "none", names[0]) == 101
        assert wide.ask("TOUCH", *names[:50], "none") == 50
        assert wide.ask("DEL", *names[:10], "none") == 10
        assert wide.ask("UNLINK", *names[10:20]) == 10
        assert wide.ask("EXISTS", *names) == 80
        wide.ask("HELLO", 3)
        assert wide.ask("MGET", names[0], names[99]) == [None, b"v-k99"]
        wide.ask("HELLO", 2)
        for words in (("MSETNX", "a", 1, "b", 2, "c", 3), ("SINTER", "a", "b", "c"), ("RENAME", "k50", "other")):
            assert str(wide.attempt(*words)).startswith("CROSSSLOT"), words
        assert isinstance(wide.attempt("MSET", "a", 1, "b"), ServerError)
        assert wide.ask("RENAME", "k50", "{k50}other") == b"OK"
        assert wide.ask("GET", "{k50}other") == b"v-k50"


def test_walks_go_over_all_nodes(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=BOTH)
    with server.wire(ALPHA) as alpha, server.wire(WIDE) as wide:
        for wire in (alpha, wide):
            for number in range(1_500):
                wire.send("SET", f"key:{number}", "x")
            assert all(wire.read() == b"OK" for _ in range(1_500))
        own = {b"key:%d" % number for number in range(1_500)}
        for wire in (alpha, wide):
            assert wire.ask("DBSIZE") == 1_500
            assert set(wire.ask("KEYS", "*")) == own
            assert set(wire.ask("KEYS", "key:?")) == {b"key:%d" % number for number in range(10)}
            assert scanned(wire) == own
            assert scanned(wire, "MATCH", "*9", "COUNT", 300, "TYPE", "string") == {key for key in own if key.endswith(b"9")}
            assert "cursor" in str(wire.attempt("SCAN", "x"))
        assert wide.ask("FLUSHALL") == b"OK"
        assert (wide.ask("DBSIZE"), alpha.ask("DBSIZE")) == (0, 1_500)
        assert alpha.ask("FLUSHDB") == b"OK"
    assert cluster.keys() == {b"{@}catalogue"}


def scanned(wire, *options):
    keys, cursor = set(), b"0"
    while True:
        cursor, page = wire.ask("SCAN", cursor, *options)
        keys.update(page)
        if cursor == b"0":
            return keys


def test_a_transaction_is_of_one_partition(make_cluster, before):
    server = before(make_cluster(), tenants=BOTH)
    with server.wire(ALPHA) as alpha, server.wire(WIDE) as wide:
        for wire, keys in ((alpha, ("a", "b")), (wide, ("{t}a", "{t}b"))):
            assert wire.ask("MULTI") == b"OK"
            assert wire.ask("SET", keys[0], "1") == b"QUEUED"
            assert wire.ask("PING") == b"QUEUED"
            assert wire.ask("INCR", keys[1]) == b"QUEUED"
            assert wire.ask("EXEC") == [b"OK", b"PONG", 1]
        assert wide.ask("MULTI") == b"OK"
        for key in ("a", "b", "c", "d"):
            assert wide.ask("INCR", key) == b"QUEUED"
        assert str(wide.attempt("EXEC")).startswith("CROSSSLOT")
        assert wide.ask("EXISTS", "a", "b", "c", "d") == 0
        assert wide.ask("MULTI") == b"OK"
        assert str(wide.attempt("RENAME", "a", "b")).startswith("CROSSSLOT")
        assert "EXECABORT" in str(wide.attempt("EXEC"))


def test_a_pipeline_over_all_nodes_is_answered_in_order(make_cluster, before):
    server = before(make_cluster(), tenants=BOTH)
    with server.wire(WIDE) as wide:
        requests, expected = [], []
        for number in range(1_000):
            requests += [encode("SET", f"k{number}", number), encode("MGET", f"k{number}", "none", f"k{number - 1}"), encode("ECHO", number)]
            expected += [b"OK", [b"%d" % number, None, b"%d" % (number - 1) if number else None], b"%d" % number]
        large = bytes(100_000)
        requests.insert(500, encode("SET", "large", large) + encode("GET", "large"))
        expected[500:500] = [b"OK", large]
        threading.Thread(target=wide.raw, args=(b"".join(requests),), daemon=True).start()
        for place, reply in enumerate(expected):
            assert wide.read() == reply, place


def test_partitions_are_fixed_when_a_tenant_is_made(make_cluster, before):
    cluster = make_cluster()
    operator = Tenant("boss", extra="admin = true")
    with before(cluster, tenants=(WIDE, operator)).wire(operator) as boss:
        assert boss.ask("ENTREMET", "TENANT", "SET", "late", "PASSWORD", "late-secret", "PARTITIONS", 4) == b"OK"
        assert "made with partitions = 4" in str(boss.attempt("ENTREMET", "TENANT", "SET", "late", "PARTITIONS", 2))
        assert "made with partitions = 8" in str(boss.attempt("ENTREMET", "TENANT", "SET", "wide", "PARTITIONS", 2))
    # Another front knows it, too.
    for other in (Tenant("wide", extra="partitions = 4"), Tenant("late", extra="partitions = 8")):
        with pytest.raises(StartFailed, match="was made with partitions"):
            before(cluster, tenants=(other,))
    with before(cluster, tenants=(Tenant("late", extra="partitions = 4"),)).wire(Tenant("late")) as late:
        assert late.ask("SET", "k", "v") == b"OK"


def test_a_catalogue_of_a_later_version_is_left_alone(make_cluster, before):
    cluster = make_cluster()
    slot = cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@}catalogue")
    book = cluster.owner(slot)
    book.ask("HSET", "{@}catalogue", "version", "2")
    with pytest.raises(StartFailed, match="of version"):
        before(cluster)
    assert book.ask("HGETALL", "{@}catalogue") == [b"version", b"2"]


def test_an_engine_of_another_kind_is_told(make_cluster, tmp_path, before, monkeypatch):
    cluster = make_cluster()
    program = cluster.nodes[0].program
    with pytest.raises(StartFailed, match="say redis-cluster"):
        monkeypatch.setattr("harness.cluster.ClusterFront.kind", "redis")
        monkeypatch.setattr("harness.cluster.Cluster.url", cluster.nodes[0].url)
        before(cluster)
    one = Engine(tmp_path / "one", program).start()
    try:
        monkeypatch.setattr("harness.cluster.ClusterFront.kind", "redis-cluster")
        monkeypatch.setattr("harness.cluster.Cluster.url", one.url.replace("redis:", "redis-cluster:"))
        with pytest.raises(StartFailed, match="not in cluster mode"):
            before(cluster)
    finally:
        one.kill()


KEYS = [f"{tag}{number}" for tag in ("", "{a}", "{b}", "x") for number in range(6)]
SINGLE = (
    ("SET", 2), ("GET", 1), ("APPEND", 2), ("STRLEN", 1), ("INCR", 1), ("DEL", 1), ("GETSET", 2), ("SETNX", 2), ("LPUSH", 2), ("RPOP", 1),
    ("LLEN", 1), ("SADD", 2), ("SCARD", 1), ("SPOP", 1), ("TYPE", 1), ("PERSIST", 1), ("ZADD", 3), ("ZCARD", 1), ("HLEN", 1), ("EXISTS", 1),
)  # fmt: skip


def some_request(chance, several):
    """Words of a request; `several`: of commands that take keys of several partitions."""
    if several and chance.random() < 0.3:
        keys = [chance.choice(KEYS) for _ in range(chance.randrange(1, 6))]
        match chance.choice(("MGET", "DEL", "EXISTS", "UNLINK", "TOUCH", "MSET")):
            case "MSET":
                return ["MSET", *(word for key in keys for word in (key, str(chance.randrange(9))))]
            case name:
                return [name, *keys]
    if not several and chance.random() < 0.3:
        two = [chance.choice(KEYS) for _ in range(2)]
        return chance.choice([["RENAME", *two], ["SINTER", *two], ["MGET", *two], ["MSETNX", two[0], 1, two[1], 2], ["COPY", *two]])
    name, words = chance.choice(SINGLE)
    return [name, chance.choice(KEYS), *(str(chance.randrange(9)) for _ in range(words - 1))]


@pytest.mark.parametrize("tenant", BOTH, ids=lambda tenant: tenant.name)
def test_random_requests_are_answered_as_one_redis_does(tenant, make_cluster, tmp_path, before):
    cluster = make_cluster()
    plain = Engine(tmp_path / "plain", cluster.nodes[0].program).start()
    try:
        server, chance = before(cluster, tenants=BOTH), random.Random(11)
        with server.wire(tenant) as ours, plain.wire() as theirs:
            for _ in range(60):
                batch = [some_request(chance, tenant is WIDE) for _ in range(50)]
                # Which member is taken is chance.
                batch = [["SRANDMEMBER", words[1]] if words[0] == "SPOP" else words for words in batch]
                for wire in (ours, theirs):
                    wire.raw(b"".join(encode(*words) for words in batch))
                for words in batch:
                    one, other = read(ours), read(theirs)
                    if words[0] != "SRANDMEMBER" or one is None or isinstance(one, str):
                        assert one == other, words
            assert sorted(ours.ask("KEYS", "*")) == sorted(theirs.ask("KEYS", "*"))
            assert ours.ask("DBSIZE") == theirs.ask("DBSIZE")
    finally:
        plain.kill()


def read(wire):
    """A reply; of an error its text."""
    reply = wire.read()
    return str(reply) if isinstance(reply, ServerError) else reply


def test_a_scan_goes_on_where_another_node_has_taken_the_place_of_one(make_cluster, before):
    """Whatever is there from beginning to end is shown, though a node fails over in the middle: its replica has another name, and an order of its own."""
    cluster = make_cluster(replicas=1)
    lost = max(cluster.masters, key=lambda node: f"127.0.0.1:{node.port}")
    there = lambda tenant: cluster.owner(lost.ask("CLUSTER", "KEYSLOT", f"{{@{tenant.name}}}")) is lost
    one = next(tenant for tenant in (Tenant(f"one{number}") for number in range(1_000)) if there(tenant))
    server = before(cluster, tenants=(one, WIDE))
    names = {b"key:%d" % number for number in range(1_000)}
    with server.wire(one, timeout=60) as whole, server.wire(WIDE, timeout=60) as wide:
        begun = {}
        for wire in (whole, wide):
            for name in names:
                wire.send("SET", name, "x")
            assert all(wire.read() == b"OK" for _ in names)
            cursor, seen = 0, set()
            while not seen:
                cursor, keys = wire.ask("SCAN", cursor, "COUNT", 100)
                seen |= set(keys)
            begun[wire] = cursor, seen
        assert all(node.ask("WAIT", 1, 10_000) >= 1 for node in cluster.masters)
        replica = cluster.replicas[cluster.masters.index(lost)]
        lost.kill()
        eventually(lambda: b"role:master" in replica.ask("INFO", "replication"), 60, "the replica takes over")
        for wire, (cursor, seen) in begun.items():

            def page():
                got = wire.attempt("SCAN", cursor, "COUNT", 100)
                assert isinstance(got, list) or str(got).startswith("ERR engine"), got
                return isinstance(got, list) and got

            while cursor != b"0":
                cursor, keys = eventually(page, 60, "a page")
                seen |= set(keys)
            assert seen == names
