"""A bare RESP connection: what a test needs when a real client would be too polite (or hide what was said)."""

import socket

from harness.waiting import PATIENCE


class ServerError(Exception):
    """An error reply, with Redis's own text."""


class Wire:
    """One connection. Replies come back as Python values: bytes, int, float, bool, None, list, dict, ServerError."""

    def __init__(self, port, host="127.0.0.1", timeout=20.0 * PATIENCE, receive_buffer=None, source=None):
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if source is not None:
            # Every address of 127.0.0.0/8 is this machine's: so another peer is made.
            self.sock.bind((source, 0))
        if receive_buffer is not None:
            # Must be set before the handshake, or the window is already agreed upon.
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(timeout)
        self.sock.connect((host, port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = self.sock.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.input.close()
        self.sock.close()

    def raw(self, data):
        """Sends bytes as they are."""
        self.sock.sendall(data)

    def send(self, *args):
        """Sends one command without waiting for its reply."""
        self.raw(encode(*args))

    def ask(self, *args):
        """Sends one command and returns its reply; an error reply is raised."""
        self.send(*args)
        reply = self.read()
        if isinstance(reply, ServerError):
            raise reply
        return reply

    def attempt(self, *args):
        """Like `ask`, but an error reply is returned."""
        self.send(*args)
        return self.read()

    def read(self):
        """Reads one reply. EOFError when the server has closed the connection."""
        line = self.input.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        reader = _READERS.get(kind)
        if reader is None:
            raise ValueError(f"not RESP: {line!r}")
        return reader(self, rest)

    def _exactly(self, length):
        data = self.input.read(length + 2)
        if len(data) != length + 2:
            raise EOFError("the server closed the connection inside a reply")
        return data[:-2]

    def _bulk(self, rest):
        return None if rest == b"-1" else self._exactly(int(rest))

    def _list(self, rest):
        return None if rest == b"-1" else [self.read() for _ in range(int(rest))]

    def _map(self, rest):
        return {_hashable(self.read()): self.read() for _ in range(int(rest))}


def _hashable(value):
    return tuple(value) if isinstance(value, list) else value


_READERS = {
    b"+": lambda wire, rest: rest,
    b"-": lambda wire, rest: ServerError(rest.decode("utf-8", "replace")),
    b":": lambda wire, rest: int(rest),
    b"$": Wire._bulk,
    b"*": Wire._list,
    b"_": lambda wire, rest: None,
    b",": lambda wire, rest: float(rest),
    b"#": lambda wire, rest: rest == b"t",
    b"(": lambda wire, rest: int(rest),
    b"!": lambda wire, rest: ServerError(wire._exactly(int(rest)).decode("utf-8", "replace")),
    b"=": lambda wire, rest: wire._exactly(int(rest))[4:],
    b"~": Wire._list,
    b">": Wire._list,
    b"%": Wire._map,
}


def encode(*args):
    """A command as a RESP array of bulk strings."""
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        data = arg if isinstance(arg, bytes) else str(arg).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)
