"""An engine of its own (redis-server, Valkey) and an Entremet that stands before it."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

from harness.paths import BUILD
from harness.server import Server, free_port
from harness.resp import Wire
from harness.waiting import eventually


def engines():
    """The engines of this machine: Debian's redis-server, and Valkey where it is found."""
    valkey = os.environ.get("VALKEY_SERVER") or shutil.which("valkey-server") or BUILD / "valkey" / "src" / "valkey-server"
    found = [shutil.which("redis-server"), str(valkey) if Path(valkey).exists() else None]
    return [program for program in found if program]


def told():
    """Which engines tests run before, in one line."""
    said = {program: subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout for program in engines()}
    found = [f"{Path(program).name} {re.search(r'v=([0-9.]+)', version)[1]}" for program, version in said.items()]
    missing = "" if any("Valkey" in version for version in said.values()) else "; Valkey is not found, so nothing ran before it (make valkey SOURCE=ARCHIVE)"
    return f"engines: {', '.join(found)}{missing}"


def place(node):
    return f"{node.host}:{node.port}"


class Engine:
    """One engine on a free loopback port, without persistence. It keeps its port over restarts."""

    host, wrapper = "127.0.0.1", ()

    def __init__(self, folder, program, *options):
        self.folder, self.program, self.options = Path(folder), program, options
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port, self.process = free_port(), None

    @property
    def url(self):
        return f"redis://{place(self)}"

    def start(self):
        words = ["--port", str(self.port), "--bind", self.host, "--save", "", "--appendonly", "no", "--dir", str(self.folder), *self.options]
        with open(self.folder / "engine.log", "ab") as log:
            self.process = subprocess.Popen([*self.wrapper, self.program, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        eventually(lambda: self.ask("PING") == b"PONG", what="the engine answers")
        return self

    def wire(self):
        return Wire(self.port, self.host)

    def ask(self, *words):
        with self.wire() as wire:
            return wire.ask(*words)

    def attempt(self, *words):
        with self.wire() as wire:
            return wire.attempt(*words)

    def keys(self):
        """All keys that it has, by the names that it knows."""
        return set(self.ask("KEYS", "*"))

    def hold(self):
        """Stops it where it is: it keeps its connections and says nothing."""
        self.process.send_signal(signal.SIGSTOP)

    def release(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Front(Server):
    """An Entremet before `engine`."""

    kind = "redis"

    def __init__(self, folder, engine, **options):
        self.engine = engine
        super().__init__(folder, **options)

    def _toml(self):
        parts = [
            f'[server]\nlisten = "127.0.0.1:{self.port}"\nadmin = "127.0.0.1:{self.admin_port}"\n{self.server_options}\n'
            f'[engine]\nkind = "{self.kind}"\nurl = "{self.engine.url}"\npath = "{self.data}"\n{self.engine_options}\n'
        ]
        parts += [tenant.toml().replace(f'sync = "{tenant.sync}"\n', "") for tenant in self.tenants]
        return "\n".join(parts)
