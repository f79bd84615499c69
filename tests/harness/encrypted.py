"""Clients over TLS, and certificates for them."""

import ssl
import subprocess

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
