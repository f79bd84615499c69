"""Many clients that make a server hold much: its memory stays under a stated bound, and others notice nothing.

`make soak` runs the trials at the size at which they ended servers of 4 GiB; here they are as large as shows the bound.
"""

import contextlib
import os
import threading

import pytest
from bystander import Bystander

from harness.process import forget_peak, peak_bytes, resident_bytes
from harness.resp import ServerError, encode
from harness.server import ALPHA, BETA, Tenant
from harness.waiting import eventually

MEBIBYTE = 1 << 20
WHOLE = "ENTREMET_HOSTILE_MEMORY" in os.environ
ANYBODY = Tenant("default")
TENANTS = (ALPHA, BETA, ANYBODY)
ENGINE = 'object_cache = "32MiB"\nblock_cache = "32MiB"\nwrite_buffers = "64MiB"\nmemtable = "16MiB"'
# What the process may take; caches and the like leave 1 GiB of it for what requests hold. Half of
# that is the tenants' by weight, of the other half one tenant is lent half.
MAX_MEMORY = 1_746 * MEBIBYTE
REQUESTS = 1_024 * MEBIBYTE
ONE_TENANTS = REQUESTS // 2 // len(TENANTS) + REQUESTS // 4
# Caches and memtables, what is being copied to larger buffers at the same time, and the heap's
# slack.
BASE = 320 * MEBIBYTE
REFUSED = "holds as much memory in requests and replies as it may"

pytestmark = pytest.mark.ours


def size(whole, short):
    """The size of a trial."""
    return whole if WHOLE else short


def pieces(clients):
    """What they hold while nothing of theirs is held as a whole: pieces of replies of 64 KiB, their own buffers, the heap's slack."""
    return 80 * MEBIBYTE + clients * MEBIBYTE // 8


@contextlib.contextmanager
def at_most(start, growth, prepare=None):
    """A server that is to hold no more than `growth` bytes more than before, at any time, beside somebody who is served."""
    server = start(tenants=TENANTS, engine_options=ENGINE, server_options=f'max_memory = "{MAX_MEMORY // MEBIBYTE}MiB"')
    kept = []
    with Bystander(server, BETA):
        if prepare:
            with server.wire(ALPHA, timeout=120) as wire:
                wire.ask(*prepare)
        before = resident_bytes(server.pid)
        forget_peak(server.pid)
        yield server, kept
        grown = (peak_bytes(server.pid) - before) // MEBIBYTE
        assert server.running(), server.said()[-4_000:]
        assert grown <= growth // MEBIBYTE, f"{grown} MiB more than before, at most {growth // MEBIBYTE}"
        assert peak_bytes(server.pid) <= MAX_MEMORY, "more than server.max_memory"
        for wire in kept:
            wire.close()


def together(count, act):
    """`act` by so many clients at once; what each returned, or how it was cut off."""
    results = [None] * count

    def one(place):
        try:
            results[place] = act(place)
        except (OSError, EOFError) as error:
            results[place] = error

    threads = [threading.Thread(target=one, args=(place,)) for place in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    return results


def deaf(server, kept, count, *words):
    """Clients that ask and read nothing."""
    for _ in range(count):
        wire = server.wire(ALPHA, receive_buffer=4_096)
        wire.send(*words)
        kept.append(wire)


def begun(server, command):
    """How many of alpha's clients have asked for that last."""
    with server.wire(ALPHA) as wire:
        return wire.ask("CLIENT", "LIST").decode().count(f"cmd={command} ")


def test_deaf_readers_of_one_large_value(start):
    large = b"x" * size(64 * MEBIBYTE, 32 * MEBIBYTE)
    clients = size(70, 24)
    with at_most(start, pieces(clients), ("SET", "large", large)) as (server, kept):
        deaf(server, kept, clients, "GET", "large")
        eventually(lambda: begun(server, "get") == len(kept), 30, "all have asked")
        with server.wire(ALPHA, timeout=60) as wire:
            assert wire.ask("GETRANGE", "large", "7", "9") == b"xxx"


def test_deaf_readers_of_several_values(start):
    value = b"x" * (7 * MEBIBYTE // 8)
    clients = size(500, 100)
    with at_most(start, pieces(clients), ("SET", "value", value)) as (server, kept):
        deaf(server, kept, clients, "MGET", *["value"] * 8)
        eventually(lambda: begun(server, "mget") == len(kept), 30, "all have asked")
        with server.wire(ALPHA, timeout=60) as wire:
            assert wire.ask("GETRANGE", "value", "0", "2") == b"xxx"


def half_sent(bytes_sent):
    """A value of 128 MiB, as far as that."""
    return b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$134217728\r\n" + b"y" * bytes_sent


def served(wire, value):
    """Whether it is written now: its client may be told to try again."""
    try:
        return wire.ask("SET", "whole", value) == b"OK"
    except ServerError as error:
        assert "try again" in str(error)
        return False


def test_half_sent_values_of_clients_that_never_logged_in(start):
    sent = size(100 * MEBIBYTE, 48 * MEBIBYTE)
    request = half_sent(sent)
    whole = b"z" * (100 * MEBIBYTE)

    def half(_):
        wire = server.wire(timeout=60)
        kept.append(wire)
        wire.raw(request)
        wire.sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            return wire.sock.recv(len(REFUSED) + 100) or ConnectionResetError()

    # While one moves to a larger buffer, the smaller one is held as well: half as much. A buffer that
    # was left goes back to the system by a thread that all others go before: one is on its way,
    # where processors are busy. And what is written is in a batch of the log and in a memtable, both
    # as large as it is.
    growth = ONE_TENANTS + ONE_TENANTS // 2 + 64 * MEBIBYTE + 2 * len(whole) + BASE
    with at_most(start, growth) as (server, kept):
        ended = together(size(45, 16), half)
        held = ended.count(None)
        # Up to some MiB of each lie in its socket's buffers.
        assert held * (sent - 8 * MEBIBYTE) <= ONE_TENANTS, "they hold more than they may"
        refused = [end for end in ended if end is not None]
        assert refused, "the trial asks for too little"
        assert all(isinstance(end, ConnectionError) or REFUSED in end.decode() for end in refused), refused
        # Whoever sends on is served: those that hold memory and send nothing are cut off if it
        # takes that. The command wants memory beside its request, and while others still send it
        # may be told to try again.
        with server.wire(timeout=60) as wire:
            eventually(lambda: served(wire, whole), 60, "it is served")


def test_half_sent_values_give_way_to_a_command_that_wants_memory_beside_its_request(start):
    """The request has room beside them, and the command has none: what it gives back when it is refused is no end of that."""
    half, whole = 48 * MEBIBYTE, b"z" * (100 * MEBIBYTE)
    holders = (ONE_TENANTS - len(whole)) // half
    assert holders * half + 2 * len(whole) > ONE_TENANTS + holders * 8 * MEBIBYTE, "the trial asks for too little"
    with at_most(start, ONE_TENANTS + ONE_TENANTS // 2 + 2 * len(whole) + BASE) as (server, kept):
        for _ in range(holders):
            wire = server.wire(timeout=60)
            wire.raw(half_sent(half))
            kept.append(wire)
        with server.wire(timeout=60) as wire:
            eventually(lambda: served(wire, whole), 60, "it is served")


def test_requests_of_a_million_words_leave_nothing(start):
    request = b"*1000000\r\n$4\r\nPING\r\n" + b"$1\r\nx\r\n" * 999_999
    clients = size(50, 16)
    with at_most(start, pieces(clients)) as (server, kept):
        for _ in range(clients):
            wire = server.wire()
            wire.raw(request)
            assert isinstance(wire.read(), ServerError)
            kept.append(wire)


def test_queues_of_transactions(start):
    value = b"x" * (10 * MEBIBYTE)
    commands = size(20, 10)

    def queue(_):
        wire = server.wire(ALPHA, timeout=60)
        kept.append(wire)
        wire.ask("MULTI")
        return [wire.attempt("SET", "k", value) for _ in range(commands)][-1]

    with at_most(start, ONE_TENANTS + BASE) as (server, kept):
        ended = together(size(30, 8), queue)
        refused = [end for end in ended if end != b"QUEUED"]
        assert refused, "the trial asks for too little"
        said = [str(end) for end in refused if isinstance(end, ServerError)]
        assert all(REFUSED in text or "transaction holds more than" in text for text in said), said
        assert said or server.says("no memory left for requests")


def test_one_value_named_often(start):
    large = size(128, 32) * MEBIBYTE
    with at_most(start, 2 * large + BASE, ("SETRANGE", "large", str(large - 1), "x")) as (server, _):
        with server.wire(ALPHA, timeout=120) as wire:
            assert wire.ask("BITOP", "OR", "to", *["large"] * 40) == large


def test_what_came_with_a_large_request_does_not_keep_its_buffer(start):
    """A few bytes behind a large request, of the next one: they are not charged for, so they hold no more than they are."""
    half = encode("GET", b"x" * (4 * MEBIBYTE)) + b"*1\r\n$4\r\nPI"
    clients = size(200, 60)
    with at_most(start, pieces(clients)) as (server, kept):
        for _ in range(clients):
            wire = server.wire(ALPHA, timeout=60)
            wire.raw(half)
            assert wire.read() is None
            kept.append(wire)


def test_a_queued_command_does_not_keep_the_buffer_that_it_came_in(start):
    """Bytes that ask for nothing arrive with it: they are dropped, and not kept with the queue."""
    chunk = b"NG\r\n" + b"*0\r\n" * (16_384 - 4) + b"*1\r\n$4\r\nPI"
    count = size(20_000, 4_000)  # 64 KiB each
    with at_most(start, pieces(1)) as (server, kept), server.wire(ALPHA, timeout=120) as wire:
        wire.ask("MULTI")
        wire.raw(b"*1\r\n$4\r\nPI")
        for _ in range(count):
            wire.raw(chunk)
            assert wire.read() == b"QUEUED"
        wire.raw(b"NG\r\n" + encode("EXEC"))
        assert wire.read() == b"QUEUED"
        assert wire.read() == [b"PONG"] * (count + 1)
