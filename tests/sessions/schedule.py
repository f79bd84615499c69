"""What a seed stands for: rounds, in each of which some connections send a packet. It is data: a part of it is a schedule as well.

In a round each key belongs to one connection, in every tenant, so that what all of them do at the same time has one outcome.
In a solo round one connection has all keys, and may do what is for the whole keyspace.
"""

import random
from dataclasses import dataclass, field

from words import Words

TENANTS = ("default", "alpha", "beta")
CONNECTIONS = 7
NOISES = 3
KEYS = [b"s%d" % number for number in range(6)] + [b"h%d" % number for number in range(4)] + [b"z%d" % number for number in range(4)]
# Two counters that everybody moves together.
PAIR = [b"~a", b"~b"]
ROUNDS = 40
ITEMS_MAX = 12


def own_key(connection):
    """A key that is never another connection's."""
    return b"s=%d" % connection


# All keys that there may be.
EVERY = [*KEYS, *PAIR, *(own_key(connection) for connection in range(CONNECTIONS))]


@dataclass
class Packet:
    """What a connection sends at once. `ending`: half of one more request, or the connection's end, politely or not."""

    connection: int
    keys: list
    items: list
    ending: str
    deaf: bool
    cuts: int


@dataclass
class Round:
    """Packets that are sent together, what strangers send, and what becomes of the server. `number`: its place in the whole schedule."""

    number: int
    packets: list
    noise: list
    event: str
    part: float
    solo: bool = False


@dataclass
class Schedule:
    """A server's settings, and what is done to it."""

    seed: int
    options: str
    cores: int
    rounds: list = field(default_factory=list)


# What a connection does, and how often.
KINDS = {
    "do": 60,
    "transaction": 10,
    "pair": 5,
    "look": 3,
    "switch": 8,
    "multi": 3,
    "exec": 4,
    "discard": 1,
    "watch": 4,
    "unwatch": 1,
    "reply": 3,
    "kill": 2,
    "list": 2,
    "mortal": 2,
    "quit": 1,
    "report": 4,
}
SETTINGS = {
    "object_cache": ("1MiB", "64MiB"),
    "block_cache": ("8MiB",),
    "write_buffers": ("8MiB", "64MiB"),
    "memtable": ("1MiB", "8MiB"),
    "pending": ("64KiB", "1MiB"),
    "handlers": ("1", "2", "8"),
    "committers": ("1", "2"),
    "idle_close": ("1s", "1min"),
}


def make(seed, forms, others):
    """The schedule of a seed."""
    chance = random.Random(seed)
    settings = {name: chance.choice(values) for name, values in SETTINGS.items()}
    lines = [f"{name} = {value}" if value.isdigit() else f'{name} = "{value}"' for name, value in settings.items()]
    if chance.random() < 0.2:
        lines += ["[device]", 'model = "ssd"']
    if chance.random() < 0.5:
        lines += ["[scheduler]", f'chunk = "{chance.choice(("4KiB", "64KiB"))}"']
    schedule = Schedule(seed, "\n".join(lines), chance.choice((1, 2, 3)))
    maker = Maker(chance, forms, others)
    schedule.rounds = [maker.round(number) for number in range(ROUNDS)]
    return schedule


class Maker:
    """Makes rounds by `chance` alone, whatever the server answers."""

    def __init__(self, chance, forms, others):
        self.chance, self.others, self.words = chance, others, Words(chance, forms)
        # Connections that rest while others may write what they watch, with the keys.
        self.watchers = {}

    def round(self, number):
        chance = self.chance
        solo = chance.random() < 0.15
        back = {} if solo else {watcher: keys for watcher, keys in self.watchers.items() if chance.random() < 0.5}
        others = [idle for idle in range(CONNECTIONS) if idle not in self.watchers]
        if not others:
            solo, back = False, dict(self.watchers)
        active = chance.sample(others, 1 if solo else chance.randint(1, len(others))) if others else []
        owner = {key: chance.choice(active or list(back)) for key in KEYS}
        owner.update({key: watcher for watcher, keys in back.items() for key in keys})
        for watcher in back:
            del self.watchers[watcher]
        packets = [
            self.packet(sender, [key for key in KEYS if owner[key] == sender] + [own_key(sender)], solo, sender in back)
            for sender in (*active, *back)
        ]
        noise = [(noisy, [self.words.hostile(self.others) for _ in range(chance.randint(1, 6))]) for noisy in range(NOISES) if chance.random() < 0.3]
        event = chance.choices(("", "stop", "kill", "stop in it", "kill in it"), (91, 2, 2, 2, 3))[0]
        return Round(number, packets, noise, event, chance.random(), solo)

    def packet(self, number, keys, solo, back):
        chance, items = self.chance, []
        if back:
            items = [("multi",), ("do", self.words.command(keys)), ("exec",)]
        for _ in range(chance.randint(1, ITEMS_MAX)):
            items += self.items(keys, solo)
        if chance.random() < 0.15 and not back:
            watched = tuple(chance.sample(keys, min(len(keys), 2)))
            items.append(("watch", watched))
            self.watchers[number] = watched
        ending = chance.choices(("", "half", "shut", "close"), (82, 10, 4, 4))[0]
        return Packet(number, keys, items, ending, chance.random() < 0.1, chance.choice((0, 0, 1, 3, 20)))

    def items(self, keys, solo):
        """One thing that a connection does. What the state that it is in does not allow is left out when it comes to it."""
        chance = self.chance
        kind = chance.choices(list(KINDS), list(KINDS.values()))[0]
        if kind == "do":
            return [self.do(keys, solo)]
        if kind == "transaction":
            return [("multi",), *(self.do(keys, solo) for _ in range(chance.randint(1, 5))), ("exec",)]
        return [self.item(kind, keys)]

    def do(self, keys, solo):
        chance = self.chance
        if solo and chance.random() < 0.25:
            return ("do", (b"FLUSHALL",) if chance.random() < 0.4 else self.words.command(keys, whole=True))
        return ("do", self.words.command(keys))

    def item(self, kind, keys):
        chance = self.chance
        if kind == "switch":
            return ("switch", chance.choice(("AUTH", "HELLO 2", "HELLO 3", "RESET", "wrong")), chance.choice(TENANTS[1:]))
        if kind == "watch":
            return ("watch", tuple(chance.sample(keys, min(len(keys), chance.randint(1, 3)))))
        if kind == "reply":
            return ("reply", chance.choice((b"ON", b"OFF", b"SKIP")))
        if kind == "kill":
            return ("kill", chance.randrange(CONNECTIONS))
        if kind == "mortal":
            return ("mortal", chance.choice(keys), chance.randint(1, 30))
        if kind == "report":
            return ("do", chance.choice(((b"INFO",), (b"CLIENT", b"ID"), (b"COMMAND", b"DOCS", b"get"), (b"PING",), (b"TIME",), (b"SLOWLOG", b"LEN"))))
        return (kind,)
