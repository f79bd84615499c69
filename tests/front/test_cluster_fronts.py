"""Three fronts before three nodes: clients that know of clusters see the fronts as one, and others are served by any. All of it without TLS and with it."""

import re
import signal
import ssl
import subprocess
from functools import partial

import pytest
import redis

from harness.cluster import BothFront, know_each_other
from harness.encrypted import Encrypted, certificate
from harness.resp import ServerError
from harness.server import ALPHA, Tenant
from harness.waiting import eventually

WIDE = Tenant("wide", extra="partitions = 8")
BOTH = (ALPHA, WIDE)
NAMES = [f"k{number}" for number in range(200)]


@pytest.fixture
def trio(make_cluster, before_both):
    """Three engines, and a front before each, which all know of each other."""
    cluster = make_cluster()
    fronts = [before_both(cluster, node, tenants=BOTH) for node in cluster.masters]
    know_each_other(fronts, ALPHA)
    return cluster, fronts


def lines(wire):
    return wire.ask("CLUSTER", "NODES").decode().splitlines()


def homes(wire):
    """By virtual slot: the port of the front that is its home."""
    ports = {}
    for begin, end, master, *_ in wire.ask("CLUSTER", "SLOTS"):
        ports.update(dict.fromkeys(range(begin, end + 1), master[1]))
    assert len(ports) == 16384
    return ports


def client_of(front, tenant, port=None):
    tls = {"ssl": True, "ssl_ca_certs": str(front.ca)} if front.tls else {}
    return redis.RedisCluster(host="127.0.0.1", port=port or front.usual, username=tenant.name, password=tenant.password, **tls)


def sets_at(front, tenant):
    """How many SETs of a tenant this front was asked for."""
    with front.wire(tenant) as wire:
        stats = wire.ask("INFO", "commandstats").decode().splitlines()
    counts = [line.split("calls=")[1].split(",")[0] for line in stats if line.startswith("cmdstat_set:")]
    return int(counts[0]) if counts else 0


@pytest.mark.parametrize("tenant", BOTH, ids=lambda tenant: tenant.name)
def test_a_cluster_client_goes_to_the_front_before_the_data(trio, tenant):
    cluster, fronts = trio
    client = client_of(fronts[0], tenant)
    assert {node.port for node in client.get_nodes()} == {front.aware for front in fronts}
    for name in NAMES:
        assert client.set(name, f"v-{name}")
    at = {front.aware: front for front in fronts}
    expected = dict.fromkeys(at, 0)
    for name in NAMES:
        front = at[client.get_node_from_key(name).port]
        expected[front.aware] += 1
        keys = front.node.keys()
        assert any(key.startswith(b"{@" + tenant.name.encode()) and key.endswith(b"}" + name.encode()) for key in keys)
    assert {port: sets_at(front, tenant) for port, front in at.items()} == expected
    assert sum(count > 0 for count in expected.values()) == (3 if tenant is WIDE else 1)
    assert client.mget_nonatomic(NAMES) == [b"v-" + name.encode() for name in NAMES]
    # Over all keys: each front answers for its own. redis-py asks one node unless it is told to
    # ask all.
    assert client.dbsize(target_nodes=client.PRIMARIES) == len(NAMES)
    assert sorted(client.keys("*", target_nodes=client.PRIMARIES)) == sorted(name.encode() for name in NAMES)
    assert sorted(client.scan_iter(count=7)) == sorted(name.encode() for name in NAMES)
    assert client.flushall()
    assert client.dbsize(target_nodes=client.PRIMARIES) == 0
    client.close()


def test_a_random_key_is_of_the_front_that_is_asked(trio):
    _, fronts = trio
    with fronts[0].wire(WIDE) as plain, fronts[0].wire(ALPHA) as alone:
        plain.ask("MSET", *(word for name in NAMES for word in (name, "v")))
        alone.ask("SET", "only", "v")
        everyone = {name.encode() for name in NAMES}
        assert len({plain.ask("RANDOMKEY") for _ in range(400)} & everyone) > 100
        own = [front.aware_wire(WIDE) for front in fronts]
        picked = [{wire.ask("RANDOMKEY") for _ in range(200)} for wire in own]
        assert set().union(*picked) <= everyone and sum(map(len, picked)) == len(set().union(*picked))
        for wire in own:
            wire.close()
        lone = []
        for front in fronts:
            with front.aware_wire(ALPHA) as wire:
                lone.append(wire.ask("RANDOMKEY"))
        assert sorted(map(str, lone)) == ["None", "None", str(b"only")]


def test_a_cluster_client_connects_for_a_tenant_over_its_limit(make_cluster, before_both):
    """It asks for the map, and redis-py's for all commands, before it can wait and ask again."""
    limited = Tenant("limited", extra='limit = { requests = "1/s", burst = "1s", max_wait = "0s" }')
    cluster = make_cluster(masters=3)
    front = before_both(cluster, cluster.masters[0], tenants=(limited,))

    def refused(wire, *words):
        return str(wire.attempt(*words)).startswith("THROTTLED ")

    with front.aware_wire(limited) as aware, front.wire(limited) as plain:
        for _ in range(3):
            assert any(refused(aware, "GET", "k") for _ in range(10))
            assert not refused(aware, "COMMAND")
            assert any(refused(aware, "COMMAND", "COUNT") for _ in range(10))
            assert any(refused(plain, "COMMAND") for _ in range(10)), "as without an engine"
        eventually(lambda: refused(plain, "GET", "k"), 20, "it is over its limit")
        client_of(front, limited, front.aware).close()


@pytest.mark.parametrize("tenant", BOTH, ids=lambda tenant: tenant.name)
def test_a_plain_client_is_served_whole_by_any_front(trio, tenant):
    _, fronts = trio
    for number, front in enumerate(fronts):
        with front.wire(tenant) as wire:
            for name in NAMES:
                assert wire.ask("SET", f"{name}:{number}", number) == b"OK"
            assert wire.ask("DBSIZE") == len(NAMES) * (number + 1)
    with fronts[0].wire(tenant) as wire:
        assert wire.ask("MGET", *(f"k1:{number}" for number in range(3))) == [b"0", b"1", b"2"]


def test_all_fronts_show_the_same_map(trio):
    _, fronts = trio
    for tenant in BOTH:
        maps = []
        for front in fronts:
            with front.wire(tenant) as wire:
                maps.append(homes(wire))
                mine = [line.split() for line in lines(wire) if "myself" in line]
                assert len(mine) == 1 and mine[0][1] == f"127.0.0.1:{front.aware}@0"
                assert mine[0][0] == wire.ask("CLUSTER", "MYID").decode() and len(mine[0][0]) == 40
                info = wire.ask("CLUSTER", "INFO").decode()
                assert "cluster_known_nodes:3\r\n" in info
                shards = wire.ask("CLUSTER", "SHARDS")
                assert sum(len(shard[3]) for shard in shards) == 3
        assert maps[0] == maps[1] == maps[2]
        assert len(set(maps[0].values())) == (3 if tenant is WIDE else 1)


def test_who_asks_the_wrong_front_is_sent_on_at_the_address_of_the_map_only(trio):
    _, fronts = trio
    front, other = fronts[0], fronts[1]
    with other.wire(WIDE) as wire:
        map_of = homes(wire)
        name = next(name for name in NAMES if map_of[slot_of(wire, name)] == front.aware)
        slot = slot_of(wire, name)
        assert wire.ask("SET", name, "plain") == b"OK"
    with other.aware_wire(WIDE) as wire:
        moved = f"MOVED {slot} 127.0.0.1:{front.aware}"
        eventually(lambda: str(wire.attempt("GET", name)) == moved, 30, "the fronts agree")
        assert wire.ask("MULTI") == b"OK"
        assert str(wire.attempt("GET", name)) == moved
        assert "EXECABORT" in str(wire.attempt("EXEC"))
        # Several partitions: no node of a cluster could answer that.
        assert wire.ask("MGET", *NAMES).count(b"plain") == 1
        assert wire.ask("READONLY") == b"OK"
        assert wire.ask("GET", name) == b"plain"
        assert str(wire.attempt("SET", name, "x")) == moved
        assert wire.ask("READWRITE") == b"OK"
        assert str(wire.attempt("GET", name)) == moved


def told(wire):
    """The ports of fronts that the map tells, in its forms that do not say of which kind they are."""
    nodes = wire.ask("CLUSTER", "NODES").decode()
    slots = wire.ask("CLUSTER", "SLOTS")
    return {int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", nodes)}, {node[1] for row in slots for node in row[2:]}


def sent_on(wire, name):
    """What every kind of request is answered that is for a key, or a channel, of another front."""
    yield wire.attempt("GET", name)
    yield wire.attempt("SET", name, "v")
    # One of so many words is written by a handler.
    yield wire.attempt("RPUSH", name, *["v"] * 20_000)
    yield wire.attempt("SPUBLISH", name, "v")
    yield wire.attempt("SSUBSCRIBE", name)
    assert wire.ask("MULTI") == b"OK"
    yield wire.attempt("GET", name)
    wire.attempt("DISCARD")
    assert wire.ask("READONLY") == b"OK"
    yield wire.attempt("SET", name, "v")


def test_nobody_is_told_a_place_for_clients_of_the_other_kind(trio):
    _, fronts = trio
    own = {front.aware for front in fronts}
    with fronts[0].wire(WIDE) as wire:
        map_of = homes(wire)
        names = {front.aware: next(name for name in NAMES if map_of[slot_of(wire, name)] == front.aware) for front in fronts}
    for front in fronts:
        with front.wire(WIDE) as usual, front.aware_wire(WIDE) as aware:
            for wire in (usual, aware):
                assert told(wire) == (own, own)
                # As a Redis of which both kinds are served: the field says which is which.
                both = {(node[b"port"], node[b"tls-port"]) for node in nodes_of_shards(wire)}
                assert both == {(front.aware_plain, front.aware_tls) for front in fronts}
            for home, name in names.items():
                if home == front.aware:
                    continue
                moved = f"MOVED {slot_of(aware, name)} 127.0.0.1:{home}"
                eventually(lambda: str(aware.attempt("GET", name)) == moved, 30, "the fronts agree")
                assert {str(said) for said in sent_on(aware, name)} == {moved}
                assert aware.ask("READWRITE") == b"OK"


def test_a_front_without_a_place_for_a_kind_of_clients_is_the_home_of_nothing_for_them(make_cluster, before, pair):
    cluster = make_cluster(masters=3)
    launch = partial(before, cluster, kind=BothFront, pair=pair, tenants=BOTH)
    fronts = [launch(node, lacks=lacks) for node, lacks in zip(cluster.masters, ("tls_listen", None, "listen"))]
    plain, both, tls = fronts
    for encrypted, there, lacking in ((False, (plain, both), tls), (True, (both, tls), plain)):
        for front in fronts:
            front.speak(encrypted)
        led_to = {front.aware for front in there}
        for front in fronts:
            with front.wire(WIDE) as wire:
                eventually(lambda: set(homes(wire).values()) == led_to, 30, "the map has those that they reach")
        maps = []
        for front in fronts:
            with front.wire(WIDE) as wire:
                maps.append(homes(wire))
                mine = [line.split() for line in lines(wire) if "myself" in line]
                # It is shown at the address at which it was asked.
                at, role = (front.usual, "myself,slave") if front is lacking else (front.aware, "myself,master")
                assert [line[1:3] for line in mine] == [[f"127.0.0.1:{at}@0", role]]
                assert mine[0][0] == wire.ask("CLUSTER", "MYID").decode()
        assert maps[0] == maps[1] == maps[2]
        client = client_of(lacking, WIDE)
        for name in NAMES:
            assert client.set(name, name)
        assert [client.get(name) for name in NAMES] == [name.encode() for name in NAMES]
        # All that the node has before which it stands is at one of the others.
        assert client.dbsize(target_nodes=client.PRIMARIES) == len(NAMES)
        assert sorted(client.scan_iter(count=7)) == sorted(name.encode() for name in NAMES)
        with there[0].aware_wire(WIDE) as wire:
            name = next(name for name in NAMES if maps[0][slot_of(wire, name)] == there[1].aware)
            moved = f"MOVED {slot_of(wire, name)} 127.0.0.1:{there[1].aware}"
            eventually(lambda: str(wire.attempt("GET", name)) == moved, 30, "the fronts agree")
        client.close()
    status, said = cluster.entremet("status")
    at = [line.strip() for line in said.partition("Fronts\n")[2].partition("\n\n")[0].splitlines()]
    places = (f"127.0.0.1:{plain.aware_plain}", f"127.0.0.1:{both.aware_plain} and 127.0.0.1:{both.aware_tls} (TLS)", f"127.0.0.1:{tls.aware_tls} (TLS)")
    expected = (f"{place}, before 127.0.0.1:{front.node.port}" for place, front in zip(places, fronts))
    assert status == 0 and sorted(at) == sorted(expected), said


def test_a_new_certificate_is_shown_to_cluster_aware_clients_too(make_cluster, before, tmp_path):
    cluster = make_cluster(masters=1)
    shown, new = certificate(tmp_path, "shown"), certificate(tmp_path, "new")
    front = before(cluster, cluster.masters[0], kind=BothFront, pair=shown, tls=True)
    seen = lambda: {ssl.get_server_certificate(("127.0.0.1", port)) for port in (front.usual_tls, front.aware_tls)}
    assert seen() == {shown[0].read_text()}
    for old, other in zip(shown, new):
        other.replace(old)
    front.process.send_signal(signal.SIGHUP)
    eventually(lambda: seen() == {shown[0].read_text()}, 20, "the new one is shown")


def slot_of(wire, name):
    return wire.ask("CLUSTER", "KEYSLOT", name)


def test_a_front_that_is_killed_is_done_without(trio):
    _, fronts = trio
    clients = {tenant.name: client_of(fronts[1], tenant) for tenant in BOTH}
    for client in clients.values():
        assert all(client.set(name, "1") for name in NAMES)
    with fronts[1].wire(ALPHA) as wire:
        home = homes(wire)[0]
    # The home of all that ALPHA has, unless the clients began there.
    killed = next((front for front in fronts if front.aware == home and front is not fronts[1]), fronts[2])
    rest = [front for front in fronts if front is not killed]
    killed.kill()

    def works(client):
        try:
            return all(client.incr(name) for name in NAMES)
        except redis.RedisError:
            return False

    for client in clients.values():
        eventually(lambda: works(client), 60, "clients go on")
    know_each_other(rest, ALPHA)
    for front in rest:
        with front.wire(WIDE) as wire:
            assert set(homes(wire).values()) == {front.aware for front in rest}
            assert wire.ask("DBSIZE") == len(NAMES)
    killed.start()
    know_each_other(fronts, ALPHA)
    for client in clients.values():
        assert works(client)


def test_a_front_that_ends_is_missed_at_once(trio):
    _, fronts = trio
    first = fronts[0]
    assert first.stop() == 0
    with fronts[1].wire(WIDE) as wire:
        keys = fronts[1].node.attempt("HKEYS", "{@}fronts")
        if isinstance(keys, ServerError):
            keys = next(node.ask("HKEYS", "{@}fronts") for front in fronts if b"{@}fronts" in (node := front.node).keys())
        assert len(keys) == 2
        eventually(lambda: len(lines(wire)) == 2, 30, "the map has two fronts")


def test_the_map_follows_a_slot_that_moves(trio):
    cluster, fronts = trio
    client = client_of(fronts[2], WIDE)
    assert all(client.set(name, "1") for name in NAMES)
    name = NAMES[0]
    marked = next(key for node in cluster.masters for key in node.keys() if key.endswith(b"}" + name.encode()) and key.startswith(b"{@wide"))
    slot = cluster.nodes[0].ask("CLUSTER", "KEYSLOT", marked)
    source = cluster.owner(slot)
    target = next(front for front in fronts if front.node is not source)
    reshard(cluster, slot, source, target.node)
    for front in fronts:
        with front.wire(WIDE) as wire:
            virtual = slot_of(wire, name)
            eventually(lambda: homes(wire)[virtual] == target.aware, 30, "the map has the new home")
    # A client with the old map gets to the right place, also when fronts send it on.
    before = sets_at(target, WIDE)

    def arrives():
        assert all(client.set(name, "2") for name in NAMES)
        return client.get_node_from_key(name).port == target.aware

    eventually(arrives, 30, "the client has the new map")
    assert sets_at(target, WIDE) > before
    assert client.mget_nonatomic(NAMES) == [b"2"] * len(NAMES)
    client.close()


def reshard(cluster, slot, source, target):
    """As an operator does it: redis-cli, of whose moves one slot is chosen by fixing what is begun."""
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
    subprocess.run(["redis-cli", "--cluster", "fix", f"127.0.0.1:{source.port}"], check=True, stdout=subprocess.DEVNULL, timeout=60)
    if cluster.owner(slot) is not target:
        cluster.move(slot, target)


def nodes_of_shards(wire):
    """What `CLUSTER SHARDS` says of each front."""
    return [dict(zip(node[::2], node[1::2])) for shard in wire.ask("CLUSTER", "SHARDS") for node in shard[3]]


def health(wire):
    """By the port of a front: its role and its health."""
    port = b"tls-port" if isinstance(wire, Encrypted) else b"port"
    return {node[port]: (node[b"role"].decode(), node[b"health"].decode()) for node in nodes_of_shards(wire)}


def test_a_front_whose_node_is_away_is_shown_to_have_failed(trio):
    cluster, fronts = trio
    first, second, third = fronts
    with first.wire(WIDE) as wire:
        all_online = {front.aware: ("master", "online") for front in fronts}
        eventually(lambda: health(wire) == all_online, 20, "all are online")
        second.node.kill()
        eventually(lambda: health(wire)[second.aware] == ("master", "fail"), 30, "the cluster says that it has failed")
        assert health(wire)[third.aware] == ("master", "online")
        second.node.start()
        eventually(lambda: health(wire) == all_online, 30, "it is back")


def test_a_front_before_a_replica_without_data_is_loading_and_one_before_a_master_that_was_replaced_has_failed(make_cluster, before_node):
    cluster = make_cluster(masters=3, replicas=1)
    lost, replica = cluster.masters[1], cluster.replicas[1]
    fronts = [before_node(cluster, node, tenants=BOTH) for node in (cluster.masters[0], lost, replica, cluster.masters[2])]
    know_each_other(fronts, ALPHA)
    with fronts[0].wire(WIDE) as wire:
        eventually(lambda: health(wire)[fronts[2].aware] in (("replica", "online"), ("replica", "loading")), 20, "it is a replica")
        lost.kill()
        eventually(lambda: health(wire)[fronts[2].aware] == ("master", "online"), 60, "the replica has taken over")
        eventually(lambda: health(wire)[fronts[1].aware] == ("replica", "fail"), 30, "the other is shown to have failed")


def test_a_front_that_is_alone_says_how_its_cluster_is(make_cluster, before):
    cluster = make_cluster(masters=3)
    server = before(cluster, tenants=BOTH)
    with server.wire(WIDE) as wire:
        assert list(health(wire).values()) == [("master", "online")]
