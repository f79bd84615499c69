"""Requests and replies of any length over TLS: neither waits for more to come behind it."""

import pytest
from bystander import Bystander

from harness.encrypted import Encrypted, listening
from harness.resp import encode
from harness.server import ALPHA, BETA, free_port

pytestmark = pytest.mark.ours

KIBIBYTE = 1 << 10
# On both sides of what a record holds (16 KiB), of what TLS reads at once, of a turn's chunk (64
# KiB) and of what lies in the sockets.
LENGTHS = [kibibytes * KIBIBYTE for kibibytes in (1, 3, 5, 15, 17, 40, 63, 65, 200, 1_000, 5_000)]

KEPT = b"x" * 20_000


@pytest.fixture
def port(start, tmp_path):
    port = free_port()
    server = start(server_options=listening(port, tmp_path))
    with server.wire(ALPHA) as wire:
        wire.ask("SET", "kept", KEPT)
    with Bystander(server, BETA):
        yield port


def test_a_request_is_read_to_its_end(port):
    """All of it is there before the server looks, and nothing follows."""
    with Encrypted(port, ALPHA) as wire:
        for length in LENGTHS:
            value = b"x" * length
            assert wire.ask("SET", "value", value) == b"OK", length
            assert wire.ask("STRLEN", "value") == length
            short = length // 40
            wire.raw(encode("SET", "short", "value") * short)
            assert {wire.read() for _ in range(short)} <= {b"OK"}


def test_a_reply_is_sent_to_its_end(port):
    """Its end is sealed while the client takes nothing, and no further reply pushes it out."""
    with Encrypted(port, ALPHA) as wire:
        for length in LENGTHS:
            value = b"x" * length
            for key in range(8):
                wire.ask("SET", key, value)
            for _ in range(3):
                assert wire.ask("GET", 0) == value
                assert wire.ask("MGET", *range(8)) == [value] * 8


@pytest.mark.parametrize("requests", [300, 600])
def test_replies_that_were_sealed_while_nobody_took_them_are_sent(port, requests):
    """Each reply is sealed whole, and the sockets are full at some time: then nothing but the socket says that it can go on."""
    with Encrypted(port, ALPHA) as wire:
        for _ in range(3):
            for _ in range(requests):
                wire.send("GET", "kept")
            for taken in range(requests):
                assert wire.read() == KEPT, taken


def test_the_last_reply_arrives_before_the_end(port):
    """Who takes leave is told all that it asked for."""
    value = b"x" * (1_000 * KIBIBYTE)
    for _ in range(5):
        with Encrypted(port, ALPHA) as wire:
            wire.ask("SET", "value", value)
            wire.raw(encode("GET", "value") * 8 + encode("QUIT"))
            assert [wire.read() for _ in range(8)] == [value] * 8
            assert wire.read() == b"OK"
            assert wire.input.read() == b""
