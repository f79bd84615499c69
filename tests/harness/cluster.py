"""Redis Clusters of real processes, and an Entremet that stands before one."""

import signal
import subprocess

from harness.encrypted import Encrypted
from harness.engine import Engine, Front, place
from harness.paths import SERVER
from harness.resp import Wire
from harness.server import free_port, free_ports
from harness.waiting import eventually

SLOTS = 16384


class Node(Engine):
    """One engine in cluster mode."""

    def __init__(self, folder, program):
        self.bus = free_port()
        super().__init__(
            folder,
            program,
            *("--cluster-port", str(self.bus)),
            *("--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "2000"),
            *("--cluster-require-full-coverage", "no", "--cluster-allow-replica-migration", "no"),
        )

    @property
    def id(self):
        return self.ask("CLUSTER", "MYID").decode()

    def info(self):
        lines = self.ask("CLUSTER", "INFO").decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    @property
    def epoch(self):
        return int(self.info()["cluster_my_epoch"])

    def port_of(self, slot):
        """The port of the master that has this slot, as this node has it."""
        for begin, end, master, *_ in self.ask("CLUSTER", "SLOTS"):
            if begin <= slot <= end:
                return master[1]
        raise AssertionError(f"nobody has {slot}")


class Cluster:
    """Masters that have equal ranges of the slots, and perhaps a replica of each."""

    def __init__(self, folder, program, masters=3, replicas=0, kind=Node):
        self.folder, self.program, self.kind = folder, program, kind
        count = masters * (1 + replicas)
        self.nodes = [kind(folder / f"node{number}", program) for number in range(count)]
        self.masters, self.replicas = self.nodes[:masters], self.nodes[masters:]

    def start(self):
        for node in self.nodes:
            node.start()
        first = self.nodes[0]
        for number, node in enumerate(self.nodes):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in self.nodes[1:]:
            first.ask("CLUSTER", "MEET", node.host, node.port, node.bus)
        for number, node in enumerate(self.masters):
            begin, end = (SLOTS * at // len(self.masters) for at in (number, number + 1))
            node.ask("CLUSTER", "ADDSLOTSRANGE", begin, end - 1)
        everybody = lambda: all(int(node.info()["cluster_known_nodes"]) == len(self.nodes) for node in self.nodes)
        eventually(everybody, 60, "all nodes know each other")
        for number, node in enumerate(self.replicas):
            master = self.masters[number % len(self.masters)].id
            eventually(lambda: node.attempt("CLUSTER", "REPLICATE", master) == b"OK", 60, "a replica has its master")
        eventually(lambda: all(node.info()["cluster_state"] == "ok" for node in self.nodes), 60, "the cluster is up")
        for node in self.replicas:
            synced = lambda: b"master_link_status:up" in node.ask("INFO", "replication")
            eventually(synced, 60, "a replica is in sync")
        return self

    @property
    def url(self):
        return "redis-cluster://" + ",".join(map(place, self.masters[:2]))

    def owner(self, slot):
        """The master that has this slot."""
        port = self.living()[0].port_of(slot)
        return next(node for node in self.nodes if node.port == port)

    def living(self):
        return [node for node in self.nodes if node.process.poll() is None]

    def keys(self):
        """All keys of all masters."""
        ports = {master[1] for _, _, master, *_ in self.living()[0].ask("CLUSTER", "SLOTS")}
        return set().union(*(node.keys() for node in self.living() if node.port in ports))

    def move(self, slot, target, batch=10):
        """Moves a slot as `redis-cli --cluster reshard` does."""
        source = self.owner(slot)
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        while keys := source.ask("CLUSTER", "GETKEYSINSLOT", slot, batch):
            source.ask("MIGRATE", target.host, target.port, "", 0, 10_000, "KEYS", *keys)
        self.give(slot, target)

    def give(self, slot, target):
        """The slot is the target's, and all masters know it.

        The target takes no new epoch if its own is the greatest of which it has heard, and then believes what the
        source sent before it was told: that it has the slot, with a greater one. So all is told as often as it takes.
        """
        for node in [target] + [node for node in self.masters if node is not target]:
            node.ask("CLUSTER", "SETSLOT", slot, "NODE", target.id)

        def agreed():
            others = [node for node in self.masters if node.port_of(slot) != target.port]
            for node in others:
                node.ask("CLUSTER", "SETSLOT", slot, "NODE", target.id)
            behind = any(node.epoch > target.epoch for node in self.masters)
            if behind:
                target.ask("CLUSTER", "BUMPEPOCH")
            return not others and not behind

        eventually(agreed, 20, f"all nodes agree who has {slot}")

    def command(self, name, *words, url=None):
        """The words of `entremet cluster NAME` about this cluster."""
        return [*self.nodes[0].wrapper, SERVER, "cluster", name, "--at", url or self.url, *map(str, words)]

    def entremet(self, name, *words, **options):
        """Runs `entremet cluster NAME`, and returns its status and all that it said."""
        done = subprocess.run(self.command(name, *words, **options), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        return done.returncode, done.stdout

    def faults(self):
        """What redis-cli finds wrong."""
        node = self.living()[0]
        checked = subprocess.run([*node.wrapper, "redis-cli", "--cluster", "check", place(node)], capture_output=True, text=True, timeout=60)
        return [line for line in checked.stdout.splitlines() if "[ERR]" in line or "[WARNING]" in line] + ([] if checked.returncode == 0 else [checked.stderr])

    def fresh(self, number):
        """One more node, which is not in the cluster yet."""
        node = self.kind(self.folder / f"fresh{number}", self.program)
        self.nodes.append(node)
        return node.start()

    def kill(self):
        for node in self.nodes:
            if node.process and node.process.poll() is None:
                node.process.send_signal(signal.SIGCONT)
            node.kill()


class ClusterFront(Front):
    """An Entremet before a cluster."""

    kind = "redis-cluster"


class NodeFront(ClusterFront):
    """One before one node, which clients that know of clusters see at its port `aware`."""

    def __init__(self, folder, cluster, node, server_options="", **options):
        self.aware, self.node = free_port(), node
        places = ", ".join(f'{key} = "{node.host}:{port}"' for key, port in self.places().items())
        super().__init__(folder, cluster, server_options=f"{server_options}\ncluster = {{ {places} }}", **options)

    def places(self):
        """What its configuration says of ports."""
        return {"listen": self.aware, "node": self.node.port}

    def aware_wire(self, tenant):
        """A bare connection to where cluster-aware clients come, authenticated as `tenant`."""
        wire = Wire(self.aware, self.node.host)
        wire.ask("AUTH", tenant.name, tenant.password)
        return wire


class BothFront(NodeFront):
    """One that clients reach without TLS and with it, unless those that know of clusters have no address by `lacks`.

    The test's own clients come in the way that `tls` says: to its usual port and to `aware`.
    """

    def __init__(self, folder, cluster, node, pair, tls=False, lacks=None, server_options="", **options):
        self.usual_tls, self.aware_tls = free_ports(2)
        self.lacks, (self.certificate, key) = lacks, pair
        files = f'tls = {{ listen = "127.0.0.1:{self.usual_tls}", cert = "{self.certificate}", key = "{key}" }}'
        super().__init__(folder, cluster, node, server_options=f"{server_options}\n{files}", **options)
        self.usual_plain, self.aware_plain = self.port, self.aware
        self.speak(tls)

    def places(self):
        places = super().places() | {"tls_listen": self.aware_tls}
        return {key: port for key, port in places.items() if key != self.lacks}

    def speak(self, tls):
        """From now on the test's clients come with TLS, or without."""
        self.tls, self.ca = tls, self.certificate if tls else None
        self.usual, self.aware = (self.usual_tls, self.aware_tls) if tls else (self.usual_plain, self.aware_plain)
        return self

    def wire(self, tenant=None, **options):
        return Encrypted(self.usual, tenant) if self.tls else super().wire(tenant, **options)

    def aware_wire(self, tenant):
        return Encrypted(self.aware, tenant) if self.tls else super().aware_wire(tenant)


def know_each_other(fronts, tenant):
    """Waits until each of them says that all are there."""
    for front in fronts:
        with front.wire(tenant) as wire:
            everybody = lambda: len(wire.ask("CLUSTER", "NODES").splitlines()) == len(fronts)
            eventually(everybody, 30, "fronts know each other")


def tells_replicas_of_moves(node):
    """Valkey 8 and later tell replicas which slots are on their way, so whoever takes a node's place knows it. Redis does not."""
    return b"valkey_version" in node.ask("INFO", "server")


def others(cluster, node):
    return [other for other in cluster.masters if other is not node]


def clean(cluster):
    """Nothing is left of a move, and nothing is wrong."""

    def well():
        faults = cluster.faults()
        assert not faults, faults
        return True

    eventually(well, 20, "the cluster is well")
    assert b"{@}moves" not in cluster.keys(), "a move is left"
    status, said = cluster.entremet("check")
    assert (status, said) == (0, "nothing is wrong\n"), said
    return True
