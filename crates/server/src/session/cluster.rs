//! `CLUSTER …`: the fronts that stand before one cluster, or this server as the one node that owns
//! every hash slot.
//!
//! `INFO` says `cluster_enabled:0`, since a plain client is served by any of them; but clients that
//! are set to cluster mode ask for the map at once, and the true one leads them on. Those with TLS
//! are told of places with TLS only, and others of the others.

use std::sync::Arc;

use commands::ClusterCommand;
use front::{Health, Home, Shard, Space, ONLINE, SLOTS};

use super::Visit;

/// What a tenant's clients see.
struct Map {
    nodes: Vec<Home>,
    /// The place of this one.
    me: usize,
    shards: Vec<Shard>,
    /// How the nodes of the engine's cluster are.
    health: Arc<Health>,
}

impl Map {
    fn of(visit: &Visit<'_>) -> Self {
        Self::of_fronts(visit).unwrap_or_else(|| Self::of_one(visit))
    }

    /// Several fronts; none: this server is not one of several, or none of them has a place for
    /// clients of this kind.
    fn of_fronts(visit: &Visit<'_>) -> Option<Self> {
        let upstream = visit.shared.upstream.as_ref()?;
        let homes = upstream.homes();
        let homes = homes.of(visit.client.tls).as_ref()?;
        let parts = upstream.parts(&visit.tenant.name)?;
        let mut nodes = homes.fronts().to_vec();
        let mut shards = homes.shards(&Space::in_parts(&visit.tenant.name, parts));
        let me = homes.me().unwrap_or_else(|| {
            // It has no such place and is the home of nothing. But libraries look for the one that
            // they have asked.
            let me = nodes.len();
            nodes.push(here(visit));
            if let Some(shard) = shards.first_mut() {
                shard.others.push(me);
            }
            me
        });
        Some(Self {
            nodes,
            health: upstream.found().health,
            me,
            shards,
        })
    }

    /// This server alone.
    fn of_one(visit: &Visit<'_>) -> Self {
        let found = visit.shared.upstream.as_ref().map(|engine| engine.found());
        let (health, nodes) = found
            .map(|found| (found.health, found.topology.nodes.clone()))
            .unzip();
        Self {
            health: health.unwrap_or_default(),
            nodes: vec![here(visit)],
            me: 0,
            shards: vec![Shard {
                front: 0,
                ranges: vec![(0, SLOTS - 1)],
                others: Vec::new(),
                nodes: nodes.unwrap_or_default(),
            }],
        }
    }
}

/// This server: the address by which the client reached it is one that works.
fn here(visit: &Visit<'_>) -> Home {
    Home {
        id: visit.shared.run_id.clone(),
        at: visit.client.local_addr.into(),
        other_port: None,
        node: None,
    }
}

/// A shard's fronts with the role of each.
fn roles(shard: &Shard) -> impl Iterator<Item = (usize, &'static str)> + '_ {
    let others = shard.others.iter().map(|front| (*front, "replica"));
    std::iter::once((shard.front, "master")).chain(others)
}

/// Runs a `CLUSTER` subcommand.
pub fn run(command: ClusterCommand, visit: &mut Visit<'_>) {
    match command {
        ClusterCommand::Keyslot => {
            let hash_slot = front::slot(visit.arg(2));
            visit.reply().int(i64::from(hash_slot));
        }
        ClusterCommand::Info => info(visit),
        ClusterCommand::Myid => {
            let map = Map::of(visit);
            visit.reply().bulk(map.nodes[map.me].id.as_bytes());
        }
        ClusterCommand::Nodes => nodes(visit),
        ClusterCommand::Shards => shards(visit),
        ClusterCommand::Slots => slots(visit),
    }
}

fn info(visit: &mut Visit<'_>) {
    let map = Map::of(visit);
    let text = format!(
        "cluster_state:ok\r\ncluster_slots_assigned:{SLOTS}\r\ncluster_slots_ok:{SLOTS}\r\n\
         cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:{}\r\ncluster_size:{}\r\n\
         cluster_current_epoch:0\r\ncluster_my_epoch:0\r\ncluster_stats_messages_sent:0\r\n\
         cluster_stats_messages_received:0\r\ntotal_cluster_links_buffer_limit_exceeded:0\r\n",
        map.nodes.len(),
        map.shards.len()
    );
    visit.reply().verbatim(&text);
}

fn nodes(visit: &mut Visit<'_>) {
    let map = Map::of(visit);
    let mut text = String::new();
    for shard in &map.shards {
        for (front, role) in roles(shard) {
            let Home { id, at, .. } = &map.nodes[front];
            let myself = if front == map.me { "myself," } else { "" };
            let (role, master, ranges) = match role {
                "master" => ("master", "-", &shard.ranges[..]),
                _ => ("slave", &map.nodes[shard.front].id[..], &[][..]),
            };
            let ranges = ranges.iter().map(|(from, to)| match from == to {
                true => format!(" {from}"),
                false => format!(" {from}-{to}"),
            });
            let ranges: String = ranges.collect();
            // The port of a cluster bus, after the `@`, is 0: there is none.
            text += &format!("{id} {at}@0 {myself}{role} {master} 0 0 0 connected{ranges}\n");
        }
    }
    visit.reply().verbatim(&text);
}

fn slots(visit: &mut Visit<'_>) {
    let map = Map::of(visit);
    let ranges = |shard: &Shard| shard.ranges.len();
    let mut reply = visit.reply();
    reply.array(map.shards.iter().map(ranges).sum());
    for shard in &map.shards {
        for (from, to) in &shard.ranges {
            reply.array(3 + shard.others.len());
            reply.int(i64::from(*from));
            reply.int(i64::from(*to));
            for (front, _) in roles(shard) {
                let node = &map.nodes[front];
                reply.array(4);
                reply.bulk(node.at.host.as_bytes());
                reply.int(i64::from(node.at.port));
                reply.bulk(node.id.as_bytes());
                reply.map(0);
            }
        }
    }
}

fn shards(visit: &mut Visit<'_>) {
    let tls = visit.client.tls;
    let map = Map::of(visit);
    let mut reply = visit.reply();
    reply.array(map.shards.len());
    for shard in &map.shards {
        reply.map(2);
        reply.bulk(b"slots");
        reply.array(2 * shard.ranges.len());
        for (from, to) in &shard.ranges {
            reply.int(i64::from(*from));
            reply.int(i64::from(*to));
        }
        reply.bulk(b"nodes");
        reply.array(1 + shard.others.len());
        for (front, role) in roles(shard) {
            let node = &map.nodes[front];
            let (own, other) = (Some(node.at.port), node.other_port);
            let (plain, with_tls) = if tls { (other, own) } else { (own, other) };
            let ports = [("port", plain), ("tls-port", with_tls)];
            let ports = ports
                .iter()
                .filter_map(|(field, port)| Some((field, (*port)?)));
            reply.map(6 + ports.clone().count());
            reply.bulk(b"id");
            reply.bulk(node.id.as_bytes());
            for (field, port) in ports {
                reply.bulk(field.as_bytes());
                reply.int(i64::from(port));
            }
            for (field, value) in [
                ("ip", &node.at.host[..]),
                ("endpoint", &node.at.host),
                ("role", role),
            ] {
                reply.bulk(field.as_bytes());
                reply.bulk(value.as_bytes());
            }
            reply.bulk(b"replication-offset");
            reply.int(0);
            reply.bulk(b"health");
            let health = match role {
                "master" => map.health.of_all(&shard.nodes),
                _ => node
                    .node
                    .as_ref()
                    .map_or(ONLINE, |node| map.health.of(node)),
            };
            reply.bulk(health.as_bytes());
        }
    }
}
