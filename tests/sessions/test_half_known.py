"""Every command on data of which memory knows a part: it is on its way, on a core, when it finds that the rest is on the disk.

Small data is all in memory, so other tests hardly ever stop a command in its middle. Here each value lies in a block of its own,
no cache keeps it, and the server has been started anew: what it knows is what was written since. What a command is answered
and leaves behind is compared with what a redis-server says; the one core must serve everybody else at the end.
"""

import json
import random
import urllib.request

import pytest
from replies import Error, same
from session import Stream, brief
from words import KINDS, NOT_MADE, WHOLE, Words, tables
from world import alike, dump

from harness.server import ALPHA, Server, Tenant
from harness.waiting import eventually

pytestmark = pytest.mark.ours
COLD = Tenant("cold", extra='cache = "0B"\nblock_cache = "0B"')
# Longer than a block, and than what lies in one record; and as long as LCS takes.
BLOCK, PIECES, COMMON = 8_000, 70_000, 4_200
KEYS_EACH = 3
# Which of a case's keys were written since the start.
KNOWN = {"none": [], "first": [0], "others": list(range(1, KEYS_EACH))}
# What the generator leaves out, as far as both servers answer it alike.
BY_HAND = {
    "lcs": lambda a, b, _: (a, b, b"LEN"),
    "zrangebylex": lambda a, *_: (a, b"-", b"+"),
    "zrevrangebylex": lambda a, *_: (a, b"+", b"-"),
    "zlexcount": lambda a, *_: (a, b"-", b"+"),
    "zremrangebylex": lambda a, *_: (a, b"-", b"+"),
}


class InTurn(Words):
    """Names each key of a case before it names one again."""

    turn = 0

    def key(self, keys, kind):
        self.turn += 1
        return keys[(self.turn - 1) % len(keys)]

    def made(self, name, keys):
        """A command of this name."""
        self.names, self.turn = [name], 0
        if name in BY_HAND:
            return (name.upper().encode(), *BY_HAND[name](*keys))
        return self.command(keys)


def stocked(key):
    """What is on the disk of a key."""
    if key[:1] == b"s":
        yield (b"SET", key, key.ljust(BLOCK, b"s"))
    elif key[:1] == b"p":
        yield (b"SET", key, key.ljust(PIECES, b"p"))
    elif key[:1] == b"t":
        yield (b"SET", key, key.ljust(COMMON, b"t"))
    elif key[:1] == b"h":
        yield (b"HSET", key, *(word for field in (b"f0", b"f1") for word in (field, key.ljust(BLOCK, b"h"))))
    else:
        # The last one fills a block.
        yield (b"ZADD", key, b"1", b"f0", b"2", b"f1", b"3", b"f2", b"9", b"z".ljust(BLOCK, b"z"))


def write(key):
    """Has memory know what a key is; of what is longer than one record it knows the least."""
    if key[:1] == b"s":
        return (b"SET", key, b"new".ljust(BLOCK, b"n"))
    return {b"p": (b"APPEND", key, b"p"), b"t": (b"APPEND", key, b"t"), b"h": (b"HSET", key, b"f9", b"9"), b"z": (b"ZADD", key, b"9", b"f9")}[key[:1]]


class Case:
    """A command of this name, in one of the states."""

    def __init__(self, number, name, kind, known, in_transaction):
        self.name, self.known, self.in_transaction = name, known, in_transaction
        self.keys = [b"%s%d.%d" % (kind, number, place) for place in range(KEYS_EACH)]

    def commands(self, words):
        made = [words.made(self.name, self.keys)]
        if self.in_transaction:
            # What follows finds what the first has written, and not yet applied.
            return [(b"WATCH", *self.keys), (b"MULTI",), *made, words.made(self.name, self.keys), (b"EXEC",)]
        return made


def cases(forms):
    """Each command on keys of each kind that it is for, in each state, alone and in a transaction."""
    made = []
    for name in sorted({*forms, *BY_HAND}):
        kind = KINDS.get(forms[name][0]) if name in forms else b"t" if name == "lcs" else b"z"
        kinds = {None: [b"s", b"p", b"h", b"z"], b"s": [b"s", b"p"]}.get(kind, [kind])
        for kind in [b"s"] if name in WHOLE else kinds:
            for known in ["first"] if name in WHOLE else KNOWN:
                made += [Case(2 * len(made) + alone, name, kind, known, not alone) for alone in (False, True)]
    return made


def compare(commands, ours, theirs):
    """What is wrong with a row of replies, or None."""
    for command, our, their in zip(commands, ours, theirs):
        if command[0] == b"EXEC" and isinstance(our, list) and isinstance(their, list):
            wrong = compare([known for known in commands if known[0] not in (b"WATCH", b"MULTI", b"EXEC")], our, their)
        else:
            wrong = None if same(command, our, their) else f"{brief(command)} was answered {brief(our)}, by the model {brief(their)}"
        if wrong:
            return wrong
    return None


@pytest.fixture
def model(tmp_path):
    server = Server(tmp_path / "model", tenants=(), program="redis-server").start()
    yield server
    server.kill()


def speak(server, tenant):
    stream = Stream(server.port)
    assert not isinstance(stream.ask("AUTH", tenant.name, tenant.password), Error)
    return stream


def to_the_disk(server):
    """Commands of the tenant that went to a handler since the start."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/api/tenants", timeout=20) as answer:
        stages = next(tenant for tenant in json.load(answer) if tenant["name"] == COLD.name)["stages"]
    return sum(stage["admitted"] for stage in stages if stage["stage"] == "handler")


def test_commands_that_memory_knows_a_part_of(start, model):
    server = start(tenants=(COLD, ALPHA), server_options="cores = 1")
    with server.wire(COLD) as ours, model.wire() as theirs:
        forms, _ = tables(ours, theirs)
    assert set(BY_HAND) == NOT_MADE
    words, todo = InTurn(random.Random(1), forms), cases(forms)
    assert len(todo) > 600, len(todo)
    us, them = speak(server, COLD), Stream(model.port)
    for case in todo:
        stock = [command for key in case.keys for command in stocked(key)]
        us.ask_all(stock)
        them.ask_all(stock)
    us.close()
    assert server.stop() == 0
    server.start()
    us, bystander = speak(server, COLD), speak(server, ALPHA)
    done = []
    for case in todo:
        commands, known = case.commands(words), [write(case.keys[place]) for place in KNOWN[case.known]]
        said = f"{case.known} known, {brief(commands)}"
        try:
            ours = us.ask_all([*known, *commands])
        except TimeoutError:
            raise AssertionError(f"no reply: {said}; the server has said {server.said()[-500:]}") from None
        wrong = compare(commands, ours[len(known) :], them.ask_all([*known, *commands])[len(known) :])
        assert not wrong, f"{said}: {wrong}"
        done.append((said, case.keys))
    assert bystander.ask("PING") == ("+", b"PONG")
    # Not those of which memory happened to know enough.
    eventually(lambda: to_the_disk(server) > len(todo) * 2 // 3, 20, "most of them met what memory did not know")
    for said, keys in done:
        found, wanted = dump(us, keys), dump(them, keys)
        wrong = [key for key in keys if not alike(found[key], wanted[key])]
        assert not wrong, f"{said}: {wrong[0]} is {brief(found[wrong[0]])}, in the model {brief(wanted[wrong[0]])}"
    assert us.ask("DBSIZE") == them.ask("DBSIZE")
    for stream in (us, them, bystander):
        stream.close()
