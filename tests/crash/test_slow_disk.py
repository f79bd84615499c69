"""A disk that takes ages must not delay what needs no disk."""

import json
import select
import struct
import threading
import time
import urllib.request

import pytest
from bystander import Bystander

from harness.preload import compiled
from harness.server import ALPHA, BETA, Tenant
from harness.waiting import eventually

pytestmark = pytest.mark.ours
# So slow that a hit which waited for it, even once, could not be mistaken for noise.
DELAY_S = 0.4
HIT_P99_MAX_S = DELAY_S / 4
KEYS, VALUE = 3000, b"v" * 8192


class SlowDisk:
    """The shim, and the number that it reads."""

    def __init__(self, folder):
        self.shim, self.control = compiled("slowdisk", folder), folder / "slowdisk.delay"
        self.delay(0)

    def delay(self, seconds):
        """Every access to a data file or log takes this much longer from now on."""
        mode = "r+b" if self.control.exists() else "wb"
        with open(self.control, mode) as file:  # in place: the server has mapped it
            file.write(struct.pack("=Q", int(seconds * 1_000_000)))

    @property
    def environment(self):
        return {"LD_PRELOAD": str(self.shim), "SLOWDISK_CONTROL": str(self.control)}


@pytest.fixture
def disk(tmp_path):
    return SlowDisk(tmp_path)


def fill(server, tenant):
    with server.wire(tenant, timeout=60) as wire:
        for first in range(0, KEYS, 500):
            for number in range(first, first + 500):
                wire.send("SET", f"cold:{number}", VALUE)
            assert [wire.read() for _ in range(500)] == [b"OK"] * 500
        wire.ask("SET", "hot", "1")


def cold_server(start, disk, tenants=(ALPHA, BETA), engine_options="", **options):
    """A server whose data is on disk and in no cache: it was filled, ended and started again."""
    engine_options = f'object_cache = "8MiB"\nblock_cache = "8MiB"\n{engine_options}'
    server = start(environment=disk.environment, tenants=tenants, engine_options=engine_options, **options)
    fill(server, ALPHA)
    server.stop()
    server.start()
    return server


class ColdReaders:
    """Connections of one tenant that read, all the time, what is only on the disk."""

    def __init__(self, server, tenant, count):
        self.server, self.tenant, self.stopped = server, tenant, threading.Event()
        self.times_s, self.problem = [], None
        self.threads = [threading.Thread(target=self._read, args=(index, count), daemon=True) for index in range(count)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join(60)

    def _read(self, first, step):
        try:
            with self.server.wire(self.tenant, timeout=60) as wire:
                for number in range(first, KEYS, step):
                    if self.stopped.is_set():
                        return
                    began = time.perf_counter()
                    assert wire.ask("GET", f"cold:{number}") == VALUE
                    self.times_s.append(time.perf_counter() - began)
        except Exception as error:  # the test reports it
            self.problem = error


def test_a_get_does_not_wait_for_a_multiget_of_its_key(start, disk):
    server = cold_server(start, disk, server_options="cores = 1")
    with server.wire(ALPHA, timeout=60) as many, server.wire(ALPHA) as one, server.wire(ALPHA, timeout=60) as other:
        assert one.ask("GET", "hot") == b"1"  # in memory from now on
        disk.delay(DELAY_S)
        try:
            many.send("MGET", "hot", *(f"cold:{number}" for number in (7, 1500, 2900)))
            assert one.ask("PING") == b"PONG"  # by then its core has read what was sent before
            assert one.ask("GET", "hot") == b"1"
            # A reply that was ready when the other was would be here in less than one read.
            assert not select.select([many.sock], [], [], DELAY_S / 4)[0], "it has read all from the disk"
            other.send("SET", "hot", "2")
            assert many.read() == [b"1", VALUE, VALUE, VALUE]
            assert other.read() == b"OK"
        finally:
            disk.delay(0)


@pytest.mark.parametrize("count, delay_s", [(16, DELAY_S), (150, DELAY_S / 4)], ids=["few words", "many words"])
def test_a_multiget_reads_several_keys_at_once(start, disk, count, delay_s):
    server = cold_server(start, disk, server_options="cores = 1")
    with server.wire(ALPHA, timeout=60) as many, server.wire(ALPHA, timeout=60) as one:
        assert one.ask("GET", "hot") == b"1"
        disk.delay(delay_s)
        try:
            assert one.ask("GET", "cold:5") == VALUE  # the disk is known to be slow from now on
            keys = [f"cold:{100 + number * 2800 // count}" for number in range(count)]
            many.send("MGET", *keys)
            assert one.ask("PING") == b"PONG"
            # A quarter of as many keys, one after the other.
            for number in range(count // 4):
                assert one.ask("GET", f"cold:{50 + number * 61}") == VALUE
            assert select.select([many.sock], [], [], 0)[0], "it reads one after the other"
            assert many.read() == [VALUE] * len(keys)
        finally:
            disk.delay(0)


PROMISED = Tenant(
    ALPHA.name,
    extra="""
[[tenant.slo]]
class = "get"
latency = { p = 99.0, at_most = "200ms", window = "1s" }
""",
)


def windows(server):
    """Windows of the one promise, in the last hour."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/api/tenants/alpha", timeout=10) as answer:
        return json.load(answer)["promises"][0]["hour"]


def test_windows_of_a_stall_are_missed_before_it_is_over(start, disk):
    server = cold_server(start, disk, tenants=(PROMISED, BETA))
    with server.wire(ALPHA, timeout=60) as wire:
        wire.ask("GET", "hot")  # its database is open then
        missed = windows(server)["windows_missed"]
        disk.delay(8)
        try:
            wire.send("GET", "cold:7")
            eventually(lambda: windows(server)["windows_missed"] > missed + 1, 30, "two windows are missed")
            assert not select.select([wire.sock], [], [], 0)[0], "it was answered meanwhile"
        finally:
            disk.delay(0)
        assert wire.read() == VALUE
        # Who asks for nothing misses nothing.
        nothing = windows(server)["windows_without_data"]
        eventually(lambda: windows(server)["windows_without_data"] > nothing + 1, 30, "nobody asks")


def test_a_transaction_that_waits_is_seen_as_what_it_is_counted_as(start, disk):
    promised = Tenant("alpha", extra=PROMISED.extra.replace('class = "get"', 'class = "multiget"'))
    server = cold_server(start, disk, tenants=(promised, BETA))
    with server.wire(ALPHA, timeout=60) as wire:
        wire.ask("GET", "hot")
        missed = windows(server)["windows_missed"]
        disk.delay(8)
        try:
            for words in (("MULTI",), ("GET", "cold:7"), ("EXEC",)):
                wire.send(*words)
            eventually(lambda: windows(server)["windows_missed"] > missed + 1, 30, "two windows are missed")
        finally:
            disk.delay(0)
        assert [wire.read() for _ in range(3)] == [b"OK", b"QUEUED", [VALUE]]


def test_misses_of_one_tenant_do_not_delay_hits_of_another(start, disk):
    server = cold_server(start, disk)
    with server.wire(BETA) as wire:
        wire.ask("SET", "warm", "1")
    disk.delay(DELAY_S)
    try:
        with Bystander(server, BETA, writes=False, p99_max_s=HIT_P99_MAX_S) as beta, ColdReaders(server, ALPHA, 32) as cold:
            wait_for_slow_reads(cold)
            assert max(beta.latencies_s) < DELAY_S, "one hit waited for the disk"
    finally:
        disk.delay(0)
    assert cold.problem is None


def wait_for_slow_reads(cold, wanted=32):
    """Returns once enough reads were really held up; without this the test would prove nothing."""
    def held_up():
        assert cold.problem is None, cold.problem
        return sum(took >= DELAY_S for took in list(cold.times_s)) >= wanted

    eventually(held_up, 60, f"{wanted} reads take {DELAY_S} s or longer")


def test_misses_do_not_delay_hits_of_the_same_tenant(start, disk):
    """Not even on the connections of the tenant that waits for its own misses."""
    server = cold_server(start, disk)
    with server.wire(ALPHA) as wire:
        wire.ask("GET", "hot")
    disk.delay(DELAY_S)
    try:
        with Bystander(server, ALPHA, writes=False, p99_max_s=HIT_P99_MAX_S), ColdReaders(server, ALPHA, 32) as cold:
            wait_for_slow_reads(cold)
    finally:
        disk.delay(0)
    assert cold.problem is None


def outstanding(server):
    """What handlers are at work for, by core."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/api/stages", timeout=10) as answer:
        return {stage["core"]: stage["permits_in_use"] for stage in json.load(answer) if stage["stage"] == "handler"}


def test_a_core_has_the_handlers_that_the_other_has_no_work_for_and_gives_them_back(start, disk):
    # Connections of a tenant are divided evenly among the cores. With "fifo" nobody has permits
    # beyond these: four of each core, of which one is never lent.
    options = 'handlers = 8\n[scheduler]\nrequest = "fifo"'
    server = cold_server(start, disk, server_options="cores = 2", engine_options=options)
    wires = [server.wire(ALPHA, timeout=60) for _ in range(128)]
    wires[0].ask("GET", "hot")  # its database is open then
    disk.delay(DELAY_S)
    one, other = wires[::2], wires[1::2]
    sent = []

    def read(some):
        for wire in some:
            wire.send("GET", f"cold:{len(sent) * 20}")
            sent.append(wire)

    try:
        read(one)
        eventually(lambda: sorted(outstanding(server).values()) == [0, 7], 20, "seven reads of one core are under way")
        read(other)
        eventually(lambda: sorted(outstanding(server).values()) == [4, 4], 20, "each core has its own four")
    finally:
        disk.delay(0)
    assert [wire.read() for wire in sent] == [VALUE] * len(sent)
    for wire in wires:
        wire.close()


def test_a_slow_log_does_not_delay_hits(start, disk):
    """Alpha's every write waits for the disk. Reads that hit go on, and so do writes that need not wait for it."""
    tenants = (Tenant("alpha", sync="always"), BETA)
    server = start(environment=disk.environment | {"SLOWDISK_FOLDER": "/alpha/"}, tenants=tenants)
    with server.wire(tenants[0]) as wire:
        wire.ask("SET", "hot", "1")
    disk.delay(DELAY_S)
    try:
        with Bystander(server, BETA, p99_max_s=HIT_P99_MAX_S), server.wire(tenants[0]) as alpha:
            for number in range(5):
                began = time.perf_counter()
                alpha.ask("SET", "slow", number)
                assert time.perf_counter() - began >= DELAY_S * 0.9, "the write did not wait for its sync: is the shim loaded?"
            with Bystander(server, tenants[0], writes=False, p99_max_s=2 * DELAY_S) as hits:
                assert sorted(hits.latencies_s)[0] < DELAY_S / 4
    finally:
        disk.delay(0)
