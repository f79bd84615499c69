"""Replies come in order and whole: pipelines, transactions, large values, slow readers, an engine that goes."""

import threading

import pytest

from harness.resp import ServerError, encode
from harness.server import ALPHA, BETA
from harness.waiting import eventually


def test_a_pipeline_of_a_thousand_is_answered_in_order(front):
    server = front()
    with server.wire(ALPHA) as alpha:
        requests, expected = [], []
        for number in range(1_000):
            requests += [encode("SET", f"k{number}", number), encode("GET", f"k{number}"), encode("ECHO", number), encode("INCR", "n")]
            expected += [b"OK", b"%d" % number, b"%d" % number, number + 1]
        requests.insert(500, encode("NOSUCH"))
        expected.insert(500, "unknown command")
        threading.Thread(target=alpha.raw, args=(b"".join(requests),), daemon=True).start()
        for place, reply in enumerate(expected):
            got = alpha.read()
            assert (reply in str(got)) if isinstance(reply, str) else got == reply, place


def test_a_transaction_is_one_at_the_engine(front):
    server = front()
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        assert alpha.ask("MULTI") == b"OK"
        assert alpha.ask("RPUSH", "list", "a") == b"QUEUED"
        assert alpha.ask("PING") == b"QUEUED"
        assert alpha.ask("LMPOP", 1, "list", "LEFT") == b"QUEUED"
        assert alpha.ask("BLPOP", "none", 0) == b"QUEUED"
        assert beta.ask("LLEN", "list") == 0
        assert alpha.ask("EXEC") == [1, b"PONG", [b"list", [b"a"]], None]
        assert alpha.ask("MULTI") == b"OK"
        assert isinstance(alpha.attempt("LPUSH", "list"), ServerError)
        assert "EXECABORT" in str(alpha.attempt("EXEC"))
        assert alpha.ask("MULTI") == b"OK"
        assert alpha.ask("SET", "s", "x") == b"QUEUED"
        assert alpha.ask("LPUSH", "s", "x") == b"QUEUED"
        done = alpha.ask("EXEC")
        assert done[0] == b"OK" and "WRONGTYPE" in str(done[1])
        assert alpha.ask("MULTI") == b"OK"
        assert "transaction" in str(alpha.attempt("CLIENT", "LIST"))
        assert "EXECABORT" in str(alpha.attempt("EXEC"))
        assert alpha.ask("MULTI") == b"OK"
        assert alpha.ask("SET", "t", "x") == b"QUEUED"
        assert alpha.ask("DISCARD") == b"OK"
        assert alpha.ask("EXISTS", "t") == 0


def test_large_values_and_slow_readers_hold_nobody_up(front):
    server = front()
    value = bytes(range(256)) * (32 << 12)
    with server.wire(ALPHA) as alpha, server.wire(ALPHA, receive_buffer=4096) as slow, server.wire(BETA) as beta:
        assert alpha.ask("SET", "large", value) == b"OK"
        for _ in range(8):
            slow.send("GET", "large")
        for number in range(200):
            assert beta.ask("SET", "k", number) == b"OK"
        assert alpha.ask("GET", "large") == value
        for _ in range(8):
            assert slow.read() == value
        assert alpha.ask("STRLEN", "large") == len(value)


def test_client_reply_is_obeyed(front):
    server = front()
    with server.wire(ALPHA) as alpha:
        alpha.raw(encode("CLIENT", "REPLY", "SKIP") + encode("SET", "k", "1") + encode("GET", "k"))
        assert alpha.read() == b"1"
        alpha.raw(encode("CLIENT", "REPLY", "OFF") + encode("SET", "k", "2") + encode("GET", "k") + encode("CLIENT", "REPLY", "ON"))
        assert alpha.read() == b"OK"
        assert alpha.ask("GET", "k") == b"2"


def test_an_engine_that_is_killed_is_missed_and_found_again(engine, front):
    server = front()
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        assert alpha.ask("SET", "k", "1") == b"OK"
        engine.kill()
        assert "ERR engine" in str(alpha.attempt("GET", "k"))
        assert "ERR engine" in str(beta.attempt("GET", "k"))
        assert beta.ask("PING") == b"PONG"
        engine.start()
        assert eventually(lambda: alpha.attempt("SET", "k", "2") == b"OK", what="the engine is found again")
        # Its connection may be another core's, which finds the engine by itself.
        assert eventually(lambda: beta.attempt("GET", "k") is None, what="every core finds it again")
        assert alpha.ask("GET", "k") == b"2"


def test_who_waits_for_a_silent_engine_is_told_that_nothing_is_known(engine, front):
    server = front(engine_options='timeout = "1s"')
    with server.wire(ALPHA) as alpha, server.wire(BETA) as beta:
        assert alpha.ask("SET", "n", "0") == b"OK"
        assert beta.ask("SET", "n", "0") == b"OK"
        engine.hold()
        alpha.raw(encode("INCR", "n") * 100)
        beta.send("INCR", "n")
        replies = [alpha.read() for _ in range(100)]
        assert all("ERR engine" in str(reply) for reply in replies)
        assert "not known" in str(replies[0])
        assert "ERR engine" in str(beta.read())
        assert "ERR engine" in str(beta.attempt("GET", "n"))
        engine.release()
        for wire in (alpha, beta):
            eventually(lambda wire=wire: isinstance(wire.attempt("GET", "n"), bytes), what="the engine is found again")
        # What had left was done or not; nothing was done twice, and no reply went astray.
        assert 0 <= int(alpha.ask("GET", "n")) <= 100
        assert 0 <= int(beta.ask("GET", "n")) <= 1
        assert alpha.ask("ECHO", "x") == b"x"


def test_clients_that_go_leave_their_replies_behind(front):
    server = front()
    with server.wire(BETA) as beta:
        for number in range(50):
            alpha = server.wire(ALPHA)
            alpha.raw(encode("SET", "k", "v") + encode("GET", "k") * 50)
            alpha.close()
            assert beta.ask("SET", "n", number) == b"OK"
            assert beta.ask("GET", "n") == b"%d" % number


def test_an_engine_that_is_not_there_keeps_it_from_starting(engine, front):
    engine.kill()
    from harness.server import StartFailed

    with pytest.raises(StartFailed, match="cannot be used"):
        front()


def test_a_password_is_used_and_a_wrong_one_is_told(tmp_path, engine, front):
    engine.ask("CONFIG", "SET", "requirepass", "hush")
    from harness.server import StartFailed

    with pytest.raises(StartFailed, match="NOAUTH"):
        front()
    engine.__class__.url = property(lambda self: f"redis://:hush@127.0.0.1:{self.port}")
    try:
        with front().wire(ALPHA) as alpha:
            assert alpha.ask("SET", "k", "v") == b"OK"
            assert alpha.ask("HELLO", 3) and alpha.ask("GET", "k") == b"v"
    finally:
        engine.__class__.url = property(lambda self: f"redis://127.0.0.1:{self.port}")
