"""Clients whose map of the cluster is old, and thousands that come back at once: they are served, and nobody else waits for them."""

import resource
import selectors
import socket
import threading

import pytest

from harness.cluster import know_each_other, others
from harness.resp import ServerError, encode
from harness.server import ALPHA, Tenant
from harness.waiting import at_work, eventually

WIDE = Tenant("wide", extra="partitions = 12")
# More than a front takes at a time of those that have not logged in (`server.max_newcomers`).
COMEBACKS = 2_000
NAMES = [f"key:{number}" for number in range(100)]


@pytest.fixture
def trio(make_cluster, before_node):
    """Three engines, and a front before each, which all know of each other."""
    cluster = make_cluster()
    fronts = [before_node(cluster, node, tenants=(ALPHA, WIDE), server_options="cores = 1") for node in cluster.masters]
    know_each_other(fronts, ALPHA)
    return cluster, fronts


def homes(front):
    """By virtual slot: the port of the front that is its home, as this front has it."""
    with front.aware_wire(WIDE) as wire:
        return {slot: master[1] for begin, end, master, *_ in wire.ask("CLUSTER", "SLOTS") for slot in range(begin, end + 1)}


def test_who_goes_by_an_old_map_is_answered_or_sent_to_the_right_front(trio):
    cluster, fronts = trio
    with fronts[0].wire(WIDE) as wire:
        for name in NAMES:
            wire.ask("SET", name, name)
        slot_of = {name: wire.ask("CLUSTER", "KEYSLOT", name) for name in NAMES}
    old = homes(fronts[0])
    for slot in sorted({cluster.nodes[0].ask("CLUSTER", "KEYSLOT", key) for key in cluster.keys() if key.startswith(b"{@wide")}):
        cluster.move(slot, others(cluster, cluster.owner(slot))[0])
    eventually(lambda: len({tuple(sorted(homes(front).items())) for front in fronts}) == 1 and homes(fronts[0]) != old, 30, "all fronts have the same new map")
    wires = {front.aware: front.aware_wire(WIDE) for front in fronts}

    def sent_on(name):
        """Whether who asks the front of the old map is sent on, if it is not answered."""
        answer = wires[old[slot_of[name]]].attempt("GET", name)
        if not isinstance(answer, ServerError):
            assert answer == name.encode()
            return False
        moved, slot, place = str(answer).split(" ")
        assert (moved, int(slot)) == ("MOVED", slot_of[name]), answer
        assert wires[int(place.rpartition(":")[2])].ask("GET", name) == name.encode()
        return True

    # For a while, until all know it, each serves what it is asked.
    eventually(lambda: all([sent_on(name) for name in NAMES]), 60, "all are sent on")
    for wire in wires.values():
        wire.close()


class Neighbour:
    """A client that asks for one thing after the other until it is stopped."""

    def __init__(self, front):
        self.front, self.ended, self.count, self.wrong = front, threading.Event(), 0, []
        self.threads = [threading.Thread(target=self.run)]

    def run(self):
        with self.front.wire(ALPHA, timeout=60) as wire:
            while not self.ended.is_set():
                answer = wire.attempt("INCR", "count")
                self.count += 1
                if answer != self.count:
                    self.wrong.append(answer)


def come_back(front, count):
    """So many clients connect at once, log in and ask for something. Yields what each was told, once it was; who is closed before that comes again then."""
    request = encode("AUTH", WIDE.name, WIDE.password) + encode("GET", NAMES[0])
    closed, is_whole = 0, lambda got: got.count(b"\r\n") >= 3
    with selectors.DefaultSelector() as waiting:

        def connect():
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", front.port))
            waiting.register(sock, selectors.EVENT_WRITE, bytearray())

        def is_over(sock, got, events):
            """Whether it has been told all, or is closed."""
            try:
                if events & selectors.EVENT_WRITE:
                    sock.sendall(request)
                    waiting.modify(sock, selectors.EVENT_READ, got)
                    return False
                more = sock.recv(1_000)
            except ConnectionError:
                return True
            got.extend(more)
            return not more or is_whole(got)

        try:
            for _ in range(count):
                connect()
            while waiting.get_map() or closed:
                ready = waiting.select(timeout=60)
                assert ready, f"{len(waiting.get_map())} are not answered"
                for key, events in ready:
                    if not is_over(key.fileobj, key.data, events):
                        continue
                    waiting.unregister(key.fileobj)
                    key.fileobj.close()
                    whole = is_whole(key.data)
                    closed += not whole
                    if whole:
                        yield bytes(key.data)
                    if closed and (whole or not waiting.get_map()):
                        closed -= 1
                        connect()
        finally:
            for key in list(waiting.get_map().values()):
                key.fileobj.close()


def test_two_thousand_that_come_back_at_once_are_served_and_keep_nobody_waiting(trio):
    _, fronts = trio
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(2 * COMEBACKS, hard)), hard))
    front = fronts[0]
    with front.wire(WIDE) as wire:
        wire.ask("SET", NAMES[0], "value")
    # Nobody is remembered by a front that has begun anew.
    front.kill()
    front.start()
    know_each_other(fronts, ALPHA)
    neighbour = Neighbour(front)
    with at_work(neighbour.ended, neighbour.threads):
        eventually(lambda: neighbour.count > 10, 30, "it is served")
        before, told = neighbour.count, []
        for answer in come_back(front, COMEBACKS):
            told.append(answer)
        during = neighbour.count - before
    assert told == [b"+OK\r\n$5\r\nvalue\r\n"] * COMEBACKS, set(told)
    assert not neighbour.wrong, neighbour.wrong[:3]
    # It has one connection, and is one of two tenants.
    assert during > COMEBACKS // 20, during
