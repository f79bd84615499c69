"""Slots that move, nodes that die or hang: clients of other nodes notice nothing, and nothing is mixed up or lost."""

import subprocess
import threading

from harness.resp import encode
from harness.server import ALPHA, Tenant
from harness.waiting import at_work, eventually

WIDE = Tenant("wide", extra="partitions = 8")
BOTH = (ALPHA, WIDE)


class Asking(threading.Thread):
    """A client that counts, and looks at what it has counted, until it is stopped. It keeps every reply that is wrong."""

    def __init__(self, server, tenant, name):
        super().__init__(daemon=True)
        self.server, self.tenant, self.name_of, self.stop = server, tenant, name, threading.Event()
        self.count, self.rounds, self.wrong = 0, 0, []

    def run(self):
        a, b, new = f"{{{self.name_of}}}a", f"{{{self.name_of}}}b", f"{{{self.name_of}}}new"
        try:
            with self.server.wire(self.tenant, timeout=60) as wire:
                wire.ask("SET", b, "b")
                while not self.stop.is_set():
                    self.count += 2
                    count = b"%d" % self.count
                    requests = (("INCR", a), ("MGET", a, b, "none"), ("MULTI",), ("INCR", a), ("GET", b), ("EXEC",), ("GET", a), ("SET", new, count), ("DEL", new))
                    expected = [self.count - 1, None, b"OK", b"QUEUED", b"QUEUED", [self.count, b"b"], count, b"OK", 1]
                    for words, right in zip(requests, expected):
                        got = wire.attempt(*words)
                        if words[0] == "MGET":
                            right = [b"%d" % (self.count - 1), b"b", None]
                        if got != right:
                            self.wrong.append((words, got, right))
                    self.rounds += 1
        except Exception as error:  # noqa: BLE001 (whatever ends it is what the test must see)
            self.wrong.append(error)


def test_a_slot_that_moves_under_load_shows_no_error_and_loses_no_key(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=BOTH)
    first = cluster.nodes[0]
    with server.wire(ALPHA) as alpha, server.wire(WIDE) as wide:
        for wire in (alpha, wide):
            for number in range(2_000):
                wire.send("SET", f"key:{number}", f"{number}")
            assert all(wire.read() == b"OK" for _ in range(2_000))
        asking = [Asking(server, tenant, f"{tenant.name}{number}") for tenant in BOTH for number in range(3)]
        for client in asking:
            client.start()
        slots = sorted({first.ask("CLUSTER", "KEYSLOT", key) for key in cluster.keys()})
        assert len(slots) == 10
        for slot in slots:
            source = cluster.owner(slot)
            target = next(node for node in cluster.masters if node is not source)

            cluster.move(slot, target)
            assert cluster.owner(slot) is target
            for wire in (alpha, wide):
                assert wire.ask("MGET", "key:1", "key:1999", "key:77") == [b"1", b"1999", b"77"]
        rounds = [client.rounds for client in asking]
        eventually(lambda: all(client.rounds > so_far + 3 for client, so_far in zip(asking, rounds)), 60, "everybody is served after the moves")
        for client in asking:
            client.stop.set()
        for client in asking:
            client.join(60)
            assert not client.wrong, client.wrong[:3]
        for wire in (alpha, wide):
            assert wire.ask("MGET", *(f"key:{number}" for number in range(2_000))) == [b"%d" % number for number in range(2_000)]
        assert wide.ask("DBSIZE") == 2_006 and alpha.ask("DBSIZE") == 2_006


def test_a_request_in_the_middle_of_a_move_is_answered(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=BOTH)
    with server.wire(ALPHA) as alpha:
        slot = cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@alpha}x")
        source = cluster.owner(slot)
        target = next(node for node in cluster.masters if node is not source)
        alpha.ask("MSET", "stays", "1", "goes", "2")
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        source.ask("MIGRATE", "127.0.0.1", target.port, "{@alpha}goes", 0, 10_000)
        assert alpha.ask("GET", "stays") == b"1"
        assert alpha.ask("GET", "goes") == b"2"
        assert alpha.ask("SET", "new", "3") == b"OK"
        assert b"{@alpha}new" in target.keys()
        assert alpha.ask("MGET", "goes", "new") == [b"2", b"3"]
        alpha.raw(encode("MULTI") + encode("INCR", "goes") + encode("INCR", "goes") + encode("EXEC"))
        assert [alpha.read() for _ in range(4)] == [b"OK", b"QUEUED", b"QUEUED", [3, 4]]
        # Keys on both sides: the request waits until the move is over.
        alpha.send("MGET", "stays", "goes", "new")
        with server.wire(ALPHA) as other:
            assert other.ask("GET", "stays") == b"1"
            assert sorted(other.ask("KEYS", "*")) == [b"goes", b"new", b"stays"]
        source.ask("MIGRATE", "127.0.0.1", target.port, "{@alpha}stays", 0, 10_000)
        cluster.give(slot, target)
        assert alpha.read() == [b"1", b"4", b"3"]
        assert alpha.ask("FLUSHALL") == b"OK"
    assert not {key for key in cluster.keys() if key.startswith(b"{@alpha}")}


def test_who_asks_for_what_is_away_is_told_at_once(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=BOTH, server_options="cores = 1", engine_options='timeout = "2s"')
    owner = cluster.owner(cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@alpha}x"))
    answers, ended = [], threading.Event()

    def ask():
        with server.wire(ALPHA, timeout=60) as wire:
            while not ended.is_set():
                answers.append(wire.attempt("GET", "x"))

    def many():
        """Far more in a minute than if it waited each time, for a timeout or until something else happens."""
        before = len(answers)
        eventually(lambda: len(answers) > before + 500, 60, "it is answered")
        return answers[before:]

    with at_work(ended, [threading.Thread(target=ask)]):
        assert set(many()) == {None}
        owner.hold()
        assert "it is away (it has said nothing for 2 s); nothing was done" in str(many()[-1])
        owner.release()
        eventually(lambda: answers[-1] is None, 60, "it is served again")
        owner.kill()
        assert "it is away (" in str(many()[-1])


def test_who_asks_for_several_keys_waits_for_no_timeout_while_they_move(make_cluster, before):
    """A move of some seconds, and an engine that is given up after one: no client hears of either."""
    cluster = make_cluster()
    server = before(cluster, tenants=BOTH, engine_options='timeout = "1s"')
    slot = cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@alpha}x")
    source = cluster.owner(slot)
    target = next(node for node in cluster.masters if node is not source)
    names = [f"key:{number}" for number in range(1_500)]
    value = lambda name: f"{name}:{'y' * 10_000}".encode()
    some = names[::75]
    with server.wire(ALPHA, timeout=60) as alpha, server.wire(ALPHA, timeout=120) as whole, server.wire(ALPHA) as one:
        for name in names:
            alpha.send("SET", name, value(name))
        assert all(alpha.read() == b"OK" for _ in names)
        words = cluster.command("move", "alpha", "--to", f"127.0.0.1:{target.port}", "--allow-part", 1)
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as mover:
            on_its_way = lambda: source.ask("CLUSTER", "COUNTKEYSINSLOT", slot) < len(names)
            eventually(on_its_way, 60, "keys go")
            whole.raw(b"".join([encode("MULTI"), *(encode("STRLEN", name) for name in some), encode("SET", "new", "1"), encode("EXEC")]))
            whole.send("MSET", some[0], value(some[0]), "newer", "2")
            # Meanwhile what may be done key by key is.
            rounds = 0
            while mover.poll() is None:
                assert alpha.ask("MGET", *some, "none") == [*map(value, some), None]
                assert alpha.ask("EXISTS", *some, "none") == len(some)
                assert alpha.ask("DEL", "none", "neither") == 0
                assert one.ask("GET", some[0]) == value(some[0])
                rounds += 1
            said = mover.stdout.read()
        assert mover.returncode == 0 and rounds > 1, said
        # Or this has shown nothing.
        assert float(said.split(" MB in ")[1].split()[0]) > 2, said
        answers = [whole.read() for _ in range(len(some) + 4)]
        assert answers[:-2] == [b"OK"] + [b"QUEUED"] * (len(some) + 1)
        assert answers[-2] == [len(value(name)) for name in some] + [b"OK"] and answers[-1] == b"OK"
        assert alpha.ask("MGET", *names, "new", "newer") == [*map(value, names), b"1", b"2"]


def test_keys_that_nobody_brings_together_are_not_waited_for_for_ever(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=BOTH, engine_options='timeout = "1s"')
    slot = cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@alpha}x")
    source = cluster.owner(slot)
    target = next(node for node in cluster.masters if node is not source)
    with server.wire(ALPHA, timeout=60) as alpha:
        alpha.ask("MSET", *(word for number in range(10) for word in (f"k{number}", number)))
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        cluster.owner(cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@}")).ask("HSET", "{@}moves", slot, f"{source.id} {target.id} 1 gone 7")
        source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 10_000, "KEYS", *(f"{{@alpha}}k{number}" for number in range(0, 10, 3)))
        for command, answer in (("MGET", [b"%d" % number for number in range(10)]), ("TOUCH", 10), ("EXISTS", 10)):
            assert alpha.ask(command, *(f"k{number}" for number in range(10))) == answer
        said = str(alpha.attempt("RENAME", "k0", "k1"))
        assert "nobody is moving it" in said and said.endswith("see `entremet cluster check`"), said
        assert alpha.ask("UNLINK", *(f"k{number}" for number in range(10))) == 10
        assert alpha.ask("DBSIZE") == 0


def test_keys_can_be_deleted_in_the_middle_of_a_move(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=BOTH)
    with server.wire(ALPHA) as alpha:
        slot = cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@alpha}x")
        source = cluster.owner(slot)
        target = next(node for node in cluster.masters if node is not source)
        alpha.ask("MSET", *(word for number in range(100) for word in (f"k{number}", "x")))
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        some = source.ask("CLUSTER", "GETKEYSINSLOT", slot, 50)
        source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 10_000, "KEYS", *some)
        assert alpha.ask("DBSIZE") == 100
        assert alpha.ask("FLUSHALL") == b"OK"
        assert alpha.ask("DBSIZE") == 0
    assert cluster.keys() == {b"{@}catalogue"}


def spread(cluster, wide):
    """A key of the tenant `wide` at each master."""
    keys = {}
    for number in range(100):
        wide.ask("SET", f"k{number}", f"v{number}")
    for node in cluster.masters:
        marked = next(key for key in node.keys() if key.startswith(b"{@wide/"))
        keys[node] = marked.split(b"}", 1)[1].decode()
    return keys


def test_a_node_that_dies_is_replaced_and_the_others_go_on(make_cluster, before):
    cluster = make_cluster(replicas=1)
    server = before(cluster, tenants=BOTH)
    with server.wire(WIDE) as wide, server.wire(WIDE) as other:
        keys = spread(cluster, wide)
        lost, *rest = cluster.masters
        values = {node: wide.ask("GET", key) for node, key in keys.items()}
        # The replicas have all of it.
        assert all(node.ask("WAIT", 1, 10_000) >= 1 for node in cluster.masters)
        lost.kill()
        wrong = []

        def back():
            for node in rest:
                got = other.attempt("GET", keys[node])
                if got != values[node]:
                    wrong.append(got)
            got = wide.attempt("GET", keys[lost])
            assert got == values[lost] or str(got).startswith("ERR engine"), got
            return got == values[lost]

        eventually(back, 60, "a replica takes over")
        assert not wrong
        assert wide.ask("MGET", *keys.values()) == list(values.values())
        eventually(lambda: other.attempt("MSET", *(word for key in keys.values() for word in (key, "new"))) == b"OK", what="every core finds it")
        assert wide.ask("MGET", *keys.values()) == [b"new"] * 3


def test_a_node_that_hangs_holds_up_only_what_is_for_it(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=BOTH, engine_options='timeout = "2s"', server_options="cores = 1")
    with server.wire(WIDE) as wide, server.wire(WIDE) as other, server.wire(WIDE) as many:
        keys = spread(cluster, wide)
        hung, *rest = cluster.masters
        hung.hold()
        # More than may be out there.
        many.raw(encode("GET", keys[hung]) * 100)
        wide.send("MGET", *keys.values())
        for _ in range(200):
            for node in rest:
                assert isinstance(other.ask("GET", keys[node]), bytes)
        assert all("ERR engine" in str(many.read()) for _ in range(100))
        assert "ERR engine" in str(wide.read())
        hung.release()
        eventually(lambda: wide.attempt("GET", keys[hung]) == b"v" + keys[hung][1:].encode(), 60, "it is back")
        assert other.ask("MGET", *keys.values()) == [b"v" + key[1:].encode() for key in keys.values()]


def test_nodes_that_send_requests_to_each_other_are_named(make_cluster, before):
    """As after two moves at nearly the same time: each of two nodes takes the other for the owner, for good."""
    cluster = make_cluster()
    server = before(cluster, tenants=(ALPHA,), engine_options='timeout = "2s"')
    slot = cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@alpha}")
    source = cluster.owner(slot)
    target = next(node for node in cluster.masters if node is not source)
    with server.wire(ALPHA) as alpha:
        assert alpha.ask("GET", "k") is None
        for node, owner in ((source, target), (target, source)):
            node.ask("CLUSTER", "SETSLOT", slot, "NODE", owner.id)
        said = str(alpha.attempt("GET", "k"))
        assert said.startswith("ERR engine: node 127.0.0.1:") and f"has slot {slot} at 127.0.0.1:" in said, said
        assert said.endswith("nothing was done; see `entremet cluster check`"), said
        status, told = cluster.entremet("check")
        assert status == 1 and str(slot) in told, told
        cluster.give(slot, target)
        assert alpha.ask("SET", "k", "v") == b"OK"
