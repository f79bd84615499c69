"""Channels before an engine: each tenant has its own, and what is published comes as from the engine itself."""

import json
import random
import threading
from itertools import count
from pathlib import Path
from urllib.request import urlopen

import pytest
import redis

from harness.engine import Engine
from harness.resp import ServerError, encode
from harness.server import ALPHA, BETA, Tenant
from harness.waiting import eventually

WIDE = Tenant("wide", extra="partitions = 4")


def held(server):
    """How many connections have a link to themselves, as the server says."""
    with urlopen(f"http://127.0.0.1:{server.admin_port}/api/server", timeout=20) as answer:
        return json.load(answer)["engine_links"]["waiting"]


def none_held(server):
    eventually(lambda: held(server) == 0, 20, "nobody has a link to himself")


def subscribe(wire, *channels, kind="subscribe"):
    wire.send(kind, *channels)
    for number, channel in enumerate(channels, 1):
        assert wire.read() == [kind.encode(), channel.encode(), number]
    return wire


def test_what_is_published_comes_to_the_tenant_s_own_subscribers(engine, front):
    server = front(server_options="cores = 2")
    with server.wire(ALPHA) as alpha, server.wire(ALPHA) as mine, server.wire(BETA) as theirs, server.wire(BETA) as beta:
        subscribe(mine, "news", "other")
        subscribe(theirs, "news")
        with server.wire(ALPHA) as patterns:
            subscribe(patterns, "n*", "?ews", kind="psubscribe")
            assert alpha.ask("PUBLISH", "news", "one") == 3
            assert mine.read() == [b"message", b"news", b"one"]
            assert sorted(patterns.read() for _ in range(2)) == [[b"pmessage", pattern, b"news", b"one"] for pattern in (b"?ews", b"n*")]
            assert beta.ask("PUBLISH", "news", "two") == 1
            assert theirs.read() == [b"message", b"news", b"two"]
            assert sorted(alpha.ask("PUBSUB", "CHANNELS")) == [b"news", b"other"]
            assert alpha.ask("PUBSUB", "CHANNELS", "n*") == [b"news"]
            assert alpha.ask("PUBSUB", "NUMSUB", "news", "none") == [b"news", 1, b"none", 0]
            assert beta.ask("PUBSUB", "CHANNELS") == [b"news"]
            assert beta.ask("PUBLISH", "nobody", "x") == 0
        # In its place among others, also of a transaction.
        alpha.raw(b"".join(encode(*words) for words in (("SET", "k", "1"), ("PUBLISH", "other", "a"), ("MULTI",), ("PUBLISH", "other", "b"), ("GET", "k"), ("EXEC",))))
        assert [alpha.read() for _ in range(6)] == [b"OK", 1, b"OK", b"QUEUED", b"QUEUED", [1, b"1"]]
        assert [mine.read()[2] for _ in range(2)] == [b"a", b"b"]
        mine.send("UNSUBSCRIBE")
        assert sorted(mine.read()[1] for _ in range(2)) == [b"news", b"other"]
        assert mine.ask("GET", "k") == b"1", "it is a connection like others again"
        assert theirs.ask("PING") == [b"pong", b""], "nothing of another's came"
    none_held(server)
    assert engine.ask("PUBSUB", "CHANNELS") == []


def test_nobody_hears_of_other_tenants(engine, front):
    """Also not who has the names as they are at the engine, nor by events that tell keys."""
    engine.ask("CONFIG", "SET", "notify-keyspace-events", "KEA")
    server = front(engine_options='unmarked = "beta"')
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta, server.wire(BETA) as plain:
        subscribe(beta, "*", kind="psubscribe")
        for refused in (("SUBSCRIBE", "{@alpha}x"), ("PSUBSCRIBE", "{@*"), ("SUBSCRIBE", "__keyspace@0__:k"), ("PSUBSCRIBE", "__key*")):
            assert isinstance(plain.attempt(*refused), ServerError), refused
        assert isinstance(plain.attempt("PUBLISH", "{@alpha}x", "m"), ServerError)
        assert alpha.ask("PUBLISH", "x", "secret") in (0, 1)
        alpha.ask("SET", "secret", "1")
        plain.ask("SET", "own", "1")
        assert plain.ask("PUBLISH", "x", "heard") == 1
        assert beta.read() == [b"pmessage", b"*", b"x", b"heard"]
        assert isinstance(alpha.attempt("SUBSCRIBE", "__keyevent@0__:set"), ServerError)
        assert plain.ask("PUBSUB", "CHANNELS") == []
        with server.wire(ALPHA) as other:
            subscribe(other, "x")
            assert plain.ask("PUBSUB", "CHANNELS") == []
            assert plain.ask("PUBLISH", "x", "theirs") == 1
            assert alpha.ask("PUBLISH", "x", "own") >= 1
            assert other.read() == [b"message", b"x", b"own"]


def test_what_resp2_allows_beside_channels(engine, front):
    server = front()
    with server.wire(ALPHA) as alpha:
        subscribe(alpha, "a")
        for words in (("GET", "k"), ("NOSUCH",), ("HELLO", 3), ("AUTH", "x", "y"), ("PUBLISH", "a", "x"), ("MULTI",)):
            assert isinstance(alpha.attempt(*words), ServerError), words
        assert alpha.ask("PING", "x") == [b"pong", b"x"]
        alpha.raw(b"".join(encode(*words) for words in (("PSUBSCRIBE", "b*"), ("PING",), ("UNSUBSCRIBE", "a", "none"), ("PUNSUBSCRIBE",), ("PING",), ("GET", "k"))))
        expected = [[b"psubscribe", b"b*", 2], [b"pong", b""], [b"unsubscribe", b"a", 1], [b"unsubscribe", b"none", 1], [b"punsubscribe", b"b*", 0], b"PONG", None]
        assert [alpha.read() for _ in expected] == expected
        for words, expected in ((("UNSUBSCRIBE",), [b"unsubscribe", None, 0]), (("PUNSUBSCRIBE", "x"), [b"punsubscribe", b"x", 0])):
            assert alpha.ask(*words) == expected
        subscribe(alpha, "a")
        assert alpha.ask("RESET") == b"RESET"
        none_held(server)
        assert alpha.ask("AUTH", ALPHA.name, ALPHA.password) == b"OK"
        assert "transaction" in str((alpha.ask("MULTI"), alpha.attempt("SUBSCRIBE", "a"))[1])
        alpha.ask("DISCARD")
        subscribe(alpha, "a")
        assert alpha.ask("QUIT") == b"OK"
        with pytest.raises(EOFError):
            alpha.read()
    none_held(server)


def test_resp3_has_messages_between_replies(engine, front):
    server = front()
    with server.wire(ALPHA) as alpha, server.wire(ALPHA) as other:
        alpha.ask("HELLO", 3)
        subscribe(alpha, "a")
        assert alpha.ask("SET", "k", "1") == b"OK"
        alpha.raw(encode("PUBLISH", "a", "own") + encode("GET", "k"))
        came = [alpha.read() for _ in range(3)]
        assert sorted(map(str, came)) == sorted(map(str, ([b"message", b"a", b"own"], 1, b"1")))
        # While it waits for something else, too.
        alpha.raw(encode("BLPOP", "queue", 0))
        eventually(lambda: held(server) == 2, 20, "it waits")
        other.ask("PUBLISH", "a", "meanwhile")
        assert alpha.read() == [b"message", b"a", b"meanwhile"]
        other.ask("RPUSH", "queue", "x")
        assert alpha.read() == [b"queue", b"x"]
        for words in (("HELLO", 2), ("AUTH", BETA.name, BETA.password)):
            assert "subscriptions" in str(alpha.attempt(*words))
        alpha.ask("UNSUBSCRIBE", "a")
        assert len(alpha.ask("HELLO", 2)) > 0
    none_held(server)


def test_sessions_go_as_at_an_engine_itself(engine, front, tmp_path):
    """Random commands of three clients, through the server and at another engine: each is sent the same."""
    server = front(server_options="cores = 2")
    alone = Engine(tmp_path / "alone", engine.program).start()
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    through, direct = [server.wire(ALPHA) for _ in range(3)], [alone.wire() for _ in range(3)]
    numbers = count()
    names = ["a", "b", "ab", "{x}"]
    patterns = ["a*", "*", "?b", "[ab]"]

    def command():
        kind = chance.choice(["SUBSCRIBE", "PSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "PUBLISH", "PUBLISH", "PUBLISH", "PING"])
        of = patterns if kind.startswith("P") and kind.endswith("SCRIBE") else names
        if kind == "PUBLISH":
            return kind, chance.choice(names), next(numbers)
        if kind == "PING":
            return kind, next(numbers)
        return kind, *chance.choices(of, k=chance.randrange(1, 4))

    def drained(wires, who, words):
        """What all are sent, up to the answers to a last word, which behind messages takes none of their places."""
        wires[who].send(*words)
        came = []
        for wire in wires:
            wire.send("PING", "end")
            came.append([])
            while (reply := wire.read()) not in (b"end", [b"pong", b"end"]):
                came[-1].append(str(reply))
        return came

    try:
        for step in range(400):
            who, words = chance.randrange(3), command()
            expected = drained(direct, who, words)
            wires = through
            wires[who].send(*words)
            for wire, its in zip(wires, expected):
                # Of several patterns one message comes in any order.
                assert sorted(str(wire.read()) for _ in its) == sorted(its), f"seed {seed}, step {step}: {words}"
        for wire in through:
            for end in ("UNSUBSCRIBE", "PUNSUBSCRIBE"):
                wire.send(end)
                while (said := wire.read())[2] != 0 and said[0] != b"unsubscribe":
                    pass
    finally:
        for wire in through + direct:
            wire.close()
        alone.kill()
    none_held(server)


def test_long_messages_and_many_channels(engine, front):
    server = front()
    with server.wire(ALPHA) as alpha, server.wire(ALPHA) as mine:
        subscribe(mine, *(f"channel{number}" for number in range(1_000)))
        assert "at most" in str(mine.attempt("SUBSCRIBE", *range(1_024)))
        assert "at most" in str(mine.attempt("SUBSCRIBE", "x" * (64 << 10)))
        for size in (100, 10_000, 300_000, 5 << 20):
            message = random.randbytes(size)
            assert alpha.ask("PUBLISH", "channel7", message) == 1
            assert mine.read() == [b"message", b"channel7", message]


def test_who_does_not_take_what_comes_is_closed_and_nobody_else(engine, front):
    engine.ask("CONFIG", "SET", "client-output-buffer-limit", "pubsub 4mb 4mb 1")
    server = front(server_options="cores = 1")
    with server.wire(ALPHA, receive_buffer=4_096) as slow, server.wire(ALPHA) as quick, server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        subscribe(slow, "a")
        subscribe(quick, "a")
        reader = threading.Thread(target=lambda: list(iter(lambda: quick.read()[2], b"end")))
        reader.start()

        def one_is_left():
            assert beta.ask("INCR", "n")
            # Of longer ones Valkey counts nothing against the limit.
            alpha.raw(encode("PUBLISH", "a", b"x" * 8_000) * 100)
            return [alpha.read() for _ in range(100)][-1] == 1

        eventually(one_is_left, 60, "the engine has closed the other")
        alpha.ask("PUBLISH", "a", "end")
        reader.join()
        with pytest.raises((EOFError, OSError)):
            while True:
                slow.read()
        assert alpha.ask("PUBLISH", "a", "last") == 1
        assert quick.read() == [b"message", b"a", b"last"]


def test_who_does_not_take_an_answer_keeps_nobody_from_the_engine(engine, front):
    """Its permit is over when the engine has answered, and it is closed when the engine has closed its link."""
    engine.ask("CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 0 0")
    server = front(server_options="cores = 1")

    def in_use():
        with urlopen(f"http://127.0.0.1:{server.admin_port}/api/stages", timeout=20) as answer:
            return sum(stage["permits_in_use"] for stage in json.load(answer) if stage["stage"] == "handler")

    with server.wire(ALPHA, receive_buffer=4_096) as slow, server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        subscribe(slow, "a")
        engine.hold()
        alpha.send("PUBLISH", "a", b"x" * (24 << 20))
        assert beta.ask("PING") == b"PONG"
        slow.send("SUBSCRIBE", "b")
        eventually(lambda: in_use() > 0, 20, "it is asked")
        engine.release()
        assert alpha.read() == 1
        eventually(lambda: in_use() == 0, 20, "its permit is free")
        assert engine.ask("PUBSUB", "NUMSUB", "{@alpha}b") == [b"{@alpha}b", 1], "it has not read its answer"
        assert held(server) == 1
        engine.ask("CLIENT", "KILL", "TYPE", "pubsub")
        none_held(server)


def test_long_messages_to_many_have_their_tenant_s_memory_and_no_more(engine, front):
    """Also those that come while a subscriber waits for an answer."""
    engine.ask("CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 0 0")
    server = front(tenants=(Tenant("alpha", extra='request_memory = "16MiB"'), BETA), server_options="cores = 1")

    def most_bytes():
        status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0]) << 10

    wires = [subscribe(server.wire(ALPHA), "a") for _ in range(40)]
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        before = most_bytes()
        engine.hold()
        alpha.send("PUBLISH", "a", b"x" * (8 << 20))
        assert beta.ask("PING") == b"PONG"
        for wire in wires:
            wire.send("SUBSCRIBE", "b")
        assert beta.ask("PING") == b"PONG"
        engine.release()
        assert alpha.read() == 40
        heard = []

        def hear(wire):
            try:
                heard.extend([wire.read()[0], wire.read()[0]])
            except (EOFError, OSError, TypeError):
                pass

        readers = [threading.Thread(target=hear, args=(wire,)) for wire in wires]
        for reader in readers:
            reader.start()
        assert beta.ask("INCR", "n") == 1
        for reader in readers:
            reader.join()
        assert heard.count(b"message") > 0
        assert most_bytes() - before < 100 << 20, "forty times as much came"
    for wire in wires:
        wire.close()
    none_held(server)


@pytest.mark.parametrize("of_shards", ["", "S"])
def test_subscriptions_end_with_the_engine_and_with_clients(engine, front, of_shards):
    server = front(engine_options='timeout = "2s"', server_options="cores = 1")
    word = f"{of_shards}SUBSCRIBE"
    with server.wire(ALPHA) as alpha:
        mine = server.wire(ALPHA)
        mine.ask(word, "a")
        engine.kill()
        engine.start()
        with pytest.raises((EOFError, OSError)):
            mine.read()
        mine.close()
        eventually(lambda: alpha.attempt("GET", "k") is None, 20, "it is found again")
        mine = server.wire(ALPHA)
        mine.ask(word, "a")
        mine.close()
        eventually(lambda: alpha.ask(f"{of_shards}PUBLISH", "a", "x") == 0, 20, "the engine has heard of it")
        # One that says nothing is not waited for, and who goes meanwhile leaves nothing behind.
        engine.hold()
        with server.wire(ALPHA) as waits, server.wire(ALPHA) as goes:
            waits.send(word, "a")
            goes.send(word, "a")
            goes.close()
            assert "it is away" in str(waits.read())
            engine.release()
            eventually(lambda: isinstance(waits.attempt(word, "a"), list), 20, "and then again")
    none_held(server)


def test_one_tenant_takes_at_most_half_of_the_places(engine, front):
    server = front(engine_options="waiting = 8")
    wires = [subscribe(server.wire(ALPHA), "a") for _ in range(4)]
    with server.wire(ALPHA) as fifth, server.wire(BETA) as beta:
        assert "engine.waiting" in str(fifth.attempt("SUBSCRIBE", "a"))
        assert fifth.ask("PUBLISH", "a", "x") == 4
        subscribe(beta, "a")
        wires.pop().close()
        eventually(lambda: isinstance(fifth.attempt("SUBSCRIBE", "a"), list), 20, "there is room")
    for wire in wires:
        wire.close()
    none_held(server)


def test_nobody_has_so_many_that_others_pay_for_it(engine, front):
    """Each pattern is compared with whatever anybody publishes, and a client's channels are forgotten one by one when it goes."""
    server = front()
    with server.wire(ALPHA) as first, server.wire(ALPHA) as second, server.wire(BETA) as beta:
        subscribe(first, *(f"{number}*" for number in range(1_000)), kind="psubscribe")
        subscribe(second, *(f"{number}?" for number in range(1_000)), kind="psubscribe")
        assert "patterns" in str(second.attempt("PSUBSCRIBE", *range(100)))
        subscribe(beta, *(f"{number}*" for number in range(1_000)), kind="psubscribe")
        first.send("PUNSUBSCRIBE")
        assert [first.read()[2] for _ in range(1_000)][-1] == 0
        # A pattern that is there already takes no place.
        for _ in range(30):
            second.send("PSUBSCRIBE", *(f"{number}?" for number in range(100)))
            assert {second.read()[2] for _ in range(100)} == {1_000}
        subscribe(first, *(f"{number}*" for number in range(500)), kind="psubscribe")
    with server.wire(ALPHA) as many:
        for begin in range(0, 16_000, 1_000):
            many.send("SUBSCRIBE", *range(begin, begin + 1_000))
            assert [many.read()[2] for _ in range(1_000)][-1] == begin + 1_000
        assert "at most" in str(many.attempt("SUBSCRIBE", *range(16_000, 16_500)))
    none_held(server)


def test_requests_about_channels_wait_where_shares_decide(engine, front):
    """An engine that is slow is not sent more of them at once than of anything else."""
    server = front(server_options="cores = 1")
    wires = [server.wire(ALPHA) for _ in range(200)]
    port = f":{engine.port:04X}"

    def links():
        with open("/proc/net/tcp", encoding="ascii") as table:
            return sum(line.split()[2].endswith(port) and line.split()[3] == "01" for line in table.readlines()[1:])

    with server.wire(BETA) as beta:
        assert beta.ask("INCR", "n") == 1
        before = links()
        engine.hold()
        for wire in wires:
            wire.send("SUBSCRIBE", "a")
        eventually(lambda: links() > before, 20, "some are on their way")
        assert beta.ask("PING") == b"PONG"
        assert links() <= before + 80
        engine.release()
        for wire in wires:
            assert wire.read() == [b"subscribe", b"a", 1]
        assert beta.ask("PUBLISH", "a", "theirs") == 0
        with server.wire(ALPHA) as alpha:
            assert alpha.ask("PUBLISH", "a", "x") == 200
        for wire in wires:
            assert wire.read() == [b"message", b"a", b"x"]
            wire.close()
    none_held(server)


def test_channels_are_those_of_the_whole_cluster(make_cluster, before):
    cluster = make_cluster()
    servers = [before(cluster, tenants=(WIDE, BETA)) for _ in range(2)]
    with servers[0].wire(WIDE) as wide, servers[1].wire(WIDE) as mine, servers[1].wire(BETA) as beta:
        subscribe(mine, "a", "b", "c")
        subscribe(beta, "a")
        for channel in ("a", "b", "c"):
            assert wide.ask("PUBLISH", channel, "x") == 1
            assert mine.read() == [b"message", channel.encode(), b"x"]
        assert sorted(wide.ask("PUBSUB", "CHANNELS")) == [b"a", b"b", b"c"]
        assert wide.ask("PUBSUB", "NUMSUB", "a", "b") == [b"a", 1, b"b", 1]
        assert beta.ask("PING") == [b"pong", b""]


def test_redis_py_s_own_client(engine, front):
    server = front()
    client = redis.Redis(port=server.port, username=ALPHA.name, password=ALPHA.password, health_check_interval=1)
    with client.pubsub() as channels:
        channels.subscribe("a")
        channels.psubscribe("b*")
        heard = []

        def hear():
            message = channels.get_message(timeout=0.2)
            heard.extend([message] if message else [])
            return heard and heard[-1]["type"]

        eventually(lambda: hear() == "psubscribe", 20, "it has subscribed")
        client.publish("a", "one")
        client.publish("bb", "two")
        eventually(lambda: hear() == "pmessage", 20, "both have come")
        assert [message["type"] for message in heard] == ["subscribe", "psubscribe", "message", "pmessage"]
    client.close()


def test_a_list_of_clients_shows_who_has_subscribed(engine, front):
    server = front()
    with server.wire(ALPHA) as alpha, server.wire(ALPHA) as other:
        ident = other.ask("CLIENT", "ID")

        def shown():
            return alpha.ask("CLIENT", "LIST", "TYPE", "pubsub").decode()

        assert shown() == ""
        other.ask("SUBSCRIBE", "a")
        other.ask("PSUBSCRIBE", "b*")
        assert shown().startswith(f"id={ident} ") and " flags=P db=0 sub=1 psub=1 " in shown()
        assert f"id={ident} " not in alpha.ask("CLIENT", "LIST", "TYPE", "normal").decode()
        other.ask("UNSUBSCRIBE")
        assert " sub=0 psub=1 " in shown()
        other.ask("PUNSUBSCRIBE")
        assert shown() == ""
        other.ask("SUBSCRIBE", "a")
        assert alpha.ask("CLIENT", "KILL", "TYPE", "pubsub") == 1
        eventually(lambda: shown() == "", 20, "it is closed")
