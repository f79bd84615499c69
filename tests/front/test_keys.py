"""Every tenant has its own keys, whatever is asked; and one may have those that were there before."""

import pytest

from harness.resp import ServerError
from harness.server import ALPHA, BETA, Tenant

LEGACY = Tenant("legacy")


def test_a_tenant_s_keys_are_marked_at_the_engine_and_nowhere_else(engine, front):
    server = front()
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        assert alpha.ask("SET", "key", "a") == b"OK"
        assert beta.ask("GET", "key") is None
        assert beta.ask("RPUSH", "list", "x", "y") == 2
        assert alpha.ask("MGET", "key", "list") == [b"a", None]
        assert beta.ask("LRANGE", "list", 0, -1) == [b"x", b"y"]
        assert beta.ask("LMPOP", 2, "none", "list", "LEFT") == [b"list", [b"x"]]
        assert alpha.ask("XADD", "stream", "1-1", "f", "v") == b"1-1"
        assert alpha.ask("XREAD", "STREAMS", "stream", "0") == [[b"stream", [[b"1-1", [b"f", b"v"]]]]]
        with pytest.raises(ServerError, match="'stream'"):
            alpha.ask("XREADGROUP", "GROUP", "g", "c", "STREAMS", "stream", ">")
        assert alpha.ask("COMMAND", "GETKEYS", "GET", "key") == [b"key"]
    assert engine.keys() == {b"{@alpha}key", b"{@alpha}stream", b"{@beta}list"}


def test_resp3_is_passed_on_as_the_engine_writes_it(engine, front):
    server = front()
    with server.wire(ALPHA) as alpha:
        alpha.ask("HELLO", 3)
        alpha.ask("HSET", "hash", "a", "1")
        alpha.ask("XADD", "stream", "1-1", "f", "v")
        assert alpha.ask("HGETALL", "hash") == {b"a": b"1"}
        assert alpha.ask("XREAD", "STREAMS", "stream", "0") == {b"stream": [[b"1-1", [b"f", b"v"]]]}
        assert alpha.ask("GET", "none") is None
        alpha.ask("HELLO", 2)
        assert alpha.ask("HGETALL", "hash") == [b"a", b"1"]


def test_a_random_key_is_any_of_the_tenant_s_own(engine, front):
    with engine.wire() as direct:
        for number in range(5_000):
            direct.send("SET", f"old:{number}", "x")
        assert all(direct.read() == b"OK" for _ in range(5_000))
    server = front(tenants=(ALPHA, BETA, LEGACY), engine_options='unmarked = "legacy"')
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta, server.wire(LEGACY) as legacy:
        assert alpha.ask("RANDOMKEY") is None
        beta.ask("SET", "only", "x")
        assert [beta.ask("RANDOMKEY") for _ in range(5)] == [b"only"] * 5, "wherever it lies among others"
        alpha.ask("MSET", *(word for number in range(20) for word in (f"key:{number}", "x")))
        # Each is missed by so many with a chance of less than 1 in 10^9, if it has a third of its share.
        assert {alpha.ask("RANDOMKEY") for _ in range(1_500)} == {b"key:%d" % number for number in range(20)}
        assert all(legacy.ask("RANDOMKEY").startswith(b"old:") for _ in range(50))
        assert len({legacy.ask("RANDOMKEY") for _ in range(50)}) > 25
        alpha.ask("MULTI")
        assert "transaction" in str(alpha.attempt("RANDOMKEY"))


def test_walks_see_the_tenant_s_keys_only(engine, front):
    with engine.wire() as direct:
        for number in range(3_000):
            direct.send("SET", f"old:{number}", "x")
        assert all(direct.read() == b"OK" for _ in range(3_000))
    server = front(tenants=(ALPHA, BETA, LEGACY), engine_options='unmarked = "legacy"')
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta, server.wire(LEGACY) as legacy:
        for number in range(2_000):
            alpha.send("SET", f"key:{number}", "x")
        assert all(alpha.read() == b"OK" for _ in range(2_000))
        beta.ask("SET", "only", "x")
        own = {b"key:%d" % number for number in range(2_000)}
        assert set(alpha.ask("KEYS", "*")) == own
        assert set(alpha.ask("KEYS", "key:1?")) == {b"key:%d" % number for number in range(10, 20)}
        assert [alpha.ask("DBSIZE"), beta.ask("DBSIZE"), legacy.ask("DBSIZE")] == [2_000, 1, 3_000]
        assert scanned(alpha, "COUNT", 500) == own
        assert scanned(alpha, "MATCH", "key:*9", "TYPE", "string") == {key for key in own if key.endswith(b"9")}
        assert scanned(legacy) == {b"old:%d" % number for number in range(3_000)}
        assert alpha.ask("FLUSHALL") == b"OK"
        assert [alpha.ask("DBSIZE"), beta.ask("DBSIZE"), legacy.ask("DBSIZE")] == [0, 1, 3_000]
        assert legacy.ask("FLUSHDB", "ASYNC") == b"OK"
    assert engine.keys() == {b"{@beta}only"}


def scanned(wire, *options):
    keys, cursor = set(), b"0"
    while True:
        cursor, page = wire.ask("SCAN", cursor, *options)
        keys.update(page)
        if cursor == b"0":
            return keys


def test_who_has_no_mark_has_the_keys_that_were_there_and_no_other(engine, front):
    engine.ask("SET", "{user}:1", "old")
    server = front(tenants=(ALPHA, LEGACY), engine_options='unmarked = "legacy"')
    with server.wire(ALPHA) as alpha, server.wire(LEGACY) as legacy:
        alpha.ask("SET", "secret", "s")
        assert legacy.ask("GET", "{user}:1") == b"old"
        assert legacy.ask("SET", "new", "1") == b"OK"
        assert alpha.ask("EXISTS", "{user}:1", "new") == 0
        legacy.ask("RPUSH", "names", "{@alpha}secret")
        for words in (
            ("GET", "{@alpha}secret"),
            ("RENAME", "new", "{@alpha}secret"),
            ("SORT", "names", "BY", "nosort", "GET", "*"),
            ("SORT", "names", "STORE", "{@alpha}x"),
            ("COPY", "new", "{@"),
        ):
            assert "other tenants" in str(legacy.attempt(*words)), words
    assert engine.ask("GET", "new") == b"1"


def test_sort_reaches_the_tenant_s_own_keys_only(engine, front):
    server = front()
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        beta.ask("MSET", "w_1", "9", "v_1", "theirs")
        alpha.ask("RPUSH", "list", "1", "2")
        alpha.ask("MSET", "w_1", "2", "w_2", "1", "v_1", "mine")
        assert alpha.ask("SORT", "list", "BY", "w_*", "GET", "#", "GET", "v_*") == [b"2", None, b"1", b"mine"]
        assert alpha.ask("SORT", "list", "DESC", "STORE", "sorted") == 2
        assert alpha.ask("LRANGE", "sorted", 0, -1) == [b"2", b"1"]
    assert b"{@alpha}sorted" in engine.keys() and b"sorted" not in engine.keys()


def test_what_cannot_be_kept_apart_is_refused_by_name(front):
    server = front()
    with server.wire(ALPHA) as alpha:
        for words in (
            ("EVAL", "return 1", 0),
            ("SCRIPT", "FLUSH"),
            ("SCRIPT", "KILL"),
            ("FCALL", "f", 0),
            ("PUBSUB", "NUMPAT"),
            ("MIGRATE", "127.0.0.1", 1, "key", 0, 10),
            ("SELECT", 3),
            ("MOVE", "key", 1),
            ("COPY", "key", "other", "DB", 1),
            ("SWAPDB", 0, 1),
            ("WAIT", 0, 0),
            ("GEORADIUS", "geo", 0, 0, 1, "km", "STORE", "a", "STORE", "b"),
            ("FUNCTION", "LIST"),
            ("DEBUG", "SLEEP", 0),
            ("REPLICAOF", "127.0.0.1", 1),
            ("ENTREMET.RANGE", "-", "+"),
        ):
            reply = alpha.attempt(*words)
            assert isinstance(reply, ServerError), words
            assert words[0].lower() in str(reply).lower() or "certain" in str(reply) or "database" in str(reply), (words, reply)
        assert alpha.ask("SELECT", 0) == b"OK"
        assert alpha.ask("PING") == b"PONG"
