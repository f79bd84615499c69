"""Tools that people run against a Redis: they must work unchanged."""

import random
import re
import socket
import subprocess
import urllib.request
from contextlib import contextmanager

import pytest

from harness.paths import BUILD
from harness.resp import encode
from harness.server import ALPHA, BETA, free_port
from harness.waiting import eventually

MASS_KEYS = 50_000


def call(*command, data=None, timeout=120):
    return subprocess.run(command, input=data or b"", capture_output=True, timeout=timeout, check=False)


def login(server):
    return ["-h", "127.0.0.1", "-p", str(server.port), "--user", ALPHA.name, "--pass", ALPHA.password]


@pytest.mark.parametrize("pipeline", [1, 16])
def test_redis_benchmark(server, pipeline):
    options = ["-a", ALPHA.password, "--user", ALPHA.name, "-h", "127.0.0.1", "-p", str(server.port)]
    options += ["-t", "set,get,incr,mset", "-P", str(pipeline), "-n", "20000", "-c", "50", "-d", "1024", "--csv"]
    done = call("redis-benchmark", *options)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
    assert "Error" not in said and "WARNING: Could not fetch server CONFIG" not in said, said
    rates = dict(re.findall(r'^"([A-Z]+)[^"]*","([0-9.]+)"', said, re.MULTILINE))
    assert set(rates) == {"SET", "GET", "INCR", "MSET"}, said
    assert all(float(rate) > 0 for rate in rates.values()), said


@pytest.mark.parametrize("size", [10, 65_536])
def test_redis_cli_pipe(server, size):
    """Mass insertion: everything is sent at once, replies are counted at the end."""
    count = MASS_KEYS if size < 1000 else 500
    chance = random.Random(size)
    commands = b"".join(encode("SET", f"mass:{number}", chance.randbytes(size)) for number in range(count))
    with server.wire(ALPHA) as wire:
        wire.ask("FLUSHDB")
        done = call("redis-cli", *login(server), "--no-auth-warning", "--pipe", data=commands)
        said = (done.stdout + done.stderr).decode()
        assert done.returncode == 0 and f"errors: 0, replies: {count}" in said, said
        assert wire.ask("DBSIZE") == count
        wire.ask("FLUSHDB")


def test_redis_cli_session(server):
    """What a person types. `redis-cli` itself asks for COMMAND DOCS and for HELLO 3 with `-3`."""
    for protocol in ("-2", "-3"):
        lines = b"SET greeting hello\nGET greeting\nHSET h f v\nHGETALL h\nCLIENT GETNAME\nNOSUCH\nDEL greeting h\n"
        done = call("redis-cli", *login(server), "--no-auth-warning", protocol, data=lines)
        said = done.stdout.decode()
        assert "hello" in said and "unknown command 'NOSUCH'" in said, said
    done = call("redis-cli", *login(server), "--no-auth-warning", "--bigkeys")
    assert done.returncode == 0, done.stdout + done.stderr


def test_redis_cli_stat(server):
    """Each figure is a number of this tenant's: keys, memory, clients, blocked ones, requests and how many more, connections."""
    with server.wire(ALPHA) as wire:
        wire.ask("FLUSHDB")
        wire.ask("MSET", "a", "1", "b", "2", "c", "3")
    command = ["redis-cli", *login(server), "--no-auth-warning", "--stat", "-i", "0.1"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        rows = [process.stdout.readline().decode() for _ in range(5)]
    finally:
        process.kill()
        process.wait()
    figures = [re.fullmatch(r"(\d+) +(\S+[BKMG]) +(\d+) +(\d+) +(\d+) \(\+(\d+)\) +(\d+) *", row.strip()) for row in rows[2:]]
    assert all(figures), rows
    keys, _, clients, blocked, requests, _, connections = figures[-1].groups()
    assert (keys, blocked) == ("3", "0") and int(clients) >= 1 and int(requests) >= 2 and 1 <= int(connections) < 10_000, rows


@pytest.mark.parametrize("way", ["--bigkeys", "--memkeys"])
def test_redis_cli_looks_for_large_keys(server, way):
    with server.wire(ALPHA) as wire:
        wire.ask("FLUSHDB")
        wire.ask("SET", "small", "v")
        wire.ask("SET", "large", "v" * 5_000)
        wire.ask("HSET", "hash", "f", "v")
    done = call("redis-cli", *login(server), "--no-auth-warning", way)
    said = done.stdout.decode()
    assert done.returncode == 0 and "Sampled 3 keys in the keyspace!" in said and '"large"' in said, said


def test_redis_cli_help_shows_arguments(server):
    """It is made of COMMAND DOCS, as are the hints behind the prompt."""
    said = call("redis-cli", *login(server), "--no-auth-warning", "HELP", "SET").stdout.decode()
    assert "key value [NX|XX] [GET] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]" in said, said
    said = call("redis-cli", *login(server), "--no-auth-warning", "HELP", "ZADD").stdout.decode()
    assert "score member [score member ...]" in said, said


@contextmanager
def exporter(server, *options):
    """redis_exporter, logged in as alpha; yields the port of its metrics."""
    port = free_port()
    command = [str(BUILD / "bin" / "prometheus-redis-exporter"), "-web.listen-address", f"127.0.0.1:{port}"]
    command += ["-redis.addr", f"redis://127.0.0.1:{server.port}", "-redis.user", ALPHA.name]
    command += ["-redis.password", ALPHA.password, *options]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        eventually(lambda: socket.create_connection(("127.0.0.1", port), 1).close() or True, 20, "the exporter listens")
        yield port, process
    finally:
        process.kill()
        process.wait()


def test_redis_exporter(server):
    with server.wire(ALPHA) as wire:
        wire.ask("FLUSHDB")
        wire.ask("MSET", "a", "1", "b", "2", "c", "3")
    with exporter(server, "-check-single-keys", "a", "-include-config-metrics") as (port, process):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as page:
            metrics = page.read().decode()
        process.kill()
        said = process.stdout.read().decode()
    values = dict(re.findall(r"^(redis_\w+(?:\{[^}]*\})?) (\S+)$", metrics, re.MULTILINE))
    assert values["redis_up"] == "1", said
    assert 'redis_db_keys{db="db0"}' in values  # an estimate
    for name in ("redis_connected_clients", "redis_commands_processed_total", "redis_uptime_in_seconds", "redis_memory_used_bytes"):
        assert name in values, f"{name} is missing"
    assert values["redis_exporter_last_scrape_error{err=\"\"}"] == "0", said
    assert "level=error" not in said, said


YCSB = {
    "A": {"readproportion": 0.5, "updateproportion": 0.5},
    "B": {"readproportion": 0.95, "updateproportion": 0.05},
    "C": {"readproportion": 1},
    "D": {"readproportion": 0.95, "insertproportion": 0.05, "requestdistribution": "latest"},
    "E": {"scanproportion": 0.95, "insertproportion": 0.05, "maxscanlength": 50},
    "F": {"readproportion": 0.5, "readmodifywriteproportion": 0.5},
}
RECORDS, OPERATIONS = 1000, 3000


def ycsb(server, phase, properties):
    from programs import JAVA

    settings = {
        "workload": "site.ycsb.workloads.CoreWorkload",
        "redis.port": server.port,
        "redis.user": BETA.name,
        "redis.password": BETA.password,
        "recordcount": RECORDS,
        "operationcount": OPERATIONS,
        "readproportion": 0,
        "updateproportion": 0,
        "requestdistribution": "zipfian",
        **properties,
    }
    command = [*JAVA, "site.ycsb.Client", phase, "-db", "entremet.clients.YcsbBinding", "-threads", "4"]
    for name, value in settings.items():
        command += ["-p", f"{name}={value}"]
    done = call(*command)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
    return said


@pytest.mark.parametrize("workload", YCSB)
def test_ycsb(server, workload):
    with server.wire(BETA) as wire:
        wire.ask("FLUSHDB")
        loaded = ycsb(server, "-load", YCSB[workload])
        assert f"[INSERT], Return=OK, {RECORDS}" in loaded, loaded
        assert wire.ask("ZCARD", "_indices") == RECORDS
        said = ycsb(server, "-t", YCSB[workload])
        done = sum(int(count) for count in re.findall(r"Return=OK, (\d+)", said))
        assert done >= OPERATIONS, said
        assert not re.findall(r"Return=(?!OK)\w+", said), said
        wire.ask("FLUSHDB")
