"""A hostile neighbour: whatever it asks for, of all commands that the engine has, it learns nothing of others and changes nothing of theirs."""

import random

from harness.resp import ServerError
from harness.server import ALPHA, BETA

# They end the connection, stop its replies, or wait.
NOT_ASKED = {"quit", "shutdown", "client|reply", "monitor", "sync", "psync", "reset", "auth", "hello", "client|kill", "client|pause"}
# They wait for something that may never come, but for as long as their last or their first word says.
WAITING = {"blpop": -1, "brpop": -1, "blmove": -1, "brpoplpush": -1, "bzpopmin": -1, "bzpopmax": -1, "blmpop": 0, "bzmpop": 0}
KINDS = ("string", "list", "set", "zset", "hash", "stream", "geo")
SEED = 7


def fill(wire):
    """A key of each type, each with the secret."""
    wire.ask("SET", "string", "secret")
    wire.ask("RPUSH", "list", "secret")
    wire.ask("SADD", "set", "secret")
    wire.ask("ZADD", "zset", 1, "secret")
    wire.ask("HSET", "hash", "secret", "secret")
    wire.ask("XADD", "stream", "1-1", "secret", "secret")
    wire.ask("XGROUP", "CREATE", "stream", "secret", "0")
    wire.ask("GEOADD", "geo", 1, 1, "secret")


def state(engine):
    """What the engine has of the victim."""
    with engine.wire() as direct:
        keys = sorted(key for key in direct.ask("KEYS", "*") if key.startswith(b"{@beta}"))
        return [(key, direct.ask("DUMP", key)) for key in keys]


def names(commands):
    for command in commands:
        yield command[0].decode()
        yield from names(command[9])


def words_for(name, chance):
    """One request of the command `name`, of words that mean something somewhere."""
    keys = [mark + kind for kind in KINDS for mark in ("", "{@beta}", "beta")]
    others = ["0", "1", "2", "-1", "*", "{@*", "STREAMS", "STORE", "GET", "BY", "MATCH", "LEFT", "GROUP", "word", ">", "COUNT", "KEYS", "+", "-", "m", "FROMMEMBER", "return redis.call('GET','{@beta}string')"]
    count = chance.randrange(7)
    words = [chance.choice(keys if chance.random() < 0.6 else others) for _ in range(count)]
    if words and name in WAITING:
        words[WAITING[name]] = "0.001"
    return [*name.split("|"), *words]


def said(wire, words, meanwhile=None):
    """All that `wire` is sent for a request; what it has subscribed to by that ends, after `meanwhile`."""
    replies = [wire.attempt(*words)]
    if words[0].endswith("subscribe"):
        if meanwhile:
            meanwhile()
        for end in (("UNSUBSCRIBE",), ("PUNSUBSCRIBE",), ("SUNSUBSCRIBE",), ("PING", "end")):
            wire.send(*end)
        while replies[-1] not in (b"end", [b"pong", b"end"]):
            replies.append(wire.read())
    return replies


def test_no_command_shows_or_changes_what_is_another_s(engine, front):
    server, chance = front(), random.Random(SEED)
    with server.wire(BETA) as beta:
        fill(beta)

    def publish():
        with server.wire(BETA) as beta:
            for channel in (*KINDS, "word"):
                beta.ask("PUBLISH", channel, "secret")
                beta.ask("SPUBLISH", channel, "secret")

    before = state(engine)
    every = sorted(set(names(engine.ask("COMMAND"))) - NOT_ASKED)
    assert len(every) > 300
    with server.wire(ALPHA) as alpha:
        for name in every:
            for _ in range(25):
                words = words_for(name, chance)
                try:
                    reply = said(alpha, words, publish)
                except EOFError:
                    raise AssertionError(f"{words} ended the connection") from None
                if "secret" not in words and not any("secret" in word for word in words):
                    assert b"secret" not in repr(reply).encode(), (words, reply)
                if words[0] == "multi":
                    alpha.attempt("DISCARD")
            assert alpha.attempt("PING") in (b"PONG", b"QUEUED"), name
            alpha.attempt("DISCARD")
    assert state(engine) == before
    strays = {key for key in engine.keys() if not key.startswith((b"{@alpha}", b"{@beta}"))}
    assert not strays


def test_no_request_reaches_the_engine_with_a_key_that_has_no_mark(engine, front):
    """What the engine itself says that the keys are, of every request that was let through."""
    server = front()
    chance = random.Random(SEED)
    every = sorted(set(names(engine.ask("COMMAND"))) - NOT_ASKED)
    with server.wire(ALPHA) as alpha, engine.wire() as watcher, engine.wire() as direct:
        assert watcher.ask("MONITOR") == b"OK"
        for name in every:
            for _ in range(10):
                said(alpha, words_for(name, chance))
            alpha.attempt("DISCARD")
        alpha.ask("SET", "last", "x")
        seen = 0
        while True:
            line = watcher.read().decode("utf-8", "replace")
            words = [word for word in line.split('"')[1::2]]
            if words == ["SET", "{@alpha}last", "x"]:
                break
            if line.split("] ")[0].endswith("lua") or '\\"' in line:
                continue
            if words and words[0] in ("subscribe", "psubscribe", "ssubscribe", "publish", "spublish"):
                channels = words[1:2] if words[0].endswith("publish") else words[1:]
                assert all(channel.startswith("{@alpha}") for channel in channels), line
            keys = direct.attempt("COMMAND", "GETKEYS", *words) if words else []
            if isinstance(keys, ServerError):
                continue
            seen += 1
            assert all(key.startswith(b"{@alpha}") for key in keys), line
        assert seen > 200
