"""Who may ask the admin address, and certificates that are exchanged while the server runs."""

import signal
import socket
import ssl
import subprocess
import urllib.error
import urllib.request

import pytest

from harness.encrypted import certificate
from harness.paths import SERVER
from harness.server import ALPHA, BETA, StartFailed, Tenant, free_port
from harness.waiting import eventually

pytestmark = pytest.mark.ours
TOKEN = "a-token-that-nobody-guesses"


def put(pair, cert, key):
    """The files that the server reads, with this content."""
    cert.write_bytes(pair[0].read_bytes())
    key.write_bytes(pair[1].read_bytes())


def fetch(server, path, headers=None, tls=None):
    """Status and text of an answer."""
    scheme = "https" if tls else "http"
    request = urllib.request.Request(f"{scheme}://127.0.0.1:{server.admin_port}{path}", headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=10, context=tls) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def top(server, *arguments, **environment):
    command = [SERVER, "top", "--once", "--admin", f"127.0.0.1:{server.admin_port}", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, env={"PATH": "/usr/bin", **environment})


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "admin.token"
    path.write_text(TOKEN + "\n")
    path.chmod(0o600)
    return path


def test_a_page_from_elsewhere_cannot_read_it_by_a_name_of_its_own(start):
    server = start(server_options='admin_names = "metrics.example.org"')
    for host, status in (("evil.example.org", 403), ("metrics.example.org:80", 200), ("localhost:1", 200), ("10.0.0.7", 403)):
        for path in ("/", "/metrics", "/api/tenants", "/api/live"):
            assert fetch(server, path, {"Host": host})[0] == status, (host, path)
        assert fetch(server, "/livez", {"Host": host})[0] == 200


def test_a_token_is_asked_for_and_exchanged_by_a_reload(start, token_file):
    server = start(server_options=f'admin_token_file = "{token_file}"')
    assert fetch(server, "/metrics")[0] == 401 and fetch(server, "/metrics", bearer("another-token-altogether"))[0] == 401
    assert "redis_up 1" in fetch(server, "/metrics", bearer(TOKEN))[1]
    assert fetch(server, "/readyz") == (200, "ready\n")
    refused = top(server)
    assert refused.returncode == 1 and "--token-file" in refused.stderr, refused.stderr
    assert "alpha" in top(server, "--token-file", token_file).stdout
    assert "alpha" in top(server, ENTREMET_ADMIN_TOKEN=TOKEN).stdout
    token_file.write_text("the-next-token-of-this-server")
    server.reload((ALPHA, BETA))
    eventually(lambda: fetch(server, "/metrics", bearer("the-next-token-of-this-server"))[0] == 200, 10, "the new one is asked for")
    assert fetch(server, "/metrics", bearer(TOKEN))[0] == 401
    assert TOKEN not in server.said()


def test_beyond_loopback_it_must_have_one(start, token_file):
    admin = f"0.0.0.0:{free_port()}"
    config = f'[server]\nlisten = "127.0.0.1:{free_port()}"\nadmin = "{admin}"\n[[tenant]]\nname = "web"\npassword = "x"\n'
    with pytest.raises(StartFailed, match="is open to the network, and whoever reaches it may read all metrics without a token"):
        start(config_text=config)
    server = start(config_text=config.replace("[[tenant]]", f'admin_token_file = "{token_file}"\n[[tenant]]', 1))
    server.says("the token travels readable")


def test_without_tenants_nobody_can_connect_from_elsewhere(start):
    with pytest.raises(StartFailed, match="without a \\[\\[tenant\\]\\] whoever connects may administer the server"):
        start(config_text=f'[server]\nlisten = "0.0.0.0:{free_port()}"\nadmin = "127.0.0.1:{free_port()}"\n')


def test_top_asks_by_tls(start, tmp_path, token_file):
    cert, key = certificate(tmp_path, "admin")
    options = f'admin_token_file = "{token_file}"\nadmin_tls = {{ cert = "{cert}", key = "{key}" }}'
    server = start(server_options=options)
    server.says(f"admin on https://127.0.0.1:{server.admin_port}")
    trusting = ssl.create_default_context(cafile=cert)
    assert fetch(server, "/metrics", bearer(TOKEN), trusting)[0] == 200
    assert "alpha" in top(server, "--token-file", token_file, "--ca", cert).stdout
    assert "alpha" in top(server, "--token-file", token_file, "--ca", cert, "--name", "localhost").stdout
    for wrong in (("--ca", certificate(tmp_path, "other")[0]), ("--ca", cert, "--name", "elsewhere"), ()):
        done = top(server, "--token-file", token_file, *wrong)
        assert done.returncode == 1 and "alpha" not in done.stdout, wrong


def shown(server, port):
    """The certificate that a new connection is shown."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain, context.wrap_socket(plain) as wrapped:
        return ssl.DER_cert_to_PEM_cert(wrapped.getpeercert(binary_form=True))


def text(pair):
    return ssl.DER_cert_to_PEM_cert(ssl.PEM_cert_to_DER_cert(pair[0].read_text()))


def expiries(server, context):
    page = fetch(server, "/metrics", tls=context)[1].splitlines()
    lines = [line for line in page if line.startswith("entremet_certificate_expires_seconds{")]
    return {line.split('"')[1]: float(line.split()[1]) for line in lines}


def test_certificates_are_exchanged_by_a_reload_and_bad_ones_are_not_taken(start, tmp_path):
    cert, key, port = tmp_path / "server.crt", tmp_path / "server.key", free_port()
    first, second = certificate(tmp_path, "first"), certificate(tmp_path, "second", days=90)
    expired = certificate(tmp_path, "expired", days=-1)
    put(first, cert, key)
    options = f'[server.tls]\nlisten = "127.0.0.1:{port}"\ncert = "{cert}"\nkey = "{key}"\n[server.admin_tls]'
    server = start(server_options=options)
    server.says("the certificate of clients expires on ")
    unverified = ssl._create_unverified_context()  # noqa: S323
    assert shown(server, port) == shown(server, server.admin_port) == text(first)
    before = expiries(server, unverified)
    assert before["clients"] == before["admin"]
    with server.wire(ALPHA) as wire:
        for number, (pair, why) in enumerate((((first[0], second[1]), "does not fit the certificate"), (expired, "expired on")), 1):
            put(pair, cert, key)
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: refused(server, unverified) == number, 10, "it is refused")  # noqa: B023
            server.says(why)
            assert shown(server, port) == shown(server, server.admin_port) == text(first)
        put(second, cert, key)
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: shown(server, port) == shown(server, server.admin_port) == text(second), 10, "the new one is shown")
        assert wire.ask("PING") == b"PONG"
    after = expiries(server, unverified)
    assert after["clients"] - before["clients"] > 50 * 86_400
    # What the file says beside its certificates is taken over with them.
    server.reload((ALPHA, Tenant("gamma")))
    eventually(lambda: '"gamma"' in fetch(server, "/api/tenants", tls=unverified)[1], 10, "a tenant more")


def refused(server, context):
    page = fetch(server, "/metrics", tls=context)[1].splitlines()
    return next(float(line.split()[1]) for line in page if "reload" in line and "refused" in line and line[0] != "#")
