"""Scripts run at the engine as their tenant's own user: they reach its keys and no other's, whatever they try."""

import hashlib
import socket

import pytest

from harness.engine import Front
from harness.resp import ServerError, encode
from harness.server import ALPHA, BETA, Tenant
from harness.waiting import eventually

ONE, TWO = (Tenant(name, extra="scripts = true") for name in ("one", "two"))
LEGACY = Tenant("legacy", extra="scripts = true")
WIDE = Tenant("wide", extra="scripts = true\npartitions = 4")
SCRIPTERS = (ONE, TWO, ALPHA)

ADD = "return redis.call('INCRBY', KEYS[1], ARGV[1])"


def sha(script):
    return hashlib.sha1(script.encode()).hexdigest()


def call(wire, words, *keys):
    """What a command answers that a script calls; an error is returned."""
    return wire.attempt("EVAL", "return redis.pcall(unpack(ARGV))", len(keys), *keys, *words)


def test_two_tenants_run_the_same_scripts_with_keys_of_their_own(engine, front):
    server = front(tenants=SCRIPTERS, server_options="cores = 2")
    with server.wire(ONE) as one, server.wire(TWO) as two:
        assert one.ask("EVAL", ADD, 1, "n", 3) == 3
        assert two.ask("EVALSHA", sha(ADD), 1, "n", 5) == 5, "scripts are without keys of anybody"
        assert (one.ask("GET", "n"), two.ask("GET", "n")) == (b"3", b"5")
        assert one.ask("EVAL_RO", "return {redis.call('GET', KEYS[1]), #KEYS, ARGV[1]}", 1, "n", "x") == [b"3", 1, b"x"]
        one.ask("EVAL", "return 7", 0)
        assert one.ask("EVALSHA_RO", sha("return 7"), 0) == 7
        assert "read-only" in str(one.attempt("EVAL_RO", "return redis.call('SET', KEYS[1], 1)", 1, "n"))
        assert "NOSCRIPT" in str(one.attempt("EVALSHA", "0" * 40, 0))
        own = "return redis.call('MGET', KEYS[1], KEYS[1] .. ':more')"
        one.ask("SET", "n:more", "m")
        assert one.ask("EVAL", own, 1, "n") == [b"3", b"m"], "a name that begins as a key does is the tenant's"
        assert engine.keys() == {b"{@one}n", b"{@one}n:more", b"{@two}n"}


def test_every_kind_of_reply_in_both_protocols(front):
    server = front(tenants=SCRIPTERS)
    cases = [
        ("return 1.9", 1, 1),
        ("return 'x'", b"x", b"x"),
        ("return {1, 'a', {2, {3}}}", [1, b"a", [2, [3]]], [1, b"a", [2, [3]]]),
        ("return redis.status_reply('FINE')", b"FINE", b"FINE"),
        ("return false", None, None),
        ("return true", 1, 1),
        ("return nil", None, None),
        ("redis.setresp(3) return true", 1, True),
        ("redis.setresp(3) return redis.call('HGETALL', KEYS[1])", [b"a", b"1"], {b"a": b"1"}),
        ("return {double = 1.5}", b"1.5", 1.5),
        ("return {map = {a = 'x'}}", [b"a", b"x"], {b"a": b"x"}),
    ]
    with server.wire(ONE) as one:
        one.ask("HSET", "hash", "a", "1")
        for protocol in (2, 3):
            one.ask("HELLO", protocol)
            for script, *expected in cases:
                assert one.ask("EVAL", script, 1, "hash") == expected[protocol - 2], (script, protocol)
            assert str(one.attempt("EVAL", "return redis.error_reply('MINE it is')", 0)) == "MINE it is"
            large = one.ask("EVAL", "return string.rep('x', ARGV[1])", 0, 3_000_000)
            assert large == b"x" * 3_000_000
            assert "k'" not in str(one.attempt("EVAL", "return redis.call('LPUSH', KEYS[1], 1)", 1, "hash"))


def test_replies_of_any_depth_are_passed_on(front):
    server = front(tenants=SCRIPTERS)
    deep = "local t = {} for _ = 1, 5000 do t = {t} end return t"
    with server.wire(ONE) as one, server.wire(ONE) as other:
        one.raw(encode("MULTI") + encode("EVAL", deep, 0) + encode("ZMPOP", 1, "none", "MIN") + encode("EXEC"))
        assert [one.input.readline() for _ in range(4)] == [b"+OK\r\n", b"+QUEUED\r\n", b"+QUEUED\r\n", b"*2\r\n"]
        assert other.ask("ECHO", "here") == b"here"
        line, depth = one.input.readline(), 0
        while line == b"*1\r\n":
            line, depth = one.input.readline(), depth + 1
        assert (line, depth) == (b"*0\r\n", 5_000)
        assert one.input.readline() == b"*-1\r\n"
        assert other.ask("ECHO", "here") == b"here"


def test_order_holds_between_scripts_and_other_requests(front):
    server = front(tenants=SCRIPTERS, server_options="cores = 2")
    with server.wire(ONE) as one:
        requests, expected, n = [], [], 0
        for number in range(600):
            n += 1
            if number % 7 < 3:
                requests.append(encode("EVAL", ADD, 1, "n", 1))
            else:
                requests.append(encode("INCR", "n"))
            expected.append(n)
        one.raw(b"".join(requests))
        assert [one.read() for _ in expected] == expected


def test_transactions_with_scripts(engine, front):
    server = front(tenants=SCRIPTERS)
    with server.wire(ONE) as one, server.wire(TWO) as two:
        two.ask("SET", "n", "theirs")
        one.raw(b"".join(encode(*words) for words in (
            ("MULTI",), ("SET", "n", 4), ("EVAL", ADD, 1, "n", 2), ("PING",), ("BLPOP", "none", 1), ("EVAL", "return redis.call('GET', '{@two}n')", 0), ("EXEC",))))
        replies = [one.read() for _ in range(7)]
        assert replies[:6] == [b"OK"] + [b"QUEUED"] * 5
        assert replies[6][:4] == [b"OK", 6, b"PONG", None]
        assert isinstance(replies[6][4], ServerError) and "theirs" not in str(replies[6])
        one.ask("MULTI")
        assert "transaction" in str(one.attempt("SCRIPT", "LOAD", "return 1"))
        assert "EXECABORT" in str(one.attempt("EXEC"))
        assert two.ask("GET", "n") == b"theirs"


def test_scripts_are_loaded_and_found(front):
    server = front(tenants=SCRIPTERS)
    with server.wire(ONE) as one:
        assert one.ask("SCRIPT", "LOAD", "return 'loaded'") == sha("return 'loaded'").encode()
        assert one.ask("SCRIPT", "EXISTS", sha("return 'loaded'"), "0" * 40) == [1, 0]
        assert one.ask("EVALSHA", sha("return 'loaded'"), 0) == b"loaded"
        assert "ompil" in str(one.attempt("SCRIPT", "LOAD", "return return"))


def test_what_all_tenants_share_is_refused_by_name(front):
    server = front(tenants=SCRIPTERS)
    with server.wire(ONE) as one, server.wire(ALPHA) as alpha:
        for words in (("SCRIPT", "FLUSH"), ("SCRIPT", "KILL"), ("SCRIPT", "DEBUG", "YES"), ("FUNCTION", "LIST"), ("FCALL", "f", 0), ("FUNCTION", "FLUSH")):
            assert "cannot be used before an engine" in str(one.attempt(*words)), words
        for words in (("EVAL", "return 1", 0), ("EVALSHA", "0" * 40, 0), ("EVAL_RO", "return 1", 0), ("SCRIPT", "LOAD", "return 1"), ("SCRIPT", "EXISTS", "0" * 40)):
            assert "`scripts = true`" in str(alpha.attempt(*words)), words
        alpha.ask("MULTI")
        assert "`scripts = true`" in str(alpha.attempt("EVAL", "return 1", 0))


def test_who_may_run_scripts_is_set_while_it_works(front):
    chief = Tenant("chief", extra="admin = true")
    server = front(tenants=(chief, ALPHA))
    with server.wire(chief) as wire, server.wire(ALPHA) as alpha:
        assert isinstance(alpha.attempt("EVAL", "return 1", 0), ServerError)
        wire.ask("ENTREMET", "TENANT", "SET", "alpha", "SCRIPTS", "yes")
        eventually(lambda: alpha.attempt("EVAL", "return 1", 0) == 1, what="it may")
        wire.ask("ENTREMET", "TENANT", "SET", "alpha", "SCRIPTS", "no")
        eventually(lambda: isinstance(alpha.attempt("EVAL", "return 1", 0), ServerError), what="it may not")


# Keys of another tenant, of every type: what stands in them is to be seen nowhere.
THEIRS = [
    ("SET", "string", "hidden"),
    ("RPUSH", "list", "hidden", "hidden2"),
    ("SADD", "set", "hidden"),
    ("HSET", "hash", "hidden", "hidden"),
    ("ZADD", "zset", "1", "hidden"),
    ("GEOADD", "geo", "13", "38", "hidden"),
    ("XADD", "stream", "1-1", "hidden", "hidden"),
    ("SET", "hidden-name", "x"),
]
FILLERS = ("1", "0", "-", "*", "LEFT", "own")
OPTIONS = (
    ("STORE", "{@two}string"),
    ("GET", "{@two}*", "BY", "{@two}*"),
    ("GET", "{@two}string"),
    ("{@one}x", "DB", "1"),
    ("1", "1", "1", "km", "STORE", "{@one}x", "STORE", "{@two}string"),
    ("STREAMS", "{@two}stream", "0"),
    ("KEYS", "{@two}string"),
)


def others(engine):
    """All that is at the engine but the keys of tenant one, as it is."""
    kept = {key: engine.ask("DUMP", key) for key in engine.keys() if not key.startswith(b"{@one}")}
    space = engine.ask("INFO", "keyspace").decode()
    return kept, "db1" in space, engine.ask("CONFIG", "GET", "maxmemory*"), engine.ask("ACL", "LIST"), engine.ask("FUNCTION", "LIST")


def names(commands):
    """Every command and subcommand, as words."""
    for command in commands:
        yield [command[0]], command[1]
        for sub in command[9]:
            yield sub[0].split(b"|"), sub[1]


def tries(words, arity):
    """Requests for a command that name keys of another tenant, or none."""
    least = abs(arity)
    for key in [b"{@two}" + item[1].encode() for item in THEIRS[:7]]:
        for filler in FILLERS:
            for length in {least, least + 1, least + 2}:
                rest = [key if at == 0 else filler for at in range(length - len(words))]
                yield words + rest
        yield words + [key] * max(least - len(words), 1)
        yield words + ["{@one}own", key] + ["1"] * max(least - len(words) - 2, 0)
        yield words + ["1", key, "LEFT"]
        yield words + ["AND", "{@one}own", key]
    for filler in FILLERS:
        for length in range(least, least + 3):
            yield words + [filler] * (length - len(words))
    yield words + ["{@one}own"] + ["1"] * max(least - len(words) - 1, 0)
    for options in OPTIONS:
        yield words + ["{@one}own", *options]
        yield words + ["{@one}geo", *options]
    yield words


def test_no_command_of_the_engine_reaches_others_from_a_script(engine, front):
    server = front(tenants=SCRIPTERS)
    commands = engine.ask("COMMAND")
    with server.wire(ONE) as one, server.wire(TWO) as two, engine.wire() as direct:
        for item in THEIRS:
            two.ask(*item)
        one.ask("RPUSH", "own", "1")
        one.ask("GEOADD", "geo", "13", "38", "here")
        assert one.ask("EVAL", "return 1", 0) == 1
        before = others(engine)
        seen = set()
        for words, arity in names(commands):
            sent = list(tries(words, arity))
            one.raw(b"".join(encode("EVAL", "return redis.pcall(unpack(ARGV))", 0, *request) for request in sent))
            for request in sent:
                reply = one.read()
                assert b"hidden" not in repr(reply).encode(), (request, reply)
                if not isinstance(reply, ServerError):
                    seen.add(b"|".join(words))
            assert others(engine) == before, words
            one.ask("DEL", "own", "geo")
            one.ask("RPUSH", "own", "1")
            one.ask("GEOADD", "geo", "13", "38", "here")
        assert direct.ask("PING") == b"PONG"
    # The tries are not all refused for their form.
    assert {b"time", b"sort", b"ping"} <= seen, seen


def test_what_an_attacker_would_try(engine, front):
    server = front(tenants=SCRIPTERS)
    with server.wire(ONE) as one, server.wire(TWO) as two:
        two.ask("SET", "key", "hidden")
        two.ask("RPUSH", "list", "hidden")
        one.ask("RPUSH", "names", "key")
        for words in (
            ("GET", "{@two}key"),
            ("SELECT", 1),
            ("FLUSHALL",),
            ("KEYS", "*"),
            ("SCAN", 0),
            ("RANDOMKEY",),
            ("SORT", "{@one}names", "BY", "nosort", "GET", "{@two}*"),
            ("SORT_RO", "{@one}names", "BY", "nosort", "GET", "{@two}*"),
            ("COPY", "{@one}names", "{@one}x", "DB", 1),
            ("COPY", "{@two}key", "{@one}x"),
            ("MIGRATE", "127.0.0.1", engine.port, "{@one}names", 1, 100),
            ("PUBLISH", "channel", "x"),
            ("AUTH", "default", ""),
            ("HELLO", 3, "AUTH", "default", ""),
            ("ACL", "SETUSER", "entremet@one", "+@all", "~*"),
            ("EVAL", "return 1", 0),
            ("MULTI",),
            ("RESET",),
            ("CLIENT", "KILL", "TYPE", "normal"),
            ("FUNCTION", "FLUSH"),
            ("SCRIPT", "FLUSH"),
            ("CONFIG", "SET", "maxmemory", 1),
            ("DEBUG", "SLEEP", 0),
            ("SHUTDOWN",),
        ):
            for keys in ((), ("names",)):
                reply = call(one, words, *keys)
                assert isinstance(reply, ServerError), (words, reply)
        cross = "#!lua flags=allow-cross-slot-keys\nreturn redis.call('GET', '{@two}key')"
        assert isinstance(one.attempt("EVAL", cross, 0), ServerError)
        # What is declared is marked, whatever it is called.
        assert one.ask("EVAL", "return redis.call('GET', KEYS[1])", 1, "{@two}key") is None
        for numkeys in (-1, 2, "x", 2**63):
            assert isinstance(one.attempt("EVAL", "return 1", numkeys, "key"), ServerError)
        assert two.ask("GET", "key") == b"hidden"


def test_who_has_no_mark_reaches_all_keys_but_marked_ones(engine, front):
    server = front(tenants=(ONE, LEGACY), engine_options='unmarked = "legacy"')
    engine.ask("MSET", "{user}:1", "old", "{", "brace", "", "empty")
    with server.wire(ONE) as one, server.wire(LEGACY) as legacy:
        one.ask("SET", "key", "hidden")
        for key, value in (("{user}:1", b"old"), ("{", b"brace"), ("", b"empty")):
            assert call(legacy, ("GET", key)) == value
        for key in ("{@one}key", "{@", "{@}catalogue"):
            assert isinstance(call(legacy, ("GET", key)), ServerError), key
        assert isinstance(call(one, ("GET", "{user}:1")), ServerError)


def test_a_user_of_the_engine_has_a_password_where_the_front_has_one(engine, tmp_path):
    engine.ask("CONFIG", "SET", "requirepass", "engine-secret")

    class Behind:
        url = f"redis://:engine-secret@127.0.0.1:{engine.port}"

    server = Front(tmp_path / "front", Behind, tenants=SCRIPTERS).start()
    try:
        with server.wire(ONE) as one, engine.wire() as direct:
            assert one.ask("EVAL", ADD, 1, "n", 1) == 1
            assert "WRONGPASS" in str(direct.attempt("AUTH", "entremet@one", ""))
            direct.ask("AUTH", "engine-secret")
            assert b"nopass" not in dict(zip(*[iter(direct.ask("ACL", "GETUSER", "entremet@one"))] * 2))[b"flags"]
    finally:
        server.kill()


def test_an_engine_that_allows_no_users_is_told(engine, front):
    server = front(tenants=SCRIPTERS)
    with server.wire(ONE) as one:
        engine.ask("ACL", "SETUSER", "default", "-acl")
        said = str(one.attempt("EVAL", "return 1", 0))
        assert "ACL SETUSER" in said and "NOPERM" in said and "nothing was done" in said, said
        assert one.ask("SET", "key", "x") == b"OK", "everything else goes on"


def test_more_tenants_than_links(front):
    many = tuple(Tenant(f"t{number}", extra="scripts = true") for number in range(70))
    server = front(tenants=many, server_options="cores = 1")
    wires = [server.wire(tenant) for tenant in many]
    try:
        for turn in range(2):
            for number, wire in enumerate(wires):
                assert wire.ask("EVAL", ADD, 1, "n", number) == (turn + 1) * number
    finally:
        for wire in wires:
            wire.close()


def test_a_script_that_runs_for_too_long_is_ended(engine, front):
    engine.ask("CONFIG", "SET", "busy-reply-threshold", 100)
    server = front(tenants=SCRIPTERS)
    with server.wire(ONE) as one, server.wire(ALPHA) as alpha:
        # Whether others ask for something meanwhile, or nobody does.
        for others_ask in (True, False):
            one.send("EVAL", "while true do end", 0)
            if others_ask:
                eventually(lambda: "BUSY" in str(alpha.attempt("GET", "n")), 20, "others are told")
                eventually(lambda: alpha.attempt("GET", "n") is None, 20, "others are served again")
            assert "SCRIPT KILL" in str(one.read())
            assert one.ask("EVAL", "return 1", 0) == 1
    said = lambda: [line for line in server.log.read_text().splitlines() if "a script of this tenant ran for too long" in line]
    eventually(lambda: len(said()) == 2, what="the log tells of both")
    assert all('"one"' in line for line in said())


def test_a_script_of_who_administers_the_engine_is_left_alone(engine, front):
    engine.ask("CONFIG", "SET", "busy-reply-threshold", 50)
    server = front()
    with engine.wire() as direct, server.wire(ALPHA) as alpha:
        direct.send("EVAL", "for _ = 1, 1e8 do end return 'done'", 0)
        eventually(lambda: "BUSY" in str(alpha.attempt("GET", "n")), 20, "others are told")
        eventually(lambda: alpha.attempt("GET", "n") is None, 20, "others are served again")
        assert direct.read() == b"done"


def test_a_script_that_has_written_and_does_not_end_is_told_of(engine, front):
    engine.ask("CONFIG", "SET", "busy-reply-threshold", 100)
    server = front(tenants=SCRIPTERS)
    with server.wire(ONE) as one, server.wire(ALPHA) as alpha:
        one.send("EVAL", "redis.call('SET', KEYS[1], 1) while true do end", 1, "n")
        eventually(lambda: "BUSY" in str(alpha.attempt("GET", "n")), 20, "it is busy")
        eventually(lambda: "UNKILLABLE" in server.log.read_text(), 20, "the log tells")
    engine.kill()


def test_scripts_before_a_cluster(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=(WIDE, ONE, TWO))
    with server.wire(WIDE) as wide, server.wire(ONE) as one:
        for number in range(40):
            assert wide.ask("EVAL", ADD, 1, f"n{number}", number) == number
        assert len({key.split(b"}")[0] for key in cluster.keys() if key.startswith(b"{@wide/")}) == 4
        assert "CROSSSLOT" in str(wide.attempt("EVAL", "return 1", 2, "n0", "n1"))
        assert wide.ask("EVAL", "return 5", 0) == 5
        body = "return redis.call('GET', KEYS[1])"
        assert wide.ask("SCRIPT", "LOAD", body) == sha(body).encode()
        assert wide.ask("SCRIPT", "EXISTS", sha(body), "0" * 40) == [1, 0]
        assert [wide.ask("EVALSHA", sha(body), 1, f"n{number}") for number in range(40)] == [b"%d" % number for number in range(40)]
        cluster.masters[1].ask("SCRIPT", "FLUSH")
        assert wide.ask("SCRIPT", "EXISTS", sha(body)) == [0], "not every node has it"
        # A slot that moves is followed.
        one.ask("EVAL", ADD, 1, "n", 1)
        slot = cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@one}")
        source = cluster.owner(slot)
        target = next(node for node in cluster.masters if node is not source)
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        assert one.ask("EVAL", ADD, 1, "n", 1) == 2
        assert one.ask("EVAL", ADD, 1, "new", 1) == 1, "it is asked there"
        cluster.move(slot, target)
        assert one.ask("EVAL", ADD, 1, "n", 1) == 3
        assert one.ask("EVAL", ADD, 1, "new", 1) == 2
        one.raw(encode("MULTI") + encode("EVAL", ADD, 1, "n", 1) + encode("GET", "new") + encode("EXEC"))
        assert [one.read() for _ in range(4)][3] == [4, b"2"]


def test_nobody_is_led_away_by_what_a_script_answers(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=(ONE, TWO), engine_options='timeout = "2s"')
    with socket.create_server(("127.0.0.1", 0)) as trap, server.wire(ONE) as one, server.wire(TWO) as two:
        trap.setblocking(False)
        two.ask("SET", "key", "x")
        slot = cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "{@two}")
        wrong = next(node for node in cluster.masters if node is not cluster.owner(slot))
        for text in (f"MOVED {slot} 127.0.0.1:{trap.getsockname()[1]}", f"ASK {slot} 127.0.0.1:{trap.getsockname()[1]}", f"MOVED {slot} 127.0.0.1:{wrong.port}", f"ASK {slot} 127.0.0.1:{wrong.port}"):
            one.send("EVAL", f"return redis.error_reply('{text}')", 1, "n")
            assert two.ask("GET", "key") == b"x"
            assert isinstance(one.read(), ServerError), text
        with pytest.raises(BlockingIOError):
            trap.accept()
        assert two.ask("GET", "key") == b"x"


def test_a_script_is_in_no_transaction_for_which_keys_are_watched(front):
    server = front(tenants=SCRIPTERS)
    with server.wire(ONE) as one:
        one.ask("WATCH", "key")
        one.ask("MULTI")
        assert one.ask("EVAL", ADD, 1, "n", 1) == b"QUEUED"
        assert "EXECABORT" in str(one.attempt("EXEC"))
        assert one.ask("EVAL", ADD, 1, "n", 1) == 1
        one.raw(encode("MULTI") + encode("UNWATCH") + encode("EVAL", ADD, 1, "n", 1) + encode("EXEC"))
        assert [one.read() for _ in range(4)][3] == [b"OK", 2], "nothing is watched any more"
