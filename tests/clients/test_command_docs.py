"""COMMAND DOCS tells of arguments what redis-server tells of the same commands: clients make help and hints of it."""

import pytest

from harness.server import ALPHA, Server

pytestmark = pytest.mark.ours
# What is told otherwise on purpose, and why.
EXCEPTIONS = {
    "bitop": "Redis 7.0 has a string in place of the four operations",
    "client|kill": "all connections are of one type, and options are given once",
    "client|list": "all connections are of one type",
    "client|tracking": "it can only be OFF",
    "command|getkeys": "Redis 7.0 documents no arguments",
    "command|getkeysandflags": "Redis 7.0 documents no arguments",
    "config|get": "a block of one argument is that argument",
    "zadd": "CH and INCR are called by their tokens",
}


def flat(pairs):
    """A map of RESP2, as a dictionary."""
    return dict(zip(pairs[::2], pairs[1::2]))


def documented(wire, reply=None):
    """The arguments of every command and subcommand, by name."""
    found = {}
    for name, doc in flat(reply or wire.ask("COMMAND", "DOCS")).items():
        doc = flat(doc)
        found[name.decode()] = [shape(argument) for argument in doc.get(b"arguments", [])]
        if b"subcommands" in doc:
            found.update(documented(wire, doc[b"subcommands"]))
    return found


def shape(argument):
    """What a client makes something of. The names of groups are each server's own: `condition` there is `nx_xx` here."""
    argument = flat(argument)
    inner = [shape(each) for each in argument.get(b"arguments", [])]
    return {
        "type": argument[b"type"].decode(),
        "name": None if inner else argument[b"name"].decode(),
        "token": argument.get(b"token", b"").decode(),
        "key": argument.get(b"key_spec_index"),
        "flags": sorted(flag.decode() for flag in argument.get(b"flags", [])),
        "inner": inner,
    }


def test_arguments_are_those_of_redis(server, tmp_path):
    redis = Server(tmp_path, tenants=(), program="redis-server").start()
    try:
        with server.wire(ALPHA) as ours, redis.wire() as theirs:
            here, there = documented(ours), documented(theirs)
    finally:
        redis.kill()
    common = sorted(set(here) & set(there))
    assert len(common) > 150
    wrong = [name for name in common if here[name] != there[name] and name not in EXCEPTIONS]
    assert not wrong, "\n".join(f"{name}\n  ours {here[name]}\n  theirs {there[name]}" for name in wrong)
    needless = [name for name in EXCEPTIONS if here[name] == there[name]]
    assert not needless, f"exceptions that are none: {needless}"
