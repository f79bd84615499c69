"""redis-py's part of the common suite. The contract of a client program is in README.md beside this file."""

import json
import os
import sys
import zlib
from pathlib import Path

import redis

PORT = int(os.environ["SUITE_PORT"])
STOP = Path(os.environ.get("SUITE_STOP", ""))
USER, PASSWORD = os.environ["SUITE_USER"], os.environ["SUITE_PASSWORD"]
PROTOCOL = int(os.environ["SUITE_PROTOCOL"])
CA = os.environ.get("SUITE_CA")


def connect(**options):
    settings = {"username": USER, "password": PASSWORD, "protocol": PROTOCOL, **options}
    return redis.Redis("127.0.0.1", PORT, **settings)


def to_bytes(arg):
    if isinstance(arg, dict):
        text, times = arg["repeat"]
        return text.encode("latin-1") * times
    return arg.encode("latin-1")


def tell(reply):
    """A reply as the JSON that every client program prints."""
    if isinstance(reply, Exception):
        return {"error": str(reply)}
    if isinstance(reply, bytes):
        return reply.decode("latin-1") if len(reply) <= 4096 else {"length": len(reply), "adler": zlib.adler32(reply)}
    if isinstance(reply, (list, tuple, set)):
        return [tell(item) for item in reply]
    if isinstance(reply, dict):
        return {"map": [[tell(key), tell(value)] for key, value in reply.items()]}
    return reply


def ask(client, args):
    try:
        return client.execute_command(*args)
    except redis.ResponseError as error:
        return error


def run_case(client, case):
    commands = [[to_bytes(arg) for arg in args] for args, _ in case["steps"]]
    if not case.get("pipeline"):
        return [ask(client, args) for args in commands]
    pipeline = client.pipeline(transaction=False)
    pipeline.response_callbacks = {}
    for args in commands:
        pipeline.execute_command(*args)
    return pipeline.execute(raise_on_error=False)


def typed_set_get(client):
    assert client.set("ts", "v", ex=100) is True
    assert client.get("ts") == b"v"
    assert 90 < client.ttl("ts") <= 100
    assert client.set("ts", "w", nx=True) is None


def typed_hash(client):
    assert client.hset("th", mapping={"a": 1, "b": "two"}) == 2
    assert client.hgetall("th") == {b"a": b"1", b"b": b"two"}


def typed_sorted_set(client):
    assert client.zadd("tz", {"a": 1, "b": 2.5}) == 2
    found = client.zrange("tz", 0, -1, withscores=True)
    assert [(name, score) for name, score in map(tuple, found)] == [(b"a", 1.0), (b"b", 2.5)], found


def typed_pipeline(client):
    with client.pipeline() as pipeline:
        pipeline.set("tp", 1).incr("tp").get("tp")
        assert pipeline.execute() == [True, 2, b"2"]


def typed_watch(client):
    client.set("tw", 1)
    with client.pipeline() as pipeline:
        pipeline.watch("tw")
        client.set("tw", 2)
        pipeline.multi()
        pipeline.set("tw", 3)
        try:
            pipeline.execute()
            raise AssertionError("the watched key had changed")
        except redis.WatchError:
            pass
    assert client.get("tw") == b"2"


def typed_refused_password(_):
    try:
        connect(password="wrong").ping()
    except redis.AuthenticationError:
        return
    raise AssertionError("a wrong password was accepted")


def typed_many_connections(_):
    clients = [connect() for _ in range(50)]
    for index, client in enumerate(clients):
        client.set(f"many:{index}", index)
    assert [clients[-1].get(f"many:{index}") for index in range(50)] == [b"%d" % index for index in range(50)]
    for client in clients:
        client.close()


def cluster_keys(client):
    assert len(client.get_primaries()) == 3
    for number in range(200):
        assert client.set(f"k{number}", number)
    assert [client.get(f"k{number}") for number in range(200)] == [b"%d" % number for number in range(200)]
    assert client.mget_nonatomic([f"k{number}" for number in range(200)]) == [b"%d" % number for number in range(200)]


def cluster_pipeline(client):
    with client.pipeline() as pipeline:
        for number in range(200):
            pipeline.incr(f"p{number}")
        assert pipeline.execute() == [1] * 200


def cluster_hash_tag(client):
    assert client.mset({"{t}a": 1, "{t}b": 2})
    assert client.mget("{t}a", "{t}b") == [b"1", b"2"]
    with client.pipeline(transaction=True) as pipeline:
        pipeline.incr("{t}a").incr("{t}b")
        assert pipeline.execute() == [2, 3]


def cluster_to_the_end(client):
    counts = [0] * 32
    while not (STOP.exists() and all(counts)):
        for number in range(32):
            client.incr(f"g{number}")
            counts[number] += 1
    assert [int(client.get(f"g{number}")) for number in range(32)] == counts


def run_checks(kind, client):
    for name, check in list(globals().items()):
        if name.startswith(kind):
            problem = ""
            try:
                check(client)
            except Exception as error:  # a check may fail in any way; the report says how
                problem = repr(error)
            print(json.dumps({"case": name.replace("_", "-"), "problem": problem}), flush=True)


def main():
    if STOP.name:
        tls = {"ssl": True, "ssl_ca_certs": CA} if CA else {}
        client = redis.RedisCluster("127.0.0.1", PORT, username=USER, password=PASSWORD, protocol=PROTOCOL, **tls)
        run_checks("cluster_", client)
        return
    with open(os.environ["SUITE_FILE"], encoding="utf-8") as file:
        suite = json.load(file)
    raw = connect(single_connection_client=True)
    raw.response_callbacks = {}
    for case in suite:
        raw.execute_command("FLUSHDB")
        replies = run_case(raw, case)
        print(json.dumps({"case": case["name"], "replies": [tell(reply) for reply in replies]}))
    run_checks("typed_", connect())


if __name__ == "__main__":
    sys.exit(main())
