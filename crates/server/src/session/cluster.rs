//! `CLUSTER …`, answered as a cluster of one node that owns every hash slot.
//!
//! `INFO` says `cluster_enabled:0`, since no key is ever redirected; but clients that are set to
//! cluster mode ask for the map at once, and the true one leads them here.

use commands::ClusterCommand;

use super::Visit;

/// Runs a `CLUSTER` subcommand.
pub fn run(command: ClusterCommand, visit: &mut Visit<'_>) {
    match command {
        ClusterCommand::Info => visit.reply().verbatim(INFO),
        ClusterCommand::Keyslot => {
            let hash_slot = front::slot(visit.arg(2));
            visit.reply().int(i64::from(hash_slot));
        }
        ClusterCommand::Myid => {
            let shared = visit.shared;
            visit.reply().bulk(shared.run_id.as_bytes());
        }
        ClusterCommand::Nodes => nodes(visit),
        ClusterCommand::Shards => shards(visit),
        ClusterCommand::Slots => slots(visit),
    }
}

const INFO: &str = "cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_slots_ok:16384\r\n\
    cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:1\r\ncluster_size:1\r\n\
    cluster_current_epoch:0\r\ncluster_my_epoch:0\r\ncluster_stats_messages_sent:0\r\n\
    cluster_stats_messages_received:0\r\ntotal_cluster_links_buffer_limit_exceeded:0\r\n";

/// Name, address and port of this node: the address by which the client reached it is one that
/// works.
fn myself<'a>(visit: &Visit<'a>) -> (&'a str, String, u16) {
    let shared = visit.shared;
    let addr = visit.client.local_addr;
    (&shared.run_id, addr.ip().to_string(), addr.port())
}

fn nodes(visit: &mut Visit<'_>) {
    let (name, ip, port) = myself(visit);
    // The port of a cluster bus, after the `@`, is 0: there is none.
    let line = format!(
        "{name} {ip}:{port}@0 myself,master - 0 0 0 connected 0-{}\n",
        front::SLOTS - 1
    );
    visit.reply().verbatim(&line);
}

fn slots(visit: &mut Visit<'_>) {
    let (name, ip, port) = myself(visit);
    let mut reply = visit.reply();
    reply.array(1);
    reply.array(3);
    reply.int(0);
    reply.int(i64::from(front::SLOTS - 1));
    reply.array(4);
    reply.bulk(ip.as_bytes());
    reply.int(i64::from(port));
    reply.bulk(name.as_bytes());
    reply.map(0);
}

fn shards(visit: &mut Visit<'_>) {
    let tls = visit.client.tls;
    let (name, ip, port) = myself(visit);
    let mut reply = visit.reply();
    reply.array(1);
    reply.map(2);
    reply.bulk(b"slots");
    reply.array(2);
    reply.int(0);
    reply.int(i64::from(front::SLOTS - 1));
    reply.bulk(b"nodes");
    reply.array(1);
    reply.map(7);
    reply.bulk(b"id");
    reply.bulk(name.as_bytes());
    reply.bulk(if tls { b"tls-port" } else { b"port" });
    reply.int(i64::from(port));
    for (field, value) in [("ip", ip.as_str()), ("endpoint", &ip), ("role", "master")] {
        reply.bulk(field.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"replication-offset");
    reply.int(0);
    reply.bulk(b"health");
    reply.bulk(b"online");
}
