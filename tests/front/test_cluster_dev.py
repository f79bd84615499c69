"""`entremet cluster dev`: a cluster with fronts that is there at once, and gone at once."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from harness.engine import engines
from harness.paths import SERVER
from harness.resp import Wire
from harness.spare import children
from harness.waiting import eventually


@pytest.fixture(params=engines(), ids=lambda program: Path(program).name)
def program(request):
    """An engine's."""
    return request.param


@pytest.fixture
def dev(program, tmp_path, monkeypatch):
    """A function that starts one, and returns its process and the ports of fronts and engines."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    started = []

    def launch(*options):
        process = subprocess.Popen([SERVER, "cluster", "dev", "--engine", program, *options], stdout=subprocess.PIPE, text=True)
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


def test_partitions_lie_where_they_are_placed(dev):
    for node in (1, 2):
        process, fronts, engines = dev("--nodes", "2", "--place", f"default={node}")
        with Wire(fronts[0]) as front, Wire(engines[node - 1]) as engine:
            assert front.ask("SET", "k", "v") == b"OK"
            assert engine.ask("GET", "{@default}k") == b"v"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    done = subprocess.run([SERVER, "cluster", "dev", "--nodes", "2", "--place", "default=3"], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1 and "there are 2" in done.stderr, done


def test_nothing_outlives_it_when_it_is_killed(dev):
    process, fronts, engines = dev("--nodes", "1")
    assert all(listens(port) for port in fronts + engines)
    process.kill()
    process.wait()
    eventually(lambda: not any(listens(port) for port in fronts + engines), what="all are gone")


def test_engines_may_have_a_part_of_a_processor_and_partitions_somebody_who_places_them(program, dev):
    part = ["--sched-runtime", "50000", "--sched-deadline", "1000000", "--sched-period", "1000000"]
    if subprocess.run(["chrt", "--deadline", *part, "0", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine gives no process a part of a processor by deadlines, which takes root")
    process, _, engines = dev("--nodes", "2", "--processor", "0.05", "--control", "3s")
    limits = [limit_of(pid) for pid in children(process.pid) if comm(pid) == Path(program).name]
    assert len(limits) == 2 and all("50000/1000000/1000000" in limit for limit in limits), limits
    status = lambda: subprocess.run([SERVER, "cluster", "status", "--at", f"redis-cluster://127.0.0.1:{engines[0]}"], capture_output=True, text=True, timeout=60, check=True)
    eventually(lambda: "a process places partitions" in status().stdout, what="the controller is there")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


def comm(pid):
    return Path(f"/proc/{pid}/comm").read_text("utf-8").strip()


def limit_of(pid):
    """For how long the kernel lets a process run, by when, and how often, ns."""
    return subprocess.run(["chrt", "-p", str(pid)], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("part", ["0", "1.5", "half"])
def test_a_part_of_a_processor_that_is_none_is_refused(part):
    for name in ("dev", "control"):
        words = ["--at", "redis-cluster://127.0.0.1:1"] if name == "control" else []
        done = subprocess.run([SERVER, "cluster", name, *words, "--processor", part], capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 2 and "a number from 0.01 to 1" in done.stderr, done
