"""Starts and ends the server under test: Entremet, or a redis-server that stands in for it.

The stand-in proves the harness: what passes against Redis and fails against Entremet is Entremet's fault.
Which one it is follows from the program's name. A server is only ever ended by its own process id.
"""

import fcntl
import itertools
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import urllib.request
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.paths import SERVER
from harness.resp import Wire
from harness.waiting import eventually

# Entremet says "entremet is ready: …", Redis "Ready to accept connections".
READY = re.compile(rb"is ready|Ready to accept")
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60


@dataclass(frozen=True)
class Tenant:
    """A tenant of the test config; its password is derived, so that a test need not carry it around."""

    name: str
    weight: int = 1
    sync: str = "every 1s"
    extra: str = ""
    secret: str = ""

    @property
    def password(self):
        return self.secret or f"{self.name}-secret"

    def toml(self):
        """Its part of the configuration. Who is "default" needs no password."""
        password = "" if self.name == "default" else f'password = "{self.password}"\n'
        return f'[[tenant]]\nname = "{self.name}"\n{password}weight = {self.weight}\nsync = "{self.sync}"\n{self.extra}\n'


ALPHA, BETA = Tenant("alpha"), Tenant("beta")


# Runs at the same time have ports of their own: a port that is free at a look is somebody else's before the server starts.
PARTS = 16


def own_part():
    """The number of a part of the ports that no other run has until this one ends, and what holds it; none: all are taken."""
    for number in range(PARTS):
        # Who has it, or another user whose file it is, is asked no further.
        with suppress(OSError), ExitStack() as unless_it_is_ours:
            lock = unless_it_is_ours.enter_context(open(Path(tempfile.gettempdir(), f"entremet-ports-{number}"), "a"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unless_it_is_ours.pop_all()
            return number, lock
    return None


PART = own_part()


def port_numbers():
    """Ports below those that the kernel gives to connections by itself, which would take one between a look at it and a server's start."""
    highest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0])
    numbers = range(max(highest - 20_000, 1_024), highest)
    if len(numbers) < 1_000:
        # The kernel gives them all: it is asked for one.
        yield from itertools.repeat(0)
    if PART is not None:
        size = len(numbers) // PARTS
        numbers = numbers[PART[0] * size :][:size]
    begin = random.SystemRandom().randrange(len(numbers))
    yield from itertools.cycle([*numbers[begin:], *numbers[:begin]])


PORT_NUMBERS = port_numbers()


def free_ports(count):
    """Different loopback ports that nobody listens on now. Another process may take one before us; a start then fails loudly."""
    with ExitStack() as probes:
        opened = []
        while len(opened) < count:
            probe = probes.enter_context(socket.socket())
            with suppress(OSError):
                probe.bind(("127.0.0.1", next(PORT_NUMBERS)))
                opened.append(probe)
        return [probe.getsockname()[1] for probe in opened]


def free_port():
    """One of them."""
    return free_ports(1)[0]


class StartFailed(Exception):
    """The server ended, or stayed silent, before its ready line. Carries what it said."""


@dataclass
class Server:
    """One server process on a free loopback port, with its data under `folder`."""

    folder: Path
    tenants: tuple = (ALPHA, BETA)
    program: str = SERVER
    environment: dict = field(default_factory=dict)
    server_options: str = ""
    engine_options: str = ""
    data: Path | None = None
    wrapper: tuple = ()
    config_text: str | None = None

    def __post_init__(self):
        self.folder = Path(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data = Path(self.data) if self.data else self.folder / "data"
        self.port, self.admin_port = free_ports(2)
        self.process = None
        self.log = self.folder / "server.log"
        self._exited = threading.Event()

    @property
    def is_reference(self):
        """True when a Redis or Valkey stands in for Entremet."""
        return not Path(self.program).name.startswith("entremet")

    def start(self):
        """Starts the process and returns once it has printed its ready line."""
        if shutil.which(self.program) is None:
            pytest.exit(f"there is no server at {self.program}: build it (make build) or set ENTREMET_SERVER", 2)
        self.data.parent.mkdir(parents=True, exist_ok=True)
        command = [*self.wrapper, *(self._reference_command() if self.is_reference else self._entremet_command())]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **self.environment},
            cwd=self.folder,
        )
        ready = threading.Event()
        self._exited = threading.Event()
        threading.Thread(target=self._drain, args=(self.process, ready, self._exited), daemon=True).start()
        if not ready.wait(START_TIMEOUT_S) or self.process.poll() is not None:
            self.kill()
            raise StartFailed(self.said())
        return self

    def _drain(self, process, ready, exited):
        with open(self.log, "ab") as log:
            for line in process.stdout:
                log.write(line)
                log.flush()
                if READY.search(line):
                    ready.set()
        process.wait()
        exited.set()
        ready.set()  # a process that ended must not keep `start` waiting

    def metrics(self):
        """The lines of its page of metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}/metrics", timeout=20) as answer:
            return answer.read().decode().splitlines()

    def said(self):
        """Everything the server has printed so far."""
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

    def says(self, text, timeout_s=10):
        """The lines of the log with `text`, once there is one: it is written beside the requests, after their replies perhaps."""
        return eventually(lambda: [line for line in self.said().splitlines() if text in line], timeout_s, f"the log says {text!r}")

    @property
    def pid(self):
        return self.process.pid

    def running(self):
        return self.process is not None and self.process.poll() is None

    def stop(self):
        """SIGTERM, and the exit status. A server that does not end in time is killed, which is an error."""
        if not self.running():
            return self.process.returncode if self.process else None
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the server ignored SIGTERM for {STOP_TIMEOUT_S} s:\n{self.said()[-4000:]}") from None
        self._exited.wait(5)
        return self.process.returncode

    def reload(self, tenants):
        """Has it read a configuration with these tenants."""
        self.tenants = tenants
        (self.folder / "entremet.toml").write_text(self._toml())
        self.process.send_signal(signal.SIGHUP)

    def kill(self):
        """SIGKILL: the machine never does worse to a process."""
        if self.running():
            self.process.kill()
            self.process.wait()
        self._exited.wait(5)

    def wire(self, tenant=None, **options):
        """A bare connection, authenticated as `tenant` if one is given."""
        wire = Wire(self.port, **options)
        if tenant is not None:
            wire.ask("AUTH", tenant.name, tenant.password)
        return wire

    def _entremet_command(self):
        config = self.folder / "entremet.toml"
        config.write_text(self.config_text if self.config_text is not None else self._toml())
        return [self.program, "serve", "--config", str(config)]

    def _toml(self):
        # A server that measures its disk in its first seconds would disturb what is tested beside
        # it.
        device = "" if "[device]" in self.engine_options else "[device]\nstage = false\n"
        parts = [
            f'[server]\nlisten = "127.0.0.1:{self.port}"\nadmin = "127.0.0.1:{self.admin_port}"\n{self.server_options}\n'
            f'[engine]\nkind = "rocksdb"\npath = "{self.data}"\n{self.engine_options}\n{device}'
        ]
        parts += [tenant.toml() for tenant in self.tenants]
        return "\n".join(parts)

    def _reference_command(self):
        self.data.mkdir(parents=True, exist_ok=True)
        always = any(tenant.sync == "always" for tenant in self.tenants)
        config = self.folder / "redis.conf"
        lines = [
            "bind 127.0.0.1",
            f"port {self.port}",
            f"dir {self.data}",
            "save ''",
            "enable-debug-command no",
            f"appendonly {'yes' if always else 'no'}",
            f"appendfsync {'always' if always else 'everysec'}",
            "user default on nopass ~* &* +@all",
            *(f"user {tenant.name} on >{tenant.password} ~* &* +@all" for tenant in self.tenants if tenant.name != "default"),
            self.server_options,
        ]
        config.write_text("\n".join(lines) + "\n")
        return [self.program, str(config)]
