"""Promises of latency and throughput: made, measured, judged by the window, kept across restarts."""

import json
import select
import subprocess
import threading
import urllib.request

import pytest

from harness.paths import SERVER
from harness.resp import ServerError, encode
from harness.server import Tenant
from harness.waiting import eventually

pytestmark = pytest.mark.ours

MASTER = Tenant("master", extra="admin = true")
WEB = Tenant(
    "web",
    extra="""
[[tenant.workload]]
name = "batch"
clients = ["etl-*"]
[[tenant.slo]]
class = "get"
latency = { p = 99.0, at_most = "10s", window = "1s" }
[[tenant.slo]]
workload = "batch"
class = "any"
latency = { p = 50.0, at_most = "1us", window = "1s" }
contract = "10/s"
""",
)


@pytest.fixture
def server(start):
    return start(tenants=(MASTER, WEB))


def promises(server):
    """Those of `web`, by whose requests they are for."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/api/tenants/web", timeout=10) as reply:
        return {(one["workload"], one["class"]): one for one in json.load(reply)["promises"]}


def facts(wire, *words):
    flat = wire.ask("ENTREMET", "SLO", "GET", "web", *words)
    return dict(zip((name.decode() for name in flat[::2]), flat[1::2], strict=True))


def judged(server, whose, outcome):
    """The promise, once it has a window of that outcome in the last hour."""
    field = {"met": "windows_met", "missed": "windows_missed", "no data": "windows_without_data"}[outcome]

    def found():
        one = promises(server)[whose]
        return one if one["hour"][field] > 0 else None

    return eventually(found, 20, f"a window of {whose} says {outcome}")


def test_requests_count_for_what_their_connection_calls_itself(server):
    with server.wire(WEB) as wire:
        for _ in range(40):
            wire.ask("GET", "nothing")
        wire.ask("SET", "key", "value")
        wire.ask("CLIENT", "SETNAME", "etl-7")
        # Some are within 10/s and its burst, the others beyond.
        for _ in range(100):
            wire.ask("GET", "key")
        wire.ask("CLIENT", "SETNAME", "interactive")
        wire.ask("GET", "key")
    judged(server, (None, "get"), "met")
    judged(server, ("batch", "any"), "missed")
    web, batch = (promises(server)[whose] for whose in ((None, "get"), ("batch", "any")))
    assert (web["requests"], web["late"], web["beyond"]) == (41, 0, 0)
    assert batch["requests"] + batch["beyond"] == 100
    assert 1 <= batch["requests"] <= 20 and batch["late"] == batch["requests"], "nothing takes less than 1 us"
    assert judged(server, (None, "get"), "no data")["hour"]["met_percent"] == 100.0
    metrics = server.metrics()
    assert 'entremet_promise_requests_total{tenant="web",workload="",class="get"} 41' in metrics
    assert 'entremet_promise_met_ratio{tenant="web",workload="batch",class="any",over="30d"} 0' in metrics


def test_promises_are_changed_by_command_and_kept(server):
    with server.wire(MASTER) as wire, server.wire(WEB) as web:
        wire.ask("ENTREMET", "SLO", "SET", "web", "put", "AT-MOST", "20ms", "P", "99.9", "CONTRACT", "1500/s")
        wire.ask("ENTREMET", "WORKLOAD", "SET", "web", "jobs", "LIBRARIES", "spark*", "WEIGHT", "2")
        wire.ask("ENTREMET", "SLO", "SET", "web", "scan", "WORKLOAD", "jobs", "THROUGHPUT", "40/s")
        wire.ask("ENTREMET", "SLO", "DEL", "web", "any", "WORKLOAD", "batch")
        # It belongs to a workload that was made after it had connected.
        web.ask("CLIENT", "SETINFO", "LIB-NAME", "spark-redis")
        web.ask("SCAN", "0")
    kept = {(None, "get"), (None, "put"), ("jobs", "scan")}
    eventually(lambda: promises(server)[("jobs", "scan")]["beyond"] + promises(server)[("jobs", "scan")]["requests"] == 1, 10, "the scan counts")
    for _ in range(2):
        assert set(promises(server)) == kept
        with server.wire(MASTER) as wire:
            put = facts(wire, "put")
            assert (float(put["p"]), put["at-most"], put["contract"]) == (99.9, b"20ms", b"1500")
            assert facts(wire, "scan", "WORKLOAD", "jobs")["throughput"] == b"40"
            lines = [line.decode() for line in wire.ask("ENTREMET", "SLO", "LIST", "web")]
            assert any(line.startswith("put: 99.9 % of requests within 20ms in every 10s, up to 1500/s offered: ") for line in lines), lines
            listed = [line.decode() for line in wire.ask("ENTREMET", "WORKLOAD", "LIST", "web")]
            assert listed[1] == "jobs (libraries named spark*; weight 2)", listed
        server.stop()
        server.start()


def test_what_became_of_a_promise_outlives_a_restart(server):
    with server.wire(WEB) as wire:
        wire.ask("GET", "nothing")
        met = judged(server, (None, "get"), "met")["days"]["windows_met"]
    server.stop()
    server.start()
    # The thread that keeps promises reads its file when it begins, which nobody waits for.
    eventually(lambda: promises(server)[(None, "get")]["days"]["windows_met"] >= met, 10, "what was kept is read")


def test_a_promise_can_be_tried_and_nonsense_is_refused(server):
    with server.wire(MASTER) as wire, server.wire(WEB) as web:
        doubts = wire.ask("ENTREMET", "SLO", "SET", "web", "put", "AT-MOST", "5ms", "WINDOW", "1s", "CONTRACT", "20/s", "CHECK")
        assert len(doubts) == 2 and b"p99 of fewer than 100 requests is their maximum" in doubts[0]
        assert doubts[1].startswith(b"nobody knows whether it fits: device.stage is false")
        for words, why in (
            (("SET", "web", "put"), "the promise for put promises nothing"),
            (("SET", "web", "put", "AT-MOST", "0s"), "AT-MOST must be a time from 1us to 1h"),
            (("SET", "web", "put", "COLOUR", "red"), "unknown option 'COLOUR' of ENTREMET SLO SET; there are P, AT-MOST, WINDOW"),
            (("SET", "web", "put", "WORKLOAD", "night", "AT-MOST", "5ms"), "is for a workload \"night\" that the tenant does not have"),
            (("SET", "web", "put", "AT-MOST", "5ms", "CONTRACT"), "syntax error"),
            (("SET", "nobody", "put", "AT-MOST", "5ms"), "no such tenant 'nobody'"),
            (("DEL", "web", "scan"), "nothing is promised for scan"),
            (("SET", "web", "write", "AT-MOST", "5ms"), "'write' is not a class; there are get, put, multiget, scan, any"),
        ):
            with pytest.raises(ServerError, match=why.replace("(", r"\(")):
                wire.ask("ENTREMET", "SLO", *words)
        with pytest.raises(ServerError, match="is for a workload \"batch\""):
            wire.ask("ENTREMET", "WORKLOAD", "DEL", "web", "batch")
        with pytest.raises(ServerError, match="NOPERM"):
            web.ask("ENTREMET", "SLO", "SET", "web", "put", "AT-MOST", "5ms")
        assert len(web.ask("ENTREMET", "SLO", "LIST")) == 2
    assert set(promises(server)) == {(None, "get"), ("batch", "any")}


def test_a_controller_is_exchanged_while_it_runs_and_says_what_it_does(server):
    with server.wire(MASTER) as wire, server.wire(WEB) as web:
        assert wire.ask("CONFIG", "GET", "entremet-control") == [b"entremet-control", b"auto"]
        for policy in ("static", "frosting", "cake", "auto"):
            assert wire.ask("CONFIG", "SET", "entremet-control", policy) == b"OK"

            def at_work(policy=policy):
                web.ask("GET", "key")
                said = [line.decode() for line in wire.ask("ENTREMET", "EXPLAIN", "web")][-1]
                return said.startswith(f"controller {policy}") and said

            assert eventually(at_work, 20, f"{policy} is at work")
            assert answer(server, "/api/server")["control"]["controller"] == policy
        with pytest.raises(ServerError, match="static"):
            wire.ask("CONFIG", "SET", "entremet-control", "best")


def answer(server, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}{path}", timeout=10) as reply:
        return json.load(reply)


def test_it_is_told_where_late_requests_lost_their_time_and_behind_whom(start):
    greedy = Tenant("greedy")
    server = start(tenants=(MASTER, WEB, greedy), server_options="cores = 1")
    done = threading.Event()

    def keep_busy():
        # Words that a core repeats, many to a turn.
        many = encode("ECHO", "x" * 4096) * 500
        with server.wire(greedy) as wire:
            while not done.is_set():
                wire.raw(many)
                for _ in range(500):
                    wire.read()

    others = [threading.Thread(target=keep_busy) for _ in range(4)]
    for other in others:
        other.start()
    try:
        with server.wire(WEB) as wire, server.wire(MASTER) as master:
            wire.ask("CLIENT", "SETNAME", "etl-1")

            def ask():
                for _ in range(20):
                    wire.ask("GET", "nothing")

            def delayed():
                ask()
                return [row for row in answer(server, "/api/delays") if row["behind"] == "greedy"]

            row = eventually(delayed, 20, "a request of web waited behind greedy")[0]
            lines = [line.decode() for line in master.ask("ENTREMET", "EXPLAIN", "web")]

            def ten_slowest():
                ask()
                lines = [line.decode() for line in master.ask("ENTREMET", "SLOWEST", "web", "COUNT", "10")]
                return lines if len(lines) == 10 else None

            # A core has time to look at some of the slow ones only.
            slowest = eventually(ten_slowest, 20, "the ten slowest are told")
    finally:
        done.set()
        for other in others:
            other.join()
    assert (row["tenant"], row["workload"], row["class"], row["line"]) == ("web", "batch", "any", "core")
    late = [line for line in lines if line.startswith("late any of batch, ")]
    assert len(late) == 1 and "waited behind" in late[0] and "greedy" in late[0] and "(core)" in late[0], lines
    gets = [line for line in slowest if "(get of batch) by etl-1" in line]
    assert any("waited behind greedy" in line for line in gets), slowest
    said = subprocess.run([SERVER, "explain", "web", "--admin", f"127.0.0.1:{server.admin_port}"], capture_output=True, text=True, timeout=30, check=True)
    assert "late any of batch" in said.stdout and "\n5. " in said.stdout
    nobody = subprocess.run([SERVER, "explain", "wob", "--admin", f"127.0.0.1:{server.admin_port}"], capture_output=True, text=True, timeout=30, check=False)
    assert nobody.returncode == 1 and 'there is no tenant named "wob"' in nobody.stderr


@pytest.mark.parametrize("contract", ["", 'contract = "100/s"\n'], ids=["no contract", "within one"])
def test_requests_that_no_core_has_read_are_late_before_they_are_answered(start, contract):
    """They wait for their tenant's limit, for ten seconds."""
    limit = 'limit = { requests = "6/min", burst = "1ms", max_wait = "1min" }'
    slow = Tenant("web", extra=limit + '\n[[tenant.slo]]\nclass = "get"\nlatency = { p = 99.0, at_most = "500ms", window = "1s" }\n' + contract)
    server = start(tenants=(MASTER, slow))
    with server.wire(WEB, timeout=60) as wire:
        for _ in range(2):
            wire.ask("GET", "nothing")
        missed = promises(server)[None, "get"]["hour"]["windows_missed"]
        wire.send("GET", "nothing")
        eventually(lambda: promises(server)[None, "get"]["hour"]["windows_missed"] > missed + 2, 9, "three windows are missed")
        assert not select.select([wire.sock], [], [], 0)[0], "it was answered meanwhile"
        assert wire.read() is None


def test_whether_a_promise_fits_is_said_before_it_is_made(start):
    """1 ms at p99.9 on a disk with an arm is impossible; what becomes of it is as configured."""
    server = start(tenants=(MASTER, WEB), engine_options='[device]\nmodel = "hdd"\n')
    impossible = ("web", "put", "AT-MOST", "1ms", "P", "99.9", "CONTRACT", "10/s")
    possible = ("web", "multiget", "AT-MOST", "2s", "CONTRACT", "10/s")
    with server.wire(MASTER) as wire:

        def said(*words):
            return [line.decode() for line in wire.ask("ENTREMET", "SLO", "SET", *words)]

        checked = said(*impossible, "CHECK")
        # What is doubtful of its percentile comes first.
        fits = next(line for line in checked if "fit" in line)
        assert fits.startswith("does not fit: it is impossible, whatever else is promised: 99.9 % of such requests take up to "), checked
        assert any(line.startswith("the least that could be promised of it: 99.9 % within ") for line in checked), checked
        assert any("each a read of 4 KiB from the disk: none was seen yet" in line for line in checked), checked
        takes = "what it would take: put is kept with 99.9 % within "
        assert any(line.startswith(takes) and line.endswith(" (1.00 ms promised)") for line in checked), checked
        checked = said(*possible, "CHECK")
        assert any(line.startswith("fits beside 2 other promises") for line in checked), checked
        assert said(*impossible)[0].startswith("taken, though it does not fit: it is impossible")
        assert server.says("a promise was made that does not fit")
        explained = [line.decode() for line in wire.ask("ENTREMET", "EXPLAIN", "web")]
        assert any(line.startswith("the promise for put is impossible, whatever else is promised: ") for line in explained), explained
        assert any(line.startswith(takes) for line in explained), explained
        said_too = subprocess.run([SERVER, "explain", "web", "--admin", f"127.0.0.1:{server.admin_port}"], capture_output=True, text=True, timeout=30, check=True)
        assert takes in said_too.stdout
        attained = {one["class"]: one for one in answer(server, "/api/attainment/web")}
        eventually(lambda: any(one["hour"] and one["days"] for one in answer(server, "/api/attainment/web")), 20, "a window is over")
        assert attained.keys() == {"get", "put", "any"} and attained["put"]["percentile"] == 99.9
        wire.ask("ENTREMET", "SLO", "DEL", "web", "put")
        assert wire.ask("CONFIG", "SET", "entremet-admission", "refuse") == b"OK"
        with pytest.raises(ServerError, match="ERR it does not fit: it is impossible"):
            wire.ask("ENTREMET", "SLO", "SET", *impossible)
        assert (None, "put") not in promises(server)
        assert wire.ask("ENTREMET", "SLO", "SET", *possible) == b"OK"
        assert wire.ask("CONFIG", "SET", "entremet-admission", "off") == b"OK"
        assert wire.ask("ENTREMET", "SLO", "SET", *impossible) == b"OK"

    def planned(*words):
        command = [SERVER, "plan", "admit", "web", *words, "--target", f"127.0.0.1:{server.port}", "--operator", f"master:{MASTER.password}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    status, text = planned("scan", "--throughput", "1/h")
    assert status == 0 and "fits beside 4 other promises" in text, text
    status, text = planned("get", "--at-most", "1ms", "--p", "99.9", "--workload", "batch")
    assert status == 1 and "it is impossible" in text, text
    status, text = planned("get", "--at-most", "soon")
    assert status == 1 and "AT-MOST must be a time" in text, text
    with server.wire(MASTER) as wire:
        for kind in ("put", "get", "scan", "multiget"):
            assert wire.ask("ENTREMET", "SLO", "SET", "web", kind, *impossible[2:]) == b"OK"
        explained = [line.decode() for line in wire.ask("ENTREMET", "EXPLAIN", "web")]
    count = lambda *begins: sum(line.startswith(begins) for line in explained)
    # To find it takes long where much is promised.
    assert count("the promise for ") >= 4 and count("what it would take: ", "neither less ") == 3, explained
    assert "what it would take is said of the first 3 that do not fit" in explained
