//! One look at the engine: what it is, what commands it has, and of a cluster who has what.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use front::{Health, Replica, Table, Topology};

use super::replicas::follow;
use super::talk::{About, Talk};
use super::{Found, UpstreamOptions};

/// Nodes of a cluster at most: each has a stage and links on each core.
const NODES_MAX: usize = 1_000;

/// Looks at the engine on `talk`, or on a new connection; of a cluster at one node after the other,
/// until one is found that serves all keys. If none does, what the first said that answered.
pub(super) fn look_around(
    options: &UpstreamOptions,
    talk: Option<Talk>,
    before: Option<&Found>,
) -> Result<(Talk, Found), String> {
    let known = before.filter(|_| options.cluster);
    let known = known.into_iter().flat_map(|found| &found.topology.nodes);
    let places = options.addresses.iter().chain(known);
    let begun = talk.map(Ok).into_iter();
    let talks = begun.chain(places.map(|place| Talk::begin(place, options)));
    let (mut answered, mut failed) = (None, String::new());
    for talk in talks {
        let looked = talk.and_then(|mut talk| {
            let found = look(&mut talk, options, before)?;
            Ok((talk, found))
        });
        match looked {
            Ok((talk, found)) if found.away.is_none() => return Ok((talk, found)),
            Ok(partly) => answered = answered.or(Some(partly)),
            Err(why) => failed = why,
        }
    }
    answered.ok_or(failed)
}

fn look(
    talk: &mut Talk,
    options: &UpstreamOptions,
    before: Option<&Found>,
) -> Result<Found, String> {
    let cluster = options.cluster;
    let info = talk.ask(&[b"INFO"])?;
    let about = About::read(info.text().unwrap_or_default());
    if about.cluster != cluster {
        return Err(match about.cluster {
            true => "it is a node of a cluster: say redis-cluster, not redis".into(),
            false => "it is not in cluster mode: say redis, not redis-cluster".into(),
        });
    }
    let same = |found: &&Found| found.about.run_id == about.run_id && found.away.is_none();
    let (table, words) = match before.filter(same) {
        Some(found) => (found.table, Arc::clone(&found.words)),
        None => {
            let words = talk.ask(&[b"COMMAND"])?;
            match before.filter(|found| *found.words == words) {
                Some(found) => (found.table, Arc::clone(&found.words)),
                None => {
                    let table = Table::read(&words, before.map(|found| found.table));
                    let table = table.map_err(|why| why.to_string())?;
                    (&*Box::leak(Box::new(table)), Arc::new(words))
                }
            }
        }
    };
    let Slots {
        topology,
        nodes,
        replicas,
        away,
    } = match cluster {
        true => look_at_slots(talk)?,
        false => Slots {
            topology: Topology::one(talk.node.clone()),
            nodes: vec![talk.at],
            replicas: Vec::new(),
            away: None,
        },
    };
    let health = match cluster {
        // Whoever may not ask that does without it.
        true => talk.ask(&[b"CLUSTER", b"SHARDS"]).ok(),
        false => None,
    };
    let host = talk.at.ip().to_string();
    let health = health.map(|shards| Health::read(&shards, &host, options.tls.is_some()));
    Ok(Found {
        health: Arc::new(health.unwrap_or_default()),
        topology: Arc::new(topology),
        nodes: nodes.into(),
        replicas: follow(replicas, before.map(|found| &found.replicas)),
        table,
        words,
        about,
        away,
    })
}

/// Which node has which slot.
struct Slots {
    topology: Topology,
    /// Where they are.
    nodes: Vec<SocketAddr>,
    replicas: Vec<Replica>,
    /// Why not all keys are served.
    away: Option<String>,
}

fn look_at_slots(talk: &mut Talk) -> Result<Slots, String> {
    let slots = talk.ask(&[b"CLUSTER", b"SLOTS"])?;
    let host = talk.at.ip().to_string();
    let (topology, replicas) = (Topology::read(&slots, &host), Replica::all(&slots, &host));
    let topology = topology.ok_or("its answer to CLUSTER SLOTS is not understood")?;
    if topology.nodes.len() > NODES_MAX {
        return Err(format!("it has more than {NODES_MAX} nodes"));
    }
    let nodes = topology.nodes.iter().map(|node| {
        let mut places = node.to_socket_addrs().map_err(|why| why.to_string())?;
        places.next().ok_or(format!("{node} has no address"))
    });
    let nodes = nodes.collect::<Result<Vec<_>, String>>()?;
    let info = talk.ask(&[b"CLUSTER", b"INFO"])?;
    let ok = info.text().unwrap_or_default().contains("cluster_state:ok");
    let away = match topology.unserved() {
        0 if ok => None,
        0 => Some("the cluster says that it is down".to_owned()),
        slots => Some(format!("no node serves {slots} of the hash slots")),
    };
    Ok(Slots {
        topology,
        nodes,
        replicas,
        away,
    })
}
