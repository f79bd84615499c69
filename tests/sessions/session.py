"""One connection, what it has asked for, and what it must be answered: by a redis-server for each tenant, which is told the same."""

import socket
from collections import deque
from dataclasses import dataclass, field

from schedule import EVERY, KEYS
from replies import MORE, Error, Replies, same

from words import WHOLE

from harness.resp import encode

MISSING = object()
# Nothing happens for so long only if something hangs, however busy the machine is.
HANG_S = 60
# Calls that are shown with one that was answered wrongly.
REMEMBERED = 30
ALL_KEYS = set(KEYS)


@dataclass
class Call:
    """A command that was sent. `mirror`: what the model is told instead, or ("speak", tenant, protocol)."""

    command: tuple
    mirror: tuple
    answered: bool
    parts: list = field(default_factory=list)
    pair: str = ""
    wants: object = None
    reply: object = MISSING


class Stream:
    """Replies of a socket that does not block."""

    def __init__(self, port, small=False):
        self.sock = socket.socket()
        if small:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sock.connect(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self.replies, self.ended = Replies(), False

    def receive(self):
        """Takes what is there."""
        try:
            data = self.sock.recv(1 << 20)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        self.ended |= not data
        self.replies.input += data

    def ask(self, *command):
        """Sends a command and waits for its reply."""
        return self.ask_all([command])[0]

    def ask_all(self, commands):
        """The same with several at once."""
        self.sock.settimeout(HANG_S)
        self.sock.sendall(b"".join(encode(*command) for command in commands))
        replies = []
        while len(replies) < len(commands):
            if (reply := self.replies.next()) is MORE:
                self.receive()
                assert not self.ended, f"closed instead of answering {brief(commands[len(replies)])}"
            else:
                replies.append(reply)
        self.sock.setblocking(False)
        return replies

    def close(self):
        self.sock.close()


class Session:
    """A connection to the server under test, and one to the model of whose tenant it speaks for."""

    def __init__(self, number, port, models, small):
        self.number, self.models = number, models
        self.stream = Stream(port, small)
        self.tenant, self.protocol, self.mode = "default", 2, "on"
        # Of a transaction: its commands, what was watched for it, and every key that EXEC must not
        # share with others.
        self.queued, self.watched, self.needs = None, set(), set()
        # A request of which a part was sent, and what is left of it; what was asked and is not told
        # to the model yet.
        self.tail, self.asked = None, []
        self.told = deque(maxlen=REMEMBERED)
        self.id = self.stream.ask("CLIENT", "ID")
        self.model, self.modelled = Stream(models["default"]), ("default", 2)

    def close(self):
        self.stream.close()
        self.model.close()

    def call(self, command, mirror=None, **more):
        """A command that is sent in the state that the connection is in then."""
        answered = self.mode == "on"
        if command[:2] == (b"CLIENT", b"REPLY"):
            self.mode = {b"ON": "on", b"OFF": "off"}.get(command[2], "off" if self.mode == "off" else "skip")
            answered = self.mode == "on"
            mirror = (b"PING",)
        elif self.mode == "skip":
            self.mode = "on"
        made = Call(command, mirror or command, answered, **more)
        if self.queued is not None and command[0] not in (b"MULTI", b"EXEC", b"DISCARD", b"RESET", b"WATCH", b"QUIT"):
            self.queued.append(command)
            self.needs |= set(EVERY if command[0].decode().lower() in WHOLE | {"flushall"} else ALL_KEYS & set(command[1:]))
        self.asked.append(made)

    def forget(self):
        """There is no transaction, and nothing is watched."""
        self.queued, self.watched, self.needs = None, set(), set()

    def item(self, item, world, keys):
        """Asks for one item of a packet, if its state allows that; false when nothing may follow it."""
        kind, free = item[0], self.queued is None and self.mode == "on"
        if kind == "do":
            self.call(item[1])
        elif kind == "switch" and self.mode != "skip":
            self.switch(item[1], item[2], world.tenants)
        elif kind == "pair" and free and not self.watched:
            for command in ((b"MULTI",), (b"INCR", b"~a"), (b"INCR", b"~b"), (b"EXEC",)):
                self.call(command, pair=self.tenant if command[0] == b"EXEC" else "", parts=[(b"INCR", b"~a")] * 2)
        elif kind == "look" and free:
            self.call((b"MGET", b"~a", b"~b"), wants=lambda reply: reply[0] == reply[1])
        elif kind == "multi" and self.mode == "on":
            self.call((b"MULTI",))
            self.queued = [] if self.queued is None else self.queued
        elif kind in ("exec", "discard"):
            alone = self.watched | self.needs <= keys
            self.call((b"EXEC" if kind == "exec" and alone else b"DISCARD",), parts=self.queued or [])
            if self.queued is not None:
                self.forget()
        elif kind == "watch":
            self.call((b"WATCH", *item[1]))
            self.watched |= set(item[1]) if self.queued is None else set()
        elif kind == "unwatch" and free:
            self.call((b"UNWATCH",))
            self.watched = set()
        elif kind == "reply" and self.queued is None:
            self.call((b"CLIENT", b"REPLY", item[1]))
        elif kind == "kill" and free:
            world.kill_client(self, item[1])
        elif kind == "list" and free:
            mine = f" user={self.tenant} ".encode()
            self.call((b"CLIENT", b"LIST"), wants=lambda reply: all(mine in line for line in reply.splitlines()))
        elif kind == "mortal" and free and not world.cuts(self.number):
            self.call((b"PEXPIRE", item[1], b"%d" % item[2]))
            world.mortal.add((self.tenant, item[1]))
            return False
        elif kind == "quit" and free:
            self.call((b"QUIT",))
            return False
        return True

    def switch(self, how, tenant, tenants):
        """AUTH, HELLO and RESET; in a transaction the first two are refused when it is executed."""
        password = next(known.password for known in tenants if known.name == tenant).encode()
        name = tenant.encode()
        login = (b"AUTH", name, b"no" if how == "wrong" else password)
        if how.startswith("HELLO"):
            login = (b"HELLO", how[-1:].encode(), *login)
        if how == "RESET":
            self.mode = "on"
            self.forget()
            self.call((b"RESET",), ("speak", "default", 2, True), wants=lambda reply: reply == ("+", b"RESET"))
            self.tenant, self.protocol = "default", 2
        elif self.queued is not None:
            self.call(login, (b"SETRANGE", b"s", b"-1", b"x"))
        elif how == "wrong":
            self.call(login, ("speak", self.tenant, self.protocol), wants=lambda reply: isinstance(reply, Error) and reply.startswith("WRONGPASS"))
        else:
            self.protocol = int(how[-1:]) if how.startswith("HELLO") else self.protocol
            self.watched = self.watched if tenant == self.tenant else set()
            self.tenant = tenant
            self.call(login, ("speak", tenant, self.protocol), wants=lambda reply: not isinstance(reply, Error))

    def expected(self):
        """Replies that are still to come."""
        return sum(call.answered and call.reply is MISSING for call in self.asked)

    def take(self):
        """Gives what has arrived to the calls that it answers."""
        for call in self.asked:
            if call.answered and call.reply is MISSING:
                reply = self.stream.replies.next()
                if reply is MORE:
                    return
                call.reply = reply

    def advance(self, *calls):
        """Tells the model what was asked; compares the replies, if there were any."""
        asked = []
        for call in calls:
            if call.mirror[0] == "speak":
                self.hear(asked)
                asked = []
                self.speak(*call.mirror[1:])
                self.compare(call, None)
            else:
                asked.append(call)
        self.hear(asked)

    def hear(self, calls):
        for call, theirs in zip(calls, self.model.ask_all([call.mirror for call in calls])):
            self.compare(call, theirs)

    def speak(self, tenant, protocol, anew=False):
        """The model's connection is that of `tenant` from now on; what it watched is forgotten, if it was another's."""
        if tenant != self.modelled[0] or anew:
            self.model.close()
            self.model, self.modelled = Stream(self.models[tenant]), (tenant, 2)
        if protocol != self.modelled[1]:
            self.model.ask("HELLO", protocol)
        self.modelled = (tenant, protocol)

    def compare(self, call, theirs):
        """Whether a reply is the one that there must be."""
        wrong = call.reply is not MISSING and mistake(call, theirs)
        before = "; ".join(f"{brief(known.command)}: {brief(known.reply)}" for known in self.told)
        assert not wrong, f"connection {self.number}: {brief(call.command)}: {wrong}, after {before}"
        self.told.append(call)


def mistake(call, theirs):
    """What is wrong with a reply, or None."""
    if call.wants:
        return None if call.wants(call.reply) else f"answered {brief(call.reply)}"
    if call.command[0] == b"EXEC" and isinstance(call.reply, list) and isinstance(theirs, list) and len(call.reply) == len(call.parts):
        for part, our, their in zip(call.parts, call.reply, theirs):
            if not same(part, our, their):
                return f"in it {brief(part)} was answered {brief(our)}, by the model {brief(their)}"
        return None
    return None if same(call.command, call.reply, theirs) else f"answered {brief(call.reply)}, by the model {brief(theirs)}"


def brief(thing):
    """What it is, as far as one wants to read it."""
    if isinstance(thing, (tuple, list)) and not isinstance(thing, str):
        words = [brief(word) for word in thing[:12]]
        return f"({' '.join(words)}{f' … {len(thing)} words' if len(thing) > 12 else ''})"
    if isinstance(thing, bytes):
        return f"{thing[:24].decode('latin-1')}… {len(thing)} bytes" if len(thing) > 24 else thing.decode("latin-1")
    return "no reply" if thing is MISSING else repr(thing)[:200]


