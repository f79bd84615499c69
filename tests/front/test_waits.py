"""Requests that wait at the engine until something comes: each waits for itself, holds nobody up, and is over when its client goes."""

import json
import re
import select
import signal
import socket
import urllib.request

import pytest

from harness.resp import ServerError, encode
from harness.server import ALPHA, BETA, Tenant
from harness.waiting import eventually

WIDE = Tenant("wide", extra="partitions = 4")


def blocked(engine):
    """How many clients wait at an engine."""
    said = engine.ask("INFO", "clients").decode()
    return int(next(line for line in said.splitlines() if line.startswith("blocked_clients:")).split(":")[1])


def waiting(server):
    """How many wait, as the server says."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/api/server", timeout=20) as answer:
        return json.load(answer)["engine_links"]["waiting"]


def wait_for(engine, count):
    eventually(lambda: blocked(engine) == count, 20, f"{count} clients wait")


@pytest.fixture
def waiters():
    """A function that opens a connection and sends a request that waits."""
    opened = []

    def wait(server, tenant, *words):
        wire = server.wire(tenant)
        opened.append(wire)
        wire.raw(encode(*words))
        return wire

    yield wait
    for wire in opened:
        wire.close()


def test_what_comes_goes_to_who_has_waited_longest_and_nobody_else_waits(engine, front, waiters):
    server = front(server_options="cores = 2")
    waiting = []
    # More than may be out at the engine at once.
    for number in range(150):
        waiting.append(waiters(server, ALPHA, "BLPOP", "queue", "other", 0))
        wait_for(engine, number + 1)
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        for number in range(200):
            assert (alpha.ask("INCR", "n"), beta.ask("INCR", "n")) == (number + 1, number + 1)
        assert beta.ask("RPUSH", "queue", "theirs") == 1, "it is another's queue"
        for number, wire in enumerate(waiting):
            assert alpha.ask("RPUSH", "queue", number) == 1
            assert wire.read() == [b"queue", b"%d" % number]
        # Each goes on as before.
        for wire in waiting:
            assert wire.ask("ECHO", "here") == b"here"
        assert [alpha.ask("LLEN", "queue"), beta.ask("LLEN", "queue")] == [0, 1]
    wait_for(engine, 0)


def test_every_command_that_waits(engine, front, waiters):
    server = front()
    with server.wire(ALPHA) as alpha:
        alpha.ask("XADD", "stream", "1-1", "f", "v")
        alpha.ask("XGROUP", "CREATE", "stream", "group", "$")
        cases = [
            (("BLPOP", "a", 0), ("RPUSH", "a", "x"), [b"a", b"x"]),
            (("BRPOP", "b", 0), ("RPUSH", "b", "x"), [b"b", b"x"]),
            (("BLMOVE", "c", "to", "LEFT", "LEFT", 0), ("RPUSH", "c", "x"), b"x"),
            (("BRPOPLPUSH", "d", "to", 0), ("RPUSH", "d", "x"), b"x"),
            (("BLMPOP", 0, 2, "none", "e", "LEFT"), ("RPUSH", "e", "x"), [b"e", [b"x"]]),
            (("BZPOPMIN", "f", 0), ("ZADD", "f", 1, "m"), [b"f", b"m", b"1"]),
            (("BZPOPMAX", "g", 0), ("ZADD", "g", 1, "m"), [b"g", b"m", b"1"]),
            (("BZMPOP", 0, 1, "h", "MIN"), ("ZADD", "h", 1, "m"), [b"h", [[b"m", b"1"]]]),
            (("XREAD", "BLOCK", 0, "STREAMS", "stream", "$"), ("XADD", "stream", "2-1", "f", "w"), [[b"stream", [[b"2-1", [b"f", b"w"]]]]]),
            (("XREADGROUP", "GROUP", "group", "me", "BLOCK", 0, "STREAMS", "new", ">"), None, "NOGROUP"),
        ]
        for words, push, expected in cases:
            wire = waiters(server, ALPHA, *words)
            if push is None:
                assert expected in str(wire.read())
                continue
            wait_for(engine, 1)
            alpha.ask(*push)
            assert wire.read() == expected, words
        assert alpha.ask("LRANGE", "to", 0, -1) == [b"x", b"x"]
        # What is there need not be waited for, and a wait may end with nothing.
        alpha.ask("RPUSH", "a", "1", "2")
        assert alpha.ask("BLPOP", "a", 0) == [b"a", b"1"]
        assert alpha.ask("XREAD", "BLOCK", 1, "STREAMS", "stream", "$") is None
        assert alpha.ask("BLPOP", "none", "0.05") is None
        assert "timeout" in str(alpha.attempt("BLPOP", "none", "x"))
        assert "WRONGTYPE" in str(alpha.attempt("BLPOP", "stream", 0))
        alpha.ask("HELLO", 3)
        assert alpha.ask("BLPOP", "a", 0) == [b"a", b"2"]
        assert alpha.ask("BLPOP", "none", "0.05") is None


def test_requests_around_one_that_waits_are_answered_in_their_order(engine, front, waiters):
    server = front()
    with server.wire(ALPHA) as alpha, server.wire(ALPHA) as other:
        alpha.raw(b"".join(encode(*words) for words in (("INCR", "n"), ("BLPOP", "queue", 0), ("INCR", "n"), ("ECHO", "x"), ("BRPOP", "queue", 0), ("GET", "n"))))
        assert alpha.read() == 1
        wait_for(engine, 1)
        assert other.ask("GET", "n") == b"1"
        other.ask("RPUSH", "queue", "first")
        assert [alpha.read() for _ in range(3)] == [[b"queue", b"first"], 2, b"x"]
        wait_for(engine, 1)
        other.ask("RPUSH", "queue", "second")
        assert [alpha.read() for _ in range(2)] == [[b"queue", b"second"], b"2"]


def test_who_has_gone_is_given_nothing(engine, front):
    server = front(server_options="cores = 2")
    with server.wire(ALPHA) as alpha:
        for _ in range(20):
            with server.wire(ALPHA) as gone:
                gone.raw(encode("BLPOP", "queue", 0))
                wait_for(engine, 1)
            wait_for(engine, 0)
        assert alpha.ask("RPUSH", "queue", "kept") == 1
        assert alpha.ask("LRANGE", "queue", 0, -1) == [b"kept"]
        # And one that is ended by others.
        with server.wire(ALPHA) as killed:
            killed.ask("DEL", "queue")
            number = killed.ask("CLIENT", "ID")
            killed.raw(encode("BLPOP", "queue", 0))
            wait_for(engine, 1)
            assert alpha.ask("CLIENT", "KILL", "ID", number) == 1
            wait_for(engine, 0)


def test_who_has_gone_before_it_could_wait_is_given_nothing(engine, front):
    server = front(server_options="cores = 1")
    with server.wire(ALPHA) as alpha:
        for leaves in (lambda wire: wire.sock.shutdown(socket.SHUT_WR), lambda wire: wire.close()):
            gone = server.wire(ALPHA)
            assert gone.ask("GET", "key") is None
            engine.hold()
            gone.raw(encode("GET", "key") + encode("BLPOP", "queue", 0))
            leaves(gone)
            # The same core has heard of both by then.
            assert alpha.ask("PING") == b"PONG"
            engine.release()
            assert alpha.ask("GET", "key") is None
            eventually(lambda: waiting(server) == 0 and blocked(engine) == 0, 20, "nobody waits")
            assert alpha.ask("RPUSH", "queue", "kept") == 1
            assert alpha.ask("LRANGE", "queue", 0, -1) == [b"kept"]
            alpha.ask("DEL", "queue")
            gone.close()


def test_one_tenant_takes_at_most_half_of_the_places(engine, front, waiters):
    server = front(engine_options="waiting = 20")
    for number in range(10):
        waiters(server, ALPHA, "BLPOP", "queue", 0)
        wait_for(engine, number + 1)
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        assert "engine.waiting" in str(alpha.attempt("BLPOP", "queue", 0))
        assert alpha.ask("PING") == b"PONG"
        beta.raw(encode("BLPOP", "queue", 0))
        wait_for(engine, 11)
        with server.wire(BETA) as other:
            other.ask("RPUSH", "queue", "x")
        assert beta.read() == [b"queue", b"x"]
        alpha.ask("RPUSH", "queue", "x")
        wait_for(engine, 9)
        assert alpha.ask("BLPOP", "queue", "0.01") is None, "there is room again"


def test_a_long_wait_is_no_silence_of_the_engine_s(engine, front, waiters):
    server = front(engine_options='timeout = "2s"')
    wire = waiters(server, ALPHA, "BLPOP", "queue", 5)
    with server.wire(BETA) as beta:
        assert beta.ask("PING") == b"PONG"
        assert wire.read() is None
        # One that is gone is told of, and the next finds the engine again.
        wire.raw(encode("BLPOP", "queue", 0))
        wait_for(engine, 1)
        engine.kill()
        assert "whether the request was done is not known" in str(wire.read())
        engine.start()
        eventually(lambda: not isinstance(beta.attempt("GET", "x"), ServerError), 20, "it is found again")
        eventually(lambda: wire.attempt("BLPOP", "queue", "0.01") is None, 20, "and may be waited at")


def test_what_a_client_waits_for_on_purpose_is_no_latency(engine, front):
    server = front(tenants=(Tenant("alpha", extra="admin = true"), BETA))
    with server.wire(ALPHA) as alpha:
        alpha.raw(encode("ECHO", "before") + encode("BLPOP", "none", 3))
        assert alpha.read() == b"before", "it need not wait for what is behind it"
        assert alpha.read() is None
        assert alpha.ask("SLOWLOG", "LEN") == 0
        slowest = [line.decode() for line in alpha.ask("ENTREMET", "SLOWEST", "alpha")]
        assert slowest and not any(re.match("[0-9.]+ s: blpop", line) for line in slowest), slowest


def test_a_server_that_ends_does_not_wait_for_who_may_wait_for_ever(engine, front, waiters):
    server = front(server_options='drain = "60s"')
    wire = waiters(server, ALPHA, "BLPOP", "queue", 0)
    wait_for(engine, 1)
    server.process.send_signal(signal.SIGTERM)
    with pytest.raises((EOFError, ConnectionError)):
        wire.read()
    assert server.process.wait(20) == 0
    wait_for(engine, 0)


def test_a_wait_goes_with_a_slot_that_moves(make_cluster, before, waiters):
    cluster = make_cluster()
    server = before(cluster, tenants=(WIDE, BETA))
    wire = waiters(server, WIDE, "BLPOP", "{one}queue", "{one}other", 0)

    def waits_at():
        return [node for node in cluster.masters if blocked(node)]

    def slot():
        with server.wire(WIDE) as wide:
            wide.ask("SET", "{one}key", "x")
        return next(cluster.nodes[0].ask("CLUSTER", "KEYSLOT", key) for key in cluster.keys() if key.endswith(b"{one}key"))

    eventually(lambda: len(waits_at()) == 1, 20, "it waits")
    source, moved = waits_at()[0], slot()
    assert cluster.owner(moved) is source
    target = next(node for node in cluster.masters if node is not source)
    cluster.move(moved, target)
    eventually(lambda: waits_at() == [target], 20, "it waits at the other node")
    with server.wire(WIDE) as wide:
        assert "CROSSSLOT" in str(wide.attempt("BLPOP", "{one}queue", "{two}queue", "{three}queue", "{four}queue", "{five}queue", 0))
        assert wide.ask("RPUSH", "{one}other", "x") == 1
        assert wire.read() == [b"{one}other", b"x"]


def test_a_wait_may_be_for_many_keys(engine, front, waiters):
    """So many that a handler writes the request."""
    server = front()
    wire = waiters(server, ALPHA, "BLPOP", *(f"queue{number}" for number in range(300)), 0)
    wait_for(engine, 1)
    with server.wire(ALPHA) as alpha:
        alpha.ask("RPUSH", "queue299", "x")
    assert wire.read() == [b"queue299", b"x"]


def blocks(wire, ident):
    """Whether a connection of the tenant's is shown as one that waits."""
    line = wire.ask("CLIENT", "LIST", "ID", ident).decode()
    return "b" in line.split(" flags=")[1].split(" ")[0]


def answered(wire):
    """Whether something has come for a connection."""
    return bool(select.select([wire.sock], [], [], 0)[0])


def test_who_waits_can_be_let_go(engine, front, waiters):
    server = front(server_options="cores = 2")
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        alpha.ask("XADD", "stream", "1-1", "f", "v")
        for words in [
            ("BLPOP", "a", 0),
            ("BLMOVE", "a", "to", "LEFT", "LEFT", 0),
            ("BZPOPMIN", "a", 0),
            ("XREAD", "BLOCK", 0, "STREAMS", "stream", "$"),
        ]:
            wire = server.wire(ALPHA)
            ident = wire.ask("CLIENT", "ID")
            for how in [(), ("TIMEOUT",), ("ERROR",), ("error",)]:
                wire.raw(encode(*words))
                eventually(lambda: blocks(alpha, ident), 20, "it is shown")
                assert beta.ask("CLIENT", "UNBLOCK", ident) == 0, "it is another's"
                assert alpha.ask("CLIENT", "UNBLOCK", ident, *how) == 1
                if how and how[0].lower() == "error":
                    assert str(wire.read()).startswith("UNBLOCKED")
                else:
                    assert wire.read() is None, words
                assert alpha.ask("CLIENT", "UNBLOCK", ident) == 0 and not blocks(alpha, ident)
            assert wire.ask("ECHO", "here") == b"here"
            wire.close()
        assert alpha.ask("CLIENT", "UNBLOCK", 1 << 40) == 0
        assert "reason should be" in str(alpha.attempt("CLIENT", "UNBLOCK", ident, "NOSUCH"))
    wait_for(engine, 0)


def test_who_is_let_go_loses_nothing_and_nobody_else_is(engine, front, waiters):
    """Whatever the moment: before the engine has come to the request, or as something comes for it."""
    server = front(server_options="cores = 2")
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta, server.wire(ALPHA) as worker:
        ident, pushed, popped = worker.ask("CLIENT", "ID"), 0, 0
        for number in range(300):
            others = waiters(server, BETA, "BLPOP", "theirs", 0)
            worker.raw(encode("BLPOP", "queue", 0))
            alpha.raw(encode("CLIENT", "UNBLOCK", ident))
            if number % 3 == 0:
                beta.raw(encode("ECHO", "x"))
                assert beta.read() == b"x"
            if number % 2 == 0:
                pushed += 1
                assert engine.ask("RPUSH", "{@alpha}queue", number) >= 0
            unblocked = alpha.read()
            if number % 2 and unblocked == 0:
                # It was asked before the request had come, or something was there.
                eventually(lambda: answered(worker) or alpha.ask("CLIENT", "UNBLOCK", ident) == 1, 20, "it waits")
            came = worker.read()
            popped += came is not None
            # A neighbour waits by a link that may have been the worker's.
            assert beta.ask("RPUSH", "theirs", number) == 1
            assert others.read() == [b"theirs", b"%d" % number]
            others.close()
        assert popped + alpha.ask("LLEN", "queue") == pushed
    wait_for(engine, 0)


def test_who_is_let_go_while_the_engine_pauses_is_when_it_goes_on(engine, front):
    """Redis 7.0 panics if it is told to let go a request that it holds back."""
    server = front()
    with server.wire(ALPHA) as alpha, server.wire(ALPHA) as worker:
        ident = worker.ask("CLIENT", "ID")
        engine.ask("CLIENT", "PAUSE", 1_500, "WRITE")
        worker.raw(encode("BLPOP", "queue", 0))
        eventually(lambda: blocks(alpha, ident), 20, "it is shown")
        assert alpha.ask("CLIENT", "UNBLOCK", ident) == 1
        assert worker.read() is None
        said = engine.ask("INFO", "commandstats").decode()
        assert 1 <= int(re.search(r"cmdstat_client\|unblock:calls=(\d+)", said)[1]) < 10
