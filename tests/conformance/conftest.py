"""The server that other projects' suites are run against: no passwords, all commands of the default tenant."""

import os

import pytest
import reference
import skiplist

from harness.paths import SERVER
from harness.server import Server, Tenant

# Other projects' suites log in as nobody, and expect to be masters of the server.
MASTER = Tenant("default", extra="admin = true")
# Some go to the limit that Redis has by default.
LIMITS = 'max_value = "512MiB"'


@pytest.fixture(scope="package")
def target(tmp_path_factory):
    """Entremet; or a redis-server, reduced to the promised commands when ENTREMET_REDUCED is set."""
    folder = tmp_path_factory.mktemp("conformance")
    instance = Server(folder, tenants=(MASTER,), server_options=LIMITS)
    if instance.is_reference and os.environ.get("ENTREMET_REDUCED"):
        instance = reference.reduced(folder, SERVER)
    instance.start()
    yield instance
    instance.kill()


@pytest.fixture(scope="module")
def tally(request, pytestconfig):
    """The counts of one suite; its summary is shown at the end of the run."""
    counts = skiplist.Tally(request.module.SUITE)
    pytestconfig.stash.setdefault(TALLIES, []).append(counts)
    return counts


TALLIES = pytest.StashKey()


def pytest_terminal_summary(terminalreporter, config):
    for counts in config.stash.get(TALLIES, []):
        terminalreporter.section(f"conformance: {counts.suite}")
        terminalreporter.write_line(counts.summary())
