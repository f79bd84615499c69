"""Fixtures of the end-to-end tests: servers started on free loopback ports, ended by process id."""

import os

import pytest

from harness.paths import BUILD, SERVER
from harness.server import Server


# Data files are opened for direct I/O, which a /tmp in memory may not support; the build cache is
# on a disk.
(BUILD / "tmp").mkdir(parents=True, exist_ok=True)
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(BUILD / "tmp"))


def pytest_report_header():
    return f"server under test: {SERVER}"


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One server with the tenants alpha and beta, shared by the tests that do not harm it."""
    instance = Server(tmp_path_factory.mktemp("server")).start()
    yield instance
    status = instance.stop()
    assert status == 0, f"the server ended with status {status}:\n{instance.said()[-4000:]}"


@pytest.fixture
def start(tmp_path):
    """A function that starts a server of the test's own; all are killed when the test ends."""
    started = []

    def launch(**options):
        folder = options.pop("folder", tmp_path / f"server{len(started)}")
        instance = Server(folder, **options)
        started.append(instance)
        return instance.start()

    yield launch
    for instance in started:
        instance.kill()


@pytest.fixture(autouse=True)
def _only_ours(request):
    if request.node.get_closest_marker("ours") and not SERVER.rsplit("/", 1)[-1].startswith("entremet"):
        pytest.skip("a redis-server cannot stand in for this")
