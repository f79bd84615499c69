"""What happens to a cluster in a schedule, as text and as what is done: `kill master 1`, `move wide:3 to 2 held at 17`, …

Shards are counted from 0, and so are fronts; each shard is a master and a replica, which change places. What happens has a
beginning and an end, and others begin and end between. What is not over at the end of a schedule is ended when it heals.
"""

import os
import re
import signal
import subprocess
import threading
from contextlib import suppress

from harness.cluster import place
from harness.waiting import eventually

SHARDS = 3
# Of each tenant; what the tenant `stale` reads, replicas may be asked for.
PARTITIONS = {"alpha": 1, "wide": 8, "stale": 4}
# What a move sends until it has ended is fewer; some are held only after their end, which is a whole move.
STEPS = 60
STORM = 100


class Mishap:
    """Something that happens. `shards`: whose requests may be answered with errors for it; none: nobody's."""

    gentle = False

    def __init__(self, text, **words):
        self.text = text
        for name, word in words.items():
            setattr(self, name, int(word) if word and word.isdigit() else word)

    def shards(self, scene):
        return set(range(SHARDS))

    def end(self, scene):
        pass


class OfNode(Mishap):
    """A process of an engine is killed, or stands still for a while: of a shard, or that of a move's source or target."""

    def shards(self, scene):
        return {self.shard}

    def begin(self, scene):
        if self.end_of is not None:
            self.role, self.shard = "master", scene.moving[self.end_of]
        self.node = (scene.master if self.role == "master" else scene.replica)[self.shard]
        scene.note(self.shard, "stopped")
        if self.how == "kill":
            self.node.kill()
        else:
            self.node.hold()

    def end(self, scene):
        if self.how == "kill":
            return
        if self.until:
            other = scene.replica[self.shard]
            eventually(lambda: is_master(other), 30, f"{self.text}: it is replaced")
        scene.note(self.shard, "goes on")
        self.node.release()


class OfFront(Mishap):
    """A front is killed, or stands still for a while."""

    def shards(self, scene):
        return set()

    def begin(self, scene):
        self.process = scene.fronts[self.front]
        if self.how == "kill":
            self.process.kill()
        else:
            self.process.process.send_signal(signal.SIGSTOP)
        scene.away.add(self.front)

    def end(self, scene):
        # A front does not start before a cluster that does not answer: one that was killed does when all heals.
        if self.how == "hang":
            self.process.process.send_signal(signal.SIGCONT)


class FailOver(Mishap):
    """A replica takes its master's place as an operator asks: nothing is lost."""

    def shards(self, scene):
        return {self.shard}

    def begin(self, scene):
        scene.replica[self.shard].attempt("CLUSTER", "FAILOVER")


def start(scene, *words, step=0):
    """A program that moves slots; it stands still before the `step`-th thing that it sends."""
    environment = {**os.environ, "LD_PRELOAD": str(scene.library), "STEP": str(step)}
    process = subprocess.Popen(scene.cluster.command(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    scene.movers.append(process)
    return process


class Mover(Mishap):
    """A program that moves slots; it stands still before something that it sends, and is killed there or goes on later."""

    gentle = True
    step = how = until = None

    def launch(self, scene, *words):
        self.process = start(scene, *words, step=self.step or 0)
        if self.step:
            # A node that hangs may hold it up before: then it is held, or killed, there.
            with suppress(AssertionError):
                eventually(self.stands_or_ended, 5)

    def stands_or_ended(self):
        return os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT | os.WNOHANG)

    def end(self, scene):
        if self.how == "killed":
            self.process.kill()
        elif self.how == "held":
            if self.until:
                self.hand_over(scene)
            self.process.send_signal(signal.SIGCONT)


class Move(Mover):
    """A partition goes to another shard. Before the program that stands still goes on, another may have taken the move over, or
    brought it to its end, or have moved the partition on from there."""

    def begin(self, scene):
        slot = scene.slot_of(self.tenant, self.partition or 0)
        at = scene.owners[slot]
        to = (at + 1) % SHARDS if at == self.shard else self.shard
        scene.moves.append((slot, to))
        scene.moving = {"source": at, "target": to}
        self.name, self.slot, self.at = self.tenant if self.partition is None else f"{self.tenant}:{self.partition}", slot, at
        self.launch(scene, "move", self.name, "--to", place(scene.master[to]))

    def hand_over(self, scene):
        book = scene.master[scene.owners[scene.master[0].ask("CLUSTER", "KEYSLOT", "{@}")]]
        entry = lambda: book.ask("HGET", "{@}moves", self.slot)
        first = entry()
        other = start(scene, "move", "--resume")
        who = lambda text: text and text.split()[3]
        eventually(lambda: who(entry()) != who(first) or other.poll() is not None, 30, f"{self.text}: another is at it")
        assert who(entry()) != who(first), f"{self.text}: there was nothing to take over"
        if self.until == "taken over":
            return
        eventually(lambda: other.poll() is not None, 60, f"{self.text}: another has ended it")
        if self.until == "moved on":
            # Back to where it was.
            scene.moves.append((self.slot, self.at))
            last = start(scene, "move", self.name, "--to", place(scene.master[self.at]))
            eventually(lambda: last.poll() is not None, 60, f"{self.text}: it has moved on")


class Drain(Mover):
    """A node is emptied; when all heals it gets its part again."""

    def begin(self, scene):
        scene.drained = self.shard
        self.launch(scene, "drain", place(scene.master[self.shard]))


class Storm(Mishap):
    """Many clients of a tenant connect to a front at once, ask for something, and are gone."""

    gentle = True

    def shards(self, scene):
        return set()

    def begin(self, scene):
        tenant, front = scene.tenants[self.tenant], scene.fronts[self.front]
        register = next(register for register in scene.registers if register.tenant == self.tenant and not register.counter)
        self.wrong = []

        def connect():
            wires = []
            try:
                for _ in range(STORM):
                    wires.append(front.wire(timeout=5))
                    wires[-1].send("AUTH", tenant.name, tenant.password)
                    wires[-1].send("GET", register.key)
                for wire in wires:
                    wire.read()
                    reply = wire.read()
                    if isinstance(reply, bytes):
                        register.number(reply)
            except (OSError, EOFError):
                pass  # the front may be away
            except Exception as error:  # noqa: BLE001 (whatever a client sees is what the test must see)
                self.wrong.append(error)
            for wire in wires:
                wire.close()

        self.thread = threading.Thread(target=connect, daemon=True)
        self.thread.start()

    def end(self, scene):
        self.thread.join(60)
        assert not self.wrong, (self.text, self.wrong)


class Control(Mishap):
    """Processes that place partitions; one of them is killed, or stands still while another takes over."""

    gentle = True

    def shards(self, scene):
        return set()

    def begin(self, scene):
        words = scene.cluster.command("control", "--every", "1s")
        self.processes = [subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=scene.log, stderr=scene.log) for _ in range(self.count or 1)]
        scene.controllers += self.processes

    def end(self, scene):
        if self.how:
            self.processes[0].send_signal(signal.SIGKILL if self.how == "killed" else signal.SIGSTOP)


HELD = r"(?: (?P<how>killed|held) at (?P<step>\d+))?"
UNTIL = r"(?: until (?P<until>taken over|done|moved on))?"
KINDS = {
    r"(?P<how>kill|hang) (?:(?P<role>master|replica) (?P<shard>\d)|(?P<end_of>source|target))(?P<until> until replaced)?": OfNode,
    r"(?P<how>kill|hang) front (?P<front>\d)": OfFront,
    r"fail over (?P<shard>\d)": FailOver,
    rf"move (?P<tenant>\w+)(?::(?P<partition>\d+))? to (?P<shard>\d){HELD}{UNTIL}": Move,
    rf"drain (?P<shard>\d){HELD}": Drain,
    r"storm (?P<tenant>\w+) at front (?P<front>\d)": Storm,
    r"(?:(?P<count>\d) )?control(?:, one (?P<how>killed|hung))?": Control,
}


def parsed(text):
    for form, kind in KINDS.items():
        if found := re.fullmatch(form, text):
            return kind(text, **found.groupdict())
    raise ValueError(f"nothing that can happen is called {text!r}")


def is_master(node):
    return b"role:master" in node.ask("INFO", "replication")


def one(chance):
    """Something that may happen."""
    number, tenant = lambda: chance.randrange(SHARDS), lambda: chance.choice(list(PARTITIONS))
    held = lambda: chance.choice(("", f" killed at {chance.randint(1, STEPS)}", f" held at {chance.randint(1, STEPS)}"))
    partition = lambda tenant: f"{tenant}:{chance.randrange(PARTITIONS[tenant])}" if PARTITIONS[tenant] > 1 else tenant
    kinds = {
        lambda: f"kill master {number()}": 4,
        lambda: f"hang master {number()}": 3,
        lambda: f"hang master {number()} until replaced": 3,
        lambda: f"{chance.choice(('kill', 'hang'))} replica {number()}": 3,
        lambda: f"{chance.choice(('kill', 'hang'))} front {number()}": 5,
        lambda: f"fail over {number()}": 3,
        lambda: f"move {partition(tenant())} to {number()}{held()}": 8,
        lambda: f"drain {number()}{held()}": 1,
        lambda: f"storm {tenant()} at front {number()}": 2,
        lambda: chance.choice(("control", "2 control", "control, one killed", "2 control, one killed", "2 control, one hung")): 2,
    }
    return chance.choices(list(kinds), kinds.values())[0]()


def go_together(mishaps):
    """Whether each shard has a process with its data at any time, and two masters can agree who takes a third one's place."""
    nodes = [mishap for mishap in mishaps if isinstance(mishap, (OfNode, FailOver))]
    replaced = [mishap for mishap in nodes if isinstance(mishap, OfNode) and mishap.role == "master" and (mishap.how == "kill" or mishap.until)]
    shards = [mishap.shard for mishap in nodes]
    alike = lambda kind: sum(isinstance(mishap, kind) for mishap in mishaps) <= 1
    fronts = [mishap.front for mishap in mishaps if isinstance(mishap, OfFront)]
    once_each = len(shards) == len(set(shards)) and len(fronts) == len(set(fronts))
    return len(replaced) <= 1 and once_each and alike(Mover) and alike(Control) and alike(Storm) and len(fronts) < SHARDS


def made(chance):
    """A schedule: what happens, in the order in which it begins."""
    wanted, texts = chance.choice((1, 1, 2, 2, 2, 3, 3, 4)), []
    while len(texts) < wanted:
        text = one(chance)
        if go_together([parsed(each) for each in (*texts, text)]):
            texts.append(text)
    return texts
