"""Those who take connections and do nothing, or all there are, and everybody else beside them."""

import json
import resource
import urllib.request

import pytest
from bystander import Bystander
from test_logins import ELSEWHERE, OPERATOR, metric

from harness.resp import ServerError, Wire, encode
from harness.server import ALPHA, BETA, Tenant
from harness.waiting import eventually

pytestmark = pytest.mark.ours
FULL = "ERR max number of clients reached"
OPEN = Tenant("default")


def closed(wire):
    """Whether the server has closed the connection; reads what it said before."""
    wire.sock.settimeout(0.01)
    try:
        while wire.sock.recv(1024):
            pass
        return True
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def silent(server, count, **options):
    return [server.wire(**options) for _ in range(count)]


def log_in(server, tenant, **options):
    """A connection that speaks for `tenant`, or the error that it was told."""
    wire = server.wire(**options)
    try:
        wire.ask("AUTH", tenant.name, tenant.password)
    except ServerError as error:
        assert closed(wire), "it has a newcomer's seat and nothing to do with it"
        return str(error)
    return wire


def fill(server, tenant):
    """As many connections as the tenant gets."""
    wires = []
    while not isinstance(wire := log_in(server, tenant), str):
        wires.append(wire)
    assert wire == FULL
    return wires


def tenant_of(server, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/api/tenants/{name}", timeout=10) as answer:
        return json.load(answer)


@pytest.mark.parametrize("source", [None, ELSEWHERE], ids=["same-address", "elsewhere"])
def test_silent_sockets_lock_nobody_out(start, source):
    """Far more than there are seats, from an address of their own or not: the oldest of them go."""
    server = start(tenants=(ALPHA, BETA, OPERATOR), server_options='max_newcomers = 50\nlogin_timeout = "never"')
    with Bystander(server, BETA):
        wires = silent(server, 300, source=source)
        with server.wire(ALPHA) as wire, server.wire(OPERATOR) as operator:
            assert wire.ask("SET", "k", "v") == b"OK" and operator.ask("PING") == b"PONG"
        eventually(lambda: sum(map(closed, wires)) >= 250, 20, "the oldest have to go")
        assert not any(closed(wire) for wire in wires[-48:]), "the newest stay"
    assert metric(server, "entremet_newcomers_displaced_total") >= 250
    assert metric(server, "entremet_newcomers") <= 50


def test_those_who_speak_and_do_not_log_in_lock_nobody_out_either(start):
    server = start(tenants=(ALPHA, OPERATOR), server_options='max_newcomers = 50\nlogin_timeout = "never"')
    wires = silent(server, 200, source=ELSEWHERE)
    for number, wire in enumerate(wires):
        wire.send("AUTH", f"name{number % 40}", f"wrong{number}") if number % 2 else wire.send("PING")
    with server.wire(ALPHA) as wire, server.wire(OPERATOR) as operator:
        assert wire.ask("PING") == b"PONG" and operator.ask("PING") == b"PONG"


def test_no_tenant_can_take_anothers_part_and_an_operator_gets_in(start):
    """Twenty connections: five are kept for each of the two, ten are shared."""
    server = start(tenants=(ALPHA, OPERATOR), server_options="max_connections = 20\noperator_connections = 3")
    alpha = fill(server, ALPHA)
    assert len(alpha) == 15
    info = dict(line.split(":") for line in alpha[0].ask("INFO", "clients").decode().splitlines() if ":" in line)
    assert (info["connected_clients"], info["maxclients"]) == ("15", "15")
    assert alpha[0].ask("CONFIG", "GET", "maxclients") == [b"maxclients", b"15"]
    assert len(fill(server, OPERATOR)) == 5 + 3
    server.says("a connection was refused")
    seen = tenant_of(server, "alpha")
    assert (seen["connections"], seen["connections_max"], seen["connections_refused"]) == (15, 15, 1)
    # One leaves, one comes.
    alpha.pop().close()
    eventually(lambda: not isinstance(log_in(server, ALPHA), str), 10, "there is room again")


def test_a_tenants_maximum_is_changed_while_it_has_more(start):
    server = start(tenants=(Tenant("alpha", extra="max_connections = 8"), OPERATOR))
    wires = fill(server, ALPHA)
    assert len(wires) == 8
    with server.wire(OPERATOR) as operator:
        operator.ask("ENTREMET", "TENANT", "SET", "alpha", "MAX-CONNECTIONS", "4")
        assert all(wire.ask("PING") == b"PONG" for wire in wires), "who is in stays in"
        assert log_in(server, ALPHA) == FULL
        operator.ask("ENTREMET", "TENANT", "SET", "alpha", "MAX-CONNECTIONS", "10")
        assert len(fill(server, ALPHA)) == 2
        # Who is somebody's already stays so.
        assert str(operator.attempt("AUTH", "alpha", ALPHA.password)) == FULL
        assert operator.ask("ACL", "WHOAMI") == b"boss"
        fields = operator.ask("ENTREMET", "TENANT", "GET", "alpha")
        assert fields[fields.index(b"max-connections") + 1] == 10


def test_a_connection_must_log_in_in_time(start):
    server = start(tenants=(ALPHA, OPERATOR), server_options='login_timeout = "1s"')
    with server.wire(ALPHA) as wire:
        never, garbage, wrong = silent(server, 3)
        garbage.send("PING")
        wrong.send("AUTH", "alpha", "wrong")
        eventually(lambda: all(map(closed, (never, garbage, wrong))), 20, "they are closed")
        assert wire.ask("PING") == b"PONG"
        # One that speaks for nobody again has to log in again.
        wire.ask("RESET")
        assert str(wire.attempt("GET", "k")) == "NOAUTH Authentication required."
        eventually(lambda: closed(wire), 20, "it is closed, too")
    assert metric(server, "entremet_newcomers_late_total") == 4


def test_where_there_is_an_open_default_nobody_must(start):
    """A connection joins it with its first command; before that it is nobody's, however long."""
    server = start(tenants=(OPEN, OPERATOR), server_options='login_timeout = "1s"')
    with server.wire(OPERATOR) as operator, server.wire() as quiet, server.wire() as wire:
        wire.ask("HELLO", "3")
        assert tenant_of(server, "default")["connections"] == 0
        assert wire.ask("SET", "k", "v") == b"OK" and tenant_of(server, "default")["connections"] == 1
        eventually(lambda: operator.ask("PING") and float(uptime(operator)) >= 3, 20, "time goes by")
        assert quiet.ask("GET", "k") == b"v"
        # A first command that is larger than a newcomer's may be.
        with server.wire() as large:
            assert large.ask("SET", "large", b"x" * (2 << 20)) == b"OK"
        with server.wire() as many:
            assert many.ask("MSET", *(f"k{number}" for number in range(100))) == b"OK"
        # With a password it is closed to those who come later.
        operator.ask("ENTREMET", "TENANT", "SET", "default", "PASSWORD", "secret")
        assert quiet.ask("GET", "k") == b"v"
        with server.wire() as late:
            assert str(late.attempt("GET", "k")) == "NOAUTH Authentication required."
            assert late.ask("AUTH", "secret") == b"OK" and late.ask("GET", "k") == b"v"


def uptime(wire):
    lines = wire.ask("INFO", "server").decode().splitlines()
    return next(line for line in lines if line.startswith("uptime_in_seconds:")).partition(":")[2]


def test_without_an_open_default_there_is_none(start):
    server = start()
    with server.wire() as wire:
        for words in (("PING",), ("SET", "open", "yes"), ("INFO",), ("HELLO", "3"), ("RESET",), ("GET", "open")):
            reply = wire.attempt(*words)
            assert words == ("RESET",) or str(reply).startswith("NOAUTH "), reply
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/api/tenants", timeout=10) as answer:
        shares = {tenant["name"]: tenant["share"]["configured_percent"] for tenant in json.load(answer)}
    assert shares == {"alpha": 50, "beta": 50}


def test_who_they_are_changes_inside_a_packet(start):
    server = start(tenants=(ALPHA, BETA))
    with server.wire() as wire:
        wire.raw(
            encode("AUTH", "alpha", ALPHA.password) + encode("SET", "whose", "alphas") + encode("AUTH", "beta", BETA.password)
            + encode("SET", "whose", "betas") + encode("RESET") + encode("GET", "whose")
            + encode("AUTH", "alpha", ALPHA.password) + encode("GET", "whose")
        )  # fmt: skip
        replies = [wire.read() for _ in range(8)]
    assert [str(reply) if isinstance(reply, ServerError) else reply for reply in replies] == [
        b"OK", b"OK", b"OK", b"OK", b"RESET", "NOAUTH Authentication required.", b"OK", b"alphas",
    ]  # fmt: skip


def test_one_address_that_connects_too_often_is_told_so(start):
    server = start(server_options='connection_rate = "1/s"')
    told = []
    for _ in range(30):
        wire = server.wire(source=ELSEWHERE)
        wire.send("PING")
        try:
            told.append(str(wire.read()))
        except (EOFError, ConnectionError):
            # It had sent something when it was closed, so that the word may be lost.
            told.append("lost")
    assert told[:10] == ["NOAUTH Authentication required."] * 10, "ten seconds' worth at once"
    assert metric(server, "entremet_connections_hasty_total") >= 15
    assert all(text == "lost" or "too many new connections" in text for text in told[15:]), told
    with server.wire(ALPHA) as wire:
        assert wire.ask("PING") == b"PONG", "others may come"


def test_a_door_without_descriptors_is_opened_again_by_itself(start):
    """Who has come meanwhile is served, without another having to knock. The log says so once."""
    server = start()
    with server.wire(ALPHA) as wire:
        wire.ask("SET", "k", "opens the database")
        before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (3, before[1]))
        late = Wire(server.port)
        late.send("AUTH", "alpha", ALPHA.password)
        server.says("cannot accept connections")
        # Those who are there are served meanwhile.
        assert all(wire.ask("SET", "k", number) == b"OK" for number in range(2_000))
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
        assert late.read() == b"OK"
        late.close()
    server.stop()
    assert len(server.says("cannot accept connections")) == len(server.says("connections are accepted again")) == 1
