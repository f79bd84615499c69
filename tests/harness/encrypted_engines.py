"""Engines that speak TLS only, and what stands before them."""

from functools import partial
from pathlib import Path

from harness.cluster import Cluster, Node
from harness.encrypted import Encrypted
from harness.engine import Engine


def speak_tls(programs):
    """Those engines that were built with TLS."""
    return [program for program in programs if b"tls-cert-file" in Path(program).read_bytes()]


class Speaks:
    """Of an engine: it listens by TLS only, and asks for a certificate, as Redis does unless it is told otherwise."""

    def __init__(self, *words, authority, pair=None):
        super().__init__(*words)
        self.authority = authority
        self.pair = pair or authority.sign(f"engine-{self.port}")
        files = ("--tls-cert-file", self.pair[0], "--tls-key-file", self.pair[1], "--tls-ca-cert-file", authority.cert)
        self.options = (*self.options, "--port", "0", "--tls-port", str(self.port), *map(str, files))

    @property
    def url(self):
        return f"rediss://127.0.0.1:{self.port}"

    def wire(self):
        return Encrypted(self.port, own=self.pair)


class EncryptedEngine(Speaks, Engine):
    """One engine."""


class EncryptedNode(Speaks, Node):
    """One engine in a cluster whose nodes speak TLS to each other, too."""

    def __init__(self, *words, authority):
        super().__init__(*words, authority=authority)
        self.options = (*self.options, "--tls-cluster", "yes", "--tls-replication", "yes")


class EncryptedCluster(Cluster):
    """A cluster of those."""

    def __init__(self, folder, program, authority, **shape):
        self.authority, self.own = authority, authority.sign("operator")
        super().__init__(folder, program, kind=partial(EncryptedNode, authority=authority), **shape)

    @property
    def url(self):
        return super().url.replace("redis-", "rediss-")

    def command(self, name, *words, **options):
        tls = ("--ca", self.authority.cert, "--cert", self.own[0], "--key", self.own[1])
        return super().command(name, *words, *tls, **options)


def trusting(authority, own=None, name=None):
    """The server's options before an engine with TLS."""
    lines = ["[engine.tls]", f'ca = "{authority.cert}"']
    lines += [f'cert = "{own[0]}"\nkey = "{own[1]}"'] if own else []
    lines += [f'name = "{name}"'] if name else []
    return "\n".join(lines)
