"""Before engines that are reached by TLS: all goes there that goes in the clear, nothing goes in the clear, and what is wrong with a certificate is said."""

import json
import re
import signal
import socket
import subprocess
import threading
from types import SimpleNamespace
from urllib.request import urlopen

import pytest

from harness.cluster import ClusterFront, others, place
from harness.encrypted import Authority
from harness.encrypted_engines import EncryptedCluster, EncryptedEngine, speak_tls, trusting
from harness.engine import Engine, Front, engines
from harness.paths import SERVER
from harness.resp import encode
from harness.server import ALPHA, BETA, StartFailed, Tenant
from harness.waiting import eventually

pytestmark = [pytest.mark.ours, pytest.mark.skipif(not speak_tls(engines()), reason="no engine here speaks TLS")]

MIB = 1 << 20
KIBIBYTE = 1 << 10
# On both sides of what a record holds (16 KiB), of what a link moves at once (64 KiB), of what lies
# in the sockets.
LENGTHS = [kibibytes * KIBIBYTE for kibibytes in (1, 15, 17, 63, 65, 200, 1_000)]
PROGRAM = (speak_tls(engines()) or [None])[0]
SCRIPTS = Tenant("alpha", extra="scripts = true")
READER = Tenant("alpha", extra='partitions = 8\nreads = "replica"')


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


@pytest.fixture
def own(authority):
    """The pair that the server shows."""
    return authority.sign("front")


@pytest.fixture
def make_engine(authority, tmp_path):
    """A function that starts an engine of the test's own."""
    started = []

    def launch(*options, **how):
        one = EncryptedEngine(tmp_path / f"engine{len(started)}", PROGRAM, *options, authority=authority, **how)
        started.append(one)
        return one.start()

    yield launch
    for one in started:
        one.release()
        one.kill()


@pytest.fixture
def engine(make_engine):
    return make_engine()


@pytest.fixture
def start_before(tmp_path):
    """A function that starts a server before an engine with these options of TLS."""
    started = []

    def launch(engine, tls, engine_options="", kind=Front, **options):
        one = kind(tmp_path / f"front{len(started)}", engine, engine_options=f"{engine_options}\n{tls}", **options)
        started.append(one)
        return one.start()

    yield launch
    for one in started:
        one.kill()


@pytest.fixture
def front(engine, authority, own, start_before):
    return start_before(engine, trusting(authority, own), tenants=(SCRIPTS, BETA))


class Overheard:
    """It stands where the server looks for its engine, passes everything on, and keeps what came."""

    def __init__(self, engine):
        self.engine, self.came, self.ends = engine, b"", []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"rediss://127.0.0.1:{self.port}"

    def _accept(self):
        while True:
            try:
                ends = self.listener.accept()[0], socket.create_connection(("127.0.0.1", self.engine.port))
            except OSError:
                return
            self.ends += ends
            for one, other, keeps in ((*ends, True), (*reversed(ends), False)):
                threading.Thread(target=self._pass_on, args=(one, other, keeps), daemon=True).start()

    def _pass_on(self, one, other, keeps):
        try:
            while data := one.recv(1 << 16):
                self.came += data if keeps else b""
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.listener.close()
        for end in self.ends:
            end.close()


def test_commands_pipelines_and_values_of_any_length(front):
    with front.wire(SCRIPTS, timeout=60) as alpha, front.wire(BETA) as beta:
        assert alpha.ask("SET", "key", "value") == b"OK"
        assert (alpha.ask("GET", "key"), beta.ask("GET", "key")) == (b"value", None)
        for length in LENGTHS:
            value = b"v" * length
            assert alpha.ask("SET", "long", value) == b"OK"
            for _ in range(3):
                assert alpha.ask("GET", "long") == value
            short = max(length // 40, 1)
            alpha.raw(encode("INCR", f"n{length}") * short)
            assert [alpha.read() for _ in range(short)] == list(range(1, short + 1))
        value = b"w" * (4 * MIB)
        assert alpha.ask("SET", "large", value) == b"OK"
        assert alpha.ask("GET", "large") == value
        # Of one connection after the other: what a turn leaves in the session gives no notice.
        alpha.raw(encode("GET", "large") * 5 + encode("ECHO", "end"))
        assert beta.ask("PING") == b"PONG"
        assert [alpha.read() for _ in range(6)] == [value] * 5 + [b"end"]


def test_many_connections_at_once(front):
    wrong = []

    def client(number):
        value = bytes([97 + number]) * (20_000 * (number + 1))
        with front.wire(SCRIPTS if number % 2 else BETA, timeout=60) as wire:
            for _ in range(15):
                wire.raw(encode("SET", f"k{number}", value) + encode("GET", f"k{number}") + encode("STRLEN", f"k{number}"))
                if [wire.read() for _ in range(3)] != [b"OK", value, len(value)]:
                    wrong.append(number)

    clients = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    assert not wrong


def test_what_has_a_connection_of_its_own_has_one_by_tls(front):
    with front.wire(SCRIPTS) as alpha, front.wire(SCRIPTS) as other:
        alpha.raw(encode("MULTI") + encode("SET", "a", 1) + encode("INCR", "a") + encode("EXEC"))
        assert [alpha.read() for _ in range(4)] == [b"OK", b"QUEUED", b"QUEUED", [b"OK", 2]]
        alpha.ask("WATCH", "a")
        other.ask("SET", "a", 5)
        alpha.raw(encode("MULTI") + encode("GET", "a") + encode("EXEC"))
        assert [alpha.read() for _ in range(3)] == [b"OK", b"QUEUED", None]
        alpha.send("BLPOP", "list", 0)
        eventually(lambda: b"cmd=blpop" in other.ask("CLIENT", "LIST"), what="it waits")
        other.ask("RPUSH", "list", "x")
        assert alpha.read() == [b"list", b"x"]
        assert alpha.ask("EVAL", "return redis.call('GET', KEYS[1])", 1, "a") == b"5"
        assert alpha.ask("SUBSCRIBE", "news") == [b"subscribe", b"news", 1]
        for length in (10, *LENGTHS):
            message = b"m" * length
            assert other.ask("PUBLISH", "news", message) == 1
            assert alpha.read() == [b"message", b"news", message]
        # Many at once, so that a turn does not take all.
        other.raw(encode("PUBLISH", "news", b"m" * 20_000) * 50)
        assert [alpha.read()[2] for _ in range(50)] == [b"m" * 20_000] * 50


def test_nothing_goes_in_the_clear(engine, authority, own, start_before):
    overheard = Overheard(engine)
    try:
        server = start_before(overheard, trusting(authority, own))
        with server.wire(ALPHA) as alpha:
            assert alpha.ask("SET", "plain-key", "plain-value" * 100) == b"OK"
        # A handshake, or sealed: the first byte of a record says which.
        assert overheard.came[:1] == b"\x16"
        assert not any(word in overheard.came for word in (b"plain-", b"INFO", b"COMMAND", b"HELLO"))
    finally:
        overheard.close()


def test_what_was_sealed_counts_as_sent(engine, authority, own, start_before):
    """Nobody is told that nothing was done of what may have been done."""
    overheard = Overheard(engine)
    try:
        server = start_before(overheard, trusting(authority, own))
        with server.wire(ALPHA) as alpha:
            assert alpha.ask("SET", "value", "") == b"OK"
            engine.hold()
            before = len(overheard.came)
            # Not so long that it has a link of its own.
            alpha.send("APPEND", "value", b"x" * 50_000)
            eventually(lambda: len(overheard.came) > before + 50_000, what="it has gone")
            engine.kill()
            assert "whether the request was done is not known" in str(alpha.read())
    finally:
        overheard.close()


# What is wrong, with the words of the error.
WRONG = {
    "signed by another": (lambda authority, folder: Authority(folder, "other").sign("engine"), "signed by none of engine.tls.ca"),
    "expired": (lambda authority, folder: authority.sign("engine", days=-1), "it has expired"),
    "of another host": (lambda authority, folder: authority.sign("engine", names="DNS:elsewhere.example"), "say its name in engine.tls.name"),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_engine_that_is_not_trusted_is_not_stood_before(what, make_engine, authority, own, tmp_path, start_before):
    make, words = WRONG[what]
    # It trusts whoever asks.
    engine = make_engine("--tls-auth-clients", "no", pair=make(authority, tmp_path))
    overheard = Overheard(engine)
    try:
        with pytest.raises(StartFailed, match=re.escape(words)):
            start_before(overheard, trusting(authority, own))
        assert b"INFO" not in overheard.came
    finally:
        overheard.close()


def test_an_engine_may_have_another_name(make_engine, authority, own, start_before):
    engine = make_engine(pair=authority.sign("engine", names="DNS:db.example"))
    server = start_before(engine, trusting(authority, own, name="db.example"))
    with server.wire(ALPHA) as alpha:
        assert alpha.ask("SET", "key", "value") == b"OK"


def test_an_engine_that_asks_for_a_certificate_is_shown_one(engine, authority, start_before, tmp_path):
    stranger = Authority(tmp_path, "strangers").sign("stranger")
    for own in (None, stranger):
        with pytest.raises(StartFailed, match="does not accept this server's certificate, or misses it"):
            start_before(engine, trusting(authority, own))


def test_what_does_not_answer_the_handshake_is_not_stood_before(authority, start_before, tmp_path):
    plain = Engine(tmp_path / "plain", PROGRAM).start()
    mute = socket.create_server(("127.0.0.1", 0))
    try:
        for port in (plain.port, mute.getsockname()[1]):
            at = SimpleNamespace(url=f"rediss://127.0.0.1:{port}")
            with pytest.raises(StartFailed, match="does not go on with the TLS handshake|does not speak TLS at this port"):
                start_before(at, trusting(authority), engine_options='timeout = "1s"')
    finally:
        mute.close()
        plain.kill()


def drop_links(engine):
    """All its clients are let go: they connect anew."""
    engine.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def test_a_reload_exchanges_certificates(engine, authority, start_before, tmp_path):
    """Connections that are there stay; new ones get what is new."""
    ca, cert, key = (tmp_path / f"used.{kind}" for kind in ("ca", "crt", "key"))
    other = Authority(tmp_path, "other")
    good, stranger = authority.sign("good"), other.sign("stranger")

    def put(pair, signer):
        for source, target in zip((signer.cert, *pair), (ca, cert, key)):
            target.write_bytes(source.read_bytes())

    put(authority.sign("first"), authority)
    tls = f'[engine.tls]\nca = "{ca}"\ncert = "{cert}"\nkey = "{key}"'
    server = start_before(engine, tls)
    with server.wire(ALPHA) as alpha:
        alpha.ask("SET", "key", "value")
        replied = b"value"
        for pair, signer, expected in (
            (good, authority, "value"),
            (good, other, "signed by none of engine.tls.ca"),
            (good, authority, "value"),
            (stranger, authority, "does not accept this server's certificate"),
        ):
            put(pair, signer)
            reloads = server.said().count("was reloaded")
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: server.said().count("was reloaded") > reloads, what="it is reloaded")  # noqa: B023
            if replied == b"value":
                assert alpha.ask("GET", "key") == replied
                drop_links(engine)
            replied = eventually(lambda: expected in str(reply := alpha.attempt("GET", "key")) and reply, what=expected)  # noqa: B023


def test_a_handshake_that_hangs_is_not_waited_for_for_ever(engine, authority, own, start_before):
    """It accepts, and says nothing: after engine.timeout who waits is told so."""
    server = start_before(engine, trusting(authority, own), engine_options='timeout = "2s"')
    with server.wire(ALPHA, timeout=60) as alpha:
        assert alpha.ask("SET", "key", "value") == b"OK"
        drop_links(engine)
        # The kernel takes connections for it meanwhile.
        engine.hold()
        asked = lambda: str(alpha.attempt("GET", "key"))
        said = eventually(lambda: "has not ended the TLS handshake for 2 s" in (said := asked()) and said, 30, "who waits is told")
        assert said.endswith("nothing was done")
        engine.release()
        eventually(lambda: alpha.attempt("GET", "key") == b"value", 30, "it goes on")


def replicas_of(server):
    with urlopen(f"http://127.0.0.1:{server.admin_port}/api/server", timeout=10) as answer:
        return json.load(answer)["engine_replicas"]


def test_a_cluster_by_tls(authority, own, tmp_path, start_before):
    """Its nodes speak TLS to each other, too. Masters and replicas are reached by it, and a partition moves."""
    cluster = EncryptedCluster(tmp_path / "cluster", PROGRAM, authority, masters=3, replicas=1)
    keys = [f"key{number}" for number in range(200)]
    values = [key.encode() for key in keys]
    try:
        cluster.start()
        server = start_before(cluster, trusting(authority, own), kind=ClusterFront, tenants=(READER, BETA))
        with server.wire(READER, timeout=60) as alpha, server.wire(BETA, timeout=60) as beta:
            for wire in (alpha, beta):
                for key in keys:
                    assert wire.ask("SET", key, key) == b"OK"
                assert wire.ask("MGET", *keys) == values
            eventually(lambda: replicas_of(server)["known"] == 3, 60, "it is known how far behind replicas are")
            assert [alpha.ask("GET", key) for key in keys] == values
            assert any(b"cmdstat_get:" in node.ask("INFO", "commandstats") for node in cluster.replicas)
            status, said = cluster.entremet("status")
            assert status == 0 and said.count("slots,") == 3, said
            slot = cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@beta}")
            source = cluster.owner(slot)
            target = others(cluster, source)[0]
            status, said = cluster.entremet("move", "beta", "--to", place(target))
            assert status == 0 and f"has gone from {place(source)} to {place(target)}" in said, said
            assert cluster.owner(slot) is target
            assert beta.ask("MGET", *keys) == values
            assert cluster.entremet("check") == (0, "nothing is wrong\n")
    finally:
        cluster.kill()


def test_a_cluster_that_is_asked_by_tls_is_told_whom_to_trust(authority):
    for words, said in (
        (("--at", "rediss-cluster://127.0.0.1:1"), "--ca is missing"),
        (("--at", "redis-cluster://127.0.0.1:1", "--ca", authority.cert), "--ca has no effect"),
        (("--at", "rediss-cluster://127.0.0.1:1", "--ca", authority.cert, "--cert", authority.cert), "--key"),
    ):
        done = subprocess.run([SERVER, "cluster", "status", *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and said in done.stderr, done.stderr
