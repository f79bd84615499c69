"""Large values in slots that move: nobody hears of it, whichever link and node a request has to go by."""

import random
import threading
import time

from harness.resp import encode
from harness.server import ALPHA, BETA, Tenant

MIB = 1 << 20
WIDE = Tenant("wide", extra="partitions = 8")


class Large(threading.Thread):
    """A client that pipelines small and large requests on keys of its own, until it is stopped. It keeps every reply that is wrong."""

    def __init__(self, server, tenant, number):
        super().__init__(daemon=True)
        self.server, self.tenant, self.number, self.stop = server, tenant, number, threading.Event()
        self.rounds, self.wrong = 0, []

    def run(self):
        chance, tag = random.Random(self.number), f"{{large{self.number}}}"
        large, small = f"{tag}large", f"{tag}small"
        try:
            with self.server.wire(self.tenant, timeout=60) as wire:
                while not self.stop.is_set():
                    value = bytes([chance.randrange(97, 123)]) * chance.choice((100, 70_000, MIB))
                    asked = [("SET", small, self.rounds), ("SET", large, value), ("GET", large), ("GET", small), ("MGET", large, small, large), ("STRLEN", large)]
                    count = b"%d" % self.rounds
                    right = [b"OK", b"OK", value, count, [value, count, value], len(value)]
                    asked += [("MULTI",), ("GET", large), ("INCR", small), ("EXEC",)]
                    right += [b"OK", b"QUEUED", b"QUEUED", [value, self.rounds + 1]]
                    wire.raw(b"".join(encode(*words) for words in asked))
                    for words, expected in zip(asked, right):
                        got = wire.read()
                        if got != expected:
                            self.wrong.append((words[0], repr(got)[:200], repr(expected)[:80]))
                    self.rounds += 1
        except Exception as error:  # noqa: BLE001 (whatever ends it is what the test must see)
            self.wrong.append(error)


def test_slots_with_large_values_move_and_no_client_hears_of_it(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=(ALPHA, BETA, WIDE), server_options="cores = 2")
    clients = [Large(server, tenant, number) for number, tenant in enumerate((ALPHA, ALPHA, WIDE, WIDE))]
    for client in clients:
        client.start()
    with server.wire(BETA) as beta:
        counted, passes, patience = 0, 0, time.monotonic() + 120
        # All the time that they need for some rounds, slots move.
        while passes < 3 or any(client.rounds <= 3 and not client.wrong for client in clients):
            assert time.monotonic() < patience, [client.rounds for client in clients]
            passes += 1
            for slot in sorted({cluster.nodes[0].ask("CLUSTER", "KEYSLOT", key) for key in cluster.keys() if key.startswith((b"{@alpha", b"{@wide"))}):
                source = cluster.owner(slot)
                cluster.move(slot, next(node for node in cluster.masters if node is not source), batch=1)
                counted += 1
                assert beta.ask("INCR", "n") == counted
    for client in clients:
        client.stop.set()
    for client in clients:
        client.join(60)
        assert not client.wrong, client.wrong[:3]
        assert client.rounds > 3
    assert counted >= 6
