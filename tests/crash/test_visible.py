"""Nobody may read what a crash or a full disk takes back: what one client was shown, every later client finds."""

import os
import threading

import pytest
from places import fill, small_disk

from harness.resp import ServerError
from harness.server import Server, Tenant
from harness.waiting import eventually

ROUNDS = int(os.environ.get("ENTREMET_KILL_ROUNDS", "50"))
PADDING = b"." * 4096
# What is written together with it takes some ms to commit, and readers ask in between.
BALLAST = b"." * (3 << 20)
READERS = 3
DEPTH = 8


class Readers:
    """Connections that read one key all the time and remember the highest number that they were shown."""

    def __init__(self, server, tenant):
        self.server, self.tenant, self.stopped = server, tenant, threading.Event()
        self.highest, self.problem, self.seen = 0, None, threading.Condition()
        self.threads = [threading.Thread(target=self._read, daemon=True) for _ in range(READERS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join(30)
        assert self.problem is None, self.problem

    def _read(self):
        try:
            with self.server.wire(self.tenant) as wire:
                while not self.stopped.is_set():
                    for _ in range(DEPTH):
                        wire.send("GET", "n")
                    for reply in [wire.read() for _ in range(DEPTH)]:
                        # A read of what is then refused is an error itself, and shows nothing.
                        if not isinstance(reply, ServerError):
                            with self.seen:
                                self.highest = max(self.highest, number(reply))
                                self.seen.notify_all()
        except (OSError, EOFError):
            return  # the server was killed
        except Exception as error:  # told to the test; a thread's own traceback would be lost
            self.problem = error

    def wait_for(self, wanted):
        """Until one of them was shown this number."""
        with self.seen:
            assert self.seen.wait_for(lambda: self.highest >= wanted, 30), f"{wanted} was not shown"


def number(value):
    return int(value[: -len(PADDING)]) if value else 0


def set_number(wire, to):
    return wire.attempt("SET", "n", b"%d" % to + PADDING)


@pytest.mark.ours
@pytest.mark.parametrize("sync", ["every 1s", "never", "always"])
def test_what_was_read_is_there_after_a_crash(tmp_path, sync):
    tenant = Tenant("alpha", sync=sync)
    server, written = Server(tmp_path, tenants=(tenant,)), 0
    server.start()
    try:
        for round_number in range(max(ROUNDS // 5, 1)):
            with server.wire(tenant) as wire, Readers(server, tenant) as readers:
                assert set_number(wire, written) == b"OK"
                readers.wait_for(written)
                written += 1
                wire.send("SET", "ballast", BALLAST)
                wire.send("SET", "n", b"%d" % written + PADDING)
                readers.wait_for(written)
                server.kill()
            server.start()
            with server.wire(tenant) as wire:
                found = number(wire.ask("GET", "n"))
            assert found == written, f"round {round_number}: {written} was read, and then {found}"
    finally:
        server.kill()


@pytest.mark.ours
@pytest.mark.parametrize("sync", ["every 1s", "never", "always"])
def test_what_a_full_disk_refuses_is_never_read(tmp_path, start, sync):
    tenant = Tenant("alpha", sync=sync)
    with small_disk(tmp_path, 64) as disk:
        server = start(data=disk / "data", tenants=(tenant,))
        written = 0
        with server.wire(tenant) as wire:
            assert set_number(wire, written) == b"OK"
        with server.wire(tenant, timeout=60) as wire, Readers(server, tenant) as readers:
            for attempt in range(3):
                ballast = fill(disk, leave_bytes=1 << 20)
                reply = b"OK"
                while reply == b"OK":
                    written += 1
                    reply = set_number(wire, written)
                assert isinstance(reply, ServerError) and str(reply).startswith("MISCONF"), reply
                assert number(wire.ask("GET", "n")) < written
                with readers.seen:
                    assert readers.highest < written, f"attempt {attempt}: {written} was refused, and was read"
                ballast.unlink()
                eventually(lambda: set_number(wire, written) == b"OK", 30, "writing works again")
