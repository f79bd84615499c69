"""Fronts divide what is out at a node: as many as if there were one of them."""

import pytest

from harness.cluster import know_each_other
from harness.server import Tenant
from harness.waiting import eventually

# All that it has is at one node.
FREE = Tenant("free")
WIDE = Tenant("wide", extra="partitions = 12")
# Of one front before one node.
ALONE = 32


@pytest.fixture
def trio(make_cluster, before_node):
    """Three engines, and a front before each: by node."""
    cluster = make_cluster()
    fronts = {node: before_node(cluster, node, tenants=(FREE, WIDE), server_options="cores = 1") for node in cluster.masters}
    know_each_other(fronts.values(), WIDE)
    return fronts


def out_at_most(front):
    """How many requests of this front may be out, at all nodes together."""
    begin = 'entremet_stage_permits{'
    lines = [line for line in front.metrics() if line.startswith(begin) and 'handler' in line]
    return sum(float(line.split()[-1]) for line in lines)


def come_to(front, wire, most):
    """A client that asks now and then is all that a front has, and then so many may be out where it asks."""

    def come():
        wire.ask("GET", "k")
        return out_at_most(front) - 2 * ALONE == most

    eventually(come, 60, f"{most} may be out")


def test_plain_clients_fronts_divide_what_is_out_at_a_node(trio):
    for front in trio.values():
        assert out_at_most(front) == 3 * ALONE
        with front.wire(FREE) as wire:
            come_to(front, wire, round(ALONE / 3))


def test_the_clients_that_know_of_the_cluster_leave_a_node_to_its_own_front(trio):
    (front,) = (front for node, front in trio.items() if holds(node, front))
    with front.wire(FREE) as wire:
        come_to(front, wire, round(ALONE / 3))
    with front.aware_wire(FREE) as wire:
        come_to(front, wire, ALONE)


def holds(node, front):
    """Whether the tenant's data are at this node."""
    with front.wire(FREE) as wire:
        wire.ask("SET", "k", "x")
    return any(key.startswith(b"{@free") for key in node.keys())
