"""Tenants that allow it read from replicas that are known to be near enough, nobody else does, and no replica's trouble is a client's."""

import json
import subprocess
import threading
import time
from urllib.request import urlopen

import pytest

from harness.engine import Engine, Front, engines
from harness.paths import SERVER
from harness.resp import ServerError, encode
from harness.server import ALPHA, StartFailed, Tenant
from harness.waiting import at_work, eventually

WIDE = Tenant("wide", extra="partitions = 8")
STALE = Tenant("stale", extra='partitions = 8\nreads = "replica"')
BOSS = Tenant("boss", extra="admin = true")
# The default of replica_lag_max.
LAG_MAX_S = 1.0


def shown(server):
    with urlopen(f"http://127.0.0.1:{server.admin_port}/api/server", timeout=10) as answer:
        return json.load(answer)["engine_replicas"]


def near(server, count):
    """All replicas are known to be near enough."""
    eventually(lambda: (found := shown(server))["known"] == count and found["lag_ms"] < 800, 60, "it is known how far behind replicas are")


def calls(node, command="get"):
    """How often a node was asked for that."""
    lines = node.ask("INFO", "commandstats").decode().splitlines()
    of = [line for line in lines if line.startswith(f"cmdstat_{command}:")]
    return int(of[0].split("calls=")[1].split(",")[0]) if of else 0


def all_calls(nodes, command="get"):
    return sum(calls(node, command) for node in nodes)


def fill(wire, count=200):
    for number in range(count):
        wire.send("SET", f"key:{number}", f"{number}")
    assert all(wire.read() == b"OK" for _ in range(count))


def read_all(wire, count=200):
    """Each key alone, and then some together: all are as they were written."""
    for number in range(count):
        wire.send("GET", f"key:{number}")
    assert [wire.read() for _ in range(count)] == [b"%d" % number for number in range(count)]
    names = [f"key:{number}" for number in range(0, count, 7)]
    assert wire.ask("MGET", *names) == [b"%d" % number for number in range(0, count, 7)]


def pair(cluster):
    """A master that the tenant `stale` has keys at, its replica, and some of these keys."""
    master = cluster.masters[0]
    replica = next(node for node in cluster.replicas if replica_of(node) == master.id)
    marked = [key for key in master.keys() if key.startswith(b"{@stale/")]
    return master, replica, sorted(key.split(b"}", 1)[1] for key in marked)


def replica_of(node):
    lines = node.ask("CLUSTER", "NODES").decode().splitlines()
    return next(line.split()[3] for line in lines if "myself" in line)


@pytest.fixture
def trio(make_cluster, before):
    """Three masters with a replica each, a server before them, and 200 keys of the tenant `stale` that all replicas have."""
    cluster = make_cluster(replicas=1)
    server = before(cluster, tenants=(STALE, WIDE, BOSS))
    with server.wire(STALE) as wire:
        fill(wire)
    eventually(lambda: all(node.ask("WAIT", 1, 1_000) >= 1 for node in cluster.masters), 60, "replicas have it")
    near(server, 3)
    return cluster, server


def test_reads_go_to_replicas_of_who_allows_it_and_nothing_else_does(trio):
    cluster, server = trio
    with server.wire(STALE) as stale, server.wire(WIDE) as wide:
        fill(wide)

        def at_replicas():
            before = all_calls(cluster.masters)
            read_all(stale, 100)
            return all_calls(cluster.masters) == before

        eventually(at_replicas, 60, "all is read from replicas")
        assert all(calls(node) > 0 and calls(node, "mget") > 0 for node in cluster.replicas)
        eventually(lambda: shown(server)["reads"] >= 100, what="it is counted")
        # Others read from masters.
        before = all_calls(cluster.replicas)
        read_all(wide)
        assert all_calls(cluster.replicas) == before
        # What writes, and what is in a transaction, is the masters'.
        for words in (("SET", "{a}x", "1"), ("INCR", "{a}x"), ("MULTI",), ("GET", "{a}x"), ("EXEC",), ("GETDEL", "{a}x"), ("DEL", "{a}y")):
            stale.ask(*words)
        assert len(stale.ask("KEYS", "key:*")) == 200 and stale.ask("DBSIZE") == 200
        assert all_calls(cluster.replicas, "scan") == 0 and all_calls(cluster.replicas, "exec") == 0
        for node in cluster.replicas:
            assert b"errorstat_" not in node.ask("INFO", "errorstats")


@pytest.mark.parametrize("protocol", (2, 3))
def test_a_connection_sees_what_it_has_written_and_its_order_is_kept(trio, protocol):
    cluster, server = trio
    with server.wire(STALE) as wire:
        wire.ask("HELLO", protocol)
        for number in range(1, 200):
            assert wire.ask("SET", "own", number) == b"OK"
            assert wire.ask("GET", "own") == b"%d" % number

        def replicas_read():
            before = all_calls(cluster.replicas)
            return wire.ask("GET", "own") == b"199" and all_calls(cluster.replicas) > before

        eventually(replicas_read, 60, "replicas are read again")
        for begin in range(0, 2_000, 100):
            requests = [(encode("GET", "own"), encode("SET", "own", begin + number)) for number in range(100)]
            last = wire.ask("GET", "own")
            wire.raw(b"".join(get + put for get, put in requests))
            for number in range(100):
                assert wire.read() == last
                assert wire.read() == b"OK"
                last = b"%d" % (begin + number)


class Reading(threading.Thread):
    """Reads a counter, until it is stopped, and keeps every reply that is wrong: an error, or older than it may be."""

    def __init__(self, server, written):
        super().__init__(daemon=True)
        self.server, self.written, self.stop, self.wrong, self.count = server, written, threading.Event(), [], 0

    def run(self):
        try:
            with self.server.wire(STALE, timeout=60) as wire:
                while not self.stop.is_set():
                    asked = time.monotonic()
                    got = wire.attempt("GET", "key:0")
                    answered = [number for number, at in list(self.written) if at < asked - LAG_MAX_S]
                    least = answered[-1] if answered else 0
                    if isinstance(got, ServerError) or int(got) < least:
                        self.wrong.append((got, least))
                    self.count += 1
        except Exception as error:  # noqa: BLE001 (whatever ends it is what the test must see)
            self.wrong.append(error)


def test_no_read_is_older_than_the_bound_while_replicas_fall_behind_and_come_back(trio):
    cluster, server = trio
    written = [(0, time.monotonic())]
    readers = [Reading(server, written) for _ in range(3)]
    mark = cluster.nodes[0].ask("CLUSTER", "KEYSLOT", next(key for key in cluster.keys() if key.endswith(b"}key:0") and b"stale" in key))
    master = cluster.owner(mark)
    replica = next(node for node in cluster.replicas if replica_of(node) == master.id)
    stop = threading.Event()

    def write():
        with server.wire(STALE) as wire:
            number = 0
            while not stop.is_set():
                number += 1
                wire.ask("SET", "key:0", number)
                written.append((number, time.monotonic()))
                stop.wait(0.01)

    with at_work(stop, [threading.Thread(target=write)]):
        for reader in readers:
            reader.start()
        try:
            for _ in range(3):
                before = calls(replica)
                eventually(lambda: calls(replica) > before, 60, "the replica is read")
                # It does nothing of what its master sends, and says so: it is not stopped, only behind.
                replica.ask("CLIENT", "PAUSE", 60_000, "WRITE")
                eventually(lambda: shown(server)["lag_ms"] > 1_500 or shown(server)["unknown"] > 0, 60, "it is seen to be behind")
                rounds = [reader.count for reader in readers]
                before = calls(replica)
                eventually(lambda: all(reader.count > so_far + 20 for reader, so_far in zip(readers, rounds)), 60, "reads go on")
                assert calls(replica) == before
                replica.ask("CLIENT", "UNPAUSE")
                near(server, 3)
        finally:
            for reader in readers:
                reader.stop.set()
            for reader in readers:
                reader.join(60)
    for reader in readers:
        assert not reader.wrong, reader.wrong[:3]


def test_a_replica_that_hangs_or_dies_is_read_no_more_and_no_client_hears_of_it(trio):
    cluster, server = trio
    master, replica, keys = pair(cluster)
    values = [key.split(b":")[1] for key in keys]
    with server.wire(STALE, timeout=60) as wire, server.wire(STALE, timeout=60) as other:
        assert wire.ask("MGET", *keys) == values
        replica.hold()
        # More than may be out there: its master does the rest, and in the end all.
        wire.raw(b"".join(encode("GET", key) for key in keys * 10))
        eventually(lambda: (found := shown(server))["lag_ms"] > 1_200 or found["unknown"] > 0, 60, "it has been silent")
        before = shown(server)["reads"]
        for _ in range(5):
            assert [other.ask("GET", key) for key in keys] == values
        assert shown(server)["reads"] == before
        assert [wire.read() for _ in keys * 10] == values * 10
        replica.release()
        near(server, 3)
        before = calls(replica)
        eventually(lambda: [wire.ask("GET", key) for key in keys] == values and calls(replica) > before, 60, "it is read again")
        replica.kill()
        for _ in range(20):
            assert [other.ask("GET", key) for key in keys] == values
            assert wire.ask("MGET", *keys) == values
        eventually(lambda: shown(server)["known"] == 2 and shown(server)["unknown"] == 0, 60, "the cluster knows that it is gone")
        assert wire.ask("MGET", *keys) == values


def test_a_replica_that_loads_or_refuses_is_not_heard(trio):
    cluster, server = trio
    master, replica, keys = pair(cluster)
    values = [key.split(b":")[1] for key in keys]
    with server.wire(STALE, timeout=60) as wire:
        # It serves nobody but the one who asks for it by name.
        replica.ask("ACL", "SETUSER", "default", "-get", "-mget")
        for _ in range(20):
            assert [wire.ask("GET", key) for key in keys] == values
        assert b"errorstat_NOPERM" in replica.ask("INFO", "errorstats")
        assert isinstance(wire.attempt("LLEN", keys[0]), ServerError)
        replica.ask("ACL", "SETUSER", "default", "+get", "+mget")


def test_a_replica_that_takes_over_is_a_master_and_the_others_go_on(trio):
    cluster, server = trio
    master, replica, keys = pair(cluster)
    rest = [f"key:{number}".encode() for number in range(200) if f"key:{number}".encode() not in keys]
    with server.wire(STALE, timeout=60) as wire, server.wire(STALE, timeout=60) as other, server.wire(WIDE, timeout=60) as wide:
        master.kill()
        wrong = []

        def back():
            for key in rest[:20]:
                got = other.attempt("GET", key)
                if got != key.split(b":")[1]:
                    wrong.append(got)
            got = wire.attempt("SET", keys[0], "new")
            assert got == b"OK" or str(got).startswith("ERR engine"), got
            return got == b"OK"

        eventually(back, 60, "the replica has taken over")
        assert not wrong, wrong[:3]
        for number in range(200):
            assert wire.ask("SET", keys[0], number) == b"OK"
            assert wire.ask("GET", keys[0]) == b"%d" % number
        eventually(lambda: other.attempt("GET", keys[0]) == b"199", 60, "all cores know it")
        assert wide.ask("MSET", *(word for key in keys for word in (key, "w"))) == b"OK"
        near(server, 2)
        assert other.ask("MGET", *keys[1:]) == [key.split(b":")[1] for key in keys[1:]]


def test_keys_that_move_are_never_missed(trio):
    cluster, server = trio
    stop, wrong, rounds = threading.Event(), [], [0]

    def read():
        with server.wire(STALE, timeout=60) as wire:
            while not stop.is_set():
                try:
                    read_all(wire)
                    rounds[0] += 1
                except AssertionError as error:
                    wrong.append(str(error))

    with at_work(stop, [threading.Thread(target=read) for _ in range(2)]):
        for part in range(8):
            slot = int(next(line.split("slot ")[1].split()[0] for line in moved(cluster, part).splitlines() if "has gone" in line))
            assert cluster.owner(slot) in cluster.masters
            so_far = rounds[0]
            eventually(lambda: rounds[0] > so_far + 1, 60, "reads go on")
    assert not wrong, wrong[:2]
    near(server, 3)
    with server.wire(STALE) as wire:
        read_all(wire)


def moved(cluster, part):
    """Moves a partition to whoever does not have it."""
    for target in cluster.masters:
        status, said = cluster.entremet("move", f"stale:{part}", "--to", f"127.0.0.1:{target.port}")
        if status == 0 and "has gone" in said:
            return said
    raise AssertionError(said)


def test_it_can_be_allowed_and_forbidden_at_run_time(trio):
    cluster, server = trio
    with server.wire(BOSS) as boss, server.wire(WIDE) as wide:
        fill(wide)
        assert boss.ask("ENTREMET", "TENANT", "SET", "wide", "READS", "replica", "REPLICA-LAG-MAX", "5s") == b"OK"
        told = boss.ask("ENTREMET", "TENANT", "GET", "wide")
        told = dict(zip(told[::2], told[1::2]))
        assert (told[b"reads"], told[b"replica-lag-max"]) == (b"replica", b"5s"), told

        def goes(where):
            before = all_calls(cluster.replicas)
            read_all(wide, 50)
            return (all_calls(cluster.replicas) > before) == where

        eventually(lambda: goes(True), 60, "it reads from replicas")
        assert boss.ask("ENTREMET", "TENANT", "SET", "wide", "READS", "master") == b"OK"
        eventually(lambda: goes(False), 60, "it does no more")
        assert "must be" in str(boss.attempt("ENTREMET", "TENANT", "SET", "wide", "READS", "slave"))
        assert "must be" in str(boss.attempt("ENTREMET", "TENANT", "SET", "wide", "REPLICA-LAG-MAX", "1ms"))
    status, said = cluster.entremet("status")
    assert status == 0 and said.count("bytes behind as it said") == 3, said


def test_where_it_can_have_no_effect_it_is_said(make_cluster, before, tmp_path):
    cluster = make_cluster()
    server = before(cluster, tenants=(STALE, WIDE, BOSS))
    assert server.says("no node of the cluster has a replica")
    with server.wire(STALE) as stale, server.wire(BOSS) as boss:
        fill(stale)
        read_all(stale)
        assert "add one first" in str(boss.attempt("ENTREMET", "TENANT", "SET", "wide", "READS", "replica"))
        assert boss.ask("ENTREMET", "TENANT", "SET", "stale", "WEIGHT", 2) == b"OK"


def test_what_was_set_before_and_has_no_effect_without_the_cluster_is_said(trio, start):
    _, server = trio
    with server.wire(BOSS) as boss:
        made = ("SET", "made", "PASSWORD", "made", "PARTITIONS", 4, "READS", "replica")
        assert boss.ask("ENTREMET", "TENANT", *made) == b"OK"
    assert server.stop() == 0
    alone = start(data=server.data, tenants=(ALPHA, BOSS))
    for what in ('reads = "replica"', "partitions"):
        assert alone.says(f"{what}, as set before, has no effect")


@pytest.mark.parametrize("program", engines()[:1])
def test_it_is_refused_where_there_is_no_cluster(program, tmp_path):
    config = tmp_path / "entremet.toml"
    config.write_text(f'[engine]\npath = "{tmp_path}"\n[[tenant]]\nname = "a"\npassword = "a"\nreads = "replica"\n')
    checked = subprocess.run([SERVER, "check", config], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert checked.returncode == 1 and "reads" in checked.stdout and "has no effect" in checked.stdout, checked.stdout
    engine = Engine(tmp_path / "one", program).start()
    try:
        with pytest.raises(StartFailed, match="has no effect"):
            Front(tmp_path / "front", engine, tenants=(Tenant("a", extra='reads = "replica"'),)).start()
        front = Front(tmp_path / "other", engine, tenants=(ALPHA, BOSS)).start()
        try:
            with front.wire(BOSS) as boss:
                assert "no cluster keeps the data" in str(boss.attempt("ENTREMET", "TENANT", "SET", "alpha", "READS", "replica"))
        finally:
            front.kill()
    finally:
        engine.kill()
