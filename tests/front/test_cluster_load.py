"""`entremet load --cluster`: clients that know of the cluster of fronts, while a partition of theirs moves."""

import json
import signal
import subprocess

import pytest

from harness.cluster import know_each_other, others, place
from harness.paths import SERVER
from harness.server import Tenant
from harness.waiting import eventually

WIDE = Tenant("wide", extra="partitions = 12")
KEYS = 2_000
SCENARIO = f"""
name = "wide"
duration = "1s"
warm_up = "0s"
[[tenant]]
name = "wide"
password = "{WIDE.password}"
  [[tenant.load]]
  name = "closed"
  loop = "closed"
  connections = 4
  depth = 4
  mix = {{ get = 3, put = 1 }}
  keys = {{ count = {KEYS} }}
  [[tenant.load]]
  name = "open"
  rate = "300/s"
  mix = {{ get = 1, put = 1 }}
  keys = {{ count = {KEYS} }}
"""


@pytest.fixture
def trio(make_cluster, before_node):
    """Three engines, and a front before each."""
    cluster = make_cluster()
    fronts = [before_node(cluster, node, tenants=(WIDE,)) for node in cluster.masters]
    know_each_other(fronts, WIDE)
    return cluster, fronts


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "wide.toml"
    path.write_text(SCENARIO)
    return path


def command(scenario, port, *words):
    return [SERVER, "load", scenario, "--target", f"127.0.0.1:{port}", "--cluster", *map(str, words)]


def figures(out):
    return json.loads((out / "result.json").read_text("utf-8"))["figures"]


def count(front, section, name):
    """What `INFO` of the tenant counts there under this name."""
    with front.wire(WIDE) as wire:
        lines = wire.ask("INFO", section).decode().splitlines()
    found = [line.split("=")[1].split(",")[0] for line in lines if line.startswith(f"{name}:")]
    return int(found[0]) if found else 0


def gets(front):
    return count(front, "commandstats", "cmdstat_get")


def moved(fronts):
    return sum(count(front, "errorstats", "errorstat_MOVED") for front in fronts)


def home_of_first(fronts):
    """The front that is the home of the tenant's first partition."""
    with fronts[0].wire(WIDE) as wire:
        port = next(master[1] for begin, _, master, *_ in wire.ask("CLUSTER", "SLOTS") if begin == 0)
    return next(front for front in fronts if front.aware == port)


def test_a_partition_moves_and_no_request_fails(trio, scenario, tmp_path):
    cluster, fronts = trio
    # Where cluster-aware clients come: also what is stored before the run goes to its home.
    words = command(scenario, fronts[0].aware, "--duration", "10min", "--out", tmp_path / "out")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        eventually(lambda: all(gets(front) > 500 for front in fronts), 60, "all fronts are asked")
        assert moved(fronts) == 0
        source = home_of_first(fronts).node
        status, said = cluster.entremet("move", "wide:0", "--to", place(others(cluster, source)[0]))
        assert status == 0, said
        eventually(lambda: moved(fronts) > 0, 60, "an old map is told so")
        before = [gets(front) for front in fronts]
        eventually(lambda: all(gets(front) > had + 500 for front, had in zip(fronts, before)), 60, "all go on")
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 1 and "cut short: interrupted" in errors, errors
    result = figures(tmp_path / "out")
    (wide,) = result["tenants"]
    assert (wide["errors"], wide["total"]["failed"], wide["total"]["missed"]) == ([], 0, 0)
    assert {entry["class"] for entry in wide["classes"]} == {"get", "put"}
    assert result["generator"]["moved"] == moved(fronts)
    assert f"moved: fronts sent requests on to others {moved(fronts)} times" in out
    # Whoever begins now has the new map, also from where all clients come.
    words = command(scenario, fronts[1].port, "--no-preload", "--out", tmp_path / "again")
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "moved:" not in done.stdout, done.stderr
    result = figures(tmp_path / "again")
    assert (result["generator"]["moved"], result["tenants"][0]["total"]["failed"]) == (0, 0)


def test_a_load_without_a_home_is_refused(trio, scenario):
    _, fronts = trio
    scenario.write_text(SCENARIO.replace("get = 1, put = 1", "get = 1, multiget = 1"))
    done = subprocess.run(command(scenario, fronts[0].aware), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "wide load open: `multiget` asks for several keys" in done.stderr, done.stderr
    assert "server.listen" in done.stderr and gets(fronts[0]) == 0
