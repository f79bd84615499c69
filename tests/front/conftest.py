"""Engines, and servers that stand before them."""

from functools import partial
from pathlib import Path

import pytest

from harness.cluster import BothFront, Cluster, ClusterFront, NodeFront
from harness.encrypted import certificate
from harness.engine import Engine, Front, engines, told

pytestmark = pytest.mark.ours


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(told())


@pytest.fixture(params=engines(), ids=lambda program: Path(program).name)
def engine(request, tmp_path):
    """An engine of the test's own."""
    one = Engine(tmp_path / "engine", request.param).start()
    yield one
    one.release()
    one.kill()


@pytest.fixture
def front(engine, tmp_path):
    """A function that starts a server before `engine`."""
    started = []

    def launch(**options):
        one = Front(tmp_path / f"front{len(started)}", engine, **options)
        started.append(one)
        return one.start()

    yield launch
    for one in started:
        one.kill()


@pytest.fixture(params=engines(), ids=lambda program: Path(program).name)
def make_cluster(request, tmp_path):
    """A function that starts a cluster of the test's own."""
    started = []

    def launch(**shape):
        one = Cluster(tmp_path / f"cluster{len(started)}", request.param, **shape)
        started.append(one)
        return one.start()

    yield launch
    for one in started:
        one.kill()


@pytest.fixture
def before(tmp_path):
    """A function that starts a server before a cluster, or, as a `NodeFront`, before a node of one."""
    started = []

    def launch(cluster, *node, kind=ClusterFront, **options):
        one = kind(tmp_path / f"before{len(started)}", cluster, *node, **options)
        started.append(one)
        return one.start()

    yield launch
    for one in started:
        one.kill()


@pytest.fixture
def before_node(before):
    """A function that starts a server that cluster-aware clients see, at its port `aware`, before one node of a cluster."""
    return partial(before, kind=NodeFront)


@pytest.fixture(scope="session")
def pair(tmp_path_factory):
    """A certificate of fronts, and its key."""
    return certificate(tmp_path_factory.mktemp("certificate"), "front")


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def before_both(request, before, pair):
    """A function that starts a server that clients reach before one node without TLS and with it. The test's clients come in the one way."""
    return partial(before, kind=BothFront, pair=pair, tls=request.param)
