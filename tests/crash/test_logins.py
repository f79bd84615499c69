"""Those who guess passwords, from elsewhere, and those who log in beside them. What it costs is counted in hashes, not in time."""


import pytest
from bystander import Bystander

from harness.resp import ServerError
from harness.server import ALPHA, BETA, Tenant
from harness.waiting import eventually

pytestmark = pytest.mark.ours
OPERATOR = Tenant("boss", extra="admin = true")
ELSEWHERE = "127.0.0.2"
WRONG = "WRONGPASS invalid username-password pair or user is disabled."


def metric(server, name):
    return next(float(line.split()[1]) for line in server.metrics() if line.startswith(name + " "))


def hashes(server):
    return metric(server, "entremet_login_hashes_total")


def ask_for(server, name, password, source=None):
    """A connection that has asked to log in and does not wait for the answer."""
    wire = server.wire(source=source)
    wire.send("AUTH", name, password)
    return wire


def answers(wires):
    """What each of them is told."""
    told = [wire.read() for wire in wires]
    for wire in wires:
        wire.close()
    return [str(reply) if isinstance(reply, ServerError) else reply for reply in told]


def test_an_operator_logs_in_beside_a_thousand_wrong_passwords(start):
    """From one address, for 30 tenants of which two exist. The line behind them is hundreds of hashes long."""
    server = start(tenants=(ALPHA, BETA, OPERATOR))
    names = ["alpha", "beta", *(f"nobody{number}" for number in range(28))]
    wires = [ask_for(server, names[number % 30], f"wrong{number}", ELSEWHERE) for number in range(600)]
    eventually(lambda: metric(server, "entremet_logins_waiting") > 300, 20, "the line is long")
    before = hashes(server)
    with server.wire(OPERATOR):
        # Some are hashed while it connects; hundreds are in line.
        assert hashes(server) - before <= 20, "the operator waited for those who guess"
    assert metric(server, "entremet_logins_waiting") > 200, "they were served first, after all"
    told = answers(wires)
    # How many find no place depends on how fast the machine hashes; those who do are told so and
    # counted.
    assert {WRONG} <= set(told) <= {WRONG, "ERR too many logins are being checked, try again in a second"}
    assert metric(server, "entremet_logins_refused_total") == len(told) - told.count(WRONG)


def test_many_addresses_that_guess_one_tenants_password_do_not_hold_up_another(start):
    server = start(tenants=(ALPHA, OPERATOR))
    wires = [ask_for(server, "alpha", f"wrong{number}", f"127.0.{number // 200 + 1}.{number % 200 + 1}") for number in range(400)]
    eventually(lambda: metric(server, "entremet_logins_waiting") > 200, 20, "the line is long")
    before = hashes(server)
    with server.wire(OPERATOR):
        assert hashes(server) - before <= 20
    assert set(answers(wires)) == {WRONG}


def test_two_hundred_right_log_ins_after_a_start_cost_one_hash(start):
    server = start()
    assert answers([ask_for(server, "alpha", ALPHA.password) for _ in range(200)]) == [b"OK"] * 200
    assert hashes(server) == 1
    with server.wire(ALPHA):
        assert hashes(server) == 1, "it is known from before"


def test_a_storm_of_one_wrong_password_costs_one_hash_for_a_name_that_is_and_for_one_that_is_not(start):
    server = start()
    for number, name in enumerate(("alpha", "nosuch"), 1):
        for _ in range(3):
            assert answers([ask_for(server, name, "wrong") for _ in range(100)]) == [WRONG] * 100
        assert hashes(server) == number, f"{name} is told from others by what it costs"


def test_a_password_of_128_mebibytes_is_wrong_at_once(start):
    """By somebody who is in, and may send so much."""
    server = start()
    with Bystander(server, BETA), server.wire(ALPHA, timeout=60) as wire:
        before = hashes(server)
        for name in ("alpha", "nosuch"):
            assert str(wire.attempt("AUTH", name, b"x" * (128 << 20))) == WRONG
            assert str(wire.attempt("HELLO", "3", "AUTH", name, b"x" * 513)) == WRONG
        assert wire.ask("ACL", "WHOAMI") == b"alpha"
        assert hashes(server) == before


def test_a_changed_password_is_not_held_against_its_owner(start):
    """What was wrong a moment ago is right now."""
    server = start(tenants=(ALPHA, OPERATOR))
    with server.wire(OPERATOR) as operator, server.wire() as wire:
        assert str(wire.attempt("AUTH", "alpha", "new")) == WRONG
        operator.ask("ENTREMET", "TENANT", "SET", "alpha", "PASSWORD", "new")
        assert wire.ask("AUTH", "alpha", "new") == b"OK"
        assert str(wire.attempt("AUTH", "alpha", ALPHA.password)) == WRONG
