"""Disks that are full, read-only or corrupt: a clear error, and nobody else harmed."""

import os
import shutil
import socket
import threading
from contextlib import contextmanager

import pytest
from bystander import Bystander
from places import fill, read_only, small_disk

from harness.resp import ServerError, encode
from harness.server import ALPHA, BETA, SERVER, Server, StartFailed, Tenant
from harness.waiting import eventually

pytestmark = pytest.mark.ours
ALWAYS = (Tenant("alpha", sync="always"), Tenant("beta", sync="always"))
VALUE = b"x" * 16384


def write_until_refused(wire, limit=20_000):
    """Writes until the server refuses; returns the text of the error and how many were acknowledged."""
    for number in range(limit):
        reply = wire.attempt("SET", f"fill:{number}", VALUE)
        if isinstance(reply, ServerError):
            return str(reply), number
    raise AssertionError(f"{limit} writes of {len(VALUE)} bytes were accepted by a disk that cannot hold them")


def written(wire):
    reply = wire.attempt("SET", "after", "1")
    assert reply == b"OK", reply
    return True


def test_full_disk(tmp_path, start):
    with small_disk(tmp_path, 96) as disk:
        server = start(data=disk / "data", tenants=ALWAYS)
        with server.wire(ALWAYS[1]) as beta:
            beta.ask("SET", "before", "kept")
        ballast = fill(disk, leave_bytes=8 << 20)
        with server.wire(ALWAYS[0], timeout=60) as alpha:
            error, acknowledged = write_until_refused(alpha)
            assert error.startswith("MISCONF"), error
            assert "space" in error.lower() or "disk" in error.lower(), f"the error does not say what is wrong: {error}"
            # Reading goes on, for both.
            assert alpha.ask("GET", "fill:0") == VALUE
            with server.wire(ALWAYS[1]) as beta:
                assert beta.ask("GET", "before") == b"kept"
            ballast.unlink()
            eventually(lambda: written(alpha), 30, "writes resume once there is space again")
            for number in range(acknowledged):
                assert alpha.ask("GET", f"fill:{number}") == VALUE, f"acknowledged write {number} was lost"
        with server.wire(ALWAYS[1]) as beta:
            eventually(lambda: written(beta), 30, "the other tenant writes again as well")
        server.stop()
        server.start()
        with server.wire(ALWAYS[0]) as alpha:
            assert alpha.ask("GET", f"fill:{acknowledged - 1}") == VALUE


def test_who_wants_no_replies_is_told_nothing_of_a_full_disk(tmp_path, start):
    """Replies that are taken back when their commit fails are those that were given."""
    with small_disk(tmp_path, 96) as disk:
        server = start(data=disk / "data", tenants=ALWAYS)
        with server.wire(ALWAYS[0], timeout=60) as quiet, server.wire(ALWAYS[0], timeout=60) as other:
            other.ask("SET", "before", "kept")
            fill(disk, leave_bytes=4 << 20)
            quiet.send("CLIENT", "REPLY", "OFF")
            for number in range(1_000):
                quiet.send("SET", f"quiet:{number}", VALUE)
            write_until_refused(other)
            quiet.raw(encode("CLIENT", "REPLY", "SKIP") + encode("SET", "quiet", VALUE))
            assert quiet.ask("CLIENT", "REPLY", "ON") == b"OK"
            assert quiet.ask("ECHO", "in step") == b"in step"


def tenant_folder(server, tenant):
    """Where a tenant's files are: the one folder of that name under the data folder."""
    found = [path for path in server.data.rglob(tenant.name) if path.is_dir()]
    assert len(found) == 1, f"folders named {tenant.name}: {found}"
    return found[0]


@contextmanager
def disk_of_its_own(tmp_path, server, tenant, mebibytes):
    """Moves the tenant's folder to a small disk while the server is down, and starts the server; yields the disk."""
    with server.wire(tenant) as wire:
        wire.ask("SET", "first", "1")
    folder = tenant_folder(server, tenant)
    server.stop()
    with small_disk(tmp_path, mebibytes) as disk:
        shutil.copytree(folder, disk, dirs_exist_ok=True)
        shutil.rmtree(folder)
        folder.symlink_to(disk)
        server.start()
        try:
            yield disk
        finally:
            server.kill()


def test_one_tenants_disk_is_full(tmp_path, start):
    """The tenants are on disks of their own; one fills up, and the other must not notice."""
    server = start(tenants=ALWAYS)
    with disk_of_its_own(tmp_path, server, ALWAYS[0], 64) as disk:
        with Bystander(server, ALWAYS[1]), server.wire(ALWAYS[0], timeout=60) as alpha:
            assert alpha.ask("GET", "first") == b"1"
            fill(disk, leave_bytes=4 << 20)
            error, _ = write_until_refused(alpha)
            assert error.startswith("MISCONF"), error


# Less than a memtable is written before the disk fills up; what is left then is enough for the log
# and too little for the flush.
DUE_BYTES = 12 << 20
LEFT_BYTES = 6 << 20


def test_disk_is_full_for_a_flush(tmp_path, start):
    """The log of one tenant still has room, its flush has not. Its writes are refused with a clear error, its
    reads go on, the other tenant notices nothing; with space again it writes without a restart, and has all it acknowledged."""
    server = start(tenants=ALWAYS, engine_options='memtable = "16MiB"\nobject_cache = "8MiB"\nblock_cache = "8MiB"')
    with disk_of_its_own(tmp_path, server, ALWAYS[0], 96) as disk:
        with Bystander(server, ALWAYS[1]), server.wire(ALWAYS[0], timeout=60) as alpha:
            acknowledged = []
            eventually(lambda: put_more(alpha, acknowledged) and log_bytes(disk) >= DUE_BYTES, 60, "enough is written")
            ballast = fill(disk, LEFT_BYTES)
            eventually(lambda: not put_more(alpha, acknowledged), 60, "writes are refused")
            error = str(alpha.attempt("SET", "refused", "1"))
            assert error.startswith("MISCONF") and "no space" in error.lower(), error
            assert str(disk) not in error and str(server.data) not in error, f"a tenant is told paths of the server: {error}"
            told = server.says("MISCONF")
            assert any(str(server.data) in line and ".sst" in line for line in told), f"the log does not name the file: {told}"
            for number, value in enumerate(acknowledged):
                assert alpha.ask("GET", f"put:{number}") == value, f"acknowledged write {number} cannot be read"
            ballast.unlink()
            eventually(lambda: written(alpha), 30, "writes resume once there is space again")
            for number, value in enumerate(acknowledged):
                assert alpha.ask("GET", f"put:{number}") == value, f"acknowledged write {number} was lost"
        server.stop()
        server.start()
        with server.wire(ALWAYS[0]) as alpha:
            assert alpha.ask("GET", f"put:{len(acknowledged) - 1}") == acknowledged[-1]


LARGE, LARGE_BYTES = 24, 2 << 20


class Trickle:
    """A client that asks for much, and takes a byte now and then."""

    def __init__(self, server, tenant):
        # A small window: what the system's buffers take, the server believes to have been read.
        self.wire = server.wire(tenant, receive_buffer=4096, timeout=60)
        self.wire.send("MGET", *(f"large:{number}" for number in range(LARGE)))
        self.taken, self.ended, self.stopped = 0, threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._take, daemon=True)
        self.thread.start()
        eventually(lambda: self.taken > 0, what="the reply begins")

    def _take(self):
        try:
            while self.wire.sock.recv(1):
                self.taken += 1
                self.stopped.wait(0.1)
        except OSError:
            pass
        self.ended.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.wire.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join(60)


def test_a_slow_reader_does_not_keep_a_mended_disk_from_being_tried(tmp_path, start):
    """The reply that it takes byte by byte is read from a database that must be closed before it can be written again."""
    with small_disk(tmp_path, 192) as disk:
        server = start(data=disk / "data", tenants=ALWAYS)
        with server.wire(ALWAYS[0], timeout=60) as alpha:
            for number in range(LARGE):
                alpha.ask("SET", f"large:{number}", bytes([number]) * LARGE_BYTES)
            with Trickle(server, ALWAYS[0]) as slow:
                ballast = fill(disk, leave_bytes=4 << 20)
                error, acknowledged = write_until_refused(alpha)
                assert error.startswith("MISCONF"), error
                assert not slow.ended.is_set(), "reading goes on while nothing can be written anyway"
                ballast.unlink()
                eventually(lambda: written(alpha), 20, "writes resume, whoever reads")
                assert server.says("closed: its large reply") and slow.taken < LARGE_BYTES
            assert alpha.ask("GET", f"fill:{acknowledged - 1}") == VALUE
            assert alpha.ask("GET", "large:7") == bytes([7]) * LARGE_BYTES


def put_more(wire, acknowledged):
    """Writes some values that do not compress; whether all were taken."""
    for _ in range(8):
        value = os.urandom(len(VALUE))
        if isinstance(wire.attempt("SET", f"put:{len(acknowledged)}", value), ServerError):
            return False
        acknowledged.append(value)
    return True


def log_bytes(folder):
    return sum(path.stat().st_size for path in folder.glob("*.log"))


def test_read_only_disk(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    with read_only(data):
        server = Server(tmp_path / "server", data=data)
        with pytest.raises(StartFailed) as failed:
            server.start()
    said = str(failed.value)
    assert server.process.returncode == 1, said
    assert str(data) in said, f"the error does not name the folder: {said}"
    assert "panicked" not in said, said


def test_corrupt_file_of_one_tenant(tmp_path):
    """Files of alpha are damaged while the server is down. Beta is served; alpha gets an error, never wrong data."""
    server = Server(tmp_path, engine_options='memtable = "1MiB"\nobject_cache = "8MiB"\nblock_cache = "8MiB"')
    server.start()
    for tenant in (ALPHA, BETA):
        with server.wire(tenant) as wire:
            for number in range(1000):
                wire.send("SET", f"key:{number}", b"%06d" % number + VALUE[6:])
            assert [wire.read() for _ in range(1000)] == [b"OK"] * 1000
    server.stop()
    tables = sorted(tenant_folder(server, ALPHA).glob("*.sst"))
    assert tables, "alpha has no data files; the test must write more"
    for table in tables:
        damage(table)
    server.start()
    try:
        with Bystander(server, BETA), server.wire(BETA) as beta, server.wire(timeout=60) as alpha:
            errors = read_damaged(alpha)
            assert errors, "no read met the damage"
            assert not any("panicked" in error or str(server.data) in error or ".sst" in error for error in errors), errors[0]
            server.says(str(tables[0].parent))
            assert beta.ask("GET", "key:999") == b"000999" + VALUE[6:]
        assert server.running()
    finally:
        server.kill()


def damage(table):
    """Overwrites stretches in the data part of a file, and leaves its ends alone."""
    data = bytearray(table.read_bytes())
    for place in range(4096, len(data) * 3 // 4, 65536):
        data[place : place + 512] = b"\xa5" * 512
    table.write_bytes(data)


def read_damaged(wire):
    """Reads everything as alpha; a value is right or the read is an error. Returns the errors."""
    errors = []
    login = wire.attempt("AUTH", ALPHA.name, ALPHA.password)
    if isinstance(login, ServerError):
        return [str(login)]
    for number in range(1000):
        reply = wire.attempt("GET", f"key:{number}")
        if isinstance(reply, ServerError):
            errors.append(str(reply))
        else:
            assert reply == b"%06d" % number + VALUE[6:], f"key:{number} came back wrong, without an error"
    return errors


def test_the_data_folder_is_locked(tmp_path, start):
    """Two servers on one folder would destroy it; the second must say so and leave."""
    first = start()
    second = Server(tmp_path / "second", data=first.data, program=SERVER)
    with pytest.raises(StartFailed) as failed:
        second.start()
    assert second.process.returncode == 1
    assert str(first.data) in str(failed.value), str(failed.value)
    with first.wire(ALPHA) as wire:
        assert wire.ask("PING") == b"PONG"
