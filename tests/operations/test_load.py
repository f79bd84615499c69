"""`entremet load` as its users call it: a scenario checked, played, interrupted; tenants made for it."""

import json
import re
import signal
import subprocess

import pytest

from harness.paths import ROOT
from harness.server import SERVER

pytestmark = pytest.mark.ours

SCENARIO = """
name = "pair"
duration = "1s"
warm_up = "200ms"
[[tenant]]
name = "pair"
count = 2
weight = 3
limit = { requests = "400/s" }
slo = [{ class = "get", throughput = "1/s" }]
  [[tenant.load]]
  rate = "100/s"
  mix = { get = 3, put = 1, range = 1 }
  keys = { count = 200 }
    [[tenant.load.phase]]
    at = "500ms"
    misbehave = "error-storm"
    connections = 1
    depth = 1
"""


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "pair.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def fresh(start):
    """A server whose untagged connections may administer it."""
    return start(tenants=())


def load(*words):
    return subprocess.run([SERVER, "load", *map(str, words)], capture_output=True, text=True, timeout=60, check=False)


def test_check_says_it_back_or_says_what_is_wrong(scenario):
    good = load(scenario, "--check")
    assert (good.returncode, good.stderr) == (0, "")
    assert "Tenants pair-1 to pair-2, each (weight 3):" in good.stdout
    assert "open loop, 100/s at random over 8 connections" in good.stdout
    assert "from 500ms on: misbehaves (error-storm)" in good.stdout
    scenario.write_text(SCENARIO.replace("rate", "rat").replace("warm_up", "warmup"))
    bad = load(scenario, "--check")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert 'pair.toml:4:1: error: warmup: there is no such key\n    do: did you mean "warm_up"?' in bad.stderr
    assert 'tenant "pair", load 1, rat: there is no such key' in bad.stderr
    absent = load(scenario.parent / "absent.toml", "--check")
    assert absent.returncode == 1 and "cannot read" in absent.stderr
    assert load("--check").returncode == 2


def test_examples_are_good():
    examples = sorted((ROOT / "scenarios").glob("*.toml"))
    assert len(examples) >= 3
    for example in examples:
        checked = load(example, "--check")
        assert checked.returncode == 0, checked.stderr


def test_provisioned_tenants_are_loaded_and_limited(fresh, scenario, tmp_path):
    out = tmp_path / "out"
    done = load(scenario, "--target", f"127.0.0.1:{fresh.port}", "--provision", "--out", out, "--histograms")
    assert done.returncode == 0, done.stderr
    assert "made 2 tenants" in done.stdout and "no option for slo" in done.stdout
    result = json.loads((out / "result.json").read_text("utf-8"))
    assert (result["name"], result["seed"], result["verdicts"]) == ("pair", 1, [])
    figures = result["figures"]
    assert figures["cut_short"] is None and 0.9 < figures["elapsed_s"] <= 1.01
    assert [tenant["name"] for tenant in figures["tenants"]] == ["pair-1", "pair-2"]
    for tenant in figures["tenants"]:
        assert tenant["weight"] == 3
        classes = {entry["class"]: entry for entry in tenant["classes"]}
        assert set(classes) == {"get", "put", "range", "invalid"}
        assert classes["get"]["missed"] == 0 and classes["range"]["failed"] == 0
        assert classes["get"]["latency_ms"]["p99"] > 0
        assert {error["kind"] for error in tenant["errors"]} == {"ERR"}
        assert len(tenant["series"]["t_s"]) == len(tenant["series"]["p99_ms"]) == 1
    log = (out / "latency.hlog").read_text("utf-8")
    assert {"Tag=pair-1/get", "Tag=pair-2/range"} <= set(re.findall(r"^Tag=[^,]+", log, re.MULTILINE))


def test_what_is_not_acted_on_is_said(fresh, scenario):
    scenario.write_text('server = { scheduler = { request = "fifo" } }\n' + SCENARIO)
    done = load(scenario, "--target", f"127.0.0.1:{fresh.port}", "--anonymous", "--no-preload", "--duration", "100ms")
    assert done.returncode == 0, done.stderr
    assert "[server] is left alone" in done.stdout and "--provision sends them" in done.stdout
    refused = load(scenario, "--target", f"127.0.0.1:{fresh.port}")
    assert refused.returncode == 1 and "tenant pair-1 has no password" in refused.stderr


def test_an_interrupt_gives_what_there_is(fresh, scenario, tmp_path):
    words = [scenario, "--target", f"127.0.0.1:{fresh.port}", "--provision", "--duration", "10min", "--out", tmp_path / "out"]
    process = subprocess.Popen([SERVER, "load", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # Away from a terminal the progress line is a line: the phase has begun, so the run is under
    # way.
    said = []
    for line in process.stderr:
        said.append(line)
        if "pair-2 misbehaves: error-storm" in line:
            process.send_signal(signal.SIGINT)
    out = process.stdout.read()
    assert process.wait(timeout=30) == 1, said
    assert re.search(r"cut short: interrupted after \d", said[-1])
    assert "pair-1" in out and "generator: CPU" in out
    figures = json.loads((tmp_path / "out" / "result.json").read_text("utf-8"))["figures"]
    assert figures["cut_short"].startswith("interrupted after")
    assert figures["tenants"][0]["total"]["completed"] > 0
