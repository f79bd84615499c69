"""A file that was synced is still gone after a power failure if its name was not: POSIX has names synced with their directory.
No power is cut here. The server is watched while it makes files, and no name may be left unsynced once it answers."""

import os

import pytest

from harness.preload import compiled
from harness.server import Tenant

pytestmark = pytest.mark.ours
ALWAYS = Tenant("alpha", sync="always")
ADMIN = Tenant("ops", extra="admin = true")
# Of no use after a power failure: who holds the directory, and RocksDB's own reports.
NOT_NEEDED = {"LOCK", "LOG", "probe"}


class Names:
    """What the server has made and synced so far."""

    def __init__(self, folder):
        self.library, self.log = compiled("names", folder), folder / "names.log"
        self.environment = {"LD_PRELOAD": str(self.library), "NAMES_LOG": str(self.log)}

    def unsynced(self):
        """Names that are there and would be gone after a power failure now."""
        pending = {}
        for line in self.log.read_text().splitlines():
            what, _, path = line.partition(" ")
            if what == "made":
                pending.setdefault(os.path.dirname(path), set()).add(path)
            else:
                pending.pop(path, None)
        left = sorted(path for paths in pending.values() for path in paths)
        return [path for path in left if os.path.lexists(path) and os.path.basename(path) not in NOT_NEEDED]

    def of(self, folder):
        return [path for path in self.unsynced() if path.startswith(str(folder))]

    def made(self, name):
        return any(line.startswith("made ") and line.endswith(name) for line in self.log.read_text().splitlines())


@pytest.fixture
def names(tmp_path):
    return Names(tmp_path)


def test_what_is_acknowledged_has_its_name_on_the_disk(tmp_path, start, names):
    data = tmp_path / "not" / "there"
    server = start(tenants=(ALWAYS, ADMIN), data=data, environment=names.environment)
    assert names.made("/not/there") and names.made("/there/tenants")
    assert not names.of(data), "the data directory itself"
    with server.wire(ALWAYS) as wire:
        wire.ask("SET", "key", "value")
    assert names.made("/tenants/alpha") and names.made(".log")
    assert not names.of(data), "a tenant's first write"
    with server.wire(ADMIN) as wire:
        wire.ask("ENTREMET", "TENANT", "SET", "new", "PASSWORD", "new-secret", "SYNC", "always")
        assert not names.of(data), "a tenant made at run time"
    new = Tenant("new")
    with server.wire(new) as wire:
        wire.ask("SET", "key", "value")
    assert not names.of(data)
    with server.wire(ADMIN) as wire:
        wire.ask("ENTREMET", "TENANT", "DEL", "new")
    assert not names.of(data), "a tenant that is gone must not come back"


def test_files_that_databases_make_have_their_names_on_the_disk(start, names):
    server = start(tenants=(ALWAYS,), environment=names.environment, engine_options='memtable = "1MiB"')
    with server.wire(ALWAYS) as wire:
        for number in range(64):
            wire.ask("SET", f"key:{number % 8}", os.urandom(1 << 18))
    assert names.made(".sst"), "nothing was flushed"
    server.stop()
    assert not names.of(server.data)
