"""Replies with their types, from a stream that may end anywhere; and which differences of two servers' replies mean nothing."""

import re

MORE = object()
SLACK_S = 300

# What Redis leaves open: only its kind is compared.
RANDOM = {b"RANDOMKEY", b"HRANDFIELD", b"ZRANDMEMBER"}
UNORDERED = {b"KEYS", b"HKEYS", b"HVALS", b"HGETALL", b"SCAN", b"HSCAN", b"ZSCAN"}
LASTING = {b"TTL": 1, b"PTTL": 1_000, b"EXPIRETIME": 1, b"PEXPIRETIME": 1_000}
# About the server or the connection: another server says something else.
ITS_OWN = {b"OBJECT", b"MEMORY", b"CLIENT", b"INFO", b"TIME", b"COMMAND", b"SLOWLOG", b"LATENCY"}
# The model has no tenants; it is told something else that is refused as well.
LOGINS = {b"AUTH", b"HELLO"}


class Error(str):
    """An error reply."""


def parse(data, at=0):
    """(reply, where the next one begins), or (MORE, at) when it has not arrived whole."""
    end = data.find(b"\r\n", at)
    if end < 0:
        return MORE, at
    kind, rest, begin = data[at : at + 1], bytes(data[at + 1 : end]), end + 2
    if kind in b"+,#(:_":
        return (int(rest) if kind == b":" else None if kind == b"_" else (kind.decode(), rest)), begin
    if kind == b"-":
        return Error(rest.decode("utf-8", "replace")), begin
    if kind in b"$=!":
        if rest == b"-1":
            return None, begin
        after = begin + int(rest) + 2
        whole = bytes(data[begin + 4 * (kind == b"=") : after - 2])
        return (whole, after) if after <= len(data) else (MORE, at)
    if kind not in b"*%~>":
        raise AssertionError(f"not a reply: {bytes(data[at : at + 40])!r}")
    if rest == b"-1":
        return ("nil array",), begin
    items = []
    for _ in range(int(rest) * (2 if kind == b"%" else 1)):
        item, begin = parse(data, begin)
        if item is MORE:
            return MORE, at
        items.append(item)
    return ([tuple(items[i : i + 2]) for i in range(0, len(items), 2)] if kind == b"%" else items), begin


def same(command, ours, theirs):
    """Whether two servers have said the same to a command."""
    name = command[0].upper()
    if name in LOGINS:
        return isinstance(ours, Error) == isinstance(theirs, Error)
    if isinstance(ours, Error) or isinstance(theirs, Error):
        return isinstance(ours, Error) and isinstance(theirs, Error) and plain(ours) == plain(theirs)
    if name in ITS_OWN or any(word.startswith(b"~") for word in command[1:]):
        return True
    if name in RANDOM:
        return type(ours) is type(theirs) and (not isinstance(ours, list) or len(ours) == len(theirs))
    if name in LASTING and isinstance(ours, int) and isinstance(theirs, int):
        return ours == theirs or (min(ours, theirs) > 0 and abs(ours - theirs) <= SLACK_S * LASTING[name])
    if name in UNORDERED:
        return unordered(name, ours) == unordered(name, theirs)
    return ours == theirs


def plain(error):
    """An error without the names and numbers that are a server's own."""
    return re.sub(r"[0-9]+", "N", error.split(",")[0])[:60]


def unordered(name, reply):
    if not isinstance(reply, list):
        return reply
    if name.endswith(b"SCAN"):
        cursor, items = reply
        return cursor, unordered(b"HGETALL" if name != b"SCAN" else b"KEYS", items)
    if name == b"HGETALL" and reply and not isinstance(reply[0], tuple):
        reply = list(zip(reply[::2], reply[1::2]))
    return sorted(reply, key=repr)
