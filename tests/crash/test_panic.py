"""A thread that panics, or a core that stands still: the server ends, whole, says why, and has all that it acknowledged when it starts again."""

import contextlib
import dataclasses
import os
import signal
import subprocess
import threading

import pytest
from writers import Crowd

from harness.preload import compiled
from harness.resp import ServerError
from harness.server import Server, Tenant
from harness.waiting import eventually

pytestmark = pytest.mark.ours
TENANTS = ALPHA, BETA = (Tenant("alpha", sync="always"), Tenant("beta", sync="every 1s"))
OPERATIONS = 300
REPORT_MAX_S = 10
# The machine may be busy.
END_TIMEOUT_S = 3 * REPORT_MAX_S
# A core that stands still is given 20 s.
STILL_TIMEOUT_S = 20 + END_TIMEOUT_S


class Walker:
    """Asks for all keys again and again: the work of handlers."""

    def __init__(self, server, tenant):
        self.server, self.tenant = server, tenant
        self.thread = threading.Thread(target=self._walk, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.thread.join(END_TIMEOUT_S)

    def _walk(self):
        try:
            with self.server.wire(self.tenant) as wire:
                while True:
                    wire.ask("KEYS", "none*")
        except (OSError, EOFError):
            return  # the server has ended


@pytest.mark.parametrize("thread", ["core-0", "core-1", "committer-", "handler-", "engine-tick"])
def test_a_panic_ends_the_server_and_loses_nothing(tmp_path, thread):
    environment = {"LD_PRELOAD": str(compiled("panic", tmp_path)), "PANIC_THREAD": thread}
    server = Server(tmp_path, tenants=TENANTS, environment=environment, server_options="cores = 2")
    crowd = Crowd(TENANTS, 3, seed=3)

    def panic():
        """Again if it was RocksDB that asked for the time, and not the standard library."""
        for _ in range(10):
            os.kill(server.pid, signal.SIGUSR2)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return server.process.wait(REPORT_MAX_S + 1)
        return None

    server.start()
    try:
        with Walker(server, TENANTS[0]):
            crowd.write_until(server, OPERATIONS, then=panic)
        assert server.process.returncode == -signal.SIGABRT, server.process.returncode
        reason = server.says("panicked", END_TIMEOUT_S)[0]
        assert "ERROR" in reason and f'thread="{thread}' in reason and "called `Result::unwrap()`" in reason and ".rs:" in reason, reason
        server.says("::now", END_TIMEOUT_S)
        server.start()
        crowd.verify(server)
        crowd.write_until(server, OPERATIONS, then=server.stop)
        assert server.process.returncode == 0
    finally:
        server.kill()
    assert crowd.acknowledged() >= 2 * OPERATIONS


def test_a_core_that_stands_still_ends_the_server_and_loses_nothing(tmp_path):
    environment = {"LD_PRELOAD": str(compiled("panic", tmp_path)), "PANIC_THREAD": "core-1", "PANIC_STILL": "yes"}
    server = Server(tmp_path, tenants=TENANTS, environment=environment, server_options="cores = 2")
    crowd = Crowd(TENANTS, 3, seed=4)

    def stand_still():
        os.kill(server.pid, signal.SIGUSR2)
        server.process.wait(STILL_TIMEOUT_S)

    server.start()
    try:
        crowd.write_until(server, OPERATIONS, then=stand_still)
        assert server.process.returncode == -signal.SIGABRT, server.process.returncode
        reason = server.says("panicked", END_TIMEOUT_S)[0]
        assert 'thread="watchdog"' in reason and "core 1 has stood still for 20 s" in reason, reason
        server.start()
        crowd.verify(server)
    finally:
        server.kill()


@contextlib.contextmanager
def unread(tmp_path, **options):
    """A server whose standard error nobody reads any more, and which has no room left."""
    into_the_pipe = ("sh", "-c", 'exec "$@" 2>"$0"', str(tmp_path / "log.pipe"))
    server = Server(tmp_path, wrapper=into_the_pipe, **options)
    os.mkfifo(tmp_path / "log.pipe")
    pipe = os.open(tmp_path / "log.pipe", os.O_RDWR)
    try:
        server.start()
        os.set_blocking(pipe, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(pipe, b"." * 4096)  # as if it had said much that nobody read
        yield server
    finally:
        server.kill()
        os.close(pipe)


def test_a_log_that_nobody_reads_does_not_keep_it_alive(tmp_path):
    """The report cannot be written, and the server ends all the same."""
    environment = {"LD_PRELOAD": str(compiled("panic", tmp_path)), "PANIC_THREAD": "core-0"}
    with unread(tmp_path, tenants=TENANTS, environment=environment) as server:
        os.kill(server.pid, signal.SIGUSR2)
        assert server.process.wait(END_TIMEOUT_S) == -signal.SIGABRT


def test_a_log_that_nobody_reads_keeps_no_core_waiting(tmp_path):
    crowded = dataclasses.replace(ALPHA, extra="max_connections = 1")
    with unread(tmp_path, tenants=(crowded, BETA), server_options="cores = 1") as server:
        with server.wire(crowded), server.wire(BETA) as other:
            with pytest.raises(ServerError, match="max number of clients"):
                server.wire(crowded)
            assert other.ask("PING") == b"PONG", "the core said so in its log, and goes on"
        assert server.stop() == 0
