"""A tenant's weight is one of all fronts and nodes, and is where the tenant is served: who can be served at one node only has it there, and the others are made up for it."""

import contextlib
import json
import re
import threading
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from harness.cluster import know_each_other
from harness.resp import encode
from harness.server import Tenant
from harness.waiting import at_work, eventually

# All that the first has is at one node.
ONE, WIDE = Tenant("one"), Tenant("wide", extra="partitions = 12")
OPERATOR = Tenant("operator", extra="admin = true")
# Long for a node of the engine, and short for everybody else: so nodes are what is short.
WORDS = 50_000
NAMES = [f"k{number}" for number in range(100)]
# So many that something always waits at the front.
CONNECTIONS, DEPTH = 4, 100


@pytest.fixture
def trio(make_cluster, before_node):
    """Three engines, and a front before each: by node."""
    cluster = make_cluster()
    fronts = {node: before_node(cluster, node, tenants=(ONE, WIDE, OPERATOR), server_options="cores = 1") for node in cluster.masters}
    know_each_other(fronts.values(), WIDE)
    return cluster, fronts


def fill(fronts, tenant):
    """A long list at each node where the tenant has anything: by node, its front and what it is called."""
    lists = {}
    for node, front in fronts.items():
        with front.wire(tenant) as wire:
            for name in NAMES:
                wire.ask("SET", name, "x")
            mine = [key for key in node.keys() if key.startswith(b"{@" + tenant.name.encode())]
            if mine:
                lists[node] = front, min(mine).rpartition(b"}")[2].decode()
    for front, name in lists.values():
        with front.wire(tenant) as wire:
            wire.ask("DEL", name)
            for _ in range(10):
                wire.ask("RPUSH", name, *range(WORDS // 10))
    return lists


def weight(front, tenant):
    """What the tenant weighs at this front."""
    begin = f'entremet_tenant_weight_here{{tenant="{tenant.name}"}} '
    return float(next(line for line in front.metrics() if line.startswith(begin)).removeprefix(begin))


def told(cluster, tenant, node):
    """What the tenant weighs before this node, as `entremet cluster status` says."""
    status, said = cluster.entremet("status")
    assert status == 0, said
    its = said.split("\nWeights\n")[1].split(f"  {tenant.name}: ")[1]
    return float(re.search(rf"127.0.0.1:{node.port}  weighs ([\d.]+) there, takes \d+ % of its time", its)[1])


@contextlib.contextmanager
def flood(lists, tenant, served):
    """As much as each node gives of the tenant's list there, until the end; counts what was served of whom, and where."""
    ended = threading.Event()

    def ask(client, front, name):
        request = encode("LPOS", name, "none")
        with contextlib.suppress(OSError, EOFError), front.wire(tenant, timeout=60) as wire:
            wire.raw(request * (DEPTH // 2))
            while not ended.is_set():
                wire.raw(request * (DEPTH // 2))
                for _ in range(DEPTH // 2):
                    wire.read()
                    served[client] += 1

    clients = {(tenant, node, number): place for node, place in lists.items() for number in range(CONNECTIONS)}
    served.update(dict.fromkeys(clients, 0))
    threads = [threading.Thread(target=ask, args=(client, *place)) for client, place in clients.items()]
    with at_work(ended, threads):
        yield


def served_in(served, count):
    """What was served from now on, until that was so much."""
    before = dict(served)
    eventually(lambda: sum(served.values()) - sum(before.values()) >= count, 120, f"{count} are served")
    got = {}
    for client, count in before.items():
        place = client[:2]
        got[place] = got.get(place, 0) + served[client] - count
    return got


def part_of_first(got, node):
    """What the first had of the node where all that it has is."""
    return got[ONE, node] / (got[ONE, node] + got[WIDE, node])


def is_made_up_for(got, node):
    """The other had something everywhere, and in all about twice as much as the first, for there is more that it can use. Nodes may be unlike."""
    return sum(got.values()) - got[ONE, node] > 0.7 * got[ONE, node] and got[WIDE, node] > 0


def test_weight_goes_to_the_front_that_serves(trio):
    cluster, fronts = trio
    ones, wides = fill(fronts, ONE), fill(fronts, WIDE)
    (node,) = ones
    home, served = fronts[node], {}
    assert len(wides) == 3
    with flood(ones, ONE, served), flood(wides, WIDE, served):
        eventually(lambda: weight(home, ONE) > 2.5 and weight(home, WIDE) < 0.5, 60, "weights are where tenants are served")
        # By its weight at this front alone it had half. On a machine that is busy with other things fronts may be late to hear of
        # each other, and go by what is set meanwhile.
        divided = lambda got: part_of_first(got, node) > 0.75 and is_made_up_for(got, node)
        eventually(lambda: divided(served_in(served, 6_000)), 120, "each has its part")
        eventually(lambda: told(cluster, ONE, node) > 2.5 and told(cluster, WIDE, node) < 0.5, 30, "so it is shown")
        # Fronts are asked one after the other while weights move: what is asked of two may be counted at both.
        eventually(lambda: sum(weight(front, WIDE) for front in fronts.values()) < 3.2, 30, "together they are the whole")
        # Where nothing of it is served it has what is set, for when it comes.
        assert weight(home, ONE) < 3.2
        assert [weight(front, ONE) for front in fronts.values() if front is not home] == [1, 1]
        with home.wire(ONE) as wire:
            lines = lambda: [line.decode() for line in wire.ask("ENTREMET", "EXPLAIN")]
            eventually(lambda: any(re.search(r"a weight of (2\.[5-9]|3)", line) for line in lines()), 30, "it is said")
        # What is set counts here, too.
        with home.wire(OPERATOR) as wire:
            assert wire.ask("ENTREMET", "TENANT", "SET", "one", "WEIGHT", "2") == b"OK"
        eventually(lambda: weight(home, ONE) > 4, 30, "it is twice as much")
    # Who has no connection weighs what is set.
    eventually(lambda: weight(home, ONE) == 2 and weight(home, WIDE) == 1, 60, "nothing is divided any more")


def test_a_front_that_hears_of_nobody_goes_by_the_weight_that_is_set(trio):
    cluster, fronts = trio
    (node,) = ones = fill(fronts, ONE)
    home, others = fronts[node], [front for other, front in fronts.items() if other is not node]
    with flood(ones, ONE, {}):
        eventually(lambda: weight(home, ONE) > 1.5, 60, "its weight is here")
        for front in others:
            front.kill()
        eventually(lambda: weight(home, ONE) == 1, 60, "it is alone")
        for front in others:
            front.start()
        eventually(lambda: weight(home, ONE) > 1.5, 60, "its weight is here again")
        # Nobody can tell anybody anything.
        cluster.kill()
        eventually(lambda: weight(home, ONE) == 1, 60, "it is by itself")


def test_one_front_divides_weights_over_nodes(make_cluster, before):
    """Clients that know of no cluster send everything to one front."""
    cluster = make_cluster()
    front = before(cluster, tenants=(ONE, WIDE), server_options="cores = 1")
    fronts, served = dict.fromkeys(cluster.masters, front), {}
    ones, wides = fill(fronts, ONE), fill(fronts, WIDE)
    (node,) = ones
    assert len(wides) == 3
    with flood(ones, ONE, served), flood(wides, WIDE, served):
        most = lambda: part_of_first(served_in(served, 2_000), node) > 0.75
        eventually(most, 120, "it has most of the node where all that it has is")
        got = served_in(served, 6_000)
        assert part_of_first(got, node) > 0.75 and is_made_up_for(got, node), got


def shown(front, name=""):
    with urlopen(f"http://127.0.0.1:{front.admin_port}/api/cluster{name}", timeout=20) as answer:
        return json.load(answer)


def test_each_front_shows_the_whole_cluster(trio):
    cluster, fronts = trio
    lists = fill(fronts, WIDE)
    served = {}
    at = [f"127.0.0.1:{node.port}" for node in cluster.masters]
    mine = {f"127.0.0.1:{node.port}": f"127.0.0.1:{front.aware}" for node, front in fronts.items()}
    with flood(lists, WIDE, served):
        for node, front in fronts.items():
            # What is counted is told once a second, and is read once somebody looks.
            busy = lambda node: (node.get("busy") or 0) > 0.01
            view = eventually(lambda front=front: (seen := shown(front)) and all(map(busy, seen["nodes"])) and seen, 60, "all nodes are busy")
            assert sorted(node["at"] for node in view["nodes"]) == sorted(at)
            assert {node["at"]: node["fronts"] for node in view["nodes"]} == {place: [there] for place, there in mine.items()}
            assert [node["at"] for node in view["nodes"] if node["here"]] == [f"127.0.0.1:{node.port}"]
            assert sum(node["slots"] for node in view["nodes"]) == 16384
            # The operator's one partition is somewhere, too.
            assert sum(node["partitions"] for node in view["nodes"]) == 12 + 1 + 1 and view["tenants_total"] == 3
            assert view["moves"] == [] and view["tenants"][0]["name"] == "wide", "who takes most comes first"
            (wide,) = shown(front, "/wide")["tenants"]
            assert wide["partitions"] == 12 == sum(part["partitions"] for part in wide["nodes"]) and wide["weight"] == 1.0
            assert all(busy(part) for part in wide["nodes"])
    slot = cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@one}")
    source = cluster.owner(slot)
    target = next(node for node in cluster.masters if node is not source)
    book = cluster.owner(cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@}"))
    book.ask("HSET", "{@}moves", slot, f"{source.id} {target.id} 1 - 0")
    front = next(iter(fronts.values()))
    (move,) = eventually(lambda: shown(front)["moves"], 60, "a move that was begun")
    assert move["slots"] == str(slot) and "one" in move["tenants"] and move["from"] == f"127.0.0.1:{source.port}"
    with pytest.raises(HTTPError) as refused:
        shown(front, "/nobody")
    assert refused.value.code == 404
