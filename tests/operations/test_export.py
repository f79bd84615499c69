"""`entremet export`: all data of tenants as lines of JSON, gone on with after kill -9, beside a server that serves."""

import base64
import json
import subprocess
import threading

import pytest

from harness.paths import SERVER
from harness.server import ALPHA, BETA, Tenant
from harness.waiting import eventually

pytestmark = pytest.mark.ours


def command(server, folder, *options, tenants=(ALPHA, BETA)):
    """The words of an export of these tenants."""
    who = [word for tenant in tenants for word in ("--tenant", f"{tenant.name}:{tenant.password}")]
    return [SERVER, "export", str(folder), "--target", f"127.0.0.1:{server.port}", *who, *options]


def export(server, folder, *options, tenants=(ALPHA, BETA)):
    """Runs one to its end."""
    return subprocess.run(command(server, folder, *options, tenants=tenants), capture_output=True, text=True, timeout=120)


def lines(folder, tenant):
    """What is in a tenant's file."""
    return [json.loads(line) for line in (folder / f"{tenant.name}.ndjson").read_bytes().splitlines()]


def plain(word):
    """A text, or the bytes that are none."""
    return word if isinstance(word, str) else base64.b64decode(word["base64"])


def test_every_type_with_its_expiry_is_written_as_it_is(start, tmp_path):
    server = start()
    with server.wire(ALPHA) as wire:
        wire.ask("SET", "text", 'with "quotes" and\nlines')
        wire.ask("SET", b"\xff\x00", b"\x80binary")
        wire.ask("SET", "long", "x" * 300_000)
        wire.ask("SET", "gone", "soon", "PX", "1")
        wire.ask("SET", "late", "r", "PXAT", "33177117420123")
        wire.ask("HSET", "h", "f", "v", b"\xfe", b"\xfd")
        wire.ask("PEXPIREAT", "h", "33177117420124")
        wire.ask("ZADD", "z", "1.5", "one", "-inf", "least", "17", "n")
        wire.ask("SELECT", "9")
        wire.ask("SET", "elsewhere", "1")
        eventually(lambda: wire.ask("SELECT", "0") and wire.ask("EXISTS", "gone") == 0, 10, "it expires")
    out = tmp_path / "out"
    done = export(server, out)
    assert (done.returncode, done.stdout) == (0, "7 keys of 2 tenants\n"), done.stderr
    keys = {(one["database"], plain(one["key"])): one for one in lines(out, ALPHA)}
    assert len(keys) == 7 and lines(out, BETA) == []
    value = {name: keys[(0, name)]["value"] for name in ("text", "long", "late", "h", "z")}
    assert value["text"] == 'with "quotes" and\nlines' and value["long"] == "x" * 300_000
    assert plain(keys[(0, b"\xff\x00")]["value"]) == b"\x80binary"
    assert [[plain(field), plain(one)] for field, one in value["h"]] == [["f", "v"], [b"\xfe", b"\xfd"]]
    assert value["z"] == [["least", "-inf"], ["one", 1.5], ["n", 17]]
    assert {one["type"] for one in keys.values()} == {"string", "hash", "zset"}
    expires = {name: one["expires_at_ms"] for name, one in keys.items() if "expires_at_ms" in one}
    assert expires == {(0, "late"): 33177117420123, (0, "h"): 33177117420124}
    assert keys[(9, "elsewhere")]["value"] == "1"
    assert (out / "alpha.ndjson").stat().st_mode & 0o777 == 0o600
    again = export(server, out)
    assert again.returncode == 1 and "is complete" in again.stderr


def test_a_large_collection_is_in_parts_that_have_each_element_once(start, tmp_path):
    server = start()
    with server.wire(ALPHA) as wire:
        for begin in range(0, 20_000, 500):
            pairs = [word for number in range(begin, begin + 500) for word in (f"f{number:05}", f"{number}-" + "v" * 100)]
            wire.ask("HSET", "large", *pairs)
            wire.ask("ZADD", "zlarge", *[word for number in range(begin, begin + 500) for word in (number, f"m{number:05}" + "m" * 100)])
    out = tmp_path / "out"
    assert export(server, out, tenants=(ALPHA,)).returncode == 0
    for name, element in (("large", lambda n: [f"f{n:05}", f"{n}-" + "v" * 100]), ("zlarge", lambda n: [f"m{n:05}" + "m" * 100, n])):
        parts = [one for one in lines(out, ALPHA) if one["key"] == name]
        assert len(parts) > 1 and [one["part"] for one in parts] == list(range(len(parts)))
        assert [one["more"] for one in parts] == [True] * (len(parts) - 1) + [False]
        assert sorted(pair for one in parts for pair in one["value"]) == sorted(element(n) for n in range(20_000))


def filled(server, tenant, keys):
    """Stores keys of every type; returns their names."""
    with server.wire(tenant) as wire:
        for number in range(keys):
            match number % 10:
                case 0:
                    wire.send("HSET", f"{tenant.name}:{number:06}", "f", number, "g", "y" * 50)
                case 1:
                    wire.send("ZADD", f"{tenant.name}:{number:06}", number, "m")
                case _:
                    wire.send("SET", f"{tenant.name}:{number:06}", "v" * 200)
        for _ in range(keys):
            wire.read()
    return {f"{tenant.name}:{number:06}" for number in range(keys)}


def test_a_killed_export_goes_on_and_has_each_key_once_beside_writers(start, tmp_path):
    server = start()
    wanted = {tenant: filled(server, tenant, 6_000) for tenant in (ALPHA, BETA)}
    out = tmp_path / "out"
    ended = threading.Event()

    def write():
        """Overwrites keys that stay, and makes and removes others between them."""
        with server.wire(ALPHA) as wire:
            for number in range(1 << 30):
                if ended.is_set():
                    return
                wire.ask("SET", f"alpha:{number % 6_000:06}", f"new {number}")
                wire.ask("SET", f"alpha:{number % 6_000:06}x", "comes and goes")
                wire.ask("DEL", f"alpha:{number % 6_000:06}x")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            # All there is would take half a minute and more.
            process = subprocess.Popen(command(server, out, "--rate", "50kB/s"))
            before = written(out)
            eventually(lambda: written(out) > before or process.poll() is not None, 20, "it gets on")
            process.kill()
            assert process.wait() == -9, "it was killed in its middle"
        done = export(server, out)
    finally:
        ended.set()
        writer.join()
    assert done.returncode == 0, done.stderr
    for tenant, names in wanted.items():
        found = [one["key"] for one in lines(out, tenant)]
        assert len(set(found)) == len(found), "no key is there twice"
        assert names <= set(found), "none is missing"
        assert found == sorted(found), "in order, also where one run ended"


def written(folder):
    """Keys that the progress says are written."""
    try:
        progress = json.loads((folder / "progress.json").read_text())
    except FileNotFoundError:
        return 0
    return sum(one["keys"] for one in progress["tenants"].values())


def test_the_server_may_restart_between_two_runs(start, tmp_path):
    server = start(tenants=(ALPHA,))
    names = filled(server, ALPHA, 4_000)
    out = tmp_path / "out"
    process = subprocess.Popen(command(server, out, "--rate", "100kB/s", tenants=(ALPHA,)), stderr=subprocess.PIPE, text=True)
    eventually(lambda: written(out) > 0, 20, "some is written down")
    server.kill()
    assert process.wait(30) == 1
    said = process.stderr.read()
    process.stderr.close()
    assert "tenant alpha: the server at" in said and "run the same command again" in said, said
    assert written(out) < 4_000
    server.start()
    assert export(server, out, tenants=(ALPHA,)).returncode == 0
    found = [one["key"] for one in lines(out, ALPHA)]
    assert len(found) == len(names) and set(found) == names


def test_it_is_a_workload_of_its_own_and_says_what_is_wrong(start, tmp_path):
    web = Tenant("web", extra='[[tenant.workload]]\nname = "entremet-export"\nweight = 0.1\n')
    server = start(tenants=(web,))
    filled(server, web, 2_000)
    process = subprocess.Popen(command(server, tmp_path / "slow", "--rate", "10kB/s", tenants=(web,)))
    with server.wire(web) as wire:
        eventually(lambda: b"name=entremet-export" in wire.ask("CLIENT", "LIST"), 20, "it is there by its name")
    other = export(server, tmp_path / "slow", tenants=(web,))
    assert other.returncode == 1 and "another export is at work here" in other.stderr
    process.kill()
    process.wait()
    wrong = subprocess.run(
        [SERVER, "export", str(tmp_path / "wrong"), "--target", f"127.0.0.1:{server.port}", "--tenant", "web:guess"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert wrong.returncode == 1 and "the server refuses AUTH: WRONGPASS" in wrong.stderr
    usage = subprocess.run([SERVER, "export", "out", "--tenant", "nobody"], capture_output=True, text=True, timeout=60)
    assert usage.returncode == 2 and "NAME:PASSWORD" in usage.stderr
