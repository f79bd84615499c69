//! What is in a slot, and whether it can be moved: looked at before anything is done.

use std::time::Duration;

use super::nodes::{Open, Views};
use super::pace::{takes, Pace, KEY_BYTES};
use super::plan::{Plan, Way};
use super::reach::{field, strange, Nodes};
use super::Failure;
use crate::client::Reply;

/// Keys of a slot that are asked for at once: a node needs about a millisecond to say them. Of a
/// larger slot all keys of its node are gone through, since no node says a slot's keys in parts.
const AT_ONCE_MAX: u64 = 10_000;
/// Keys whose sizes are asked for at once.
const SIZES: usize = 512;
/// Keys of one piece of the way through a node.
const PIECE: &[u8] = b"1000";

/// What is in a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Keys.
    pub keys: u64,
    /// As `MEMORY USAGE` has them.
    pub bytes: u64,
    /// Of the largest key.
    pub largest: u64,
    /// Its name at the engine.
    pub largest_key: Vec<u8>,
}

impl Survey {
    /// Looks at all keys of a slot at the node `at`.
    ///
    /// # Errors
    /// The node does not say.
    pub fn of(nodes: &mut Nodes, at: &str, slot: u16) -> Result<Self, Failure> {
        let mut survey = Self::default();
        let text = slot.to_string();
        let count = nodes.number(at, &[b"CLUSTER", b"COUNTKEYSINSLOT", text.as_bytes()])?;
        if count <= AT_ONCE_MAX {
            let keys = keys_of(nodes, at, slot, AT_ONCE_MAX as usize)?;
            survey.add(nodes, at, &keys)?;
            return Ok(survey);
        }
        let mut cursor = b"0".to_vec();
        loop {
            let words: [&[u8]; 4] = [b"SCAN", &cursor, b"COUNT", PIECE];
            let reply = nodes.ask(at, &words)?;
            let Reply::List(parts) = reply else {
                return Err(strange(at, &words));
            };
            let Ok([Reply::Bulk(next), Reply::List(keys)]) = <[Reply; 2]>::try_from(parts) else {
                return Err(strange(at, &words));
            };
            let mut keys = texts(keys);
            keys.retain(|key| front::slot(key) == slot);
            survey.add(nodes, at, &keys)?;
            cursor = next;
            if cursor == b"0" {
                return Ok(survey);
            }
        }
    }

    fn add(&mut self, nodes: &mut Nodes, at: &str, keys: &[Vec<u8>]) -> Result<(), Failure> {
        for keys in keys.chunks(SIZES) {
            for (key, bytes) in keys.iter().zip(sizes_of(nodes, at, keys)?) {
                self.keys += 1;
                self.bytes += bytes;
                if bytes > self.largest {
                    (self.largest, self.largest_key) = (bytes, key.clone());
                }
            }
        }
        Ok(())
    }

    /// How long a move of it takes, about: nodes work for it half of the time.
    pub fn takes(&self) -> Duration {
        2 * takes(self.bytes + self.keys * KEY_BYTES)
    }
}

/// Refuses what would hurt others.
///
/// # Errors
/// Why it cannot be moved, and what to do.
pub fn refuse(
    nodes: &mut Nodes,
    views: &Views,
    plan: &Plan,
    survey: &Survey,
    stall: Duration,
) -> Result<(), Failure> {
    let (from, to) = (views.at(&plan.from), views.at(&plan.to));
    for at in [from, to] {
        let info = nodes.text(at, &[b"CLUSTER", b"INFO"])?;
        if !info.contains("cluster_state:ok") {
            return Err(format!("{at} says that its cluster is down").into());
        }
    }
    if plan.way == Way::Back {
        let goes = matches!(views.open_at(&plan.to, plan.slot), Some(Open::Out(_)));
        return match goes && survey.keys > 0 {
            true => Err(too_late(survey.keys, from).into()),
            false => Ok(()),
        };
    }
    let takes = takes(survey.largest);
    let timeout = nodes.ask(from, &[b"CONFIG", b"GET", b"cluster-node-timeout"])?;
    let timeout_ms = match timeout {
        Reply::List(pair) => texts(pair)
            .get(1)
            .and_then(|ms| String::from_utf8_lossy(ms).parse().ok()),
        _ => None,
    };
    let key = String::from_utf8_lossy(&survey.largest_key);
    let large = format!("the key {key} has {:.1} MB", survey.largest as f64 / 1e6);
    if takes > Duration::from_millis(timeout_ms.unwrap_or(u64::MAX)) / 2 {
        return Err(format!(
            "{large}: both nodes would answer nobody for about {:.1} s, and the cluster would take them to be lost; make it smaller",
            takes.as_secs_f64()
        )
        .into());
    }
    if Pace::new(stall).is_too_large(survey.largest) {
        return Err(format!(
            "{large}: both nodes would answer nobody for about {} ms; if that may be, say --allow-stall {}ms",
            takes.as_millis(),
            takes.as_millis() + 1
        )
        .into());
    }
    let info = nodes.text(to, &[b"INFO", b"memory"])?;
    let (used, max) = (field(&info, "used_memory"), field(&info, "maxmemory"));
    // An eighth more: it grows while it moves, and so does what else is there.
    if max > 0 && used.saturating_add(survey.bytes + survey.bytes / 8) > max {
        return Err(format!(
            "{to} has no room: the slot has {:.1} MB, and {:.1} MB of its {:.1} MB (maxmemory) are used",
            survey.bytes as f64 / 1e6,
            used as f64 / 1e6,
            max as f64 / 1e6
        )
        .into());
    }
    Ok(())
}

/// Why a slot does not go back any more: keys of it have gone to the node `at`.
pub fn too_late(keys: u64, at: &str) -> String {
    format!(
        "{keys} keys are at {at} already: first let all arrive there (--to {at}), and move them back then"
    )
}

/// Some keys of a slot.
///
/// # Errors
/// The node does not say.
pub fn keys_of(
    nodes: &mut Nodes,
    at: &str,
    slot: u16,
    count: usize,
) -> Result<Vec<Vec<u8>>, Failure> {
    let (slot, count) = (slot.to_string(), count.to_string());
    let words: [&[u8]; 4] = [
        b"CLUSTER",
        b"GETKEYSINSLOT",
        slot.as_bytes(),
        count.as_bytes(),
    ];
    match nodes.ask(at, &words)? {
        Reply::List(keys) => Ok(texts(keys)),
        _ => Err(strange(at, &words)),
    }
}

/// The strings of a list.
fn texts(items: Vec<Reply>) -> Vec<Vec<u8>> {
    let texts = items.into_iter().filter_map(|item| match item {
        Reply::Bulk(text) => Some(text),
        _ => None,
    });
    texts.collect()
}

/// Bytes of keys with their values; of one that is not there any more, none.
///
/// # Errors
/// The node does not say.
pub fn sizes_of(nodes: &mut Nodes, at: &str, keys: &[Vec<u8>]) -> Result<Vec<u64>, Failure> {
    // A node that has keys of a slot that is not its own shows them to those who ask so.
    let asked: Vec<_> = (keys.iter())
        .flat_map(|key| {
            [
                vec![&b"ASKING"[..]],
                vec![b"MEMORY", b"USAGE", key.as_slice()],
            ]
        })
        .collect();
    let replies = nodes.try_all(at, &asked)?;
    let sizes = replies.chunks_exact(2).map(|pair| match pair[1] {
        Reply::Integer(bytes) => u64::try_from(bytes).unwrap_or(0),
        // It has gone, or it was moved on.
        _ => 0,
    });
    Ok(sizes.collect())
}
