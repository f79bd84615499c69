"""What a server does about its disk at its first start in a data directory, and at later ones."""

import json
import urllib.request

import pytest

from harness.server import ALPHA, Server, StartFailed
from harness.waiting import eventually

pytestmark = pytest.mark.ours

# Says nothing of a profile, a model or the stage: what a user's configuration does.
UNSAID = "[device]\n"
# Seconds on a quiet machine. A busy one may have to measure a second time, a minute later.
MEASURED_S = 240


def told(server):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/api/server", timeout=10) as answer:
        return json.load(answer)


def measured(server):
    """Waits until I/O is scheduled. A disk that cannot be measured, such as one in memory, must be said to be one; there is no more to see there."""

    def settled():
        now = told(server)
        return now if "device" in now or "until the next start" in now["device_doubt"] else None

    now = eventually(settled, MEASURED_S, "the disk is measured")
    if "device" not in now:
        assert "cannot be measured" in now["device_doubt"]
        pytest.skip(now["device_doubt"])


def scratch(server):
    return list(server.data.glob(".entremet-calibrate-*"))


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    """A profile as a first start leaves it, and what that start said on the way."""
    server = Server(tmp_path_factory.mktemp("first"), engine_options=UNSAID).start()
    try:
        with server.wire(ALPHA) as wire:
            assert wire.ask("SET", "before", "1") == b"OK"
            measured(server)
            assert wire.ask("SET", "after", "1") == b"OK"
            assert wire.ask("GET", "before") == b"1"
        server.says("measuring the disk under")
        server.says("I/O is scheduled from now on")
        assert "device_doubt" not in told(server)
        assert not scratch(server), "the scratch folder is gone"
        return (server.data / "device.toml").read_text("utf-8")
    finally:
        server.kill()


def begin(folder, text):
    """A server with this profile beside its data."""
    server = Server(folder, engine_options=UNSAID)
    server.data.mkdir(parents=True)
    (server.data / "device.toml").write_text(text, "utf-8")
    return server


def test_the_next_start_measures_nothing(tmp_path, profile):
    server = begin(tmp_path, profile).start()
    try:
        assert "device" in told(server) and "device_doubt" not in told(server)
        server.says("I/O is scheduled by")
        assert "measuring" not in server.said()
        assert (server.data / "device.toml").read_text("utf-8") == profile
    finally:
        server.kill()


def test_a_corrupt_profile_is_refused(tmp_path, profile):
    server = begin(tmp_path, profile[: len(profile) // 2])
    with pytest.raises(StartFailed) as refused:
        server.start()
    said = str(refused.value)
    assert "device.toml is no profile that can be used" in said and "do: remove" in said, said


def test_a_profile_of_another_disk_is_replaced(tmp_path, profile):
    if 'disk = ""' in profile:
        pytest.skip("nobody knows which disk this is")
    strange = "\n".join('disk = "elsewhere"' if line.startswith("disk = ") else line for line in profile.splitlines())
    server = begin(tmp_path, strange).start()
    try:
        server.says('is of another disk (its disk is "elsewhere"')
        measured(server)
        assert "elsewhere" not in (server.data / "device.toml").read_text("utf-8")
    finally:
        server.kill()


def test_a_server_that_is_killed_while_it_measures_leaves_nothing_for_long(tmp_path, profile):
    assert profile, "there is a disk that can be measured"
    server = Server(tmp_path, engine_options=UNSAID).start()
    try:
        eventually(lambda: scratch(server), 60, "it measures")
        server.kill()
        left = scratch(server)
        assert len(left) == 1 and not (server.data / "device.toml").exists()
        server.start()
        eventually(lambda: left[0] not in scratch(server), 60, "what was left is removed")
        # One that ends in order ends its measurement.
        eventually(lambda: scratch(server) or "device" in told(server), 60, "it measures again")
        assert server.stop() == 0
        assert not scratch(server)
    finally:
        server.kill()
