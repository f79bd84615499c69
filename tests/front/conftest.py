"""Engines, and servers that stand before them."""

from pathlib import Path

import pytest

from harness.cluster import Cluster, ClusterFront
from harness.engine import Engine, Front, engines
from harness.server import free_port

pytestmark = pytest.mark.ours


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
    """A function that starts a server before a cluster."""
    started = []

    def launch(cluster, **options):
        one = ClusterFront(tmp_path / f"before{len(started)}", cluster, **options)
        started.append(one)
        return one.start()

    yield launch
    for one in started:
        one.kill()


@pytest.fixture
def before_node(before):
    """A function that starts a server that cluster-aware clients see, at its port `aware`, before one node of a cluster."""

    def launch(cluster, node, server_options="", **options):
        aware = free_port()
        place = f'cluster = {{ listen = "127.0.0.1:{aware}", node = "127.0.0.1:{node.port}" }}'
        front = before(cluster, server_options=f"{server_options}\n{place}", **options)
        front.aware, front.node = aware, node
        return front

    return launch
