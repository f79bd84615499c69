"""Channels of shards before an engine and a cluster: each tenant has its own, where its partitions are, and a slot that moves ends them."""

import json
import random
import threading
from itertools import count
from urllib.request import urlopen

import pytest
import redis

from harness.cluster import know_each_other
from harness.engine import Engine
from harness.resp import ServerError, encode
from harness.server import ALPHA, BETA, Tenant
from harness.waiting import eventually

WIDE = Tenant("wide", extra="partitions = 8")
NAMES = [f"c{number}" for number in range(40)]
EVERY_BYTE = bytes(range(256)) + b"\r\n{@beta}{}*?[\\"


def held(server):
    """How many connections have a link to themselves, as the server says."""
    with urlopen(f"http://127.0.0.1:{server.admin_port}/api/server", timeout=20) as answer:
        return json.load(answer)["engine_links"]["waiting"]


def none_held(server):
    eventually(lambda: held(server) == 0, 20, "nobody has a link to himself")


def subscribe(wire, *channels, begun=0):
    """Subscribes to each by itself: together they would have to be in one slot."""
    for number, channel in enumerate(channels, begun + 1):
        assert wire.ask("SSUBSCRIBE", channel) == [b"ssubscribe", channel.encode() if isinstance(channel, str) else channel, number]
    return wire


def test_each_tenant_has_its_own(engine, front):
    server = front(engine_options='unmarked = "beta"', server_options="cores = 2")
    with server.wire(ALPHA) as alpha, server.wire(ALPHA) as mine, server.wire(BETA) as beta, server.wire(BETA) as theirs:
        subscribe(mine, "news", "other", EVERY_BYTE)
        subscribe(theirs, "news")
        assert alpha.ask("SPUBLISH", "news", "one") == 1
        assert mine.read() == [b"smessage", b"news", b"one"]
        assert alpha.ask("SPUBLISH", EVERY_BYTE, EVERY_BYTE) == 1
        assert mine.read() == [b"smessage", EVERY_BYTE, EVERY_BYTE]
        assert beta.ask("SPUBLISH", "news", "two") == 1
        assert theirs.read() == [b"smessage", b"news", b"two"]
        # They are other channels than those of the same names without a shard.
        assert alpha.ask("PUBLISH", "news", "x") == 0 and alpha.ask("PUBSUB", "CHANNELS") == []
        assert sorted(alpha.ask("PUBSUB", "SHARDCHANNELS")) == sorted([b"news", b"other", EVERY_BYTE])
        assert alpha.ask("PUBSUB", "SHARDCHANNELS", "n*") == [b"news"]
        assert alpha.ask("PUBSUB", "SHARDNUMSUB", "news", "none", EVERY_BYTE) == [b"news", 1, b"none", 0, EVERY_BYTE, 1]
        assert alpha.ask("PUBSUB", "SHARDNUMSUB") == []
        assert beta.ask("PUBSUB", "SHARDCHANNELS") == [b"news"]
        for refused in (("SSUBSCRIBE", "{@alpha}news"), ("SPUBLISH", "{@alpha}news", "x"), ("PUBSUB", "SHARDNUMSUB", "{@alpha}news")):
            assert "other tenants" in str(beta.attempt(*refused)), refused
        assert sorted(engine.ask("PUBSUB", "SHARDCHANNELS")) == sorted([b"news", b"{@alpha}news", b"{@alpha}other", b"{@alpha}" + EVERY_BYTE])
        alpha.raw(b"".join(encode(*words) for words in (("SET", "k", "1"), ("SPUBLISH", "other", "a"), ("MULTI",), ("SPUBLISH", "other", "b"), ("GET", "k"), ("EXEC",))))
        assert [alpha.read() for _ in range(6)] == [b"OK", 1, b"OK", b"QUEUED", b"QUEUED", [1, b"1"]]
        assert [mine.read()[2] for _ in range(2)] == [b"a", b"b"]
        ident = mine.ask("SUNSUBSCRIBE", "none")
        assert ident == [b"sunsubscribe", b"none", 3]
        assert " sub=0 psub=0 ssub=3 " in alpha.ask("CLIENT", "LIST", "TYPE", "pubsub").decode()
        mine.send("SUNSUBSCRIBE")
        assert sorted(mine.read()[2] for _ in range(3)) == [0, 1, 2]
        assert mine.ask("GET", "k") == b"1", "it is a connection like others again"
        assert mine.ask("SUNSUBSCRIBE") == [b"sunsubscribe", None, 0]
        assert theirs.ask("PING") == [b"pong", b""], "nothing of another's came"
    none_held(server)
    assert engine.ask("PUBSUB", "SHARDCHANNELS") == []


def test_sessions_go_as_at_an_engine_itself(engine, front, tmp_path):
    """Random commands of three clients about channels of all kinds, through the server and at another engine."""
    server = front(server_options="cores = 2")
    alone = Engine(tmp_path / "alone", engine.program).start()
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    through, direct = [server.wire(ALPHA) for _ in range(3)], [alone.wire() for _ in range(3)]
    numbers = count()
    names = ["a", "b", "ab", EVERY_BYTE]

    def command():
        kind = chance.choice(["SSUBSCRIBE", "SUBSCRIBE", "PSUBSCRIBE", "SUNSUBSCRIBE", "UNSUBSCRIBE", "SPUBLISH", "SPUBLISH", "PUBLISH", "PING", "SHARDNUMSUB"])
        if kind in ("SPUBLISH", "PUBLISH"):
            return kind, chance.choice(names), next(numbers)
        if kind == "PING":
            return kind, next(numbers)
        if kind == "SHARDNUMSUB":
            return "PUBSUB", kind, *names
        most = 1 if kind == "PSUBSCRIBE" else 4
        return kind, *chance.choices(names, k=chance.randrange(1, most + 1))

    def drained(wires, who, words):
        wires[who].send(*words)
        came = []
        for wire in wires:
            wire.send("PING", "end")
            came.append([])
            while (reply := wire.read()) not in (b"end", [b"pong", b"end"]):
                came[-1].append(str(reply))
        return came

    try:
        for step in range(400):
            who, words = chance.randrange(3), command()
            expected = drained(direct, who, words)
            through[who].send(*words)
            for wire, its in zip(through, expected):
                assert sorted(str(wire.read()) for _ in its) == sorted(its), f"seed {seed}, step {step}: {words}"
    finally:
        for wire in through + direct:
            wire.close()
        alone.kill()
    none_held(server)


def test_one_connection_has_channels_at_all_nodes(make_cluster, before):
    cluster = make_cluster()
    servers = [before(cluster, tenants=(WIDE, BETA)) for _ in range(2)]
    with servers[0].wire(WIDE) as wide, servers[1].wire(WIDE) as mine, servers[1].wire(BETA) as beta:
        subscribe(mine, *NAMES)
        assert mine.ask("SUBSCRIBE", "plain") == [b"subscribe", b"plain", 1]
        assert held(servers[1]) == 3
        subscribe(beta, NAMES[0])
        for channel in NAMES:
            assert wide.ask("SPUBLISH", channel, "x") == 1
            assert mine.read() == [b"smessage", channel.encode(), b"x"]
        assert wide.ask("PUBLISH", "plain", "y") == 1
        assert mine.read() == [b"message", b"plain", b"y"]
        everyone = [name.encode() for name in NAMES]
        assert sorted(wide.ask("PUBSUB", "SHARDCHANNELS")) == sorted(everyone)
        assert wide.ask("PUBSUB", "SHARDCHANNELS", "c1*") != []
        assert wide.ask("PUBSUB", "SHARDNUMSUB", *NAMES) == [word for name in everyone for word in (name, 1)]
        assert beta.attempt("SSUBSCRIBE", *NAMES) == [b"ssubscribe", everyone[0], 1]
        for number in range(2, len(NAMES) + 1):
            assert beta.read()[2] == number, "all of a tenant with one partition are together"
        assert "CROSSSLOT" in str(mine.attempt("SSUBSCRIBE", *NAMES))
        assert "CROSSSLOT" in str(mine.attempt("SUNSUBSCRIBE", *NAMES))
        assert mine.ask("SUNSUBSCRIBE", NAMES[3]) == [b"sunsubscribe", NAMES[3].encode(), len(NAMES) - 1]
        mine.send("SUNSUBSCRIBE")
        assert [mine.read()[2] for _ in NAMES[1:]] == list(range(len(NAMES) - 2, -1, -1))
        assert held(servers[1]) == 2, "that of plain channels, and the other tenant's"
        assert mine.ask("UNSUBSCRIBE") == [b"unsubscribe", b"plain", 0]
        assert mine.ask("PING") == b"PONG"
    none_held(servers[1])


def test_a_slot_that_moves_ends_them_and_they_begin_anew(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=(ALPHA, WIDE))
    slot = cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@alpha}")
    with server.wire(ALPHA) as alpha, server.wire(ALPHA) as mine:
        subscribe(mine, "a", "b")
        assert mine.ask("SUBSCRIBE", "plain") == [b"subscribe", b"plain", 1]
        for turn in range(6):
            source = cluster.owner(slot)
            target = cluster.masters[(cluster.masters.index(source) + 1) % 3]
            cluster.move(slot, target)
            ended = sorted(mine.read() for _ in range(2))
            assert [said[:1] + said[2:] for said in sorted(ended, key=lambda said: -said[2])] == [[b"sunsubscribe", 1], [b"sunsubscribe", 0]]
            assert sorted(said[1] for said in ended) == [b"a", b"b"]
            # At once: the server may not have heard yet where the slot is now.
            subscribe(mine, "a", "b")
            assert alpha.ask("SPUBLISH", "a", turn) == 1
            assert mine.read() == [b"smessage", b"a", b"%d" % turn]
            assert alpha.ask("PUBSUB", "SHARDCHANNELS") != []
        # A plain channel is where it was begun.
        assert alpha.ask("PUBLISH", "plain", "x") == 1
        assert mine.read() == [b"message", b"plain", b"x"]
        assert mine.ask("SUNSUBSCRIBE", "a") == [b"sunsubscribe", b"a", 1]
    none_held(server)


def test_they_go_on_while_partitions_move(make_cluster, before):
    """Whoever is told that it has no channel any more subscribes again, and then hears all."""
    cluster = make_cluster()
    server = before(cluster, tenants=(WIDE,))
    stop, heard, wrong, hearing = threading.Event(), dict.fromkeys(NAMES, 0), [], threading.Barrier(5)

    def hear(names):
        try:
            with server.wire(WIDE, timeout=60) as wire:
                subscribe(wire, *names)
                hearing.wait(60)
                while not stop.is_set():
                    kind, channel, *_ = wire.read()
                    if kind == b"sunsubscribe":
                        wire.send("SSUBSCRIBE", channel)
                    elif kind == b"smessage":
                        heard[channel.decode()] += 1
        except Exception as error:  # noqa: BLE001 (whatever ends it is what the test must see)
            wrong.append(error)

    hearers = [threading.Thread(target=hear, args=(NAMES[number::4],)) for number in range(4)]
    for hearer in hearers:
        hearer.start()
    # What a slot that moves says would come between the answers.
    hearing.wait(60)
    with server.wire(WIDE) as wide:
        wide.ask("MSET", *(word for name in NAMES for word in (name, "v")))
        slots = {cluster.nodes[0].ask("CLUSTER", "KEYSLOT", key) for key in cluster.keys() if key.startswith(b"{@wide/")}
        assert len(slots) == 8
        for slot in sorted(slots) * 2:
            source = cluster.owner(slot)
            cluster.move(slot, random.choice([node for node in cluster.masters if node is not source]))
            for name in NAMES:
                assert wide.ask("SPUBLISH", name, "x") in (0, 1)

        def all_are_there():
            there = {name: wide.ask("SPUBLISH", name, "x") for name in NAMES}
            assert wrong == [] and set(there.values()) == {1}, (wrong, there)
            return True

        eventually(all_are_there, 20, "all are there again")
        before_last = dict(heard)
        eventually(lambda: all(wide.ask("SPUBLISH", name, "x") and heard[name] > before_last[name] for name in NAMES), 20, "all hear")
        stop.set()
        for name in NAMES[:4]:
            wide.ask("SPUBLISH", name, "the last")
    for hearer in hearers:
        hearer.join()
    assert wrong == []
    none_held(server)


def test_who_does_not_take_what_comes_is_closed_and_nobody_else(engine, front):
    engine.ask("CONFIG", "SET", "client-output-buffer-limit", "pubsub 4mb 4mb 1")
    server = front(server_options="cores = 1")
    with server.wire(ALPHA, receive_buffer=4_096) as slow, server.wire(ALPHA) as quick, server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        subscribe(slow, "a")
        subscribe(quick, "a")
        reader = threading.Thread(target=lambda: list(iter(lambda: quick.read()[2], b"end")))
        reader.start()

        def one_is_left():
            assert beta.ask("INCR", "n")
            alpha.raw(encode("SPUBLISH", "a", b"x" * 8_000) * 100)
            return [alpha.read() for _ in range(100)][-1] == 1

        eventually(one_is_left, 60, "the engine has closed the other")
        alpha.ask("SPUBLISH", "a", "end")
        reader.join()
        with pytest.raises((EOFError, OSError)):
            while True:
                slow.read()


def test_nobody_has_so_many_that_others_pay_for_it(engine, front):
    """A slot that moves ends all that are in it in one go: one tenant has half of what there may be."""
    server = front()
    wires, had = [], 0

    def more(wire, begin):
        wire.send("SSUBSCRIBE", *range(begin, begin + 1_000))
        reply = wire.read()
        if isinstance(reply, ServerError):
            return str(reply)
        return [reply[2]] + [wire.read()[2] for _ in range(999)]

    said = ""
    while "as may be" not in said and had < 100_000:
        wires.append(server.wire(ALPHA))
        for begin in range(0, 16_000, 1_000):
            said = more(wires[-1], begin)
            if isinstance(said, str):
                break
            had += 1_000
        assert not isinstance(said, list) or said[-1] == 16_000
        said = str(said)
    assert had == 32_000
    with server.wire(BETA) as beta:
        assert more(beta, 0)[-1] == 1_000, "another finds some"
        wires.pop(0).close()
        with server.wire(ALPHA) as alpha:
            eventually(lambda: isinstance(more(alpha, 0), list), 20, "what has gone leaves room")
    for wire in wires:
        wire.close()
    none_held(server)


def test_a_node_that_is_away_costs_an_error_and_no_channels(make_cluster, before):
    """Who has channels at other nodes keeps them, if those at this one cannot be had."""
    cluster = make_cluster()
    server = before(cluster, tenants=(WIDE,), engine_options='timeout = "2s"')
    with server.wire(WIDE) as wide, server.wire(WIDE) as mine:
        wide.ask("MSET", *(word for name in NAMES for word in (name, "v")))
        lost = cluster.masters[2]
        there = {key.split(b"}", 1)[1].decode() for key in lost.keys() if key.startswith(b"{@wide")}
        others = sorted(set(NAMES) - there)
        subscribe(mine, *others)
        lost.kill()
        assert isinstance(mine.attempt("SSUBSCRIBE", sorted(there)[0]), ServerError)
        assert wide.ask("SPUBLISH", others[0], "x") == 1
        assert mine.read() == [b"smessage", others[0].encode(), b"x"]
        assert mine.ask("SUNSUBSCRIBE", others[0])[2] == len(others) - 1


def test_cluster_clients_find_them_at_their_homes(make_cluster, before_node):
    cluster = make_cluster()
    fronts = [before_node(cluster, node, tenants=(ALPHA, WIDE)) for node in cluster.masters]
    know_each_other(fronts, ALPHA)
    client = redis.RedisCluster(host="127.0.0.1", port=fronts[0].port, username=WIDE.name, password=WIDE.password)
    wires = {front.aware: front.aware_wire(WIDE) for front in fronts}
    home = {name: client.get_node_from_key(name).port for name in NAMES}
    elsewhere = lambda name: next(wire for port, wire in wires.items() if port != home[name])
    sent_on = lambda: all("MOVED" in str(wire.attempt("SPUBLISH", name, "x")) for port, wire in wires.items() for name in NAMES if port != home[name])
    eventually(sent_on, 30, "all fronts know the map")
    with client.pubsub() as channels:
        for name in NAMES:
            assert f"127.0.0.1:{home[name]}" in str(elsewhere(name).attempt("SSUBSCRIBE", name))
            channels.ssubscribe(name)
        heard = {}

        def hear():
            for name in NAMES:
                node = client.get_node_from_key(name)
                message = channels.get_sharded_message(ignore_subscribe_messages=True, timeout=0.1, target_node=node)
                if message and message["type"] == "smessage":
                    heard[message["channel"].decode()] = message["data"].decode()
            return len(heard) == len(NAMES)

        eventually(lambda: sum(len(wire.ask("PUBSUB", "SHARDCHANNELS")) for wire in wires.values()) == len(NAMES), 20, "all are there")
        here = {port: sorted(wire.ask("PUBSUB", "SHARDCHANNELS")) for port, wire in wires.items()}
        assert here == {port: sorted(name.encode() for name in NAMES if home[name] == port) for port in wires}
        for name in NAMES:
            counts = {port: wire.ask("PUBSUB", "SHARDNUMSUB", name)[1] for port, wire in wires.items()}
            assert counts == {port: int(port == home[name]) for port in wires}
            assert wires[home[name]].ask("SPUBLISH", name, f"to {name}") == 1
        eventually(hear, 60, "all has come")
        assert heard == {name: f"to {name}" for name in NAMES}
    with fronts[0].aware_wire(ALPHA) as alpha, fronts[1].aware_wire(ALPHA) as other:
        # One of them has no part of this tenant's.
        assert [alpha.ask("PUBSUB", "SHARDCHANNELS"), other.ask("PUBSUB", "SHARDCHANNELS")] == [[], []]
        assert alpha.ask("PUBSUB", "SHARDNUMSUB", "a") == other.ask("PUBSUB", "SHARDNUMSUB", "a") == [b"a", 0]
    for wire in wires.values():
        wire.close()
    client.close()
