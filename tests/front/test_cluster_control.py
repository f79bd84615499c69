"""`entremet cluster control`: partitions go by themselves to where what they are asked for can be served; and only then."""

import contextlib
import signal
import subprocess
import threading
from itertools import count

import pytest

from harness.cluster import know_each_other, place
from harness.resp import encode
from harness.server import Tenant
from harness.waiting import at_work, eventually

# Long for a node of the engine, and short for everybody else: so nodes are what is short.
WORDS = 50_000
# So many that something always waits at the front.
CONNECTIONS, DEPTH = 2, 60
KEYS = 2_000
OFTEN = ("--every", "3s")


def slot_of(cluster, tenant):
    return cluster.nodes[0].ask("CLUSTER", "KEYSLOT", f"{{@{tenant.name}}}")


def owner(cluster, tenant):
    return cluster.owner(slot_of(cluster, tenant))


@pytest.fixture
def trio(make_cluster, before_node):
    return of_three(make_cluster, before_node)


def of_three(make_cluster, before_node, **shape):
    """Three engines, a front before each, and two tenants whose data is all at the same engine."""
    cluster = make_cluster(**shape)
    some = (Tenant(f"tenant{number}") for number in count())
    at_first = (tenant for tenant in some if owner(cluster, tenant) is cluster.masters[0])
    pair = next(at_first), next(at_first)
    fronts = [before_node(cluster, node, tenants=pair, server_options="cores = 1") for node in cluster.masters]
    know_each_other(fronts, pair[0])
    return cluster, fronts, pair


@pytest.fixture
def control(tmp_path):
    """A function that starts a controller; what it has said so far is in its `said`."""
    started = []

    def launch(cluster, *words):
        said = tmp_path / f"control{len(started)}.log"
        with open(said, "wb") as log:
            process = subprocess.Popen(cluster.command("control", *words), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        process.said = said.read_text
        started.append(process)
        return process

    yield launch
    for process in started:
        process.kill()
        process.wait()


def says(process, text, timeout_s=60):
    heard = lambda: text in process.said() or process.poll() is not None
    eventually(heard, timeout_s, f"it says {text!r}")
    assert text in process.said(), process.said()


def fill(front, tenants, keys=KEYS, value="y" * 100):
    for tenant in tenants:
        with front.wire(tenant, timeout=60) as wire:
            for _ in range(10):
                wire.ask("RPUSH", "long", *range(WORDS // 10))
            for number in range(keys):
                wire.send("SET", f"key:{number}", f"{number}:{value}")
            assert all(wire.read() == b"OK" for _ in range(keys))


def all_there(front, tenant, keys=KEYS, value="y" * 100):
    with front.wire(tenant, timeout=60) as wire:
        assert wire.ask("DBSIZE") == keys + 1 and wire.ask("LLEN", "long") == WORDS
        names = [f"key:{number}" for number in range(keys)]
        return wire.ask("MGET", *names) == [f"{number}:{value}".encode() for number in range(keys)]


@contextlib.contextmanager
def flood(front, tenants, served):
    """As much of each tenant as its node gives, until the end; counts what was served of whom. No reply is an error."""
    ended, wrong = threading.Event(), []
    request = encode("LPOS", "long", "none")

    def ask(tenant, number):
        try:
            with front.wire(tenant, timeout=60) as wire:
                wire.raw(request * DEPTH)
                while not ended.is_set():
                    reply = wire.read()
                    if reply is not None:
                        wrong.append(reply)
                    wire.raw(request)
                    served[tenant, number] += 1
        except Exception as error:  # noqa: BLE001 (whatever a client sees is what the test must see)
            wrong.append(error)

    clients = [(tenant, number) for tenant in tenants for number in range(CONNECTIONS)]
    served.update(dict.fromkeys(clients, 0))
    with at_work(ended, [threading.Thread(target=ask, args=client) for client in clients]):
        yield
        assert not wrong, wrong[:3]


def served_in(served, many):
    """What each tenant was served from now on, until all were served that much together."""
    before = dict(served)
    eventually(lambda: sum(served.values()) - sum(before.values()) >= many, 120, f"{many} are served")
    got = dict.fromkeys((tenant for tenant, _ in before), 0)
    for (tenant, number), so_far in before.items():
        got[tenant] += served[tenant, number] - so_far
    return got


def well(cluster):
    eventually(lambda: not cluster.faults(), 20, "the cluster is well")
    assert b"{@}moves" not in cluster.keys()
    return cluster.entremet("check") == (0, "nothing is wrong\n")


def test_one_of_two_that_want_the_same_node_goes_to_another(trio, control):
    cluster, fronts, pair = trio
    fill(fronts[0], pair)
    served = {}
    with flood(fronts[0], pair, served):
        # Who only says what he would do changes nothing.
        dry = control(cluster, *OFTEN, "--dry-run")
        says(dry, "would move slot")
        assert "of what they can serve" in dry.said() and not cluster.keys() & {b"{@}moves", b"{@}control"}
        assert owner(cluster, pair[0]) is owner(cluster, pair[1])
        # And what is to stay stays.
        except_both = [word for tenant in pair for word in ("--except", tenant.name)]
        status, said = cluster.entremet("control", *OFTEN, "--once", *except_both)
        assert status == 0 and "no move would gain more than it costs" in said, said
        process = control(cluster, *OFTEN)
        says(process, "has gone from")
        eventually(lambda: owner(cluster, pair[0]) is not owner(cluster, pair[1]), what="they are at two nodes")
        assert process.said().count("moves slot") == 1, process.said()
        served_in(served, 500)
        got = served_in(served, 3_000)
        assert min(got.values()) > 0.5 * max(got.values()), got
        status, said = cluster.entremet("status")
        assert status == 0 and "a process places partitions" in said and "has gone from" in said, said
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0, process.said()
        assert "nobody places partitions" in cluster.entremet("status")[1]
    assert process.said().count("has gone from") == 1, process.said()
    assert all(all_there(fronts[1], tenant) for tenant in pair)
    assert well(cluster)


def test_what_is_little_moves_nothing(trio):
    cluster, fronts, pair = trio
    fill(fronts[0], pair, keys=100)
    ended = threading.Event()

    def ask(tenant):
        with fronts[0].wire(tenant) as wire:
            while not ended.wait(0.01):
                wire.ask("GET", "key:1")

    with at_work(ended, [threading.Thread(target=ask, args=(tenant,)) for tenant in pair]):
        for _ in range(3):
            status, said = cluster.entremet("control", *OFTEN, "--once")
            assert status == 0 and "that is even enough" in said and "moves slot" not in said, said
    assert owner(cluster, pair[0]) is owner(cluster, pair[1])
    assert b"{@}moves" not in cluster.keys()


def test_there_is_one_at_a_time(trio, control):
    cluster, _, _ = trio
    first = control(cluster, *OFTEN)
    says(first, "nothing moves")
    second = control(cluster, *OFTEN)
    says(second, "waiting: another process places partitions of this cluster")
    status, said = cluster.entremet("control", *OFTEN, "--once")
    assert status == 1 and "another process places partitions" in said, said
    assert "nothing moves" not in second.said()
    # It is missed when it is killed; one that was told to end is not waited for.
    first.kill()
    says(second, "nothing moves")
    third = control(cluster, *OFTEN)
    says(third, "waiting: another process")
    # It was silent for so long that another has taken its place: it finds that, and ends.
    second.send_signal(signal.SIGSTOP)
    says(third, "nothing moves")
    second.send_signal(signal.SIGCONT)
    assert second.wait(30) == 1 and "another places partitions now" in second.said(), second.said()
    assert third.poll() is None


def test_one_that_is_killed_in_the_middle_of_a_move_is_followed_by_another(trio, control):
    cluster, fronts, pair = trio
    keys, value = 20_000, "y" * 1_500
    fill(fronts[0], pair, keys, value)
    source = owner(cluster, pair[0])
    with flood(fronts[0], pair, {}):
        first = control(cluster, *OFTEN)
        others = [node for node in cluster.masters if node is not source]
        some_have_gone = lambda: any(node.ask("CLUSTER", "COUNTKEYSINSLOT", slot_of(cluster, tenant)) for node in others for tenant in pair)
        eventually(some_have_gone, 60, "some keys have gone")
        first.kill()
        first.wait()
        assert b"{@}moves" in cluster.keys() and all(owner(cluster, tenant) is source for tenant in pair)
        second = control(cluster, *OFTEN)
        says(second, "it was begun before", 180)
        eventually(lambda: owner(cluster, pair[0]) is not owner(cluster, pair[1]), what="they are at two nodes")
        assert second.said().count("has gone from") == 1
        # Told to end in the middle, or before or after: it leaves what another can go on with.
        second.send_signal(signal.SIGTERM)
        assert second.wait(60) == 0, second.said()
    assert all(all_there(fronts[1], tenant, keys, value) for tenant in pair)
    assert well(cluster)


def test_without_fresh_figures_nothing_moves(trio, control):
    cluster, fronts, pair = trio
    fill(fronts[0], pair)
    fronts[2].kill()
    with flood(fronts[0], pair, {}):
        process = control(cluster, *OFTEN)
        says(process, f"the front at 127.0.0.1:{fronts[2].aware}")
        assert "moves slot" not in process.said()
        fronts[2].start()
        # All tell what they are asked for again.
        says(process, "has gone from", 120)
    assert owner(cluster, pair[0]) is not owner(cluster, pair[1])


def test_it_goes_on_after_a_failover_though_the_lost_node_is_named_still(make_cluster, before_node, control):
    cluster, fronts, pair = of_three(make_cluster, before_node, replicas=1)
    fill(fronts[0], pair)
    lost = next(node for node in cluster.masters[1:] if node is not cluster.owner(cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@}")))
    process = control(cluster, *OFTEN)
    lost.kill()
    says(process, f"{place(lost)} is away")
    with flood(fronts[0], pair, {}):
        says(process, f"{place(lost)} is away still; others serve all slots", 120)
        says(process, "has gone from", 120)
    assert owner(cluster, pair[0]) is not owner(cluster, pair[1])
    assert f"{place(lost)} is away" in cluster.entremet("check")[1]


def test_it_makes_room_for_a_drain_and_moves_nothing_back(trio, control):
    cluster, fronts, pair = trio
    fill(fronts[0], pair)
    emptied, other = cluster.masters[0], cluster.masters[1]
    slots = lambda: sum(end - begin + 1 for begin, end, master, *_ in cluster.nodes[0].ask("CLUSTER", "SLOTS") if master[1] == emptied.port)
    process = control(cluster, *OFTEN)
    says(process, "nothing moves")
    had = slots()
    with subprocess.Popen(cluster.command("drain", place(emptied), "--to", place(other)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as drain:
        eventually(lambda: slots() < had, 60, "some slots have gone")
        drain.kill()
    # What was under way is brought to its end; and nothing else moves until the node is empty, or is to stay.
    says(process, f"{place(emptied)} is being emptied", 60)
    eventually(lambda: b"{@}moves" not in cluster.keys(), 60, "nothing is left of a move")
    assert 0 < slots() < had and "moves slot" not in process.said(), process.said()
    status, said = cluster.entremet("drain", place(emptied), "--to", place(other))
    assert status == 0 and "has nothing any more" in said, said
    with flood(fronts[0], pair, {}):
        says(process, "moves slot", 120)
        eventually(lambda: owner(cluster, pair[0]) is not owner(cluster, pair[1]), 120, "they are at two nodes")
    assert {owner(cluster, tenant).port for tenant in pair} == {other.port, cluster.masters[2].port}
    assert emptied.ask("DBSIZE") == 0
    assert all(all_there(fronts[1], tenant) for tenant in pair)
    assert well(cluster)
