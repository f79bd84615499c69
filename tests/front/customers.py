"""Clients of several tenants that write their own keys and read those of others, whatever happens to the cluster meanwhile."""

import random
import threading
import time
from collections import defaultdict
from dataclasses import dataclass

from registers import ACKNOWLEDGED, APART, REFUSED, UNKNOWN, Impossible, Read, Register

from harness.resp import ServerError, encode
from harness.waiting import eventually

# A front says within three times `engine.timeout`, which is 1 s here, that a node hangs; so one that is silent for longer is
# left.
PATIENCE_S = 4.0
# Between two requests of a client, at most: many clients of many clusters share a machine.
PAUSE_S = 0.02
REGISTERS = 4


@dataclass
class Answer:
    """What became of one request."""

    client: str
    front: int
    registers: list
    asked: float
    answered: float
    # The text of an error; the name of an exception; none.
    error: str | None
    words: str


class Customer:
    """One client. It has some keys of its own: registers, a pair that is always written together, and a counter."""

    def __init__(self, name, tenant, fronts, lag, number):
        self.name, self.tenant, self.fronts, self.lag = name, tenant, fronts, lag
        make = lambda key, **options: Register(tenant.name, key, **options)
        self.own = [make(f"{name}:{each}") for each in range(REGISTERS)]
        self.pair = [make(f"{{{name}}}:one"), make(f"{{{name}}}:other")]
        self.counter = make(f"{{{name}}}:count", counter=True, base=number * APART)
        self.all = [*self.own, *self.pair, self.counter]
        self.random, self.wire, self.at = random.Random(name), None, 0

    def begin(self, seed, everybody):
        """A thread works until `ended` is set."""
        self.random = random.Random(f"{seed} {self.name} {self.tenant.name}")
        others = [other for other in everybody if other.tenant is self.tenant]
        self.known = [register for other in others for register in other.all]
        self.pairs = [other.pair for other in others]
        self.answers, self.reads, self.wrong, self.torn = [], defaultdict(list), [], []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def end(self):
        self.ended.set()
        self.thread.join(60)
        assert not self.thread.is_alive(), f"{self.name} of {self.tenant.name} hangs"
        self.leave()

    def leave(self):
        if self.wire:
            self.wire.close()
        self.wire = None

    def run(self):
        try:
            while not self.ended.wait(self.random.uniform(0, PAUSE_S)):
                self.random.choice((self.set, self.set, self.get, self.get, self.count, self.write_many, self.read_many, self.read_pair, self.write_pair, self.transact))()
        except Exception as error:  # noqa: BLE001 (whatever ends it is what the test must see)
            self.wrong.append((None, f"{self.name} of {self.tenant.name}: {error!r}"))

    def connect(self):
        self.at = self.random.randrange(len(self.fronts))
        self.wire = self.fronts[self.at].wire(timeout=PATIENCE_S)
        self.wire.ask("AUTH", self.tenant.name, self.tenant.password)

    def ask(self, requests, registers, writes=()):
        """The reply to the last of these requests; none if there was an error."""
        asked, error, reply = time.monotonic(), None, None
        began = [register.write(asked, None) for register in writes]
        words = [[word(began) if callable(word) else word for word in request] for request in requests]
        sent = whole = False
        try:
            if self.wire is None:
                self.connect()
            for write in began:
                write.connection = self.wire
            sent = True
            self.wire.raw(b"".join(encode(*request) for request in words))
            replies = [self.wire.read() for _ in words]
            reply, error = replies[-1], next((str(reply) for reply in replies if isinstance(reply, ServerError)), None)
            whole = len(replies) == 1 or not any(isinstance(reply, ServerError) for reply in replies[:-1])
        except (OSError, EOFError, ServerError) as problem:
            # Who gets no connection, or cannot log in, has asked for nothing.
            error = f"({type(problem).__name__})" if sent else "(no connection)"
            self.leave()
        answered = time.monotonic()
        # A part of what goes to several partitions may be done though another part is not.
        several = len({register.slot for register in registers}) > 1
        for write in began:
            write.answered = answered
            if error is None:
                write.outcome = ACKNOWLEDGED
            elif not sent or ("nothing was done" in error and whole and not several):
                write.outcome = REFUSED
            else:
                write.outcome = UNKNOWN
        self.answers.append(Answer(self.name, self.at, registers, asked, answered, error, words[0][0]))
        self.asked, self.answered = asked, answered
        return None if error else (reply,)

    def read(self, register, reply, counts=False):
        try:
            number = register.number(reply)
        except (Impossible, ValueError) as problem:
            self.wrong.append((register.slot, f"a foreign value: {problem}, {reply!r} read by {self.name} of {self.tenant.name} at {self.asked:.3f}"))
            return
        self.reads[id(register)].append(Read(number, self.asked, self.answered, self.wire, self.lag, counts))

    def expect(self, done, right):
        if done and done[0] != right:
            self.wrong.append((None, f"{self.name} of {self.tenant.name} was answered {done[0]!r} and not {right!r} at {self.asked:.3f}"))

    def set(self):
        register = self.random.choice(self.own)
        self.expect(self.ask([("SET", register.key, lambda began: register.value(began[0].number))], [register], [register]), b"OK")

    def get(self):
        register = self.random.choice(self.known)
        done = self.ask([("GET", register.key)], [register])
        if done:
            self.read(register, done[0])

    def count(self):
        done = self.ask([("INCR", self.counter.key)], [self.counter], [self.counter])
        if done:
            self.read(self.counter, done[0], counts=True)

    def written(self, registers, command):
        """Words that write all of these."""
        values = [word for place, register in enumerate(registers) for word in (register.key, lambda began, p=place, r=register: r.value(began[p].number))]
        return (command, *values)

    def write_many(self):
        registers = self.random.sample(self.own, 2)
        self.expect(self.ask([self.written(registers, "MSET")], registers, registers), b"OK")

    def read_many(self):
        registers = self.random.sample(self.known, 3)
        done = self.ask([("MGET", *(register.key for register in registers))], registers)
        for register, reply in zip(registers, done[0] if done else ()):
            self.read(register, reply)

    def read_pair(self):
        pair = self.random.choice(self.pairs)
        done = self.ask([("MGET", *(register.key for register in pair))], pair)
        if done:
            for register, reply in zip(pair, done[0]):
                self.read(register, reply)
            one, other = (reply and reply.rsplit(b"|")[-1] for reply in done[0])
            if one != other:
                self.torn.append((pair[0], self.asked, self.answered, one, other))

    def write_pair(self):
        self.expect(self.ask([self.written(self.pair, "MSET")], self.pair, self.pair), b"OK")

    def transact(self):
        one, other = ((("SET", register.key, lambda began, p=place, r=register: r.value(began[p].number))) for place, register in enumerate(self.pair))
        requests = [("MULTI",), one, ("INCR", self.counter.key), other, ("EXEC",)]
        done = self.ask(requests, [*self.pair, self.counter], [*self.pair, self.counter])
        if done:
            [first, counted, last] = done[0]
            self.expect(([first, last],), [b"OK", b"OK"])
            self.read(self.counter, counted, counts=True)

    def renew(self, front, registers):
        """These of its keys are there, whatever they were."""
        with front.wire(self.tenant) as wire:
            for register in registers:
                number = 0 if register.counter else next(register.numbers)
                value = register.base if register.counter else register.value(number)
                eventually(lambda w=("SET", register.key, value): wire.attempt(*w) == b"OK", 30, f"{register.tenant} {register.key} is written")
                register.settle(number)

    def found(self, front, registers):
        """What each of its keys is, read when all is well."""
        with front.wire(self.tenant) as wire:
            return [eventually(lambda r=register: self.found_one(wire, r), 30, f"{register.tenant} {register.key} is served") for register in registers]

    def found_one(self, wire, register):
        """A transaction is done by masters, for tenants too that read from replicas."""
        asked = time.monotonic()
        wire.raw(b"".join(encode(*words) for words in (("MULTI",), ("GET", register.key), ("EXEC",))))
        replies = [wire.read() for _ in range(3)]
        assert isinstance(replies[-1], list), replies
        return Read(register.number(replies[-1][0]), asked, time.monotonic(), None)
