"""Replies that are larger than their tenant may hold: the front keeps its memory, others their replies, and every request is answered in its place."""

import json
import random
from urllib.request import urlopen

from harness.process import forget_peak, peak_bytes, resident_bytes
from harness.resp import ServerError, encode
from harness.server import BETA, Tenant
from harness.waiting import eventually

MIB = 1 << 20
BOUND = 16 * MIB
SMALL = Tenant("alpha", extra='request_memory = "16MiB"')
# Buffers of the allocator, and replies that are too small to be counted.
SLACK = 48 * MIB


def held(server):
    """Memory that requests and replies of the small tenant hold."""
    with urlopen(f"http://127.0.0.1:{server.admin_port}/api/tenants") as response:
        tenants = json.load(response)
    return next(tenant["request_memory_bytes"] for tenant in tenants if tenant["name"] == SMALL.name)


def is_too_large(reply):
    return isinstance(reply, ServerError) and "request_memory" in str(reply)


def test_a_client_that_reads_nothing_does_not_fill_the_front(front):
    """Sixty replies of 4 MiB: those that fit come, the others are errors in their places."""
    server = front(tenants=(SMALL, BETA))
    value = random.Random(1).randbytes(4 * MIB)
    with server.wire(SMALL, receive_buffer=4096) as deaf, server.wire(BETA) as beta:
        assert deaf.ask("SET", "large", value) == b"OK"
        before = resident_bytes(server.pid)
        forget_peak(server.pid)
        deaf.raw(encode("GET", "large") * 60 + encode("ECHO", "end"))
        for number in range(200):
            assert beta.ask("INCR", "n") == number + 1
        replies = [deaf.read() for _ in range(60)]
        assert deaf.read() == b"end"
        assert peak_bytes(server.pid) - before < BOUND + SLACK
        assert {reply for reply in replies if not is_too_large(reply)} == {value}
        assert any(map(is_too_large, replies))
        assert deaf.ask("GET", "large") == value, "there is room again"
    eventually(lambda: held(server) == 0, 20, "what was held is given back")


def test_a_reply_of_many_items_is_let_go_and_the_next_is_whole(front):
    """Its length is not known when it begins to come."""
    server = front(tenants=(SMALL, BETA))
    with server.wire(SMALL) as alpha:
        item = "x" * 1_000
        for _ in range(30):
            alpha.ask("RPUSH", "list", *([item] * 1_000))
        before = resident_bytes(server.pid)
        forget_peak(server.pid)
        alpha.raw(encode("LRANGE", "list", 0, -1) + encode("LLEN", "list") + encode("LRANGE", "list", 0, 2))
        assert is_too_large(alpha.read())
        assert alpha.read() == 30_000
        assert alpha.read() == [item.encode()] * 3
        assert alpha.ask("LRANGE", "list", 0, 9_999) == [item.encode()] * 10_000
        assert peak_bytes(server.pid) - before < BOUND + SLACK
    eventually(lambda: held(server) == 0, 20, "what was held is given back")


def test_who_leaves_before_the_reply_holds_nothing(front):
    server = front(tenants=(SMALL, BETA))
    with server.wire(SMALL) as alpha:
        assert alpha.ask("SET", "large", b"v" * (12 * MIB)) == b"OK"
        for _ in range(20):
            with server.wire(SMALL) as gone:
                gone.raw(encode("GET", "large") * 3)
        eventually(lambda: alpha.attempt("GET", "large") == b"v" * (12 * MIB), 20, "there is room again")
    eventually(lambda: held(server) == 0, 20, "what was held is given back")


def test_parts_of_one_reply_are_counted_together(make_cluster, before):
    """An MGET of values on several nodes."""
    cluster = make_cluster()
    server = before(cluster, tenants=(Tenant("alpha", extra='request_memory = "16MiB"\npartitions = 8'), BETA))
    value = b"v" * (3 * MIB)
    with server.wire(SMALL) as alpha:
        keys = [f"key {number}" for number in range(8)]
        for key in keys:
            assert alpha.ask("SET", key, value) == b"OK"
        assert alpha.ask("MGET", *keys[:2]) == [value] * 2
        assert is_too_large(alpha.attempt("MGET", *keys))
        assert alpha.ask("MGET", *keys[2:4]) == [value] * 2
    eventually(lambda: held(server) == 0, 20, "what was held is given back")
