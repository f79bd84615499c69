"""`entremet top` in a terminal, and without one."""

import signal
import subprocess
import threading
from contextlib import suppress

import pytest

from harness.paths import SERVER
from harness.server import Tenant, free_port
from harness.terminal import Terminal
from harness.waiting import eventually

pytestmark = pytest.mark.ours

WEB, BATCH, QUIET = Tenant("web", weight=3), Tenant("batch"), Tenant("quiet")


@pytest.fixture
def busy(start):
    """A server of three tenants, two of which ask all the time."""
    server = start(tenants=(WEB, BATCH, QUIET))
    ended = threading.Event()

    def ask(tenant, count):
        with suppress(OSError, EOFError), server.wire(tenant) as wire:  # one test ends the server
            while not ended.is_set():
                for number in range(count):
                    wire.send("SET", f"key{number}", "x" * 100)
                    wire.send("GET", f"key{number}")
                for _ in range(2 * count):
                    wire.read()

    threads = [threading.Thread(target=ask, args=args, daemon=True) for args in ((WEB, 8), (BATCH, 1))]
    for thread in threads:
        thread.start()
    yield server
    ended.set()
    for thread in threads:
        thread.join(10)


def command(server, *args):
    return [SERVER, "top", "--admin", f"127.0.0.1:{server.admin_port}", *args]


@pytest.fixture
def top(busy):
    """A function that runs `entremet top` in a terminal."""
    opened = []

    def launch(*args, **more):
        opened.append(Terminal(command(busy, *args), **more))
        return opened[-1]

    yield launch
    for terminal in opened:
        terminal.close()


def row(terminal, tenant):
    """One tenant's row, as words."""
    return next((line.split() for line in terminal.lines() if line.startswith(f"{tenant} ")), None)


def order(terminal):
    return [line.split()[0] for line in terminal.lines() if line.split() and line.split()[0] in ("web", "batch", "quiet")]


def ends(terminal, status=0):
    eventually(lambda: terminal.process.poll() is not None, what="it ends")
    assert terminal.process.returncode == status
    assert terminal.restored(), "the terminal is as it was"
    eventually(lambda: b"\x1b[?1049l" in terminal.raw and b"\x1b[?25h" in terminal.raw)


def test_tenants_are_shown_sorted_and_can_be_opened(top):
    terminal = top()
    terminal.wait_for("tenant", "req/s", "quiet", "request", "q end")
    eventually(lambda: row(terminal, "web") and row(terminal, "web")[2] != "·")
    eventually(lambda: order(terminal)[0] == "web", what="by rate")
    terminal.type("s" * 12)  # thirteen columns on is the one before
    terminal.type("r")
    terminal.type("/ui\r")
    eventually(lambda: order(terminal) == ["quiet"])
    terminal.wait_for("1 of 3 tenants", "filter: ui")
    terminal.type("\x1b")
    eventually(lambda: len(order(terminal)) == 3)
    terminal.type("i")
    eventually(lambda: "quiet" not in order(terminal))
    terminal.type("/web\r")
    eventually(lambda: order(terminal) == ["web"])
    terminal.type("j\r")
    terminal.wait_for("the mean request takes", "waiting for a turn", "class", "get", "put", "others got: batch", "weight 3")
    terminal.type("\x1b")
    terminal.wait_for("filter: web")
    terminal.type("q")
    ends(terminal)


def test_pause_holds_the_numbers(top):
    terminal = top("--sort", "tenant")
    eventually(lambda: row(terminal, "web") and row(terminal, "web")[2] != "·")
    terminal.type("p")
    terminal.wait_for("paused")
    held, frames = terminal.text(), terminal.raw.count(b"\x1b[?2026h")
    eventually(lambda: terminal.raw.count(b"\x1b[?2026h") >= frames + 2, what="two more seconds are drawn")
    assert terminal.text() == held
    terminal.type("p")
    eventually(lambda: "paused" not in terminal.text())
    terminal.type("\x03")
    ends(terminal)


@pytest.mark.parametrize("size", [(200, 50), (80, 24), (40, 10), (12, 4), (1, 1)])
def test_every_size_is_drawn_without_wrapping(top, size):
    columns, rows = size
    terminal = top()
    terminal.wait_for("tenant", "req/s")
    terminal.resize(columns, rows)
    frames = terminal.raw.count(b"\x1b[?2026h")
    eventually(lambda: terminal.raw.count(b"\x1b[?2026h") > frames + 1)
    if columns >= 40:
        terminal.wait_for("tenant", "req/s", "web")
        assert sum("tenant " in line and "req/s" in line for line in terminal.lines()) == 1, "one heading"
    last = terminal.raw.rsplit(b"\x1b[?2026h", 2)[1].split(b"\x1b[?2026l")[0]
    assert last.count(b"\r\n") < rows
    terminal.resize(120, 30)
    terminal.wait_for("thrott/s", "web")
    terminal.type("q")
    ends(terminal)


def test_a_signal_gives_the_terminal_back(top):
    terminal = top()
    terminal.wait_for("req/s")
    terminal.process.send_signal(signal.SIGTERM)
    ends(terminal)


def test_a_server_that_ends_is_missed_and_found_again(top, busy):
    terminal = top()
    eventually(lambda: row(terminal, "web"))
    busy.kill()
    terminal.wait_for("no answer for", "does not answer: Connection refused")
    assert row(terminal, "web"), "the last numbers stay"
    busy.start()
    eventually(lambda: "no answer" not in terminal.text())
    terminal.type("q")
    ends(terminal)


def run(*args):
    return subprocess.run(args, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)


def test_without_a_terminal_it_prints_one_table(busy):
    for arguments in ([], ["--once"], ["--once", "--sort", "tenant", "--filter", "e"]):
        done = run(*command(busy, *arguments))
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout
        assert "req/s" in done.stdout and "web" in done.stdout and "handler" in done.stdout
    tenants = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    assert "batch" not in tenants and "quiet" in tenants

    def page_of_web():
        page = run(*command(busy, "web"))
        return "the mean request takes" in page.stdout and "sync every 1s" in page.stdout

    eventually(page_of_web, 20, "it was asked for something in the second that the page is of")


def test_wrong_addresses_and_names_are_told(busy):
    nobody = run(SERVER, "top", "--once", "--admin", f"127.0.0.1:{free_port()}")
    assert nobody.returncode == 1 and "does not answer" in nobody.stderr and "--admin" in nobody.stderr
    clients = run(SERVER, "top", "--once", "--admin", f"127.0.0.1:{busy.port}")
    assert clients.returncode == 1 and "does not answer as an entremet server" in clients.stderr
    missing = run(*command(busy, "--once", "wob"))
    assert missing.returncode == 1 and 'no tenant named "wob"' in missing.stderr
    assert run(SERVER, "top", "--sort", "size").returncode == 2
