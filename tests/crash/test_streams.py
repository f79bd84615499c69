"""What clients do with replies that are made as they take them, other than take them."""

import pytest
from bystander import Bystander

from harness.encrypted import Encrypted, listening
from harness.resp import ServerError, encode
from harness.server import ALPHA, BETA, Server, Tenant, free_port
from harness.waiting import eventually

MEBIBYTE = 1 << 20
# Together more than a reply may hold (8 MiB), and than what lies in the sockets between server and
# client.
VALUES = 8
VALUE_BYTES = 4 * MEBIBYTE
KEYS = [f"large:{index}" for index in range(VALUES)]
FIELDS = [f"{index}".encode() for index in range(VALUES)]
# As many as a tenant may have under way (crates/server/src/tenants/streams.rs).
PLACES = 4
ROOT = Tenant("root", extra="admin = true")

pytestmark = pytest.mark.ours


def value(index):
    return bytes([65 + index]) * VALUE_BYTES


def stock(server):
    with server.wire(ALPHA, timeout=60) as wire:
        for index in range(VALUES):
            wire.ask("SET", KEYS[index], value(index))
            wire.ask("HSET", "hash", FIELDS[index], value(index))
    return server


@pytest.fixture(scope="module")
def stocked(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("streams"), tenants=(ALPHA, BETA, ROOT)).start()
    yield stock(server)
    server.kill()


ALL = [value(index) for index in range(VALUES)]


def deaf(server, *words):
    """A client that has begun to get a large reply and takes nothing more of it."""
    wire = server.wire(ALPHA, receive_buffer=4096, timeout=60)
    wire.send(*words)
    assert wire.sock.recv(1) == b"*"
    return wire


def alone(server):
    """True when nobody but who asks is connected as alpha."""
    with server.wire(ALPHA) as wire:
        return b"connected_clients:1\r" in wire.ask("INFO", "clients")


def test_what_is_pipelined_behind_it_is_answered_in_order(stocked):
    with stocked.wire(ALPHA, timeout=60) as wire:
        commands = [("SET", "n", 1), ("MGET", *KEYS), ("INCR", "n"), ("MULTI",), ("INCR", "n"), ("MGET", *KEYS), ("EXEC",), ("GET", "n"), ("MGET", *KEYS)]
        wire.raw(b"".join(encode(*command) for command in commands))
        replies = [wire.read() for _ in commands]
    assert replies == [b"OK", ALL, 2, b"OK", b"QUEUED", b"QUEUED", [3, ALL], b"3", ALL]


def test_resp3_has_its_own_types_in_them(stocked):
    with stocked.wire(ALPHA, timeout=60) as wire:
        wire.ask("HELLO", "3")
        assert wire.ask("HGETALL", "hash") == dict(zip(FIELDS, ALL))
        wire.ask("MULTI")
        for words in (["HGETALL", "hash"], ["GET", "nothing"], ["CONFIG", "GET", "save"]):
            wire.ask(*words)
        assert wire.ask("EXEC") == [dict(zip(FIELDS, ALL)), None, {b"save": b""}]


def test_a_client_that_wants_no_replies_gets_none(stocked):
    with stocked.wire(ALPHA, timeout=60) as wire:
        wire.send("CLIENT", "REPLY", "SKIP")
        wire.send("MGET", *KEYS)
        assert wire.ask("ECHO", "skipped") == b"skipped"
        wire.send("CLIENT", "REPLY", "OFF")
        wire.send("MGET", *KEYS)
        for words in (["MULTI"], ["SET", "off", "done"], ["MGET", *KEYS], ["EXEC"]):
            wire.send(*words)
        assert wire.ask("CLIENT", "REPLY", "ON") == b"OK"
        assert wire.ask("GET", "off") == b"done"


def test_only_one_reply_is_skipped_wherever_the_command_runs(stocked):
    """On its core, on a handler as all that report do, or apart."""
    with stocked.wire(ALPHA, timeout=60) as wire:
        for words in (["PING"], ["INFO"], ["SLOWLOG", "LEN"], ["CLIENT", "LIST"], ["MGET", *KEYS]):
            wire.send("CLIENT", "REPLY", "SKIP")
            wire.send(*words)
            wire.send("ECHO", "not skipped")
            assert wire.ask("ECHO", "nor this") == b"not skipped", words
            assert wire.read() == b"nor this"


@pytest.mark.parametrize("transaction", [False, True], ids=["mget", "exec"])
def test_a_killed_client_gives_everything_back(stocked, transaction):
    """Whoever waits for one of the places that it and its like have taken goes on; no key stays taken."""
    victims = []
    for _ in range(PLACES):
        wire = stocked.wire(ALPHA, receive_buffer=4096, timeout=60)
        if transaction:
            for words in (["MULTI"], ["INCR", "killed"], ["MGET", *KEYS]):
                wire.ask(*words)
            wire.send("EXEC")
        else:
            wire.send("MGET", *KEYS)
        assert wire.sock.recv(1) == b"*"
        victims.append(wire)
    with Bystander(stocked, BETA), stocked.wire(ALPHA, timeout=60) as wire:
        waiting = wire.ask("CLIENT", "ID")
        wire.send("MGET", *KEYS)
        with stocked.wire(ALPHA, timeout=60) as other:
            other.ask("SET", KEYS[0], value(0))
            for line in other.ask("CLIENT", "LIST").splitlines():
                facts = dict(fact.split(b"=", 1) for fact in line.split())
                if facts[b"cmd"] in (b"mget", b"exec") and int(facts[b"id"]) != waiting:
                    # On a busy machine the server may have cut it off first: somebody has waited
                    # for its place for a second.
                    assert other.ask("CLIENT", "KILL", "ID", facts[b"id"]) in (0, 1)
        assert wire.read() == ALL
    eventually(lambda: alone(stocked), 20, "the killed are gone")
    for victim in victims:
        victim.close()
    if transaction:
        with stocked.wire(ALPHA) as wire:
            assert wire.ask("GETDEL", "killed") == b"%d" % PLACES


def test_a_client_that_leaves_a_transaction_has_its_effect(stocked):
    """Once the first of its replies is there: they are made after the commit."""
    with stocked.wire(ALPHA, receive_buffer=4096, timeout=60) as wire:
        for words in (["MULTI"], ["SET", "left", "done"], ["MGET", *KEYS]):
            wire.ask(*words)
        wire.send("EXEC")
        assert wire.sock.recv(1) == b"*"
    with stocked.wire(ALPHA) as wire:
        assert wire.ask("GET", "left") == b"done"
    eventually(lambda: alone(stocked), 20, "it is gone")


def test_a_watched_key_is_checked_at_the_moment_of_the_replies(stocked):
    key = "watched"
    for commands in ([["MGET", *KEYS]], [["SET", "other", 1], ["MGET", *KEYS]]):
        with stocked.wire(ALPHA, timeout=60) as wire, stocked.wire(ALPHA) as other:
            wire.ask("WATCH", key)
            other.ask("SET", key, "changed")
            for words in (["MULTI"], *commands):
                wire.ask(*words)
            assert wire.ask("EXEC") is None
            # Its own write of a watched key is none that matters.
            wire.ask("WATCH", key)
            for words in (["MULTI"], ["SET", key, "mine"], *commands):
                wire.ask(*words)
            assert wire.ask("EXEC")[-1] == ALL


def test_a_transaction_shows_its_own_writes(stocked):
    with stocked.wire(ALPHA, timeout=60) as wire:
        wire.ask("MULTI")
        for words in (["SET", KEYS[0], "new"], ["MGET", *KEYS], ["DEL", "hash"], ["HLEN", "hash"], ["SET", KEYS[0], value(0)], ["HKEYS", "hash"]):
            wire.ask(*words)
        assert wire.ask("EXEC") == [b"OK", [b"new", *ALL[1:]], 1, 0, b"OK", []]
        assert wire.ask("GET", KEYS[0]) == value(0)
        for index in range(VALUES):
            wire.ask("HSET", "hash", FIELDS[index], value(index))


def test_answers_about_the_server_do_not_fill_a_transaction(stocked):
    """They are made at once, on a core: after a MiB of them the rest is refused."""
    with stocked.wire(ALPHA, timeout=60) as wire:
        count = 4000
        wire.raw(b"".join(encode(*words) for words in [("MULTI",), *[("CONFIG", "GET", "*")] * count, ("SET", "known", 1), ("EXEC",)]))
        assert [wire.read() for _ in range(count + 2)] == [b"OK"] + [b"QUEUED"] * (count + 1)
        replies = wire.read()
    refused = [reply for reply in replies if isinstance(reply, ServerError)]
    assert len(replies) == count + 1 and replies[-1] == b"OK"
    assert 0 < len(refused) < count and "more than 1 MiB" in str(refused[0])


def test_a_client_that_takes_nothing_is_cut_off(start):
    """After `stalled_timeout`: it keeps a snapshot, and a place that others wait for."""
    server = stock(start(server_options='stalled_timeout = "1s"'))
    with Bystander(server, BETA):
        stalled = [deaf(server, "MGET", *KEYS), deaf(server, "HGETALL", "hash")]
        eventually(lambda: server.said().count("closed: it read nothing") == len(stalled), 30, "the log says so")
        eventually(lambda: alone(server), 20, "they are gone")
    for wire in stalled:
        # What was on its way comes, and no end of the reply.
        assert rest(wire) < VALUES * VALUE_BYTES
        wire.close()


def test_a_place_passes_by_those_who_have_gone(stocked):
    """More clients wait for a place than there are, most of them leave, and who stays gets one."""
    holders = [deaf(stocked, "MGET", *KEYS) for _ in range(PLACES)]
    waiting = []
    for _ in range(2 * PLACES + 1):
        wire = stocked.wire(ALPHA, timeout=30)
        wire.send("MGET", *KEYS)
        waiting.append(wire)
    stays = waiting.pop()
    with stocked.wire(ALPHA) as other:
        # Each holds its keys until it is turned away, so that this comes after them.
        other.ask("SET", KEYS[0], value(0))
    for wire in waiting + holders:
        wire.close()
    assert stays.read() == ALL
    stays.close()


# As many as the whole server may have under way (crates/engine/src/engine/mod.rs).
PLACES_OF_ALL = 256


def test_deaf_clients_of_others_keep_nobody_waiting(start):
    """All places are taken by clients of other tenants that take nothing: who waits for one does not hold its keys, and
    is served long before `stalled_timeout`."""
    others = [Tenant(f"deaf{number}") for number in range(PLACES_OF_ALL // PLACES)]
    server = start(tenants=(ALPHA, BETA, *others))
    large = ("MGET", *["large"] * 16)
    for tenant in (ALPHA, *others):
        with server.wire(tenant) as wire:
            wire.ask("SET", "large", b"x" * MEBIBYTE)
    clients = []
    try:
        for tenant in others:
            for _ in range(PLACES):
                wire = server.wire(tenant, receive_buffer=4096, timeout=60)
                wire.send(*large)
                assert wire.sock.recv(1) == b"*"
                clients.append(wire)
        with server.wire(ALPHA, timeout=30) as wire, server.wire(ALPHA) as beside, Bystander(server, BETA):
            for words in (("MULTI",), ("SET", "key", "new"), large):
                wire.ask(*words)
            wire.send("EXEC")
            # The transaction may not have come so far yet: then this is before it, else after or
            # beside it; it waits for it never.
            assert beside.ask("GET", "key") in (None, b"new")
            assert beside.ask("SET", "beside", "1") == b"OK"
            assert wire.read() == [b"OK", [b"x" * MEBIBYTE] * 16], "what writes has places of its own"
            wire.send(*large)
            assert beside.ask("SET", "large", b"x" * MEBIBYTE) == b"OK"
            assert wire.read() == [b"x" * MEBIBYTE] * 16
        server.says("1 s while others wait to run apart")
    finally:
        for wire in clients:
            wire.close()


def rest(wire):
    """Bytes that come before the connection ends."""
    count = 0
    try:
        while data := wire.sock.recv(MEBIBYTE):
            count += len(data)
    except ConnectionError:
        pass
    return count


def is_let_in(server, tenant):
    with server.wire() as wire:
        return wire.attempt("AUTH", tenant.name, tenant.password) == b"OK"


def test_a_tenant_that_goes_and_comes_back(start):
    """By reloads, with its replies under way and others at work: its connections end, its data is there again."""
    server = stock(start())
    with Bystander(server, BETA):
        for _ in range(5):
            taking = deaf(server, "MGET", *KEYS)
            with server.wire(ALPHA, timeout=60) as writing:
                for words in (["MULTI"], ["INCR", "rounds"], ["MGET", *KEYS]):
                    writing.ask(*words)
                writing.send("EXEC")
                server.reload((BETA,))
                assert rest(taking) < VALUES * VALUE_BYTES
                rest(writing)
            taking.close()
            eventually(lambda: not is_let_in(server, ALPHA), 20, "it is gone")
            server.reload((ALPHA, BETA))
            eventually(lambda: is_let_in(server, ALPHA), 20, "it is back")
            with server.wire(ALPHA, timeout=60) as wire:
                assert wire.ask("MGET", *KEYS) == ALL


def test_over_tls(start, tmp_path):
    port = free_port()
    server = stock(start(server_options=listening(port, tmp_path)))
    with Bystander(server, BETA), Encrypted(port, ALPHA) as wire:
        for _ in range(3):
            wire.send("MGET", *KEYS)
            assert wire.read() == ALL
        assert wire.ask("ECHO", "after") == b"after"
