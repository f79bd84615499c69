"""Replies with their types, from a stream that may end anywhere; and which differences of two servers' replies mean nothing."""

import re
from typing import NamedTuple

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


class Begun(NamedTuple):
    """A list of which nothing has arrived yet."""

    kind: bytes
    count: int


class Replies:
    """What has arrived, taken apart word by word: a reply of 100 MB comes in pieces of 4 KiB where the client reads slowly."""

    def __init__(self):
        self.input = bytearray()
        # Lists that have begun: (their kind, how many items they have, those that are there).
        self.begun = []

    def next(self):
        """The next reply, or MORE when it has not arrived whole."""
        while (word := self.word()) is not MORE:
            if isinstance(word, Begun):
                self.begun.append((word, []))
                continue
            while self.begun:
                (kind, count), items = self.begun[-1]
                items.append(word)
                if len(items) < count:
                    break
                self.begun.pop()
                word = pairs(items) if kind == b"%" else items
            else:
                return word
        return MORE

    def word(self):
        """What stands for itself, or the beginning of a list that is not empty."""
        end = self.input.find(b"\r\n")
        if end < 0:
            return MORE
        kind, rest, begin = bytes(self.input[:1]), bytes(self.input[1:end]), end + 2
        if kind in (b"$", b"=", b"!") and rest != b"-1":
            end = begin + int(rest)
            if len(self.input) < end + 2:
                return MORE
            word = bytes(self.input[begin + 4 * (kind == b"=") : end])
            begin = end + 2
        elif kind in (b"*", b"~", b">", b"%"):
            count = int(rest) * (2 if kind == b"%" else 1)
            word = Begun(kind, count) if count > 0 else [] if count == 0 else ("nil array",)
        elif kind == b":":
            word = int(rest)
        elif kind == b"-":
            word = Error(rest.decode("utf-8", "replace"))
        else:
            assert kind in (b"+", b",", b"#", b"(", b"_", b"$"), f"not a reply: {bytes(self.input[:40])!r}"
            word = None if kind in (b"_", b"$") else (kind.decode(), rest)
        del self.input[:begin]
        return word


def pairs(items):
    return list(zip(items[::2], items[1::2]))


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
