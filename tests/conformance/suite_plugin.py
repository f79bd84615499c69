"""Loaded (`-p suite_plugin`) into the pytest runs of other projects' suites; never into ours.

It leaves out the cases of the skip list, writes down what became of each case, and points fakeredis's tests, which
want a server on a port of their own, to the server under test.
"""

import json
import os
from functools import wraps
from pathlib import Path

import pytest

SETTINGS = json.loads(os.environ["SUITE_SETTINGS"])
# Where fakeredis's tests look for a real server.
FAKEREDIS_PORT = 6390
# A string that ends this far out takes seconds to make, on both sides; limits have tests of their
# own.
OFFSET_MAX = 1 << 24

results = {"passed": [], "failed": {}, "skipped": []}


def bare(nodeid):
    """A case without its parameters, as skip lists name it."""
    return nodeid.partition("[")[0]


def pytest_configure(config):
    if SETTINGS.get("fakeredis"):
        redirect(SETTINGS["port"])
        only_known_commands(set(SETTINGS["commands"]))


@pytest.hookimpl(trylast=True)  # after -m has left out what does not concern us, so that it is not counted as skipped
def pytest_collection_modifyitems(config, items):
    skipped = set(SETTINGS["skips"])
    keep = [item for item in items if item.nodeid not in skipped and bare(item.nodeid) not in skipped]
    results["skipped"] = [item.nodeid for item in items if item not in keep]
    items[:] = keep


def pytest_runtest_logreport(report):
    if report.failed:
        results["failed"].setdefault(report.nodeid, "")
        results["failed"][report.nodeid] += str(report.longrepr)[-1500:]
    elif report.when == "call" and report.passed:
        results["passed"].append(report.nodeid)


def pytest_collectreport(report):
    if report.failed:
        results["failed"][report.nodeid] = str(report.longrepr)[-1500:]


def pytest_sessionfinish(session):
    failed = results["failed"]
    results["passed"] = [nodeid for nodeid in results["passed"] if nodeid not in failed]
    Path(SETTINGS["results"]).write_text(json.dumps(results), "utf-8")


def redirect(port):
    """Clients that ask for fakeredis's port get the server under test."""
    import redis
    import redis.asyncio

    def with_our_address(init):
        @wraps(init)
        def changed(self, host="localhost", *args, **options):
            if options.get("port") == FAKEREDIS_PORT:
                host, options = "127.0.0.1", {**options, "port": port}
            init(self, host, *args, **options)

        return changed

    for kind in (redis.Redis, redis.asyncio.Redis):
        kind.__init__ = with_our_address(kind.__init__)


def only_known_commands(known):
    """The random command sequences keep to commands that the server has; the others are passed over on both sides."""
    from test.test_hypothesis import base

    compare = base.BaseMachine._compare

    def ours(self, command):
        name = command.encode(command.args[0]).decode("latin-1").lower() if command.args else ""
        far = name in ("setbit", "setrange") and any(isinstance(arg, int) and arg > OFFSET_MAX for arg in command.args)
        if name in known and not far:
            compare(self, command)

    base.BaseMachine._compare = ours


def pytest_collection_finish(session):
    """A failing sequence is reported as it was found: to shorten it takes minutes (ENTREMET_SHRINK=1 does it)."""
    if not SETTINGS.get("fakeredis"):
        return
    from hypothesis import Phase, settings

    phases = [Phase.explicit, Phase.generate] + ([Phase.shrink] if os.environ.get("ENTREMET_SHRINK") else [])
    examples = int(os.environ["FAKEREDIS_HYPOTHESIS_EXAMPLES"])
    settings.register_profile("entremet", max_examples=examples, phases=phases, deadline=None, database=None)
    settings.load_profile("entremet")
