"""Clients and engines over TLS, and certificates for them."""

import ssl
import subprocess
from functools import partial
from pathlib import Path

from harness.cluster import Cluster, Node
from harness.engine import Engine
from harness.resp import Wire


NAMES = "DNS:localhost,IP:127.0.0.1"


def certificate(folder, name, days=30, names=NAMES, signer=None):
    """A certificate of this machine with its key, valid for so many days; signed by itself, or by the pair `signer`."""
    cert, key, request, extensions = (folder / f"{name}.{kind}" for kind in ("crt", "key", "csr", "ext"))
    extensions.write_text(f"subjectAltName={names}\nbasicConstraints=critical,CA:FALSE\n")
    new = ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}"]
    by = ["-CA", signer[0], "-CAkey", signer[1], "-CAcreateserial"] if signer else ["-signkey", key]
    sign = ["x509", "-req", "-in", request, *by, "-days", days, "-extfile", extensions, "-out", cert]
    for words in ([*new, "-keyout", key, "-out", request], sign):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
    return cert, key


class Authority:
    """Who signs the certificates of engines and of servers before them."""

    def __init__(self, folder, name="authority"):
        self.folder, self.cert, self.key = folder, folder / f"{name}.crt", folder / f"{name}.key"
        words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}", "-days", "30"]
        subprocess.run(["openssl", *words, "-keyout", self.key, "-out", self.cert], check=True, capture_output=True)

    def sign(self, name, **options):
        """A certificate and its key."""
        return certificate(self.folder, name, signer=(self.cert, self.key), **options)


def listening(port, folder):
    """The server's option to listen there by TLS, with a certificate made in `folder`."""
    cert, key = certificate(folder, "server")
    return f'[server.tls]\nlisten = "127.0.0.1:{port}"\ncert = "{cert}"\nkey = "{key}"'


class Encrypted(Wire):
    """A connection over TLS to a server whose certificate nobody checks, authenticated as `tenant` if one is given. It shows the pair `own`."""

    def __init__(self, port, tenant=None, own=None):
        super().__init__(port, timeout=60, receive_buffer=65536)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if own:
            context.load_cert_chain(*own)
        self.input.close()
        self.sock = context.wrap_socket(self.sock)
        self.input = self.sock.makefile("rb")
        if tenant:
            self.ask("AUTH", tenant.name, tenant.password)


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
