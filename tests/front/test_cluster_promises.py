"""A promise is one of all fronts: its contract goes where it is asked for, and it is judged by the requests of all of them."""

import json
import re
from urllib.request import urlopen

import pytest
from floods import flood

from harness.cluster import know_each_other
from harness.server import Tenant
from harness.waiting import eventually

# Gets are always in time, and puts never.
PROMISE = """
[[tenant.slo]]
class = "{}"
latency = {{ p = 99.0, at_most = "{}", window = "1s" }}
{}
"""


def promising(name, contract):
    return Tenant(name, extra=PROMISE.format("get", "10s", contract) + PROMISE.format("put", "1us", contract))


PROMISED, JUDGED = promising("promised", 'contract = "500/s"'), promising("judged", "")


@pytest.fixture
def trio(make_cluster, before_node):
    """Three engines, and a front before each."""
    cluster = make_cluster()
    fronts = [before_node(cluster, node, tenants=(PROMISED, JUDGED), server_options="cores = 1") for node in cluster.masters]
    know_each_other(fronts, PROMISED)
    return cluster, fronts


def portions(fronts, of):
    """The part of the contract of a class that each front has."""
    begin = f'entremet_promise_contract_portion{{tenant="promised",workload="",class="{of}"}} '
    lines = [next(line for line in front.metrics() if line.startswith(begin)) for front in fronts]
    return [float(line.removeprefix(begin)) for line in lines]


def come_to(fronts, of, *wanted):
    near = lambda: all(abs(one - want) < 0.02 for one, want in zip(portions(fronts, of), wanted, strict=True))
    eventually(near, 60, f"the contract of {of} is divided as {wanted}")


def attained(front):
    """What a front says of promises at all fronts, by their class."""
    with urlopen(f"http://127.0.0.1:{front.admin_port}/api/cluster/judged", timeout=20) as answer:
        (tenant,) = json.load(answer)["tenants"]
    return {promise["class"]: promise for promise in tenant["promises"]}


def told(front, tenant, *words):
    with front.wire(tenant) as wire:
        return [line.decode() for line in wire.ask("ENTREMET", *words)]


def test_the_contract_of_each_promise_goes_where_it_is_asked_for(trio):
    _, fronts = trio
    first, second, third = fronts
    third_of_it = 1 / 3
    come_to(fronts, "get", third_of_it, third_of_it, third_of_it)
    with flood(first, PROMISED), flood(second, PROMISED, "SET", "k", "v"):
        come_to(fronts, "get", 1, 0, 0)
        come_to(fronts, "put", 0, 1, 0)
        explained = told(third, PROMISED, "EXPLAIN")
        assert any("% of its contract is here" in line for line in explained), explained
        with flood(third, PROMISED):
            come_to(fronts, "get", 0.5, 0, 0.5)
            come_to(fronts, "put", 0, 1, 0)
            # What is beyond a front's part is beyond the contract there.
            begin = 'entremet_promise_beyond_total{tenant="promised",workload="",class="get"} '
            beyond = lambda front: float(next(line for line in front.metrics() if line.startswith(begin)).removeprefix(begin))
            assert all(beyond(front) > 0 for front in (first, third))
    come_to(fronts, "get", third_of_it, third_of_it, third_of_it)
    # One that is gone leaves its part, and one that is alone has all.
    third.kill()
    come_to(fronts[:2], "get", 0.5, 0.5)
    second.kill()
    eventually(lambda: portions([first], "get") == [1], 60, "the last one has all of it")


def test_a_promise_is_judged_by_the_requests_of_all_fronts(trio):
    cluster, fronts = trio
    eventually(lambda: all(one["fronts"] == 3 for front in fronts for one in attained(front).values() or [{"fronts": 0}]), 60, "all have heard of all")
    for front, gets, puts in zip(fronts, (40, 20, 0), (0, 5, 0), strict=True):
        with front.wire(JUDGED) as wire:
            for _ in range(gets):
                wire.ask("GET", "k")
            for _ in range(puts):
                wire.ask("SET", "k", "v")
    for front in fronts:
        all_heard = lambda front=front: (seen := attained(front)) and (seen["get"]["hour"]["requests"], seen["put"]["hour"]["requests"]) == (60, 5) and seen
        seen = eventually(all_heard, 60, "requests of all fronts are added up")
        assert seen["get"]["hour"]["late"] == 0 and seen["get"]["hour"]["met_percent"] == 100.0
        # Also where nobody has asked for anything.
        assert seen["put"]["hour"]["late"] == 5 and seen["put"]["hour"]["met_percent"] == 0.0
        listed = told(front, JUDGED, "SLO", "LIST")
        assert any(re.search(r"at all 3 fronts: last window: .*last hour: 100.00 % of \d+ windows met", line) for line in listed), listed
    with fronts[2].wire(JUDGED) as wire:
        flat = wire.ask("ENTREMET", "SLO", "GET", "judged", "put")
    facts = dict(zip(flat[::2], flat[1::2], strict=True))
    assert (facts[b"fronts"], facts[b"requests"]) == (3, 0) and float(facts[b"all-fronts-met-percent-1h"]) == 0, facts

    def status():
        code, said = cluster.entremet("status")
        return code == 0 and re.search(r"^  judged, put: .*at all 3 fronts: .*last hour: 0.00 % of \d+ windows met", said, re.MULTILINE)

    eventually(status, 30, "status says it")
    # One that starts anew counts with the others again.
    fronts[0].kill()
    eventually(lambda: attained(fronts[1])["get"]["fronts"] == 2, 60, "one is gone")
    fronts[0].start()
    eventually(lambda: attained(fronts[1])["get"]["fronts"] == 3, 60, "it is back")
    with fronts[0].wire(JUDGED) as wire:
        for _ in range(7):
            wire.ask("GET", "k")
    eventually(lambda: attained(fronts[1])["get"]["hour"]["requests"] == 67, 60, "what it is asked counts")


THROUGHPUT = """
{}
[[tenant.slo]]
class = "any"
throughput = "{}"
latency = {{ p = 99.0, at_most = "60s", window = "1s" }}
"""
# It is served a little more than it was promised, and less than anybody serves.
SERVED = Tenant("served", extra=THROUGHPUT.format('limit = { requests = "400/s", max_wait = "10s" }', "300/s"))
SHORT = Tenant("short", extra=THROUGHPUT.format("", "10M/s"))


def throughput(front, tenant):
    """What a front says of a tenant's promise: the part that is its own, its last window, and that of all fronts."""
    with front.wire(tenant) as wire:
        flat = wire.ask("ENTREMET", "SLO", "GET", tenant.name, "any")
    facts = dict(zip(flat[::2], flat[1::2], strict=True))
    return float(facts[b"throughput-percent-here"]), facts[b"last-window"], facts[b"all-fronts-last-window"]


def test_a_throughput_is_one_of_all_fronts(make_cluster, before_node):
    cluster = make_cluster()
    fronts = [before_node(cluster, node, tenants=(SERVED, SHORT), server_options="cores = 1") for node in cluster.masters]
    know_each_other(fronts, SERVED)
    first, second, third = fronts
    parts = lambda tenant: [throughput(front, tenant)[0] for front in fronts]
    near = lambda tenant, *wanted: all(abs(part - want) < 12 for part, want in zip(parts(tenant), wanted, strict=True))
    said = lambda tenant: [throughput(front, tenant)[1:] for front in fronts]
    with flood(first, SERVED), flood(first, SHORT, clients=1):
        eventually(lambda: near(SERVED, 100, 0, 0), 60, "all of it is where it is served")
        with flood(second, SERVED), flood(second, SHORT, clients=1):
            # Each serves about 200 of the 300 that are promised, which is more than its part.
            eventually(lambda: near(SERVED, 50, 50, 0), 60, "it is where it is served")
            eventually(lambda: said(SERVED) == [(b"met", b"met"), (b"met", b"met"), (b"no data", b"met")], 60, "it is kept together, and each keeps its part")
            eventually(lambda: all(whole == b"missed" for _, whole in said(SHORT)), 60, "what nobody keeps is missed at all of them")
            assert any("% of its throughput is here" in line for line in told(third, SERVED, "EXPLAIN")), told(third, SERVED, "EXPLAIN")
    eventually(lambda: all(whole == b"no data" for _, whole in said(SHORT)), 60, "nobody wants more")


def hour(front, of="get"):
    kept = attained(front)[of]["hour"]
    return kept["requests"], kept["windows_met"] > 0


def test_what_all_fronts_kept_outlives_each_of_them(trio):
    _, fronts = trio
    first, second, third = fronts
    heard = lambda: all(one["fronts"] == 3 for front in fronts for one in attained(front).values() or [{"fronts": 0}])
    eventually(heard, 60, "all have heard of all")

    def ask(front, count):
        with front.wire(JUDGED) as wire:
            for _ in range(count):
                wire.ask("GET", "k")

    every = lambda count, among=fronts: all(hour(front) == (count, True) for front in among)
    ask(first, 30), ask(second, 12)
    eventually(lambda: every(42), 60, "requests of all fronts are added up")
    # What it is asked in its last moment the others read when it is gone.
    ask(first, 9)
    assert first.stop() == 0
    eventually(lambda: every(51, (second, third)), 60, "what it told last counts still")
    first.start()
    eventually(heard, 60, "it is back")
    assert hour(first) == (51, True), "it knows what it knew, and has not counted it again"
    ask(first, 5), ask(third, 4)
    eventually(lambda: every(60), 60, "and counts with the others")
    assert attained(first)["get"]["days"]["requests"] == 60
