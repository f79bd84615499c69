"""Replies in which a front has much to change are changed by its handlers, in whatever order they come: what a core does in one turn is bounded.

What a turn took is counted by the server, so that the result is the same on every machine: nothing here is timed.
"""

import json
import urllib.request

from harness.resp import encode
from harness.server import ALPHA, BETA, Tenant
from harness.turns import is_bounded, largest_turn
from harness.waiting import eventually

WIDE = Tenant("wide", extra="partitions = 8")
KEYS = 20_000


def names(count):
    return [f"a-name-of-{number:030}" for number in range(count)]


def stock(wire, keys):
    for first in range(0, len(keys), 1_000):
        assert wire.ask("MSET", *(word for key in keys[first : first + 1_000] for word in (key, key))) == b"OK"


def test_replies_that_show_many_keys_come_whole_and_in_their_places(engine, front):
    server, keys = front(), names(KEYS)
    own = {key.encode() for key in keys}
    with server.wire(ALPHA, timeout=60) as alpha, server.wire(BETA) as beta:
        stock(alpha, keys)
        for number in range(3_000):
            alpha.raw(encode("XADD", "stream", f"{number}-1", "field", f"value{number}"))
        assert all(alpha.read() for _ in range(3_000))
        entries = [[b"%d-1" % number, [b"field", b"value%d" % number]] for number in range(3_000)]
        requests = [("KEYS", "*name*"), ("INCR", "n"), ("XREAD", "STREAMS", "stream", "0"), ("DBSIZE",), ("INCR", "n")]
        requests += [("MULTI",), ("INCR", "n"), ("XREAD", "STREAMS", "stream", "0"), ("EXEC",), ("INCR", "n")]
        alpha.raw(b"".join(encode(*words) for words in requests))
        assert beta.ask("INCR", "n") == 1
        shown = alpha.read()
        assert len(shown) == KEYS and set(shown) == own
        assert [alpha.read() for _ in range(4)] == [1, [[b"stream", entries]], KEYS + 2, 2]
        assert [alpha.read() for _ in range(3)] == [b"OK", b"QUEUED", b"QUEUED"]
        assert [alpha.read() for _ in range(2)] == [[3, [[b"stream", entries]]], 4]
        assert is_bounded(largest_turn(server)), largest_turn(server)
        assert alpha.ask("FLUSHDB") == b"OK"
        assert [alpha.ask("DBSIZE"), beta.ask("DBSIZE")] == [0, 1]


def test_a_scan_looks_at_no_more_at_once_however_much_it_asks_for(engine, front):
    """The engine serves nobody else meanwhile."""
    server, keys = front(), names(KEYS)
    with server.wire(ALPHA, timeout=60) as alpha:
        stock(alpha, keys)
        found, cursor, pages = [], b"0", 0
        while pages == 0 or cursor != b"0":
            cursor, page = alpha.ask("SCAN", cursor, "COUNT", 10 * KEYS)
            # A step ends with the bucket that it is in.
            assert len(page) < 1_500
            found += page
            pages += 1
        assert {key.decode() for key in found} == set(keys)
        assert "not an integer" in str(alpha.attempt("SCAN", 0, "COUNT", "x"))
    assert is_bounded(largest_turn(server)), largest_turn(server)


def test_values_of_many_keys_in_several_partitions_come_together(make_cluster, before):
    server, keys = before(make_cluster(), tenants=(WIDE, BETA)), names(5_000)
    with server.wire(WIDE, timeout=60) as wide, server.wire(BETA) as beta:
        stock(wide, keys)
        large = b"v" * (1 << 20)
        assert wide.ask("MSET", "{a}", large, "{b}", large, "{c}", large) == b"OK"
        requests = [("MGET", *keys, "none", "{a}"), ("INCR", "n"), ("MGET", "{a}", "{b}", "none", "{c}"), ("EXISTS", *keys), ("INCR", "n")]
        wide.raw(b"".join(encode(*words) for words in requests))
        assert beta.ask("INCR", "n") == 1
        assert wide.read() == [*(key.encode() for key in keys), None, large]
        assert [wide.read() for _ in range(4)] == [1, [large, large, None, large], len(keys), 2]
    assert is_bounded(largest_turn(server)), largest_turn(server)


def test_who_leaves_while_a_reply_is_changed_leaves_nothing(engine, front):
    server = front()
    with server.wire(ALPHA, timeout=60) as alpha:
        stock(alpha, names(KEYS))
        for _ in range(10):
            with server.wire(ALPHA) as gone:
                gone.raw(encode("KEYS", "*") * 3)
        assert len(alpha.ask("KEYS", "*")) == KEYS

    def held():
        with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/api/tenants", timeout=20) as answer:
            return sum(tenant["request_memory_bytes"] for tenant in json.load(answer))

    eventually(lambda: held() == 0, 20, "what was held is given back")
