"""The first session of the README is typed in, as it stands there, against the demo server."""

import re
import subprocess

import pytest

from harness.paths import ROOT
from harness.server import SERVER, Server

pytestmark = pytest.mark.ours
PROMPT = "127.0.0.1:6380> "


def session():
    """Pairs of what is typed and what the README shows as the answer."""
    text = (ROOT / "README.md").read_text("utf-8")
    block = next(block for block in re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) if PROMPT in block)
    pairs = []
    for line in block.splitlines():
        if line.startswith(PROMPT):
            pairs.append((line.removeprefix(PROMPT), []))
        else:
            pairs[-1][1].append(line)
    return pairs


def test_first_session(tmp_path):
    demo = (ROOT / "tools" / "demo.toml").read_text("utf-8")
    server = Server(tmp_path, program=SERVER)
    demo = demo.replace("127.0.0.1:6380", f"127.0.0.1:{server.port}").replace("127.0.0.1:9380", f"127.0.0.1:{server.admin_port}")
    # No stage: measuring the disk in the first seconds is not what is tested here.
    server.config_text = demo.replace("[engine]", f'[device]\nstage = false\n\n[engine]\npath = "{server.data}"')
    server.start()
    try:
        typed, shown = zip(*session())
        cli = ["redis-cli", "-p", str(server.port), "--no-auth-warning", "--no-raw"]
        command = [*cli, "--user", "web", "--pass", "web-demo"]

        def demo_tenants():
            """What each was given, and what of it was set at run time."""
            ask = [*cli, "--user", "operator", "--pass", "operator-demo", "ENTREMET", "TENANT", "GET"]
            return [subprocess.run([*ask, name], capture_output=True, text=True, timeout=30, check=True).stdout for name in ("web", "batch", "operator")]

        before = demo_tenants()
        done = subprocess.run(command, input="\n".join(typed) + "\n", capture_output=True, text=True, timeout=30, check=False)
        wanted = [line for answer in shown for line in answer]
        # redis-cli says of an answer that took more than half a second how long it took.
        said = [line for line in done.stdout.splitlines() if line.strip() and not re.fullmatch(r"\(\d+\.\d+s\)", line)]
        assert said[: len(wanted)] == wanted
        assert len(said) > len(wanted), "the last command of the session, whose answer is left out, must answer something"
        assert "ERR" not in done.stdout
        assert demo_tenants() == before, "the session leaves the demo as it was"
    finally:
        server.kill()
