"""redis-py's cluster client, unmodified, before a cluster: it sees one node that has all slots."""

import redis

from harness.server import ALPHA, Tenant

WIDE = Tenant("wide", extra="partitions = 8")


def test_a_cluster_client_is_served_while_slots_move(make_cluster, before):
    cluster = make_cluster()
    server = before(cluster, tenants=(ALPHA, WIDE))
    for tenant in (ALPHA, WIDE):
        client = redis.RedisCluster(host="127.0.0.1", port=server.port, username=tenant.name, password=tenant.password)
        assert [node.port for node in client.get_nodes()] == [server.port]
        for number in range(100):
            assert client.set(f"k{number}", number)
        assert client.mget_nonatomic([f"k{number}" for number in range(100)]) == [b"%d" % number for number in range(100)]
        assert client.cluster_keyslot("{user}a") == cluster.nodes[0].ask("CLUSTER", "KEYSLOT", "user")
        assert set(client.scan_iter(match="k1?")) == {b"k1%d" % number for number in range(10)}
        with client.pipeline() as pipeline:
            for number in range(100):
                pipeline.incr(f"k{number}")
            assert pipeline.execute() == [number + 1 for number in range(100)]
        marked = next(key for node in cluster.masters for key in node.keys() if key.startswith(b"{@" + tenant.name.encode()))
        slot = cluster.nodes[0].ask("CLUSTER", "KEYSLOT", marked)
        source = cluster.owner(slot)
        cluster.move(slot, next(node for node in cluster.masters if node is not source))
        assert [client.get(f"k{number}") for number in range(100)] == [b"%d" % (number + 1) for number in range(100)]
        assert client.flushall()
        assert client.dbsize() == 0
        client.close()
