"""Commands that change or gather much at once: they keep nobody waiting, and beyond a limit they are refused and change nothing."""

import select

import pytest
from bystander import Bystander

from harness.process import resident_bytes
from harness.resp import ServerError
from harness.server import ALPHA, BETA, Server

MEBIBYTE = 1 << 20
MEMBERS = 200_000
AT_ONCE = 1_000
LIMIT = 32 * MEBIBYTE
# What is refused has been gathered up to the limit; the heap's slack and blocks of RocksDB come on
# top.
GROWTH_MAX = 3 * LIMIT
EVERYTHING = str(MEMBERS)

pytestmark = pytest.mark.ours


def stock(server):
    """A sorted set "set" and a hash "hash", of as many names."""
    with server.wire(ALPHA, timeout=120) as wire:
        for first in range(0, MEMBERS, AT_ONCE):
            names = [f"name:{number:08}" for number in range(first, first + AT_ONCE)]
            wire.send("ZADD", "set", *[word for number, name in enumerate(names, first) for word in (str(number), name)])
            wire.send("HSET", "hash", *[word for name in names for word in (name, "value")])
            wire.read(), wire.read()


@pytest.fixture(scope="module")
def tight(tmp_path_factory):
    """A server whose commands may work with little memory."""
    options = f'max_command_memory = "{LIMIT // MEBIBYTE}MiB"'
    server = Server(tmp_path_factory.mktemp("tight"), server_options=options).start()
    stock(server)
    yield server
    server.kill()


REFUSED = [
    ["ZPOPMIN", "set", EVERYTHING],
    ["ZPOPMAX", "set", EVERYTHING],
    ["ZRANGESTORE", "other", "set", "0", "-1"],
    ["ZUNION", "2", "set", "set"],
    ["ZINTER", "2", "set", "set"],
    ["ZDIFF", "2", "set", "set"],
    ["ZINTERCARD", "2", "set", "set"],
    ["ZUNIONSTORE", "other", "1", "set"],
    ["ZINTERSTORE", "other", "1", "set"],
    ["ZDIFFSTORE", "other", "1", "set"],
    ["ZREMRANGEBYRANK", "set", "0", "-1"],
    ["ZREMRANGEBYSCORE", "set", "-inf", "+inf"],
    ["ZREMRANGEBYLEX", "set", "-", "+"],
    ["ZRANDMEMBER", "set", "-1000000"],
    ["HRANDFIELD", "hash", "-1000000"],
    ["COPY", "set", "other"],
    ["COPY", "hash", "other"],
]


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_too_much_at_once_is_refused_and_changes_nothing(tight, words):
    before = resident_bytes(tight.pid)
    with Bystander(tight, BETA), tight.wire(ALPHA, timeout=120) as wire:
        with pytest.raises(ServerError, match=f"more than {LIMIT} bytes of memory .server.max_command_memory."):
            wire.ask(*words)
        assert resident_bytes(tight.pid) - before < GROWTH_MAX
        assert [wire.ask("ZCARD", "set"), wire.ask("HLEN", "hash"), wire.ask("EXISTS", "other")] == [MEMBERS, MEMBERS, 0]


def test_a_transaction_that_makes_much_of_little_is_refused_as_a_whole(tight):
    with tight.wire(ALPHA, timeout=120) as wire:
        # A string of zeros takes nothing, one of ones does.
        wire.ask("SETRANGE", "zeros", str(8 * MEBIBYTE), "x")
        wire.ask("MULTI")
        for number in range(8):
            wire.ask("BITOP", "NOT", f"long:{number}", "zeros")
        with pytest.raises(ServerError, match="max_command_memory"):
            wire.ask("EXEC")
        assert wire.ask("EXISTS", *[f"long:{number}" for number in range(8)]) == 0
        # One by one they are no matter.
        assert wire.ask("BITOP", "NOT", "long:0", "zeros") == 8 * MEBIBYTE + 1
        assert wire.ask("DEL", "long:0", "zeros") == 2


def test_less_at_a_time_goes(tight):
    with tight.wire(ALPHA) as wire:
        assert wire.ask("ZRANGESTORE", "mine", "set", "0", "9999") == 10_000
        assert len(wire.ask("ZPOPMIN", "mine", "10000")) == 20_000
        assert wire.ask("EXISTS", "mine") == 0


# As they are by default, such sizes are served, and nobody waits for them.
SERVED = {
    ("ZUNION", "2", "set", "set"): MEMBERS,
    ("ZUNIONSTORE", "all", "2", "set", "other"): MEMBERS,
    ("ZRANGESTORE", "copy", "set", "0", "-1"): MEMBERS,
    ("ZPOPMAX", "copy", EVERYTHING): 2 * MEMBERS,
}


def test_others_are_answered_while_a_large_command_runs(tmp_path):
    server = Server(tmp_path).start()
    try:
        stock(server)
        with server.wire(ALPHA, timeout=120) as wire, server.wire(BETA) as other:
            other.ask("SET", "small", "1")
            for words, size in SERVED.items():
                wire.send(*words)
                answered = 0
                while not select.select([wire.sock], [], [], 0)[0]:
                    assert other.ask("GET", "small") == b"1"
                    answered += 1
                reply = wire.read()
                assert (len(reply) if isinstance(reply, list) else reply) == size
                assert answered > 100, f"{words}: {answered} gets meanwhile"
    finally:
        server.kill()
