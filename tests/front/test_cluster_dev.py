"""`entremet cluster dev`: a cluster with fronts that is there at once, and gone at once."""

import re
import signal
import subprocess

import pytest

from harness.paths import SERVER
from harness.resp import Wire
from harness.waiting import eventually


@pytest.fixture
def dev(tmp_path, monkeypatch):
    """A function that starts one, and returns its process and the ports of fronts and engines."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    started = []

    def launch(*options):
        process = subprocess.Popen([SERVER, "cluster", "dev", *options], stdout=subprocess.PIPE, text=True)
        started.append(process)
        line = process.stdout.readline()
        assert line.startswith("entremet cluster is ready: "), line
        fronts, engines = line.split("; engines at ")
        return process, [int(port) for port in re.findall(r"clients on 127\.0\.0\.1:(\d+)", fronts)], [int(port) for port in re.findall(r":(\d+)", engines)]

    yield launch
    for process in started:
        process.kill()
        process.wait()


def listens(port):
    try:
        with Wire(port, timeout=2) as wire:
            return wire.ask("PING") == b"PONG"
    except OSError:
        return False


def test_it_is_there_and_goes_with_all_that_it_has_started(dev, tmp_path):
    process, fronts, engines = dev("--nodes", "2", "--replicas", "1")
    assert (len(fronts), len(engines)) == (2, 4)
    with Wire(fronts[0]) as one, Wire(fronts[1]) as other:
        assert one.ask("SET", "k", "v") == b"OK"
        assert other.ask("GET", "k") == b"v"
        # They are one cluster.
        eventually(lambda: all(len(wire.ask("CLUSTER", "NODES").splitlines()) == 2 for wire in (one, other)), what="fronts know each other")
        assert one.ask("CLUSTER", "SLOTS") == other.ask("CLUSTER", "SLOTS")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert not any(listens(port) for port in fronts + engines)
    assert not list(tmp_path.iterdir())


def test_nothing_outlives_it_when_it_is_killed(dev):
    process, fronts, engines = dev("--nodes", "1")
    assert all(listens(port) for port in fronts + engines)
    process.kill()
    process.wait()
    eventually(lambda: not any(listens(port) for port in fronts + engines), what="all are gone")
