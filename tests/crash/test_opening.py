"""A database that cannot be opened, and clients that ask for it again and again."""

import contextlib

import pytest
from bystander import Bystander
from test_disk import tenant_folder

from harness.resp import ServerError
from harness.server import ALPHA, BETA

pytestmark = pytest.mark.ours
CLIENTS = 300
ROUNDS = 40
# Pauses between two tries are 1, 2, 4, ... s: after so many tries a minute has gone by.
TRIES_MAX = 6
KEYS = 2_000


def test_who_asks_for_it_again_and_again_has_it_tried_now_and_then(start):
    server = start()
    for tenant in (ALPHA, BETA):
        with server.wire(tenant) as wire:
            for first in range(0, KEYS, 500):
                for number in range(first, first + 500):
                    wire.send("SET", f"key:{number}", "v" * 100)
                assert [wire.read() for _ in range(500)] == [b"OK"] * 500
    server.stop()
    current = tenant_folder(server, ALPHA) / "CURRENT"
    whole = current.read_bytes()
    current.write_bytes(b"MANIFEST-damaged\n")
    server.start()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.wire(ALPHA)) for _ in range(CLIENTS)]
        walker = stack.enter_context(server.wire(BETA))
        stack.enter_context(Bystander(server, BETA))
        for _ in range(ROUNDS):
            for client in clients:
                client.send("GET", "key:1")
            # It needs a handler, as the openings did.
            cursor = b"0"
            for _ in range(3):
                cursor, _ = walker.ask("SCAN", cursor, "COUNT", "100")
            for client in clients:
                reply = client.read()
                assert isinstance(reply, ServerError) and "does not open" in str(reply), reply
    tries = server.says("was not opened")
    assert len(tries) <= TRIES_MAX, f"{len(tries)} lines for {CLIENTS * ROUNDS} requests"
    assert 'tenant="alpha"' in tries[0] and "pause_s=1" in tries[0], tries[0]
    # Once it is mended it opens by itself, without a restart.
    current.write_bytes(whole)
    with server.wire(ALPHA, timeout=60) as wire:
        while isinstance(found := wire.attempt("GET", "key:1"), ServerError):
            assert wire.ask("PING") == b"PONG"
    assert found == b"v" * 100
