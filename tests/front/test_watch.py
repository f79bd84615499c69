"""`WATCH` before an engine: a transaction is done if nothing that was watched has changed, and only then."""

import json
import random
import threading
from itertools import count
from urllib.request import urlopen

from harness.resp import encode
from harness.server import ALPHA, BETA, Tenant
from harness.waiting import eventually

WIDE = Tenant("wide", extra="partitions = 4")
STALE = Tenant("stale", extra='partitions = 4\nreads = "replica"')


def held(server):
    """How many connections have a link to themselves, as the server says."""
    with urlopen(f"http://127.0.0.1:{server.admin_port}/api/server", timeout=20) as answer:
        return json.load(answer)["engine_links"]["waiting"]


def none_held(server):
    eventually(lambda: held(server) == 0, 20, "nobody has a link to himself")


def opened(engine):
    """Connections that the engine has taken so far, but for those that ask."""
    lines = engine.ask("INFO", "stats").decode().splitlines()
    return int(next(line for line in lines if line.startswith("total_connections_received:")).split(":")[1])


def transaction(wire, *calls):
    """What `EXEC` answers to a transaction of these calls."""
    assert wire.ask("MULTI") == b"OK"
    for words in calls:
        assert wire.ask(*words) == b"QUEUED"
    return wire.attempt("EXEC")


def set_watched(wire, name, value, watched=None):
    assert wire.ask("WATCH", watched or name) == b"OK"
    return transaction(wire, ("SET", name, value))


def test_a_transaction_is_done_if_nothing_watched_has_changed(engine, front):
    server = front(server_options="cores = 2")
    with server.wire(ALPHA) as alpha, server.wire(ALPHA) as other, server.wire(BETA) as beta:
        assert set_watched(alpha, "key", "1") == [b"OK"]
        for change in (("SET", "key", "2"), ("DEL", "key"), ("RPUSH", "key", "x"), ("FLUSHDB",)):
            assert alpha.ask("WATCH", "none", "key") == b"OK"
            assert other.ask(*change) is not None
            assert transaction(alpha, ("SET", "key", "3")) is None, change
        # Another tenant's key of that name is another key.
        assert alpha.ask("WATCH", "key") == b"OK"
        assert beta.ask("SET", "key", "theirs") == b"OK"
        assert transaction(alpha, ("SET", "key", "3"), ("GET", "key")) == [b"OK", b"3"]
        # As in Redis, one's own change counts, what was watched before counts, and `EXEC` ends it all.
        alpha.ask("WATCH", "key")
        alpha.ask("WATCH", "second")
        alpha.ask("SET", "key", "4")
        assert transaction(alpha, ("SET", "second", "x")) is None
        assert transaction(alpha, ("SET", "second", "y")) == [b"OK"]
        alpha.ask("HELLO", 3)
        alpha.ask("WATCH", "key")
        other.ask("SET", "key", "5")
        assert transaction(alpha, ("GET", "key")) is None
    none_held(server)


def test_what_ends_it(engine, front):
    server = front(server_options="cores = 1")
    with server.wire(ALPHA) as alpha, server.wire(ALPHA) as other:

        def changes(*ends):
            """Whether a change counts that comes after `WATCH` and what ends that."""
            assert alpha.ask("WATCH", "key") == b"OK"
            for words in ends:
                alpha.attempt(*words)
            other.ask("INCR", "key")
            return transaction(alpha, ("PING",)) is None

        assert changes()
        assert changes(("GET", "key"), ("EXEC",), ("WATCH",), ("DISCARD",), ("UNWATCH", "key"))
        assert changes(("MULTI",), ("WATCH", "other"), ("DISCARD",), ("WATCH", "key"))
        assert not changes(("UNWATCH",))
        assert not changes(("MULTI",), ("DISCARD",))
        assert not changes(("MULTI",), ("NOSUCH",), ("EXEC",))
        assert not changes(("MULTI",), ("EXEC", "x"))
        assert not changes(("RESET",), ("AUTH", ALPHA.name, ALPHA.password))
        assert not changes(("AUTH", BETA.name, BETA.password), ("AUTH", ALPHA.name, ALPHA.password))
        # Nobody knows what an engine would answer to one that spoke otherwise when it watched.
        assert changes(("HELLO", 3))
        alpha.ask("MULTI")
        assert "ERR" in str(alpha.attempt("WATCH", "key"))
        alpha.ask("DISCARD")
        assert alpha.ask("WATCH", "key") == b"OK"
        assert transaction(alpha) == []
        alpha.ask("WATCH", "key")
        other.ask("INCR", "key")
        assert transaction(alpha) is None, "also of one without commands"
        assert alpha.ask("UNWATCH") == b"OK"
    none_held(server)


def test_sessions_go_as_at_the_engine_itself(engine, front):
    """Random commands of three clients, through the server and at the engine: all replies are the same."""
    server = front(server_options="cores = 2")
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    through, direct = [server.wire(ALPHA) for _ in range(3)], [engine.wire() for _ in range(3)]
    forms = [("WATCH", "a"), ("WATCH", "b"), ("WATCH", "a", "b"), ("MULTI",), ("EXEC",), ("EXEC",), ("DISCARD",), ("UNWATCH",)]
    forms += [("INCR", "a"), ("GET", "b"), ("SET", "b", "x"), ("DEL", "a"), ("PEXPIRE", "a", 100_000), ("INCR", "b"), ("SET", "b", "1"), ("NOSUCH",), ("GET",)]
    try:
        for step in range(3_000):
            who, words = chance.randrange(3), chance.choice(forms)
            replies = []
            for wires in (through, direct):
                reply = wires[who].attempt(*words)
                replies.append(str(reply).split()[0] if isinstance(reply, Exception) else repr(reply))
            assert replies[0] == replies[1], f"seed {seed}, step {step}: {words}"
    finally:
        for wire in through + direct:
            wire.close()
    none_held(server)


def test_the_counter_of_clients_that_all_watch_it_loses_nothing(engine, front):
    servers = [front(server_options="cores = 2") for _ in range(2)]
    done = count()

    def add(server, times):
        with server.wire(ALPHA) as wire:
            while times:
                assert wire.ask("WATCH", "counter") == b"OK"
                value = int(wire.ask("GET", "counter") or 0)
                if transaction(wire, ("SET", "counter", value + 1)) is not None:
                    times -= 1
                    next(done)

    threads = [threading.Thread(target=add, args=(servers[number % 2], 50)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert next(done) == 400
    with servers[0].wire(ALPHA) as alpha:
        assert alpha.ask("GET", "counter") == b"400"


def test_links_are_used_again_and_come_back_whatever_clients_do(engine, front):
    server = front(server_options="cores = 1")
    ends = [("EXEC",), ("DISCARD",)]
    with server.wire(ALPHA) as alpha:
        set_watched(alpha, "key", "0")
        before, asked = opened(engine), 1
        for number in range(60):
            assert alpha.ask("WATCH", "key") == b"OK"
            if number % 3:
                alpha.ask("MULTI")
                alpha.ask("INCR", "key")
            alpha.ask(*(("UNWATCH",), *ends)[number % 3])
        assert opened(engine) - before == asked, "no connection was opened for them"
        assert alpha.ask("GET", "key") == b"20"
    for leaves in range(3):
        gone = server.wire(ALPHA)
        gone.ask("WATCH", "key")
        assert held(server) == 1
        if leaves == 1:
            gone.raw(encode("MULTI") + encode("SET", "key", "x"))
        if leaves == 2:
            engine.hold()
            gone.raw(encode("WATCH", "other") + encode("GET", "key"))
        gone.close()
        engine.release()
        none_held(server)
    with server.wire(ALPHA) as alpha:
        assert alpha.ask("GET", "key") == b"20"


def test_one_tenant_takes_at_most_half_of_the_places(engine, front):
    server = front(engine_options="waiting = 8")
    wires = [server.wire(ALPHA) for _ in range(5)]
    for wire in wires[:4]:
        assert wire.ask("WATCH", "key") == b"OK"
    assert "engine.waiting" in str(wires[4].attempt("WATCH", "key"))
    assert transaction(wires[4], ("SET", "key", "x")) == [b"OK"], "nothing is watched"
    with server.wire(BETA) as beta:
        assert set_watched(beta, "key", "x") == [b"OK"]
    assert wires[0].ask("UNWATCH") == b"OK"
    assert wires[4].ask("WATCH", "key") == b"OK"
    for wire in wires:
        wire.close()
    none_held(server)


def test_an_engine_that_was_away_has_forgotten_what_it_watched(engine, front):
    server = front(server_options="cores = 1")
    with server.wire(ALPHA) as alpha, server.wire(ALPHA) as other:
        alpha.ask("WATCH", "key")
        other.ask("WATCH", "key")
        engine.kill()
        engine.start()
        eventually(lambda: not isinstance(alpha.attempt("GET", "key"), Exception), 20, "it is found again")
        assert alpha.ask("WATCH", "more") == b"OK"
        assert transaction(alpha, ("SET", "key", "x")) is None
        assert other.ask("UNWATCH") == b"OK"
        assert transaction(other, ("SET", "key", "y")) == [b"OK"]
        eventually(lambda: alpha.attempt("WATCH", "key") == b"OK", 20, "and watches")
        assert transaction(alpha, ("SET", "key", "z")) == [b"OK"]
        # One that breaks in the middle of a transaction may have done it.
        alpha.ask("WATCH", "key")
        alpha.ask("MULTI")
        alpha.ask("SET", "key", "last")
        engine.hold()
        alpha.send("EXEC")
        eventually(lambda: other.ask("PING") == b"PONG", 20, "the server has heard of it")
        engine.kill()
        assert "whether the request was done is not known" in str(alpha.read())
    none_held(server)


def test_many_keys_and_long_transactions(engine, front):
    """So many that handlers write the requests."""
    server = front()
    names = [f"key{number}" for number in range(300)]
    with server.wire(ALPHA) as alpha, server.wire(ALPHA) as other:
        for change in (None, names[299]):
            assert alpha.ask("WATCH", *names) == b"OK"
            if change:
                other.ask("SET", change, "x")
            replies = transaction(alpha, *(("INCR", "n") for _ in range(200)))
            assert replies == (None if change else list(range(1, 201)))


def test_keys_of_a_transaction_and_those_watched_are_of_one_partition(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=(WIDE, BETA))
    with server.wire(WIDE) as wide, server.wire(WIDE) as other:
        for number in range(20):
            tag = f"{{{number}}}"
            assert set_watched(wide, f"{tag}key", number, f"{tag}watched") == [b"OK"]
            wide.ask("WATCH", f"{tag}key", f"{tag}watched")
            other.ask("SET", f"{tag}watched", "x")
            assert transaction(wide, ("SET", f"{tag}key", "x")) is None
        many = [f"{{{number}}}key" for number in range(20)]
        assert "CROSSSLOT" in str(wide.attempt("WATCH", *many))
        assert wide.ask("WATCH", many[0]) == b"OK"
        assert any("CROSSSLOT" in str(wide.attempt("WATCH", name)) for name in many)
        crossing = next(name for name in many if isinstance(transaction(*attempt(wide, many[0], name)), Exception))
        assert wide.ask("GET", crossing) != b"crossed"
        assert transaction(wide, ("SET", crossing, "crossed")) == [b"OK"], "nothing is watched any more"
    none_held(server)


def attempt(wire, watched, name):
    wire.ask("WATCH", watched)
    return wire, ("SET", name, "crossed")


def test_a_slot_that_has_moved_may_have_changed(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=(WIDE, BETA))
    with server.wire(WIDE) as wide:
        wide.ask("SET", "{one}key", "0")
        slot = next(cluster.nodes[0].ask("CLUSTER", "KEYSLOT", key) for key in cluster.keys() if key.endswith(b"{one}key"))
        for watched in ("{one}key", "{one}none"):
            source = cluster.owner(slot)
            target = next(node for node in cluster.masters if node is not source)
            assert wide.ask("WATCH", watched) == b"OK"
            cluster.move(slot, target)
            assert wide.ask("WATCH", "{one}more") == b"OK"
            assert transaction(wide, ("INCR", "{one}key")) is None
            assert set_watched(wide, "{one}other", "x", watched) == [b"OK"], "at the other node"
        assert wide.ask("GET", "{one}key") == b"0"
    none_held(server)


def test_a_watched_key_is_not_read_from_a_replica(make_cluster, before):
    """Its value might be older than the watch, and nobody would notice."""
    cluster = make_cluster(replicas=1)
    server = before(cluster, tenants=(STALE, BETA))

    def reads():
        with urlopen(f"http://127.0.0.1:{server.admin_port}/api/server", timeout=10) as answer:
            return json.load(answer)["engine_replicas"]["reads"]

    with server.wire(STALE) as stale:

        def read(times=50):
            before = reads()
            for _ in range(times):
                stale.ask("GET", "key")
            return reads() - before

        eventually(lambda: read() > 0, 60, "replicas are read from")
        stale.ask("WATCH", "key")
        assert read() == 0
        stale.ask("UNWATCH")
        eventually(lambda: read() > 0, 60, "and again")
