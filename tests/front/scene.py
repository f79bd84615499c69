"""A cluster with replicas, three fronts before it and clients of three tenants, on which schedules of mishaps are played."""

import random
import re
import signal
import time
from contextlib import suppress
from datetime import datetime

from customers import Customer
from mishaps import PARTITIONS, SHARDS, FailOver, OfNode, is_master, parsed
from registers import Doubt, Doubts

from harness.cluster import Cluster, Node, NodeFront, clean, know_each_other, place
from harness.preload import compiled
from harness.server import Tenant
from harness.waiting import eventually

NODE_TIMEOUT_S = 1.0
# A front takes an engine that is silent for so long to be away.
ENGINE_TIMEOUT_S = 1.0
# What a master acknowledged in its last moment may be lost with it: it sends it to clients and to its replica at about the
# same time, and both may be on the way for so long on a machine that has other work.
LAST_MOMENT_S = 0.25
CUSTOMERS = 2
# The default of replica_lag_max.
LAG_S = 1.0
WON = re.compile(r"^\d+:\w (\d+ \w+ \d+ [\d:.]+) . Failover election won", re.MULTILINE)
EXTRAS = {"alpha": "", "wide": "partitions = 8", "stale": 'partitions = 4\nreads = "replica"'}


class QuickNode(Node):
    """One that is missed, and copied, soon."""

    def __init__(self, folder, program):
        super().__init__(folder, program)
        self.options += ("--cluster-node-timeout", str(int(NODE_TIMEOUT_S * 1_000)), "--repl-diskless-sync-delay", "0")


class Scene:
    """One cluster, for many schedules one after the other."""

    def __init__(self, folder, program):
        self.folder = folder
        self.tenants = {name: Tenant(name, extra=extra) for name, extra in EXTRAS.items()}
        self.cluster = Cluster(folder / "cluster", program, SHARDS, 1, QuickNode)
        options = dict(tenants=tuple(self.tenants.values()), engine_options=f'timeout = "{int(ENGINE_TIMEOUT_S * 1_000)}ms"', server_options="cores = 1")
        self.fronts = [NodeFront(folder / f"front{number}", self.cluster, node, **options) for number, node in enumerate(self.cluster.masters)]
        self.movers, self.controllers, self.drained, self.away = [], [], None, set()

    def start(self):
        self.library = compiled("steps", self.folder)
        self.log = open(self.folder / "control.log", "ab")
        self.cluster.start()
        for front in self.fronts:
            front.start()
        know_each_other(self.fronts, self.tenants["alpha"])
        names = [(f"c{number}", tenant) for tenant in self.tenants.values() for number in range(CUSTOMERS)]
        self.customers = [Customer(name, tenant, self.fronts, LAG_S if tenant.name == "stale" else 0.0, number) for number, (name, tenant) in enumerate(names)]
        for front in self.fronts:
            self.welcome(front)
        for customer in self.customers:
            customer.renew(self.fronts[0], customer.all)
        self.registers = [register for customer in self.customers for register in customer.all]
        self.find_slots()
        self.all_is_well()
        return self

    def welcome(self, front):
        """The first login of each tenant at a front takes long: a password is made hard to guess."""
        for tenant in self.tenants.values():
            front.wire(tenant).close()

    def kill(self):
        """All processes end."""
        for process in (*self.movers, *self.controllers):
            process.kill()
            process.wait()
        for front in self.fronts:
            front.kill()
        self.cluster.kill()
        self.log.close()

    def find_slots(self):
        """The slot of each register, as its key is called at the cluster."""
        first, marks = self.cluster.nodes[0], {}
        for marked in self.cluster.keys():
            mark, _, key = marked.decode().partition("}")
            marks[mark.removeprefix("{@").partition("/")[0], key] = marked
        for register in self.registers:
            register.slot = first.ask("CLUSTER", "KEYSLOT", marks[register.tenant, register.key])

    def slot_of(self, tenant, partition):
        """The slot of a partition; of one that no register is in, that of the next."""
        slots = sorted({register.slot for register in self.registers if register.tenant == tenant})
        at_least = -(-16384 * partition // PARTITIONS[tenant])
        return next((slot for slot in slots if slot >= at_least), slots[-1])

    def note(self, shard, what):
        """Something is done to a process of a shard."""
        self.notes.append((shard, what, time.monotonic()))

    def look(self):
        """Who is master and replica of which shard, and where slots are."""
        pairs = [self.cluster.nodes[shard::SHARDS] for shard in range(SHARDS)]
        self.master = [next(node for node in pair if is_master(node)) for pair in pairs]
        self.replica = [next(node for node in pair if node is not master) for pair, master in zip(pairs, self.master)]
        ports = {node.port: shard for shard, pair in enumerate(pairs) for node in pair}
        self.owners = {
            slot: ports[node.port]
            for node in self.master
            for begin, end, master, *_ in node.ask("CLUSTER", "SLOTS")
            if master[1] == node.port
            for slot in range(begin, end + 1)
        }

    def progress(self, requests):
        """Clients go on for so many requests, or for a while if they are not served."""
        answers = lambda: sum(len(customer.answers) for customer in self.customers)
        wanted = answers() + requests
        with suppress(AssertionError):
            eventually(lambda: answers() >= wanted, 0.5)

    def play(self, seed, texts):
        """Plays a schedule. What is wrong, in words, and figures."""
        chance, events = random.Random(f"order of {seed}"), [parsed(text) for text in texts]
        self.notes, self.moves, self.movers, self.controllers, self.drained, self.away = [], [], [], [], None, set()
        self.look()
        owners, logs = [self.owners], [node.folder / "engine.log" for node in self.cluster.nodes]
        sizes, self.began = [log.stat().st_size for log in logs], time.monotonic()
        for customer in self.customers:
            customer.begin(seed, self.customers)
        try:
            for event in events:
                self.progress(chance.randrange(60))
                event.begin(self)
            self.progress(chance.randrange(300))
            # What waits for a master's replacement waits for those that must agree on it.
            for event in sorted(chance.sample(events, len(events)), key=lambda event: bool(getattr(event, "until", None))):
                event.end(self)
                self.progress(chance.randrange(60))
            self.heal()
        finally:
            for customer in self.customers:
                customer.end()
        # Some of what is there now was written after `heal` looked, and the next play takes it to be safe.
        self.have_all()
        self.look()
        owners.append(self.owners)
        won = [(number % SHARDS, at) for number, (log, size) in enumerate(zip(logs, sizes)) for at in elections(log, size)]
        return self.judged(events, owners, won), {
            "answers": sum(answer.error is None for customer in self.customers for answer in customer.answers),
            "errors": sum(answer.error is not None for customer in self.customers for answer in customer.answers),
            "took": time.monotonic() - self.began,
            "back": self.back(won, owners[0]),
            "lost": self.lost(),
        }

    def heal(self):
        """Whatever stands still goes on, who was killed is there again, and nothing is left of a move."""
        for node in self.cluster.living():
            node.release()
        for process in self.controllers:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        pairs = [self.cluster.nodes[shard::SHARDS] for shard in range(SHARDS)]
        for pair in pairs:
            for node, other in (pair, pair[::-1]):
                if node.process.poll() is not None:
                    # It comes back with nothing.
                    eventually(lambda o=other: is_master(o), 60, f"{place(node)} is replaced by {place(other)}")
                    node.start()
        for front in self.fronts:
            if not front.running():
                self.welcome(front.start())
        for process in self.controllers:
            process.wait(60)
        for process in self.movers:
            eventually(lambda p=process: ended(p), 90, "what moves has ended")
        self.have_all()
        eventually(self.resumed, 60, "no move is left")
        if self.drained is not None:
            self.look()
            added = self.cluster.entremet("add", place(self.master[self.drained]), "--fill")
            assert added[0] == 0 or "is in the cluster already" in added[1], added
        self.all_is_well()

    def resumed(self):
        """What moves is brought to its end: by the program, and by an operator who does what it says."""
        status, said = self.cluster.entremet("move", "--resume")
        if gone := re.search(r"slots? (\d+).*, which is gone", said):
            self.look()
            slot = int(gone[1])
            to = (self.owners[slot] + 1) % SHARDS
            self.moves.append((slot, to))
            status, said = self.cluster.entremet("move", slot, "--to", place(self.master[to]))
            if first := re.search(r"first let it arrive \(--to ([\d.:]+)\)", said):
                status, said = self.cluster.entremet("move", slot, "--to", first[1])
        assert status == 0, said
        return True

    def have_all(self):
        """Replicas have what their masters had."""
        pairs = [self.cluster.nodes[shard::SHARDS] for shard in range(SHARDS)]
        eventually(lambda: all(in_step(pair) for pair in pairs), 60, "each shard has a replica in step")

    def all_is_well(self):
        self.have_all()
        eventually(lambda: clean(self.cluster), 30, "nothing is wrong with the cluster")

    def doubts(self, events, won):
        """When what was acknowledged may be lost: see `registers`."""
        doubts, unasked = Doubts(), 0
        for shard, at in won:
            stopped = [moment for of, what, moment in self.notes if (of, what) == (shard, "stopped") and moment <= at]
            planned = any(isinstance(event, FailOver) and event.shard == shard for event in events)
            if stopped:
                # One that was back before goes on as a master until it hears of the other.
                back = any((of, what) == (shard, "goes on") and moment < at for of, what, moment in self.notes)
                doubts.append(Doubt(shard, min(stopped) - LAST_MOMENT_S, at + NODE_TIMEOUT_S * back))
                doubts += [Doubt(shard, moment, moment + NODE_TIMEOUT_S) for of, what, moment in self.notes if (of, what) == (shard, "goes on")]
            elif not planned:
                # The machine was so busy that a master was missed; nobody knows since when.
                unasked += 1
                doubts.append(Doubt(shard, at - 4 * NODE_TIMEOUT_S, at + NODE_TIMEOUT_S))
        return doubts, unasked

    def judged(self, events, owners, won):
        """What is wrong."""
        doubts, unasked = self.doubts(events, won)
        drained = self.drained is not None
        shards = lambda slot: set(range(SHARDS)) if drained else {owned[slot] for owned in owners} | {to for moved, to in self.moves if moved == slot}
        wrong = [what for customer in self.customers for _, what in customer.wrong]
        for customer in self.customers:
            for pair, asked, answered, one, other in customer.torn:
                if not doubts.meet(shards(pair.slot), asked, answered):
                    wrong.append(f"{pair.tenant} {pair.key} and its other one are {one} and {other} at {asked:.3f}")
            for register, last in zip(customer.all, customer.found(self.fronts[0], customer.all)):
                reads = [read for reader in self.customers for read in reader.reads.get(id(register), ())]
                wrong += register.wrong([*reads, last], doubts, shards(register.slot))
                register.settle(last.number)
            wrong += self.refused(customer, events, shards, unasked)
        if wrong:
            wrong += [str(doubt) for doubt in doubts] + [str(note) for note in self.notes]
        return wrong

    def refused(self, customer, events, shards, unasked):
        """Errors that no client may see: of a kind that is not said of, or for what nothing was done to."""
        hit = set().union(*(event.shards(self) for event in events if not event.gentle))
        if unasked or sum(isinstance(event, OfNode) and event.role == "master" for event in events) > 1:
            # The one that is left of three masters answers nobody: it may be the minority.
            hit = set(range(SHARDS))
        wrong = []
        for answer in customer.answers:
            if answer.error is None:
                continue
            at = {shard for register in answer.registers for shard in shards(register.slot)}
            if answer.error == "(no connection)":
                fine = True
            elif answer.error[0] == "(":
                fine = answer.front in self.away
            else:
                fine = answer.error.startswith("ERR engine: ") and (at & hit or (len(answer.registers) > 1 and self.movers))
            if not fine:
                wrong.append(f"{customer.tenant.name} {answer.client} at front {answer.front}: {answer.words} of {[register.key for register in answer.registers]} asked at {answer.asked - self.began:.3f} s, after {answer.answered - answer.asked:.3f} s: {answer.error}")
        return wrong

    def back(self, won, owners):
        """How long clients were not answered after each failover, s: of each client that asks for something there, until it was."""
        times = []
        for shard, at in won:
            for customer in self.customers:
                its = [answer.answered - at for answer in customer.answers if answer.error is None and answer.answered > at and {owners[register.slot] for register in answer.registers} == {shard}]
                times += [min(its)] if its else []
        return times

    def lost(self):
        lost = sum(register.lost for register in self.registers)
        for register in self.registers:
            register.lost = 0
        return lost


def in_step(pair):
    """One of a shard's two nodes is the master, and the other has all that it had a moment ago.

    A replica whose link is up may still have nothing of what came while it was copied to.
    """
    told = {node.port: node.ask("INFO", "replication").decode() for node in pair}
    if all("role:master" in said for said in told.values()):
        left_over(pair)
    master, replica = sorted(pair, key=lambda node: "role:master" not in told[node.port])
    offset = lambda name, text: int(re.search(rf"{name}:(\d+)", text)[1])
    had = offset("master_repl_offset", told[master.port])
    now = replica.ask("INFO", "replication").decode()
    assert "state=online" in told[master.port] and "master_link_status:up" in now and offset("slave_repl_offset", now) >= had
    return all(node.info()["cluster_state"] == "ok" for node in pair)


def left_over(pair):
    """Redis 7.0 leaves a master that lost its slots one by one a master without slots, with `cluster-allow-replica-migration no`.

    An operator makes it a replica again.
    """
    counts = [sum(end - begin + 1 for begin, end, master, *_ in node.ask("CLUSTER", "SLOTS") if master[1] == node.port) for node in pair]
    if sorted(map(bool, counts)) == [False, True]:
        node, other = sorted(pair, key=lambda node: counts[pair.index(node)])
        node.attempt("FLUSHALL")
        node.attempt("CLUSTER", "REPLICATE", other.id)


def ended(process):
    """It may stand still once more: it comes to where it is held only now."""
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
    return process.poll() is not None


def elections(log, size):
    """When a node was elected, by its log from there on; by the monotonic clock."""
    with open(log, encoding="utf-8", errors="replace") as lines:
        lines.seek(size)
        said = lines.read()
    shift = time.monotonic() - time.time()
    return [datetime.strptime(at, "%d %b %Y %H:%M:%S.%f").timestamp() + shift for at in WON.findall(said)]
