"""Where a partition is that tests move, and where to."""

from harness.cluster import others
from harness.server import ALPHA, Tenant

WIDE = Tenant("wide", extra="partitions = 8")
BOTH = (ALPHA, WIDE)


def slot_of(cluster, mark):
    return cluster.nodes[0].ask("CLUSTER", "KEYSLOT", mark)


def alpha_at(make_cluster, before, **options):
    """A cluster with a front; the slot of a tenant with one partition, who has it, and who may get it."""
    cluster = make_cluster(**options)
    server = before(cluster, tenants=BOTH)
    slot = slot_of(cluster, "{@alpha}")
    source = cluster.owner(slot)
    return cluster, server, slot, source, others(cluster, source)[0]
