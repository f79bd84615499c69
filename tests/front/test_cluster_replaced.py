"""Nodes die in the middle of a move, and their replicas take their places: whoever goes on finds all keys."""

import subprocess

import pytest
from moving import alpha_at, slot_of

from harness.clients import all_there, fill
from harness.cluster import others, place, tells_replicas_of_moves
from harness.server import ALPHA
from harness.waiting import eventually


def half_from_a_source_that_dies(make_cluster, before, front_too=False):
    """A move of which a third of the keys have gone when their source dies, perhaps with the front; its replica has the others, and its place."""
    cluster, server, slot, source, target = alpha_at(make_cluster, before, replicas=1)
    with server.wire(ALPHA) as alpha:
        fill(alpha, 300)
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
    cluster.owner(slot_of(cluster, "{@}")).ask("HSET", "{@}moves", slot, f"{source.id} {target.id} 1 - 0")
    keys = source.ask("CLUSTER", "GETKEYSINSLOT", slot, 100)
    source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 10_000, "KEYS", *keys)
    synced = lambda: source.ask("INFO", "replication").decode().count("state=online") == 1
    eventually(synced, 30, "the replica is in sync")
    offset = lambda node: int(node.ask("INFO", "replication").decode().split("master_repl_offset:")[1].split()[0])
    replica = cluster.replicas[cluster.masters.index(source)]
    eventually(lambda: offset(replica) >= offset(source), 30, "the replica has all of it")
    if front_too:
        server.kill()
    source.kill()
    eventually(lambda: b"role:master" in replica.ask("INFO", "replication"), 60, "the replica takes over")
    return cluster, server, slot, source, target, replica


def test_a_source_that_fails_over_in_the_middle_is_followed(make_cluster, before):
    cluster, server, slot, source, target, _ = half_from_a_source_that_dies(make_cluster, before)
    # A node that the slot comes to does not hear that another has it now.
    done = lambda: cluster.entremet("move", "alpha", "--to", place(target))
    eventually(lambda: done()[0] == 0, 60, "it is moved")
    assert cluster.owner(slot) is target
    with server.wire(ALPHA, timeout=60) as alpha:
        eventually(lambda: all_there(alpha, 300), 30, "all keys are there")


@pytest.mark.parametrize("how", ("resume", "back", "control", "drain"))
def test_a_source_that_is_back_as_a_replica_ends_no_move(how, make_cluster, before):
    """Of Redis, the target knows nobody who has the slot then, and takes in no key of it until it is told."""
    cluster, server, slot, source, target, replica = half_from_a_source_that_dies(make_cluster, before, front_too=True)
    source.start()
    known = lambda: any(begin <= slot <= end for begin, end, *_ in target.ask("CLUSTER", "SLOTS"))
    if not tells_replicas_of_moves(target):
        eventually(lambda: not known(), 60, "the target knows no owner")
    up = lambda: all(node.info()["cluster_state"] == "ok" for node in cluster.nodes)
    eventually(lambda: up() and b"master_link_status:up" in source.ask("INFO", "replication"), 30, "it is a replica in step")
    if how == "control":
        with subprocess.Popen(cluster.command("control"), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                eventually(lambda: b"{@}moves" not in cluster.keys(), 60, "the move is at its end")
            finally:
                process.terminate()
    else:
        words = {"resume": ("move", "--resume"), "back": ("move", slot, "--to", place(replica)), "drain": ("drain", place(replica))}
        status, said = cluster.entremet(*words[how])
        if how == "back" and tells_replicas_of_moves(replica):
            # It knows that the slot goes, and keys have gone.
            assert status == 1 and "first let all arrive there" in said, said
            how = "resume"
            status, said = cluster.entremet(*words[how])
        assert status == 0, said
    end = replica if how == "back" else target
    assert end.port_of(slot) == end.port
    server.start()
    with server.wire(ALPHA, timeout=60) as alpha:
        eventually(lambda: all_there(alpha, 300), 30, "all keys are there")
    eventually(lambda: cluster.entremet("check") == (0, "nothing is wrong\n"), 30, "nothing is wrong")


@pytest.mark.parametrize("front", ("stays", "comes later"))
def test_keys_that_have_gone_from_a_source_that_failed_over_are_found(front, make_cluster, before):
    """Who has its place does not know by itself that they have gone, and would make them anew."""
    cluster, server, slot, source, target, replica = half_from_a_source_that_dies(make_cluster, before, front_too=front == "comes later")
    if front == "comes later":
        server.start()
    names = [f"key:{number}" for number in range(300)]
    with server.wire(ALPHA, timeout=60) as alpha:
        answers = lambda: not str(alpha.attempt("GET", names[0])).startswith("ERR")
        eventually(answers, 60, "the front finds the replica")
        found = [alpha.ask("GET", name) for name in names]
        assert all(value.startswith(b"%d:" % number) for number, value in enumerate(found)), found
        # Once more as a replica: the target knows all the same who has the slot.
        source.start()
        eventually(lambda: b"master_link_status:up" in source.ask("INFO", "replication"), 60, "it is a replica in step")
        for number, name in enumerate(names):
            assert alpha.ask("APPEND", name, "!") == len(found[number]) + 1
        assert alpha.ask("SET", "new", "1") == b"OK"
        assert target.ask("CLUSTER", "COUNTKEYSINSLOT", slot) == 101 and replica.ask("CLUSTER", "COUNTKEYSINSLOT", slot) == 200
        status, said = cluster.entremet("move", "--resume")
        assert status == 0 and target.port_of(slot) == target.port, said
        assert alpha.ask("MGET", *names, "new") == [*(value + b"!" for value in found), b"1"]
    eventually(lambda: cluster.entremet("check") == (0, "nothing is wrong\n"), 30, "nothing is wrong")


def half_at_a_target_that_dies(make_cluster, before):
    """A move of which half of the keys have gone when their node dies; its replica has them and its place. Returns the cluster and its front, the slot, who has it, who died, who has the keys, and a third."""
    cluster, server, slot, source, _ = alpha_at(make_cluster, before, replicas=1)
    keeper = cluster.owner(slot_of(cluster, "{@}"))
    target = next(node for node in others(cluster, source) if node is not keeper)
    third = next(node for node in others(cluster, source) if node is not target)
    with server.wire(ALPHA) as alpha:
        fill(alpha, 300)
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
    keeper.ask("HSET", "{@}moves", slot, f"{source.id} {target.id} 1 - 0")
    keys = source.ask("CLUSTER", "GETKEYSINSLOT", slot, 150)
    source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 10_000, "KEYS", *keys)
    replica = cluster.replicas[cluster.masters.index(target)]
    eventually(lambda: set(keys) <= replica.keys(), 30, "the replica has all of it")
    its = next(begin for begin, _, master, *_ in source.ask("CLUSTER", "SLOTS") if master[1] == target.port)
    target.kill()
    followed = lambda: all(node.port_of(its) == replica.port for node in (source, third, replica))
    eventually(followed, 60, "the replica takes over")
    return cluster, server, slot, source, target, replica, third


@pytest.mark.parametrize("how", ["drain", "move", "resume", "forgotten"])
def test_keys_at_a_target_that_died_are_followed_to_who_has_its_place(how, make_cluster, before):
    cluster, server, slot, source, target, replica, third = half_at_a_target_that_dies(make_cluster, before)
    if how == "forgotten":
        # As after a failover of the source: what went is nowhere that clients look.
        for node in (source, replica):
            node.ask("CLUSTER", "SETSLOT", slot, "STABLE")
        cluster.owner(slot_of(cluster, "{@}")).ask("DEL", "{@}moves")
    status, said = cluster.entremet("check")
    if how != "forgotten" and tells_replicas_of_moves(replica):
        assert status == 1 and f"slot {slot} (alpha) is on the way from {place(source)}" in said and "entremet cluster move --resume" in said, said
        why = {third: f"first let it arrive (--to {place(replica)})", source: f"150 keys are at {place(replica)} already"}
    else:
        mends = f"entremet cluster move {slot} --to {place(replica)}"
        assert status == 1 and f"150 keys of slot {slot} (alpha) are at {place(replica)}" in said and mends in said, said
        why = dict.fromkeys((third, source), f"150 keys of slot {slot} are at {place(replica)}: first let all of it arrive there, {mends}")
    for node, reason in why.items():
        status, said = cluster.entremet("move", "alpha", "--to", place(node))
        assert status == 1 and reason in said, said
    words = {"drain": ("drain", place(source)), "resume": ("move", "--resume")}
    status, said = cluster.entremet(*words.get(how, ("move", "alpha", "--to", place(replica))))
    assert status == 0 and replica.port_of(slot) == replica.port, said
    with server.wire(ALPHA, timeout=60) as alpha:
        eventually(lambda: all_there(alpha, 300), 30, "all keys are there")
        if how == "resume" and tells_replicas_of_moves(replica):
            # Not understood, see docs/decisions/0060-valkey.md.
            pytest.xfail("Valkey 9.1.2: who comes back empty at once is its replacement's master again, which copies that")
        # The old node comes back as a replica of who has its place.
        target.start()

        def joined():
            said = target.attempt("CLUSTER", "REPLICATE", replica.id)
            assert said == b"OK", said
            return True

        eventually(joined, 60, "it has its master")
        eventually(lambda: cluster.entremet("check") == (0, "nothing is wrong\n"), 30, "nothing is wrong")
        status, said = cluster.entremet("move", "alpha", "--to", place(third))
        assert status == 0 and all_there(alpha, 300), said
        assert cluster.entremet("check") == (0, "nothing is wrong\n")


def test_copies_at_a_node_without_slots_are_in_nobodys_way(make_cluster, before):
    """As at a master that was replaced, lost its slots one by one, and so was not made a replica."""
    cluster, server, slot, source, target = alpha_at(make_cluster, before)
    left = cluster.fresh(0)
    status, said = cluster.entremet("add", place(left))
    assert status == 0, said
    with server.wire(ALPHA) as alpha:
        fill(alpha, 300)
        left.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        keys = source.ask("CLUSTER", "GETKEYSINSLOT", slot, 300)
        source.ask("MIGRATE", "127.0.0.1", left.port, "", 0, 10_000, "COPY", "KEYS", *keys)
        left.ask("CLUSTER", "SETSLOT", slot, "STABLE")
        status, said = cluster.entremet("check")
        assert status == 1 and f"300 keys of slot {slot} (alpha) are at {place(left)}, which has no slots, and {place(source)} has all of them" in said, said
        assert "cluster move" not in said, said
        status, said = cluster.entremet("move", "alpha", "--to", place(target))
        assert status == 0 and target.port_of(slot) == target.port and all_there(alpha, 300), said
        # What nobody else has is no copy.
        alpha.ask("DEL", "key:7")
        status, said = cluster.entremet("check")
        assert status == 1 and f"cluster move {slot} --to {place(left)}" in said, said
        left.ask("FLUSHALL")
        assert all(cluster.entremet("check") == (0, "nothing is wrong\n") for _ in range(2))
