"""`entremet cluster move`: partitions go from node to node while their tenants use them, and whatever ends it in the middle, nothing is lost."""

import random
import re
import signal
import subprocess
import time

import pytest
import redis
from moving import BOTH, WIDE, alpha_at, slot_of

from harness.clients import Asynchronous, Aware, Plain, Transactions, all_go_on, all_there, credentials, end, fill
from harness.cluster import clean, know_each_other, others, place
from harness.server import ALPHA
from harness.waiting import eventually


@pytest.fixture
def duo(make_cluster, before_node):
    """Three nodes, and two fronts that are one cluster."""
    cluster = make_cluster()
    fronts = [before_node(cluster, node, tenants=BOTH) for node in cluster.masters[:2]]
    know_each_other(fronts, ALPHA)
    return cluster, fronts


def test_partitions_move_while_four_clients_write(duo):
    cluster, fronts = duo
    with fronts[0].wire(ALPHA) as alpha, fronts[1].wire(WIDE) as wide:
        for wire in (alpha, wide):
            fill(wire, 3_000, "y" * 200)
        kinds = (Plain, Aware, Transactions, Asynchronous)
        clients = {tenant: [kind(f"{kind.__name__}", fronts[place % 2], tenant) for place, kind in enumerate(kinds)] for tenant in BOTH}
        for client in sum(clients.values(), []):
            client.start()
        for name, mark in (("alpha", "{@alpha}"), ("wide:3", None), ("wide:5", None), ("alpha", "{@alpha}")):
            marks = {key.split(b"}")[0] + b"}" for key in cluster.keys() if key.startswith(b"{@wide/")}
            by_part = {slot_of(cluster, mark) * 8 // 16384: mark for mark in marks}
            slot = slot_of(cluster, mark or by_part[int(name[-1])])
            source = cluster.owner(slot)
            target = others(cluster, source)[0]
            status, said = cluster.entremet("move", name, "--to", place(target))
            assert status == 0 and f"slot {slot} ({name}) has gone from {place(source)} to {place(target)}" in said, said
            assert cluster.owner(slot) is target
            # Each of them goes on where it is now.
            all_go_on(sum(clients.values(), []), "everybody is served")
        end(sum(clients.values(), []))
        for tenant, those in clients.items():
            with redis.Redis(**credentials(fronts[0], tenant)) as after:
                for client in those:
                    client.kept(after)
        assert all_there(alpha, 3_000, "y" * 200) and all_there(wide, 3_000, "y" * 200)
    assert clean(cluster)


def test_a_move_that_is_killed_anywhere_is_gone_on_with(duo):
    cluster, fronts = duo
    chance = random.Random(38)
    slot = slot_of(cluster, "{@alpha}")
    with fronts[0].wire(ALPHA, timeout=60) as alpha:
        fill(alpha, 4_000, "y" * 500)
        client = Plain("client", fronts[1], ALPHA)
        client.start()
        ends = {"killed": 0, "done": 0}
        begun = time.monotonic()
        status, said = cluster.entremet("move", slot, "--to", place(others(cluster, cluster.owner(slot))[0]))
        takes = time.monotonic() - begun
        assert status == 0, said
        assert clean(cluster)
        for number in range(20):
            source = cluster.owner(slot)
            target = chance.choice(others(cluster, source))
            words = ("move", slot, "--to", place(target))
            with subprocess.Popen(cluster.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                try:
                    process.wait(chance.uniform(0.0, 1.5 * takes))
                    ends["done"] += 1
                except subprocess.TimeoutExpired:
                    process.kill()
                    ends["killed"] += 1
            again = [("move", slot, "--to", place(target))]
            if number % 3 == 1:
                again.insert(0, ("move", "--resume"))
            if number % 3 == 2:
                again.append(("move", slot, "--to", place(source)))
                status, said = cluster.entremet("move", slot, "--to", place(source))
                assert status == 0 or "already" in said or "first let all arrive" in said, (number, said)
            for words in again:
                status, said = cluster.entremet(*words)
                assert status == 0 or f"slot {slot} is at {words[-1]} already" in said, (number, words, said)
            target = source if number % 3 == 2 else target
            eventually(lambda: cluster.owner(slot) is target, what=f"all know it, round {number}")
            assert all_there(alpha, 4_000, "y" * 500), number
            assert not client.wrong, (number, client.wrong[:3])
            assert clean(cluster), number
        assert ends["killed"] >= 5, ends
        end([client])
        with redis.Redis(**credentials(fronts[0], ALPHA)) as after:
            client.kept(after)


# What a mover may leave behind, and what tools and hands may: what each node was told.
HALVES = {
    "the target knows": ["import"],
    "the source knows": ["migrate"],
    "both know": ["import", "migrate"],
    "some keys have gone": ["import", "migrate", "some"],
    "all keys have gone": ["import", "migrate", "all"],
    "the target has it": ["import", "migrate", "all", "take"],
    "the source gave it away first": ["import", "migrate", "all", "give"],
    "others do not know": ["import", "migrate", "all", "take", "give"],
}


@pytest.mark.parametrize("back", (False, True), ids=("on", "back"))
@pytest.mark.parametrize("half", HALVES)
def test_half_a_move_is_brought_to_its_end(half, back, make_cluster, before):
    cluster, server, slot, source, target = alpha_at(make_cluster, before)
    with server.wire(ALPHA) as alpha:
        fill(alpha, 300)
        for step in HALVES[half]:
            match step:
                case "import":
                    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
                case "migrate":
                    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
                case "take" | "give":
                    {"take": target, "give": source}[step].ask("CLUSTER", "SETSLOT", slot, "NODE", target.id)
                case _:
                    keys = source.ask("CLUSTER", "GETKEYSINSLOT", slot, 100 if step == "some" else 1_000)
                    source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 10_000, "KEYS", *keys)
        end = source if back else target
        status, said = cluster.entremet("move", "alpha", "--to", place(end))
        if back and HALVES[half][-1] in ("some", "all"):
            assert status == 1 and f"first let all arrive there (--to {place(target)})" in said, said
            for end in (target, source):
                status, said = cluster.entremet("move", "alpha", "--to", place(end))
                assert status == 0, said
        assert status == 0 or "already" in said, said
        eventually(lambda: cluster.owner(slot) is end, what="all know it")
        assert all_there(alpha, 300)
        assert clean(cluster)


def test_a_key_that_both_nodes_have_is_as_it_was_served(make_cluster, before):
    """The answer of a target was lost, or came late: it has the key, and so does the source, which goes on with it."""
    cluster, server, slot, source, target = alpha_at(make_cluster, before)
    with server.wire(ALPHA) as alpha:
        for back in (False, True):
            end = source if back else target
            alpha.ask("MSET", "k", "old", "other", "1", "last", "2")
            # The source has forgotten that the slot goes: what is at the target is missing there.
            target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
            source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
            source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 10_000, "COPY", "KEYS", "{@alpha}k")
            source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 10_000, "KEYS", "{@alpha}last")
            if back:
                source.ask("CLUSTER", "SETSLOT", slot, "STABLE")
            alpha.ask("SET", "k", "new")
            status, said = cluster.entremet("move", slot, "--to", place(end))
            assert status == 0, said
            assert alpha.ask("MGET", "k", "other", "last") == [b"new", b"1", b"2"]
            assert clean(cluster)
            source, target = cluster.owner(slot), others(cluster, cluster.owner(slot))[0]


def test_a_target_without_room_gets_nothing(make_cluster, before):
    cluster, server, slot, source, target = alpha_at(make_cluster, before)
    with server.wire(ALPHA, timeout=60) as alpha:
        fill(alpha, 30_000, "y" * 1_000)
        target.ask("CONFIG", "SET", "maxmemory", "20mb")
        status, said = cluster.entremet("move", slot, "--to", place(target))
        assert status == 1 and "has no room" in said, said
        assert clean(cluster)
        # It is full in the middle: it says so, and goes on when it is told that there is room.
        target.ask("CONFIG", "SET", "maxmemory", 0)
        with subprocess.Popen(cluster.command("move", slot, "--to", place(target)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            eventually(lambda: target.ask("CLUSTER", "COUNTKEYSINSLOT", slot) > 0, what="some keys have gone")
            target.ask("CONFIG", "SET", "maxmemory", 1)
            said, _ = process.communicate(timeout=60)
        assert process.returncode == 1 and f"{place(target)} has no memory left" in said and "--resume" in said, said
        assert cluster.owner(slot) is source
        # One by one: those of several nodes wait until they are together.
        assert all(alpha.ask("GET", f"key:{number}").startswith(b"%d:" % number) for number in range(100))
        target.ask("CONFIG", "SET", "maxmemory", 0)
        status, said = cluster.entremet("move", "--resume")
        assert status == 0 and cluster.owner(slot) is target, said
        assert all_there(alpha, 30_000, "y" * 1_000)
        assert clean(cluster)


def test_who_gives_up_before_he_begins_lets_others_begin(make_cluster, before):
    """A mover waits for another, which is gone; meanwhile a node comes to hang that all take to be there."""
    cluster, server, slot, source, _ = alpha_at(make_cluster, before)
    server.kill()
    catalogue = cluster.owner(slot_of(cluster, "{@}"))
    hangs = next(node for node in cluster.masters if node not in (source, catalogue))
    target = next(node for node in cluster.masters if node not in (source, hangs))
    for node in cluster.masters:
        node.ask("CONFIG", "SET", "cluster-node-timeout", 120_000)
    # Nobody is at it, but that is known after 4 s only.
    catalogue.ask("HSET", "{@}moves", slot, f"{source.id} {target.id} 1790000000 gone 0")
    seen = set()
    with subprocess.Popen(cluster.command("move", slot, "--to", place(target)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as mover:
        looks = lambda: seen.add(re.search(rb"cmdstat_hgetall:calls=(\d+)", catalogue.ask("INFO", "commandstats"))[1]) or len(seen) > 6
        eventually(looks, 20, "it waits for the other")
        hangs.process.send_signal(signal.SIGSTOP)
        said, _ = mover.communicate(timeout=100)
    assert mover.returncode == 1, said
    assert catalogue.ask("HGET", "{@}moves", slot).split()[3] == b"-", "nobody is at it"
    hangs.process.send_signal(signal.SIGCONT)
    status, said = cluster.entremet("move", slot, "--to", place(target))
    assert status == 0, said


def test_a_large_key_moves_only_if_that_may_be(make_cluster, before):
    cluster, server, slot, source, target = alpha_at(make_cluster, before)
    with server.wire(ALPHA, timeout=60) as alpha:
        fill(alpha, 100)
        large = bytes(64 << 20)
        alpha.ask("SET", "large", large)
        move = ("move", "alpha", "--to", place(target))
        status, said = cluster.entremet(*move)
        assert status == 1 and "the key {@alpha}large has" in said and "take them to be lost" in said, said
        for node in cluster.nodes:
            node.ask("CONFIG", "SET", "cluster-node-timeout", 30_000)
        for words in (move, (*move, "--dry-run")):
            status, said = cluster.entremet(*words)
            assert status == 1 and "say --allow-stall" in said, said
        assert clean(cluster)
        stall = said.split("--allow-stall ")[1].split()[0]
        status, said = cluster.entremet(*move, "--allow-stall", stall, "--dry-run")
        assert status == 0 and "would go from" in said and "101 keys" in said, said
        assert cluster.owner(slot) is source
        status, said = cluster.entremet(*move, "--allow-stall", stall)
        assert status == 0, said
        assert cluster.owner(slot) is target
        assert alpha.ask("GET", "large") == large and all_there(alpha, 100)
        assert clean(cluster)


def test_two_movers_are_not_at_work_on_one_slot_or_node(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=BOTH)
    slot = slot_of(cluster, "{@alpha}")
    source = cluster.owner(slot)
    target, other = others(cluster, source)
    with server.wire(ALPHA, timeout=60) as alpha:
        # Some seconds' work.
        fill(alpha, 60_000, "y" * 1_500)
        with subprocess.Popen(cluster.command("move", slot, "--to", place(target)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            eventually(lambda: target.ask("CLUSTER", "COUNTKEYSINSLOT", slot) > 0, what="some keys have gone")
            status, said = cluster.entremet("move", slot, "--to", place(other))
            assert status == 1 and f"is on its way from {place(source)} to {place(target)}" in said, said
            own = int(next(begin for begin, end, node, *_ in target.ask("CLUSTER", "SLOTS") if node[1] == target.port))
            status, said = cluster.entremet("move", own, "--to", place(other))
            assert status == 1 and f"slot {slot} is in the middle of a move" in said, said
            status, said = cluster.entremet("move", slot, "--to", place(target))
            assert status == 1 and "another process is moving" in said, said
            # It is told to stop: it says how to go on, and nobody must wait for it then.
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=60)
            assert process.returncode == 1 and "to go on: entremet cluster move --resume" in said, said
        status, said = cluster.entremet("status")
        assert status == 0 and f"slot {slot} (alpha) from {place(source)} to {place(target)}; nobody is at it" in said, said
        status, said = cluster.entremet("check")
        assert status == 1 and "nobody is at it: entremet cluster move --resume" in said, said
        status, said = cluster.entremet("move", "--resume")
        assert status == 0 and "has gone from" in said, said
        assert cluster.owner(slot) is target and alpha.ask("DBSIZE") == 60_000
        assert clean(cluster)
        assert cluster.entremet("move", "--resume") == (0, "no move was begun and not brought to its end\n")


def test_a_target_that_hangs_ends_the_move_and_loses_nothing(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=BOTH)
    slot = slot_of(cluster, "{@alpha}")
    source = cluster.owner(slot)
    book = cluster.owner(slot_of(cluster, "{@}"))
    target = next(node for node in others(cluster, source) if node is not book)
    with server.wire(ALPHA, timeout=60) as alpha:
        fill(alpha, 30_000, "y" * 1_000)
        with subprocess.Popen(cluster.command("move", slot, "--to", place(target)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            eventually(lambda: target.ask("CLUSTER", "COUNTKEYSINSLOT", slot) > 0, what="some keys have gone")
            target.hold()
            said, _ = process.communicate(timeout=60)
        assert process.returncode == 1 and "IOERR" in said and "to go on: entremet cluster move --resume" in said, said
        target.release()
        eventually(lambda: cluster.entremet("move", "--resume")[0] == 0, 60, "it goes on")
        eventually(lambda: cluster.owner(slot) is target and all_there(alpha, 30_000, "y" * 1_000), 30, "all keys are there")
        assert clean(cluster)


def test_what_cannot_be_moved_is_said(make_cluster, before):
    cluster, _, slot, source, target = alpha_at(make_cluster, before, replicas=1)
    for words, why in (
        (("alpha", "--to", place(source)), "already"),
        (("alpha", "--to", "127.0.0.1:1"), "is no node of the cluster"),
        (("alpha", "--to", place(cluster.replicas[0])), "is a replica"),
        (("wide", "--to", place(target)), "wide:0 to wide:7"),
        (("nobody", "--to", place(target)), "no tenant nobody"),
    ):
        status, said = cluster.entremet("move", *words)
        assert status == 1 and why in said, (words, said)
    for words in ((), ("alpha",), ("16384", "--to", "x"), ("alpha", "--resume", "--to", "x")):
        assert cluster.entremet("move", *words)[0] == 2, words
    assert cluster.entremet("status", url="redis://127.0.0.1")[0] == 2
    target.kill()
    status, said = cluster.entremet("move", "alpha", "--to", place(target))
    assert status == 1 and ("cannot be reached" in said or "is away" in said), said


def test_nodes_that_ask_for_a_password_ask_each_other_for_it(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=BOTH)
    for node in cluster.nodes:
        node.ask("ACL", "SETUSER", "mover", "on", ">se:cret", "~*", "&*", "+@all")
        node.ask("ACL", "SETUSER", "default", "-restore", "-restore-asking", "-migrate")
    slot = slot_of(cluster, "{@alpha}")
    target = others(cluster, cluster.owner(slot))[0]
    with server.wire(ALPHA) as alpha:
        fill(alpha, 100)
        url = cluster.url.replace("://", "://mover:se%3Acret@")
        status, said = cluster.entremet("move", "alpha", "--to", target.id[:8], url=url)
        assert status == 0, said
        assert cluster.owner(slot) is target and all_there(alpha, 100)


def test_status_and_check_say_what_is_where_and_what_is_wrong(make_cluster, before):
    cluster = make_cluster()
    before(cluster, tenants=BOTH)
    status, said = cluster.entremet("status")
    assert status == 0, said
    for node in cluster.masters:
        assert f"  {place(node)}  {node.id[:8]}  546" in said, said
    assert "  alpha: 1\n" in said and "  wide: 8\n" in said
    assert clean(cluster)
    slot = slot_of(cluster, "{@alpha}")
    source = cluster.owner(slot)
    target = others(cluster, source)[0]
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
    status, said = cluster.entremet("check")
    assert status == 1 and f"entremet cluster move {slot} --to {place(target)}" in said, said
    target.ask("CLUSTER", "SETSLOT", slot, "STABLE")
    assert clean(cluster)
    for node in cluster.nodes:
        node.ask("CLUSTER", "DELSLOTS", slot)
    status, said = cluster.entremet("check")
    assert status == 1 and f"1 slots are at no node, the first is {slot}" in said, said


def test_it_is_said_what_becomes_of_a_node_that_gives_its_last_slot_away(make_cluster):
    cluster = make_cluster()
    source, target = cluster.masters[:2]
    for node in cluster.masters:
        node.ask("CLUSTER", "DELSLOTSRANGE", 1, 5460)
    target.ask("CLUSTER", "ADDSLOTSRANGE", 1, 5460)
    eventually(lambda: cluster.entremet("check") == (0, "nothing is wrong\n"), 30, "all nodes know")
    for to, migrates, told in ((target, "no", False), (source, "no", False), (target, "yes", True)):
        source.ask("CONFIG", "SET", "cluster-allow-replica-migration", migrates)
        status, said = cluster.entremet("move", 0, "--to", place(to))
        assert status == 0 and ("becomes a replica" in said) == told, said
