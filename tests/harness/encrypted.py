"""Clients over TLS, and certificates for them."""

import ssl
import subprocess

from harness.resp import Wire


def certificate(folder, name, days=30):
    """A certificate of 127.0.0.1 with its key, valid for so many days."""
    cert, key, request, extensions = (folder / f"{name}.{kind}" for kind in ("crt", "key", "csr", "ext"))
    extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=critical,CA:FALSE\n")
    new = ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}"]
    sign = ["x509", "-req", "-in", request, "-signkey", key, "-days", days, "-extfile", extensions, "-out", cert]
    for words in ([*new, "-keyout", key, "-out", request], sign):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
    return cert, key


def listening(port, folder):
    """The server's option to listen there by TLS, with a certificate made in `folder`."""
    cert, key = certificate(folder, "server")
    return f'[server.tls]\nlisten = "127.0.0.1:{port}"\ncert = "{cert}"\nkey = "{key}"'


class Encrypted(Wire):
    """A connection over TLS to a server whose certificate nobody checks, authenticated as `tenant`."""

    def __init__(self, port, tenant):
        super().__init__(port, timeout=60, receive_buffer=65536)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.input.close()
        self.sock = context.wrap_socket(self.sock)
        self.input = self.sock.makefile("rb")
        self.ask("AUTH", tenant.name, tenant.password)
