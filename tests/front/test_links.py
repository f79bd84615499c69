"""Large values of one tenant go by links of their own: nobody else's requests wait behind them, and no client's commands change places."""

import json
import os
import random
import signal
import threading
import time
from contextlib import ExitStack
from urllib.request import urlopen

import pytest

from harness.engine import Front
from harness.relay import Relay
from harness.resp import ServerError, encode
from harness.server import ALPHA, BETA, Tenant
from harness.waiting import at_work, eventually

MIB = 1 << 20
LARGE = b"v" * (8 * MIB)
# Links of one core to one node, for one protocol.
LINKS_MAX = 8
SEED = 26
PAGE = """
[[tenant.workload]]
name = "page"

[[tenant.slo]]
class = "get"
workload = "page"
latency = { p = 99.0, at_most = "10s" }
"""


@pytest.fixture
def relay(engine):
    one = Relay(engine)
    yield one
    one.close()


@pytest.fixture
def behind(relay, tmp_path):
    """A function that starts a server before the relay."""
    started = []

    def launch(tenants=(ALPHA, BETA), cores=1, **options):
        one = Front(tmp_path / f"front{len(started)}", relay, tenants=tenants, server_options=f"cores = {cores}", **options)
        started.append(one)
        return one.start()

    yield launch
    for one in started:
        one.kill()


def shown(server):
    with urlopen(f"http://127.0.0.1:{server.admin_port}/api/server") as response:
        return json.load(response)


def count(wire, times=100):
    """What nothing holds up."""
    for _ in range(times):
        before = int(wire.ask("GET", "n") or 0)
        assert wire.ask("INCR", "n") == before + 1


def test_a_large_reply_leaves_the_others_a_link(engine, relay, behind):
    server = behind()
    engine.ask("SET", "{@alpha}large", LARGE)
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        count(beta)
        assert len(relay.links()) == 1
        # Nobody could foresee the first; the second is foreseen.
        for turned in (1, 1):
            relay.hold(1, MIB)
            alpha.send("GET", "large")
            held = relay.wait_held()
            count(beta)
            assert len(held) == 1 and relay.held() == held, "it is still on its way"
            relay.release()
            assert alpha.read() == LARGE
            assert shown(server)["engine_links"]["turned"] == turned
        count(beta)
        replies = sorted(link.bytes[1] for link in relay.links())
        assert len(replies) == 2 and replies[0] < MIB and replies[1] > 16 * MIB
    eventually(lambda: shown(server)["engine_links"]["open"] == 2 and shown(server)["engine_links"]["apart"] == 0, what="links are shown")


def test_a_large_request_leaves_the_others_a_link(relay, behind):
    server = behind()
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        count(beta)
        relay.hold(0, MIB)
        alpha.send("SET", "large", LARGE)
        held = relay.wait_held()
        count(beta)
        assert relay.held() == held
        relay.release()
        assert alpha.read() == b"OK"
        requests = sorted(link.bytes[0] for link in relay.links())
        assert len(requests) == 2 and requests[0] < MIB and requests[1] > 8 * MIB
        assert alpha.ask("GET", "large") == LARGE


def test_many_tenants_with_large_values_share_few_links(engine, relay, behind):
    many = [Tenant(f"t{number}") for number in range(LINKS_MAX + 4)]
    server = behind(tenants=(*many, BETA))
    with ExitStack() as stack:
        beta = stack.enter_context(server.wire(BETA))
        wires = [stack.enter_context(server.wire(tenant)) for tenant in many]
        for tenant, wire in zip(many, wires):
            engine.ask("SET", f"{{@{tenant.name}}}large", LARGE)
            assert wire.ask("GET", "large") == LARGE
        relay.hold(1, MIB)
        for wire in wires:
            wire.send("GET", "large")
        relay.wait_held(LINKS_MAX - 1)
        count(beta)
        relay.release()
        assert all(wire.read() == LARGE for wire in wires)
    assert len(relay.links()) <= LINKS_MAX


def test_workloads_of_a_tenant_have_links_of_their_own(engine, relay, behind):
    shop = Tenant("shop", extra=PAGE)
    server = behind(tenants=(shop, BETA))
    engine.ask("SET", "{@shop}large", LARGE)
    with server.wire(shop) as page, server.wire(shop) as batch:
        page.ask("CLIENT", "SETNAME", "page")
        relay.hold(1, MIB)
        batch.send("GET", "large")
        relay.wait_held()
        count(page)
        relay.release()
        assert batch.read() == LARGE


def test_an_engine_that_takes_no_more_connections_is_used_by_those_there_are(engine, relay, behind):
    """What waited for the new link is told so, once; everybody else goes on by the old one."""
    server = behind()
    engine.ask("SET", "{@alpha}large", LARGE)
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        count(beta)
        relay.refuses = True
        assert alpha.ask("GET", "large") == LARGE
        refused = [reply for reply in (beta.attempt("GET", "n") for _ in range(200)) if isinstance(reply, ServerError)]
        assert len(refused) <= 1 and all("nothing was done" in str(reply) for reply in refused)
        eventually(lambda: alpha.attempt("GET", "large") == LARGE, what="alpha goes on, too")
        assert len(relay.links()) == 1
        relay.refuses = False
        count(beta)


class Model:
    """What a few keys hold, and what the requests on them are answered."""

    def __init__(self, chance):
        self.chance, self.keys = chance, {}

    def value(self):
        return bytes([self.chance.randrange(97, 123)]) * self.chance.choice((1, 100, 60_000, 70_000, 300_000))

    def one(self):
        key = self.chance.choice("abc")
        kind = self.chance.randrange(5)
        if kind == 0:
            self.keys[key] = self.value()
            return ("SET", key, self.keys[key]), b"OK"
        if kind == 1:
            return ("GET", key), self.keys.get(key)
        if kind == 2:
            self.keys[key] = self.keys.get(key, b"") + b"tail"
            return ("APPEND", key, "tail"), len(self.keys[key])
        if kind == 3:
            return ("STRLEN", key), len(self.keys.get(key, b""))
        value = self.value()
        old, self.keys[key] = self.keys.get(key), value
        return ("GETSET", key, value), old

    def step(self):
        """A request or a transaction, and its replies."""
        kind = self.chance.random()
        if kind < 0.75:
            yield self.one()
            return
        if kind < 0.8:
            # Of many words: it is written elsewhere.
            self.keys["a"] = self.value()
            yield ("MSET", *["a", b"old"] * 100, "a", self.keys["a"]), b"OK"
            return
        yield ("MULTI",), b"OK"
        inside = [self.one() for _ in range(self.chance.randrange(1, 5))]
        for words, _ in inside:
            yield words, b"QUEUED"
        yield ("EXEC",), [reply for _, reply in inside]


def test_the_commands_of_a_connection_keep_their_order(relay, behind):
    """Pipelines of small and large requests and replies, of several connections, while each core finds out who has large values."""
    server = behind(cores=2)
    wrong = []

    def client(number):
        model = Model(random.Random(SEED + number))
        try:
            with server.wire(ALPHA if number % 2 else BETA, timeout=60) as wire:
                for _ in range(25):
                    steps = [pair for _ in range(model.chance.randrange(1, 40)) for pair in model.step()]
                    named = [(tuple(word + str(number) if word in ("a", "b", "c") else word for word in words), reply) for words, reply in steps]
                    sender = threading.Thread(target=wire.raw, args=(b"".join(encode(*words) for words, _ in named),))
                    sender.start()
                    for words, reply in named:
                        got = wire.read()
                        if got != reply:
                            wrong.append((number, words[:2], repr(got)[:80], repr(reply)[:80]))
                            return
                    sender.join()
        except Exception as error:  # noqa: BLE001 (whatever ends it is what the test must see)
            wrong.append((number, error))

    clients = [threading.Thread(target=client, args=(number,)) for number in range(6)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    assert not wrong, wrong[:3]
    assert len(relay.links()) > 2


def test_a_pipeline_of_large_values_is_not_held_as_a_whole(behind):
    small = Tenant("alpha", extra='request_memory = "16MiB"')
    server = behind(tenants=(small, BETA))
    value = LARGE[: 4 * MIB]
    with server.wire(small) as alpha:
        assert alpha.ask("SET", "large", value) == b"OK"
        # The first shows how large its replies are.
        assert alpha.ask("GET", "large") == value
        alpha.raw(encode("GET", "large") * 40 + encode("ECHO", "end"))
        assert all(alpha.read() == value for _ in range(40))
        assert alpha.read() == b"end"


def test_an_engine_that_dies_with_large_values_on_their_way_leaves_nobody_waiting(engine, relay, behind):
    server = behind()
    engine.ask("SET", "{@alpha}large", LARGE)
    with ExitStack() as stack:
        alpha, alphas = stack.enter_context(server.wire(ALPHA)), [stack.enter_context(server.wire(ALPHA)) for _ in range(3)]
        betas = [stack.enter_context(server.wire(BETA)) for _ in range(5)]
        relay.hold(1, MIB)
        alpha.send("GET", "large")
        held = relay.wait_held()
        # Behind it, before it, and large themselves.
        for number, wire in enumerate(alphas):
            wire.raw(encode("GET", "small") * number + encode("SET", f"more{number}", LARGE))
        count(betas[0], 5)
        for wire in betas:
            wire.raw(encode("INCR", "n") * 50 + encode("GET", "none"))
        engine.kill()
        relay.release()
        held[0].close()
        for number, wire in enumerate(alphas):
            replies = [wire.read() for _ in range(number + 1)]
            assert all(reply in (b"OK", None) or "ERR engine" in str(reply) for reply in replies)
        for wire in betas:
            replies = [wire.read() for _ in range(51)]
            assert all(reply is None or isinstance(reply, (int, ServerError)) for reply in replies)
        reply = alpha.read()
        assert reply == LARGE or "ERR engine" in str(reply)
        engine.start()
        eventually(lambda: alpha.attempt("SET", "large", LARGE) == b"OK" and alpha.attempt("GET", "large") == LARGE, 60, "it is back")
        eventually(lambda: all(isinstance(wire.attempt("INCR", "n"), int) for wire in betas), 60, "for everybody")


def test_what_a_core_moves_at_a_time_is_bounded(engine, behind):
    """Long requests, requests of many words, and long replies of both kinds."""
    server = behind()
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        alpha.send("SET", "large", LARGE * 4)
        count(beta)
        assert alpha.read() == b"OK"
        alpha.send("MGET", "large", "large", "large")
        count(beta)
        assert alpha.read() == [LARGE * 4] * 3
        many = [word for number in range(50_000) for word in (f"k{number}", "v")]
        alpha.send("MSET", *many)
        count(beta)
        assert alpha.read() == b"OK"
        alpha.raw(encode("MULTI") + encode("MSET", *many) + encode("MGET", *many[::2]) + encode("EXEC"))
        assert [alpha.read() for _ in range(4)] == [b"OK", b"QUEUED", b"QUEUED", [b"OK", [b"v"] * 50_000]]
        assert alpha.ask("DBSIZE") == 50_001
    turn = shown(server)["largest_turn"]
    assert turn["words"] <= 2_000
    assert turn["bytes"] <= 128 << 10


def test_who_stood_still_himself_does_not_take_the_engine_to_be_silent(engine, front):
    """What it said meanwhile lies in the socket."""
    server = front(engine_options='timeout = "3s"', server_options="cores = 1")

    def out():
        with urlopen(f"http://127.0.0.1:{server.admin_port}/api/stages", timeout=20) as answer:
            return sum(stage["permits_in_use"] for stage in json.load(answer) if stage["stage"] == "handler")

    busy, ended = server.wire(BETA), threading.Event()

    def keep_busy():
        """It is at work when it is stopped, and not asleep."""
        while not ended.is_set():
            busy.raw(encode("PING") * 5_000)
            for _ in range(5_000):
                busy.read()

    with server.wire(ALPHA) as alpha, busy, at_work(ended, [threading.Thread(target=keep_busy)]):
        alpha.ask("SET", "k", "v")
        eventually(lambda: out() == 0, 20, "nothing is out")
        engine.hold()
        alpha.send("GET", "k")
        eventually(lambda: out() == 1, 20, "it is asked")
        os.kill(server.pid, signal.SIGSTOP)
        try:
            engine.release()
            stood = time.monotonic()
            eventually(lambda: time.monotonic() > stood + 4, 20, "longer than it waits for an engine")
        finally:
            os.kill(server.pid, signal.SIGCONT)
        assert alpha.read() == b"v"
