"""Runs a schedule: the server under test, a redis-server for each tenant as its model, connections, strangers, and what must hold."""

import json
import random
import select
import time
import urllib.request
from collections import defaultdict

from replies import SLACK_S
from schedule import CONNECTIONS, EVERY, PAIR, TENANTS, own_key
from session import HANG_S, MISSING, Session, Stream, brief

from harness.resp import encode
from harness.server import Server, Tenant
from harness.waiting import eventually

CHECK_EVERY = 10
# One whose data nobody looks at: it sends what it likes, and comes to the end of its memory.
NOISE = Tenant("noise", extra='request_memory = "1MiB"')
WHO = (Tenant("default"), Tenant("alpha", sync="always"), Tenant("beta", sync="never", extra='cache = "0B"\nblock_cache = "0B"'), NOISE)


class World:
    """A server with its connections, and its models."""

    def __init__(self, folder, schedule, models):
        self.schedule, self.tenants = schedule, WHO
        self.models = {name: model.port for name, model in models.items()}
        self.server = Server(folder, tenants=WHO, engine_options=schedule.options, server_options=f"cores = {schedule.cores}\nmax_value = '16MiB'\ndrain = '1s'")
        self.sessions, self.noises, self.looks = [], {}, {}
        # Of a round: keys that expire soon, who is killed by which calls, whose connections the
        # server closes.
        self.mortal, self.kills, self.ends, self.now = set(), {}, set(), None
        self.told = {name: Stream(port) for name, port in self.models.items()}

    def run(self, to_its_end=True):
        """All of it, or only its rounds; an AssertionError says what was wrong."""
        for stream in self.told.values():
            stream.ask("FLUSHALL")
        try:
            self.begin()
            for now in self.schedule.rounds:
                try:
                    self.round(now)
                    if now.number % CHECK_EVERY == CHECK_EVERY - 1 or now is self.schedule.rounds[-1]:
                        self.check()
                except AssertionError as problem:
                    raise AssertionError(f"round {now.number}: {problem}") from problem
            if to_its_end:
                self.rest()
        finally:
            self.server.kill()
            self.leave()
            for stream in self.told.values():
                stream.close()

    # The server, and who is connected to it.

    def begin(self):
        self.server.start()
        self.sessions = [self.session(number) for number in range(CONNECTIONS)]
        self.looks = {}
        for tenant in WHO[:-1]:
            self.looks[tenant.name] = Stream(self.server.port)
            if tenant.name != "default":
                self.looks[tenant.name].ask("AUTH", tenant.name, tenant.password)

    def session(self, number):
        return Session(number, self.server.port, self.models, small=number % 3 == 0)

    def leave(self):
        for connection in (*self.sessions, *self.noises.values(), *self.looks.values()):
            connection.close()
        self.sessions, self.noises, self.looks = [], {}, {}

    def replace(self, number):
        self.sessions[number].close()
        self.sessions[number] = self.session(number)

    def kill_client(self, killer, victim):
        """`killer` asks for the end of another connection, which it gets if both speak for one tenant."""
        target = self.sessions[victim]
        if target is killer:
            return
        idle, owns, calls = victim not in self.packets, int(target.tenant == killer.tenant), self.kills.setdefault(victim, [])
        # Of several who kill it, one is the first.
        wants = lambda reply: reply == owns if idle and len(calls) == 1 else reply in (0, 1)  # noqa: E731
        killer.call((b"CLIENT", b"KILL", b"ID", b"%d" % target.id), (b"PING",), wants=wants)
        calls.append(killer.asked[-1])

    def cuts(self, number):
        """Whether a connection of this round may end before it has its replies."""
        packet, victims = self.packets[number], {item[1] for other in self.packets.values() for item in other.items if item[0] == "kill"}
        return packet.ending == "close" or packet.deaf or number in victims or self.now.event.endswith("in it")

    # A round.

    def chance(self, what):
        """The choices for a part of this round: the same ones whatever else is left out of the schedule."""
        return random.Random(f"{self.schedule.seed} {self.now.number} {what}")

    def round(self, now):
        self.now, self.packets = now, {packet.connection: packet for packet in now.packets}
        self.kills, self.mortal, self.ends = {}, set(), set()
        for stranger, commands in now.noise:
            self.disturb(stranger, commands)
        chunks = {connection: self.ask(packet) for connection, packet in self.packets.items()}
        self.exchange(chunks, self.chance("order"))
        if now.event:
            self.server.kill() if now.event.startswith("kill") else self.stop()
        self.settle()
        if now.event:
            self.check()

    def stop(self):
        status = self.server.stop()
        assert status == 0, f"it ended with {status}:\n{self.server.said()[-2000:]}"

    def disturb(self, stranger, commands):
        """Sends what a stranger sends, as far as the server takes it; nobody waits for the replies."""
        stream = self.noises.get(stranger)
        if stream is None or stream.ended:
            stream = self.noises[stranger] = Stream(self.server.port)
            stream.sock.send(encode("AUTH", NOISE.name, NOISE.password))
        # It never speaks for a tenant that is looked at.
        speaks = (b"AUTH", b"HELLO", b"RESET")
        data = b"".join(encode(*command) for command in commands if command[0] not in speaks)
        try:
            stream.sock.send(data)
            stream.sock.recv(1 << 16)
        except BlockingIOError:
            pass
        except OSError:
            stream.ended = True

    def ask(self, packet):
        """What a connection sends, in chunks."""
        session, keys, chance = self.sessions[packet.connection], set(EVERY if self.now.solo else packet.keys), self.chance(packet.connection)
        data, goes_on = b"", True
        if session.tail:
            command, data = session.tail
            session.tail = None
            session.call(command)
        begin = len(session.asked) if data else 0
        for item in packet.items:
            goes_on = goes_on and session.item(item, self, keys)
        if session.mode != "on":
            session.call((b"CLIENT", b"REPLY", b"ON"))
        quits = bool(session.asked) and session.asked[-1].command[0] == b"QUIT"
        if quits or packet.ending == "shut":
            self.ends.add(packet.connection)
        if not quits:
            session.call((b"ECHO", b"%d of round of %d" % (packet.connection, chance.randrange(1 << 30))))
        data += b"".join(encode(*call.command) for call in session.asked[begin:])
        # Behind QUIT nothing follows: a server that closes a connection with bytes unread resets
        # it, and what it has still to send is lost.
        if packet.ending in ("half", "shut") and not quits:
            command = (b"SET", own_key(packet.connection), b"half" * chance.choice((1, 40_000)))
            request = encode(*command)
            cut = chance.randrange(1, len(request))
            data += request[:cut]
            session.tail = (command, request[cut:]) if packet.ending == "half" else None
        places = sorted(chance.randrange(len(data) + 1) for _ in range(packet.cuts))
        return [data[begin:end] for begin, end in zip([0, *places], [*places, len(data)]) if begin < end]

    def exchange(self, chunks, chance):
        """Sends and receives until everybody has what it asked for, or is cut off."""
        active = {number: self.sessions[number] for number in chunks}
        total = sum(session.expected() for session in active.values())
        quiet, at = 0, time.monotonic()
        while True:
            missing = sum(session.expected() for session in active.values())
            if self.now.event.endswith("in it") and total - missing >= self.now.part * total:
                return
            order = sorted(active, key=lambda _: chance.random())
            moved = [number for number in order if self.push(number, active[number].stream, chunks[number])]
            going = {n: s for n, s in active.items() if not s.stream.ended and (chunks[n] or s.expected())}
            if not going:
                break
            deaf = {n for n in going if self.packets[n].deaf}
            reads = {s.stream.sock: s for n, s in going.items() if n not in deaf or len(deaf) == len(going)}
            writes = [s.stream.sock for n, s in going.items() if chunks[n]]
            readable, _, _ = select.select(list(reads), writes, [], 1)
            for sock in readable:
                reads[sock].stream.receive()
                reads[sock].take()
            # A machine that stands still for a while is no server that hangs.
            now = time.monotonic()
            quiet, at = 0 if moved or readable else quiet + min(now - at, 2), now
            assert self.server.running(), f"the server has ended:\n{self.server.said()[-3000:]}"
            assert quiet < HANG_S, self.hanging(going)

    def hanging(self, going):
        """Who waits, and what the server says of them."""
        waits = {number: [call.command for call in session.asked if call.answered and call.reply is MISSING][:2] for number, session in going.items()}
        held = [(tenant["name"], tenant["connections"], tenant["waiting"], tenant["uncommitted_bytes"]) for tenant in self.api("tenants")]
        stages = [{name: value for name, value in stage.items() if name != "policy"} for stage in self.api("stages")]
        logins, clients = self.api("server")["logins"], [look.ask("CLIENT", "LIST").decode() for look in self.looks.values()]
        said = "; ".join(f"connection {number} waits for {brief(commands)}" for number, commands in waits.items())
        return f"no reply: {said}; tenants {held}; stages {stages}; log-ins {logins}; clients {clients}"

    def push(self, number, stream, chunks):
        """Sends one chunk, if the server takes it; what the packet ends with comes behind the last."""
        if not chunks or stream.ended:
            return False
        try:
            sent = stream.sock.send(chunks[0])
            chunks[0] = chunks[0][sent:]
            if chunks[0]:
                return True
            del chunks[0]
            if not chunks and self.packets[number].ending == "shut":
                stream.sock.shutdown(1)
        except BlockingIOError:
            return False
        except OSError:
            # The server has closed it. What it said before is still to be read.
            chunks.clear()
        if not chunks and self.packets[number].ending == "close":
            stream.close()
            stream.ended = True
        return True

    # What it has come to.

    def settle(self):
        """Tells the models, compares, and replaces who has gone."""
        active = [self.sessions[number] for number in self.packets]
        base = {name: int(stream.ask("GET", PAIR[0]) or 0) for name, stream in self.told.items()}
        pairs = [call for session in active for call in session.asked if call.pair]
        cut = [session for session in active if session.expected()]
        for session in active:
            assert not session.expected() or self.cuts(session.number), f"it was closed: {brief([call.command for call in session.asked if call.reply is MISSING])}"
            if session not in cut:
                more = session.stream.replies
                assert not more.input and not more.begun, f"connection {session.number} was told more: {brief(more.begun)} {brief(bytes(more.input))}"
                session.advance(*session.asked)
                session.asked = []
        gone = [session for session in cut if not self.now.event]
        for session in gone:
            session.stream.close()
        ended = []
        if self.now.event:
            # Their models are asked once more.
            ended, self.sessions, self.kills = self.sessions, [], {}
            self.leave()
            self.begin()
        elif gone:
            self.until_gone(gone)
        for session in cut:
            self.reconcile(session)
        for session in ended:
            session.close()
        if not self.now.solo:
            self.count_pairs(pairs, base)
        self.see_off(gone)
        self.wait_for_the_mortal()

    def until_gone(self, sessions):
        """They are in no list, and nothing that they asked for is done any more.

        What a core says of its stages may be a second old: what it said before they were gone does not count.
        """
        ids = tuple(b"id=%d " % session.id for session in sessions)
        eventually(lambda: not any(self.listed(look, ids) for look in self.looks.values()), HANG_S, "who is cut off is gone")
        before = dict.fromkeys(range(self.schedule.cores), -1) | {stage["core"]: stage["at_ns"] for stage in self.handler_stages()}
        eventually(lambda: self.idle_since(before), HANG_S, "nothing is done for who is gone")

    @staticmethod
    def listed(look, ids):
        return any(line.startswith(ids) for line in look.ask("CLIENT", "LIST").splitlines())

    def idle_since(self, before):
        stages = [stage for stage in self.handler_stages() if stage["at_ns"] > before[stage["core"]]]
        busy = [p for stage in stages for p in stage["principals"] if p["name"] in TENANTS]
        return len(stages) == len(before) and not any(p["waiting"] or p["permits_in_use"] for p in busy)

    def handler_stages(self):
        return [stage for stage in self.api("stages") if stage["stage"] == "handler"]

    def see_off(self, gone):
        """Those whose connection has ended get a new one."""
        if self.now.event:
            return
        told = {number for number, calls in self.kills.items() if any(call.reply == 1 for call in calls)}
        for number in self.ends | told:
            self.until_closed(self.sessions[number])
        ended = {session.number for session in self.sessions if session in gone or session.stream.ended}
        for number in ended | set(self.kills):
            self.replace(number)

    def until_closed(self, session):
        """The server closes it, and says nothing more."""

        def closed():
            session.stream.ended or session.stream.receive()
            return session.stream.ended

        if session.stream.sock.fileno() >= 0:
            eventually(closed, HANG_S, f"connection {session.number} is closed")

    def reconcile(self, session):
        """Of what was sent and not answered a part may have been done: none of it before what came in front of it."""
        done = max((number for number, call in enumerate(session.asked) if call.reply is not MISSING), default=-1) + 1
        sent, keys = brief([call.command for call in session.asked[done:]]), EVERY if self.now.solo else self.packets[session.number].keys
        session.advance(*session.asked[:done])
        for call in [*session.asked[done:], None]:
            difference = self.difference(keys)
            if not difference:
                break
            assert call, f"connection {session.number} was cut off; whatever was done of {sent}, it cannot have left {difference}"
            session.advance(call)
        session.asked = []

    def count_pairs(self, pairs, base):
        """Two counters that move together, moved by many: each count comes once, none is left out, and they are never apart."""
        counts, unknown = defaultdict(list), defaultdict(int)
        for call in pairs:
            if call.reply is MISSING:
                unknown[call.pair] += 1
            else:
                assert isinstance(call.reply, list) and call.reply[0] == call.reply[1], f"counters apart: {call.reply}"
                counts[call.pair].append(call.reply[0])
        for tenant in {*counts, *unknown}:
            got, first, last = sorted(counts[tenant]), base[tenant] + 1, base[tenant] + len(counts[tenant])
            top = last + unknown[tenant]
            assert len(set(got)) == len(got) and all(first <= count <= top for count in got), f"{tenant} counted {got} from {first} to {top}"
            if unknown[tenant]:
                found = [int(value or 0) for value in self.looks[tenant].ask("MGET", *PAIR)]
                assert found[0] == found[1] and last <= found[0] <= top, f"{tenant}'s counters are {found}, from {last} to {top}"
                if found[0]:
                    self.told[tenant].ask("MSET", PAIR[0], found[0], PAIR[1], found[1])
                else:
                    self.told[tenant].ask("DEL", *PAIR)

    def wait_for_the_mortal(self):
        for tenant, key in self.mortal:
            for stream in (self.looks[tenant], self.told[tenant]):
                eventually(lambda stream=stream, key=key: not 0 <= stream.ask("PTTL", key) <= 1_000, HANG_S, f"{key} of {tenant} expires")

    # The data.

    def difference(self, keys):
        """Where the server's data differs from the model's."""
        for tenant in TENANTS:
            ours, theirs = (dump(stream[tenant], keys) for stream in (self.looks, self.told))
            for key in keys:
                if not alike(ours[key], theirs[key]):
                    return f"{tenant}'s {key}: {brief(ours[key])}, by the model {brief(theirs[key])}"
        return None

    def check(self):
        """Every tenant has what its model has, and nothing else."""
        chance = random.Random(self.schedule.seed)
        for tenant in TENANTS:
            found, cursor = [], b"0"
            while True:
                cursor, keys = self.looks[tenant].ask("SCAN", cursor, "COUNT", chance.randint(1, 20))
                found += keys
                if cursor == b"0":
                    break
            known = sorted(self.told[tenant].ask("KEYS", "*"))
            assert sorted(found) == known, f"{tenant} has {sorted(found)}, by the model {known}"
        difference = self.difference(EVERY)
        assert not difference, difference

    def api(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.server.admin_port}/api/{path}", timeout=20) as answer:
            return json.load(answer)

    def rest(self):
        """Once everybody has gone, nothing is left of them, nothing was out of order, and all is there after a restart."""
        self.leave()
        eventually(lambda: not self.left(), HANG_S, "nothing is left of the connections")
        self.stop()
        said = self.server.said()
        wrong = [line for line in said.splitlines() if "panicked" in line or " ERROR " in line]
        assert not wrong, "\n".join(wrong[:5])
        self.begin()
        self.check()

    def left(self):
        """What is held for connections that are gone; an assertion, so that whoever waits in vain says what."""
        server, tenants = self.api("server"), self.api("tenants")
        held = {"connections": server["connections"]["open"], "jobs": server["storage"]["handler_jobs"], "requests": server["memory"]["requests"]}
        for tenant in tenants:
            held[tenant["name"]] = sum(tenant[name] for name in ("connections", "waiting", "uncommitted_bytes", "request_memory_bytes"))
            held[f"{tenant['name']}'s stages"] = sum(stage["waiting"] + stage["permits_in_use"] for stage in tenant["stages"])
        assert not any(held.values()), held
        return False


def dump(stream, keys):
    """Keys with their values and times to live."""
    kinds = [kind for _, kind in stream.ask_all([("TYPE", key) for key in keys])]
    reads = {b"string": ("GET",), b"hash": ("HGETALL",), b"zset": ("ZRANGE", "0", "-1", "WITHSCORES")}
    commands = [(reads[kind][0], key, *reads[kind][1:]) if kind in reads else ("GET", key) for key, kind in zip(keys, kinds)]
    replies = stream.ask_all([*commands, *(("PTTL", key) for key in keys)])
    found = {}
    for key, kind, value, lasts in zip(keys, kinds, replies, replies[len(keys) :]):
        found[key] = (kind, sorted(zip(value[::2], value[1::2])) if kind == b"hash" else value, lasts)
    return found


def alike(ours, theirs):
    near = ours[2] == theirs[2] or (min(ours[2], theirs[2]) > 0 and abs(ours[2] - theirs[2]) <= SLACK_S * 1_000)
    return ours[:2] == theirs[:2] and near
