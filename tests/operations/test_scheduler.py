"""A scheduler that is chosen while the server runs is the one that runs."""

import itertools
import json
import os
import select
import signal
import urllib.request

import pytest

from harness.resp import encode
from harness.server import ALPHA, BETA, Tenant
from harness.waiting import eventually

pytestmark = pytest.mark.ours

OPERATOR = Tenant("boss", extra="admin = true")
CLIENTS, KEYS = 400, 20_000
# Of these each reads from the disk, which may have other work.
READERS = 100
# These need a handler, of which there is one.
LONG = ("SCAN", "0", "COUNT", "1000")
SHORT = ("SCAN", "0", "COUNT", "1")
LARGE = ("MGET", *(f"key{key}" for key in range(1000)))
# Keys of a multiget that a core looks up before it hands it to a handler.
FEW = 8


def store(wire):
    for number in range(0, KEYS, 1000):
        wire.ask("MSET", *(word for key in range(number, number + 1000) for word in (f"key{key}", "v")))


def ahead(server, wires, wire, before=LONG, after=LONG):
    """The part of `wires`, which have all asked before `wire`, that have their answer when it has its own.

    `before` is what each of them asks, or a list of what each does.
    """
    each = before if isinstance(before, list) else [before] * len(wires)
    poll = select.poll()
    # It answers faster than these are sent: so it stands still until all are there.
    os.kill(server.pid, signal.SIGSTOP)
    try:
        for other, asks in zip(wires, each, strict=True):
            poll.register(other.sock, select.POLLIN)
            other.send(*asks)
        wire.send(*after)
    finally:
        os.kill(server.pid, signal.SIGCONT)
    wire.read()
    answered = len(poll.poll(0))
    for other in wires:
        other.read()
    return answered / len(wires)


@pytest.mark.parametrize(("first", "then"), [("fifo", "fair"), ("fair", "fifo")])
def test_handlers_go_by_a_scheduler_that_is_set_at_run_time(start, first, then):
    server = start(
        tenants=(ALPHA, BETA, OPERATOR), server_options="cores = 1", engine_options=f'handlers = 1\n[scheduler]\nrequest = "{first}"'
    )
    for tenant in (ALPHA, BETA):
        with server.wire(tenant) as wire:
            store(wire)
    wires = [server.wire(ALPHA) for _ in range(CLIENTS)]
    with server.wire(BETA) as wire, server.wire(OPERATOR) as operator:
        answered = {}
        for scheduler in (first, then):
            operator.ask("CONFIG", "SET", "entremet-scheduler", scheduler)
            answered[scheduler] = ahead(server, wires, wire)
    assert answered["fifo"] > 0.75 and answered["fair"] < 0.5, answered


def test_a_small_command_passes_large_ones_of_its_own_tenant(start):
    server = start(tenants=(ALPHA, OPERATOR), server_options="cores = 1", engine_options="handlers = 1")
    wires = [server.wire(ALPHA) for _ in range(CLIENTS)]
    with server.wire(ALPHA) as wire, server.wire(OPERATOR) as operator:
        store(wire)
        answered = {}
        for scheduler in ("fair", "lottery", "fifo"):
            operator.ask("CONFIG", "SET", "entremet-scheduler", scheduler)
            answered[scheduler] = ahead(server, wires, wire, LARGE, SHORT)
            # Those of one size go in the order in which they came.
            answered[f"{scheduler}, alike"] = ahead(server, wires, wire, LARGE, LARGE)
    assert answered["fair"] < 0.5 and answered["lottery"] < 0.5, answered
    assert answered["fifo"] > 0.75 and all(answered[f"{word}, alike"] > 0.75 for word in ("fair", "lottery", "fifo")), answered


def test_a_multiget_is_as_large_as_what_memory_has_not_of_it(start):
    server = start(tenants=(ALPHA, OPERATOR), server_options="cores = 1", engine_options="handlers = 1")
    schedulers = ("fair", "fifo")
    names = [f"key{number}" for number in range(len(schedulers) * 2 * (READERS + 2) * FEW)]
    with server.wire(ALPHA) as wire:
        # Each has a block of its own: what one reads tells nothing of the others.
        wire.raw(b"".join(encode("SET", name, b"v" * 4096) for name in names))
        for _ in names:
            wire.read()
    # What was written is in no cache any more.
    server.stop()
    server.start()
    left = iter(names)

    def unread(count=FEW):
        return ("MGET", *itertools.islice(left, count))

    wires = [server.wire(ALPHA) for _ in range(READERS)]
    with server.wire(ALPHA) as wire, server.wire(OPERATOR) as operator:
        answered = {}
        for scheduler in schedulers:
            operator.ask("CONFIG", "SET", "entremet-scheduler", scheduler)
            known = unread()
            wire.ask(*known)
            one = (*known[:-1], *unread(1)[1:])
            answered[scheduler] = ahead(server, wires, wire, [unread() for _ in wires], one)
            answered[f"{scheduler}, alike"] = ahead(server, wires, wire, [unread() for _ in wires], unread())
    assert answered["fair"] < 0.5, answered
    assert all(answered[word] > 0.75 for word in ("fifo", "fair, alike", "fifo, alike")), answered


def test_every_stage_shows_the_scheduler_that_it_goes_by(start):
    """Each core's stages say what they do themselves, and not what they were told."""
    server = start(tenants=(ALPHA, OPERATOR), server_options="cores = 2")

    def shown():
        with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/api/stages", timeout=10) as answer:
            return sorted((stage["stage"], stage["core"], stage["policy"]) for stage in json.load(answer))

    def of_all(scheduler):
        return [(stage, core, scheduler) for stage in ("handler", "request") for core in (0, 1)]

    eventually(lambda: shown() == of_all("fair"), 10, "all cores have told of their stages")
    with server.wire(OPERATOR) as operator:
        for scheduler in ("lottery", "fifo", "fair"):
            operator.ask("CONFIG", "SET", "entremet-scheduler", scheduler)
            eventually(lambda: shown() == of_all(scheduler), 10, f"all stages go by {scheduler}")
