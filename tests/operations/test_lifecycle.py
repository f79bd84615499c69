"""What an operator does to a server: start it, watch it, reload it, end it."""

import json
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from harness.resp import ServerError
from harness.server import ALPHA, BETA, SERVER, Server, StartFailed, Tenant
from harness.waiting import eventually

pytestmark = pytest.mark.ours


def page(server, path):
    """Status and text of a page on the admin address."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_the_ready_line_names_the_addresses(start):
    server = start()
    ready = [line for line in server.said().splitlines() if "is ready" in line]
    assert len(ready) == 1, server.said()
    assert f"127.0.0.1:{server.port}" in ready[0] and f"127.0.0.1:{server.admin_port}" in ready[0]


def test_health_and_metrics(start):
    server = start()
    with server.wire(ALPHA) as wire:
        wire.ask("SET", "k", "v")
        wire.ask("GET", "k")
    assert page(server, "/livez")[0] == 200
    assert page(server, "/readyz")[0] == 200
    status, metrics = page(server, "/metrics")
    assert status == 200
    for name in ("redis_up 1", 'entremet_tenant_weight{tenant="alpha"}', "redis_commands_processed_total"):
        assert name in metrics, f"{name} is missing from /metrics"

    def both_are_counted():
        tenants = {tenant["name"]: tenant for tenant in json.loads(page(server, "/api/tenants")[1])}
        assert {"alpha", "beta"} <= set(tenants)
        classes = {entry["class"]: entry["requests"] for entry in tenants["alpha"]["classes"]}
        return classes.get("get", 0) >= 1 and classes.get("put", 0) >= 1

    # A request is counted behind its reply.
    eventually(both_are_counted, 20, "a get and a put are counted")
    status, error = page(server, "/api/tenants/nobody")
    assert status == 404 and json.loads(error)["error"]["do"]


def test_sigterm_finishes_what_was_begun(start):
    """Replies that are due arrive, readiness goes off, and the status is 0."""
    server = start()
    with server.wire(ALPHA) as wire:
        for number in range(1000):
            wire.send("SET", f"k{number}", number)
        assert wire.read() == b"OK"
        server.process.send_signal(signal.SIGTERM)
        answered = 1
        began = time.monotonic()
        try:
            while wire.read() == b"OK":
                answered += 1
        except (EOFError, ConnectionError):
            pass
        assert time.monotonic() - began < 5, f"all {answered} replies were there, yet the connection stayed open"
    # Nothing is under way any more, so there is no reason to use up the ten seconds of `drain`.
    assert server.process.wait(5) == 0, server.said()[-2000:]
    server.start()
    with server.wire(ALPHA) as wire:
        assert wire.ask("EXISTS", *(f"k{number}" for number in range(answered))) == answered


def test_a_second_sigterm_means_now(start):
    """A reply that its client does not take keeps the server for as long as `drain` allows; the operator has less patience."""
    server = start(server_options='drain = "1h"')
    with server.wire(ALPHA, receive_buffer=4096) as wire:
        wire.ask("SET", "big", b"x" * (32 << 20))
        wire.send("GET", "big")
        assert wire.sock.recv(1) == b"$"
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: page(server, "/readyz")[0] == 503, 10, "readiness goes off, health stays")
        assert page(server, "/livez")[0] == 200
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(10)


def weight_of(server, name):
    return json.loads(page(server, f"/api/tenants/{name}")[1])["weight"]


def test_reload(start):
    """SIGHUP takes over weights and new tenants, without a pause for those who are connected."""
    server = start()
    with server.wire(ALPHA) as wire:
        wire.ask("SET", "k", "v")
        server.reload((Tenant("alpha", weight=7), BETA, Tenant("gamma")))
        eventually(lambda: weight_of(server, "alpha") == 7, 10, "the new weight is in force")
        assert wire.ask("GET", "k") == b"v"
    with server.wire(Tenant("gamma")) as wire:
        assert wire.ask("GET", "k") is None


def logs_in(server, tenant):
    with server.wire() as wire:
        return wire.attempt("AUTH", tenant.name, tenant.password) == b"OK"


def test_a_password_rotated_in_the_file_takes_effect_whatever_was_set_at_run_time(start):
    """A run-time change holds for its own field only, and gives way to a file that says something new of it."""
    master = Tenant("master", extra="admin = true")
    old, new = Tenant("beta"), Tenant("beta", secret="rotated")
    server = start(tenants=(master, old))
    with server.wire(master) as wire:
        wire.ask("ENTREMET", "TENANT", "SET", "beta", "WEIGHT", "5")
    server.reload((master, new))
    eventually(lambda: logs_in(server, new), 20, "the new password is the right one")
    assert not logs_in(server, old) and weight_of(server, "beta") == 5
    server.stop()
    server.start()
    assert logs_in(server, new) and not logs_in(server, old) and weight_of(server, "beta") == 5
    with server.wire(master) as wire:
        wire.ask("ENTREMET", "TENANT", "SET", "beta", "PASSWORD", "set-at-run-time")
        fields = wire.ask("ENTREMET", "TENANT", "GET", "beta")
        assert fields[fields.index(b"set-at-run-time") + 1] == b"password_hash weight"
    assert logs_in(server, Tenant("beta", secret="set-at-run-time"))
    newest = Tenant("beta", weight=7, secret="newest")
    server.reload((master, newest))
    eventually(lambda: logs_in(server, newest), 20, "the file has the last word")
    assert weight_of(server, "beta") == 7
    dropped = server.says("what was set at run time is dropped")
    assert len(dropped) == 1 and "the password, weight = 5 (the file: 7)" in dropped[0], dropped


def test_a_bad_reload_changes_nothing_and_names_every_error(start):
    server = start()
    config = server.folder / "entremet.toml"
    good = config.read_text()
    config.write_text(good.replace("weight = 1", 'weight = "heavy"') + "\nnonsense = 1\n[enigne]\n")
    server.process.send_signal(signal.SIGHUP)
    for wrong in ("heavy", "nonsense", "enigne"):
        server.says(wrong)
    with server.wire(ALPHA) as wire:
        assert wire.ask("PING") == b"PONG"
    assert weight_of(server, "alpha") == 1


def files_at_most(count):
    """A wrapper under which a server may open so many files."""
    return ("bash", "-c", f'ulimit -n {count}; exec "$@"', "--")


def test_connections_are_held_to_what_open_files_allow(start):
    """All seats are taken, and writes that open files go on."""
    operator = Tenant("alpha", extra="admin = true")
    server = start(tenants=(operator, BETA), wrapper=files_at_most(400), server_options='login_timeout = "never"')
    server.says("max_connections = 75 instead of 10000, max_newcomers = 60 instead of 1000")
    with server.wire(operator) as wire:
        assert wire.ask("CONFIG", "GET", "maxclients") == [b"maxclients", b"75"]
        with pytest.raises(ServerError, match="not able to handle the specified number of clients, try with 75"):
            wire.ask("CONFIG", "SET", "maxclients", "76")
        wires, silent = [], [server.wire() for _ in range(100)]
        with pytest.raises(ServerError, match="max number of clients reached"):
            while True:
                wires.append(server.wire(BETA))
        # A quarter is kept for the other.
        assert len(wires) == 75 - 18
        assert all(wire.ask("SET", "k", "v") == b"OK" for wire in wires)
        with server.wire(operator) as other:
            assert other.ask("SET", "k", "v") == b"OK"
        for wire in wires + silent:
            wire.close()


def test_too_few_open_files_are_said_at_the_start(tmp_path):
    server = Server(tmp_path, wrapper=files_at_most(100))
    with pytest.raises(StartFailed, match="allows this process 100 open files, and the databases of 2 tenants need 160"):
        server.start()
    assert server.process.returncode == 1


def starts_with(tmp_path, text):
    server = Server(tmp_path, config_text=text)
    with pytest.raises(StartFailed) as failed:
        server.start()
    return server.process.returncode, str(failed.value)


def test_a_bad_config_names_every_error(tmp_path):
    status, said = starts_with(
        tmp_path, '[server]\nlisten = "nowhere"\nport = 1\n[engine]\nkind = "paper"\n[[tenant]]\nweight = -1\n[[tenant]\n'
    )
    assert status == 1, said
    assert "entremet.toml:" in said and "panicked" not in said, said
    status, said = starts_with(tmp_path, '[server]\nlisten = "nowhere"\n[engine]\nkind = "paper"\n[[tenant]]\nweight = -1\n')
    assert status == 1, said
    for wrong in ("nowhere", "paper", "weight", "name"):
        assert wrong in said, f"{wrong} is not among the errors:\n{said}"


def test_a_missing_config(tmp_path):
    done = subprocess.run([SERVER, "serve", "--config", str(tmp_path / "none.toml")], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1 and "none.toml" in done.stderr, done.stderr


def test_wrong_usage_is_status_2():
    for arguments in (["serve", "--no-such-flag"], ["nonsense"], []):
        done = subprocess.run([SERVER, *arguments], capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 2, (arguments, done.stdout, done.stderr)


def test_a_port_in_use(start, tmp_path):
    first = start()
    second = Server(tmp_path / "second")
    second.port = first.port
    with pytest.raises(StartFailed) as failed:
        second.start()
    assert second.process.returncode == 1
    assert str(first.port) in str(failed.value), str(failed.value)


def test_tenants_see_nothing_of_each_other(start):
    server = start(server_options='slow_log_over = "0s"')
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        alpha.ask("CLIENT", "SETNAME", "alphas-name")
        alpha.ask("SET", "alphas-key", "alphas-value")
        beta.ask("SET", "own", "1")
        views = [
            beta.ask("KEYS", "*"),
            beta.ask("SCAN", "0", "COUNT", "1000"),
            beta.ask("CLIENT", "LIST"),
            beta.ask("SLOWLOG", "GET", "128"),
            beta.ask("INFO", "everything"),
            beta.ask("RANDOMKEY"),
            beta.attempt("ENTREMET", "TENANT", "LIST"),
        ]
        for view in views:
            assert b"alpha" not in repr(view).encode(), view
        assert beta.ask("DBSIZE") == 1
        identity = alpha.ask("CLIENT", "ID")
        assert beta.attempt("CLIENT", "KILL", "ID", identity) == 0
        beta.ask("FLUSHALL")
        assert alpha.ask("GET", "alphas-key") == b"alphas-value"


def test_wrong_passwords(start):
    server = start()
    with server.wire() as wire:
        for arguments in (("alpha", "beta-secret"), ("nobody", "x"), ("alpha", "")):
            reply = wire.attempt("AUTH", *arguments)
            assert isinstance(reply, ServerError) and str(reply).startswith("WRONGPASS"), reply
        assert isinstance(wire.attempt("HELLO", "3", "AUTH", "alpha", "wrong"), ServerError)


def test_tenants_at_run_time_survive_a_restart(start):
    """ENTREMET TENANT adds one; it is there after the next start."""
    master = Tenant("master", extra="admin = true")
    server = start(tenants=(ALPHA, master))
    with server.wire(master) as wire:
        wire.ask("ENTREMET", "TENANT", "SET", "delta", "PASSWORD", "delta-secret", "WEIGHT", "3")
    delta = Tenant("delta")
    with server.wire(delta) as wire:
        wire.ask("SET", "k", "v")
    server.stop()
    server.start()
    with server.wire(delta) as wire:
        assert wire.ask("GET", "k") == b"v"
    with server.wire(master) as wire:
        wire.ask("ENTREMET", "TENANT", "DEL", "delta")
    with server.wire() as wire:
        assert isinstance(wire.attempt("AUTH", "delta", "delta-secret"), ServerError)


def test_a_silent_client_is_closed(start):
    """After `idle_timeout`; one that says something now and then is not."""
    server = start(server_options='idle_timeout = "1s"')
    with server.wire(ALPHA) as speaks, server.wire(ALPHA) as silent:
        silent.sock.settimeout(0.05)

        def closed():
            assert speaks.ask("PING") == b"PONG"
            try:
                return silent.sock.recv(1) == b""
            except TimeoutError:
                return False

        eventually(closed, 20, "the silent one is closed")


def test_a_limit_answers_throttled(start):
    limited = Tenant("limited", extra='limit = { requests = "50/s", burst = "100ms", max_wait = "10ms" }')
    server = start(tenants=(limited, BETA))
    refused = []

    def hammer():
        with server.wire(limited) as wire:
            for _ in range(300):
                reply = wire.attempt("SET", "k", "v")
                if isinstance(reply, ServerError):
                    refused.append(str(reply))

    threads = [threading.Thread(target=hammer) for _ in range(4)]
    for thread in threads:
        thread.start()
    with server.wire(BETA) as beta:
        for number in range(300):
            assert beta.ask("SET", "k", number) == b"OK"
    for thread in threads:
        thread.join()
    assert refused, "1,200 requests at a limit of 50/s were all served"
    assert all(text.startswith("THROTTLED ") and "limited" in text for text in refused), refused[0]
    # A request turned away is that and nothing else: neither answered nor an error, and of its own
    # class.
    def all_counted():
        with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/api/tenants/limited", timeout=10) as answer:
            counted = {one["class"]: one for one in json.load(answer)["classes"]}
        assert counted["put"]["throttled_requests"] == len(refused)
        assert counted["put"]["requests"] == 1200 - len(refused)
        return counted

    # The last is counted after its reply was handed over.
    counted = eventually(all_counted, 10, "each is counted once")
    assert sum(one["errors"] for one in counted.values()) == 0
    assert counted["put"]["latency"]["count"] == counted["put"]["requests"]


def test_a_tenant_over_its_limit_can_still_connect(start):
    limited = Tenant("limited", extra='limit = { requests = "1/s", burst = "1s", max_wait = "0s" }')
    server = start(tenants=(limited,))
    with server.wire(limited) as wire:

        def refused(*words):
            return str(wire.attempt(*words)).startswith("THROTTLED ")

        for words in (("GET", "k"), ("COMMAND",), ("INFO",), ("PING", "x" * 1024), ("CLIENT", "LIST")):
            assert any(refused(*words) for _ in range(10)), words
        for words in (
            ("HELLO", "3", "AUTH", limited.name, limited.password),
            ("CLIENT", "SETNAME", "shop"),
            ("CLIENT", "SETINFO", "LIB-NAME", "a-library"),
            ("SELECT", "0"),
            ("READONLY",),
            ("CLUSTER", "SLOTS"),
            ("PING",),
            ("RESET",),
            ("AUTH", limited.name, limited.password),
        ):
            for _ in range(3):
                assert not isinstance(wire.attempt(*words), ServerError), words
