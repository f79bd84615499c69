"""What a front that is killed leaves behind: a request that nobody waits for any more is not done later, over newer ones."""

from harness.server import ALPHA
from harness.waiting import eventually

REQUESTS = 24
# Longer than what an engine reads at once, and not so long that a link of its own is taken.
VALUE = "y" * 40_000
# As /proc/net/tcp has them: those that are open, and those that are closed and not yet at their end.
OPEN, CLOSED = {"01"}, {"04", "09", "0B"}


def on_the_way(engine, states):
    """Bytes that the kernel still sends to an engine on connections in these states."""
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    to = f":{engine.port:04X}"
    return sum(int(row[4].split(":")[0], 16) for row in rows if row[2].endswith(to) and row[3] in states)


def test_nothing_arrives_of_a_front_that_was_killed(engine, front):
    """The engine stands still, and goes on when the front is gone and another serves its clients."""
    server, other = (front(tenants=(ALPHA,), server_options="cores = 1") for _ in range(2))
    wires = [server.wire(ALPHA) for _ in range(REQUESTS)]
    with other.wire(ALPHA) as wire:
        for each in (wires[0], wire):
            assert each.ask("GET", "key:0") is None
        engine.hold()
        for number, each in enumerate(wires):
            each.send("SET", f"key:{number}", VALUE)
        eventually(lambda: on_the_way(engine, OPEN) > len(VALUE), what="more than the engine's socket takes")
        server.kill()
        assert on_the_way(engine, CLOSED) == 0
        wire.send("SET", "newer", "1")
        engine.release()
        assert wire.read() == b"OK"
        # What had reached the engine's own socket it may still read, once: until it answers who is not there any more.
        gone = lambda: engine.ask("CLIENT", "LIST").count(b"name=entremet ") == 1
        eventually(gone, what="the engine has dropped its connection")
        assert wire.ask("EXISTS", *(f"key:{number}" for number in range(REQUESTS))) <= 1
