//! The checks of a client of a cluster.

use crate::typed::same;
use crate::{address, setting};
use redis::cluster::{cluster_pipe, ClusterClient, ClusterConnection};
use redis::Commands;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// On a busy machine the crate's own second is short.
const PATIENCE: Duration = Duration::from_secs(20);

type Check = fn(&mut ClusterConnection) -> Result<(), String>;

const CHECKS: [(&str, Check); 4] = [
    ("cluster-keys", keys),
    ("cluster-pipeline", pipeline),
    ("cluster-hash-tag", hash_tag),
    ("cluster-to-the-end", to_the_end),
];

/// Runs all of them.
pub fn run() {
    let node = address(&setting("SUITE_PASSWORD")).expect("an address");
    let client = ClusterClient::builder(vec![node])
        .connection_timeout(PATIENCE)
        .response_timeout(PATIENCE)
        .build()
        .expect("a client");
    let mut connection = client.get_connection().expect("a connection");
    for (name, check) in CHECKS {
        let problem = check(&mut connection).err().unwrap_or_default();
        println!("{}", json!({"case": name, "problem": problem}));
    }
}

fn keys(cluster: &mut ClusterConnection) -> Result<(), String> {
    for number in 0..200 {
        same((), cluster.set(format!("k{number}"), number))?;
    }
    for number in 0..200 {
        same(number, cluster.get(format!("k{number}")))?;
    }
    Ok(())
}

fn pipeline(cluster: &mut ClusterConnection) -> Result<(), String> {
    let mut pipe = cluster_pipe();
    for number in 0..200 {
        pipe.incr(format!("p{number}"), 1);
    }
    same(vec![1; 200], pipe.query(cluster))
}

fn hash_tag(cluster: &mut ClusterConnection) -> Result<(), String> {
    same((), cluster.mset(&[("{t}a", 1), ("{t}b", 2)]))?;
    same(vec![1, 2], cluster.mget(&["{t}a", "{t}b"]))
}

fn to_the_end(cluster: &mut ClusterConnection) -> Result<(), String> {
    let mut counts = [0; 32];
    while !(Path::new(&setting("SUITE_STOP")).exists() && counts[31] > 0) {
        for (number, count) in counts.iter_mut().enumerate() {
            *count += 1;
            // A client of its own asks for nothing else of these.
            same(*count, cluster.incr(format!("g{number}"), 1))?;
        }
    }
    Ok(())
}
