"""What docs/guide/operating.md says of copies of the data directory."""

import shutil

import pytest

from harness.server import ALPHA, BETA, Server

pytestmark = pytest.mark.ours


def put(server, value):
    """The same value for a key of each tenant."""
    for tenant in (ALPHA, BETA):
        with server.wire(tenant) as wire:
            assert wire.ask("SET", "key", value) == b"OK"


def values(server):
    """What the tenants find there."""
    found = []
    for tenant in (ALPHA, BETA):
        with server.wire(tenant) as wire:
            found.append(wire.ask("GET", "key"))
    return found


def test_a_copy_is_a_backup_and_one_tenants_folder_is_its_own(tmp_path):
    """Copied while stopped; then all of it is put back, or one tenant's folder."""
    server = Server(tmp_path / "server", tenants=(ALPHA, BETA)).start()
    put(server, "then")
    server.stop()
    data, copy = server.data, tmp_path / "copy"
    shutil.copytree(data, copy)
    server.start()
    put(server, "now")
    server.stop()
    shutil.rmtree(data / "tenants" / ALPHA.name)
    shutil.copytree(copy / "tenants" / ALPHA.name, data / "tenants" / ALPHA.name)
    server.start()
    assert values(server) == [b"then", b"now"]
    server.stop()
    shutil.rmtree(data)
    shutil.copytree(copy, data)
    server.start()
    assert values(server) == [b"then", b"then"]
    server.stop()


def test_what_a_power_cut_leaves_is_a_backup(tmp_path):
    """A snapshot of the file system is that: here the directory of a server that was killed, on which another starts."""
    first = Server(tmp_path / "first", tenants=(ALPHA, BETA)).start()
    put(first, "written")
    first.kill()
    second = Server(tmp_path / "second", tenants=(ALPHA, BETA))
    shutil.copytree(first.data, second.data)
    second.start()
    assert values(second) == [b"written", b"written"]
    second.stop()
