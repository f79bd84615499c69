//! What is in a slot, and whether it can be moved: looked at before anything is done.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::nodes::{Open, Views};
use super::pace::{largest, takes, KEY_BYTES};
use super::plan::{Plan, Way};
use super::reach::{field, strange, Nodes};
use super::slots::Slots;
use super::Failure;
use crate::client::{Reply, Words};

/// Keys of a slot that are asked for at once: a node needs about a millisecond to say them. Of a
/// larger slot all keys of its node are gone through, since no node says a slot's keys in parts.
const AT_ONCE_MAX: u64 = 10_000;
/// Keys whose sizes are asked for at once.
const SIZES: usize = 512;
/// Slots whose keys are counted at once.
const COUNTS: usize = 256;
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
    /// Looks at all keys of slots at the node `at`.
    ///
    /// # Errors
    /// The node does not say.
    pub fn of(nodes: &mut Nodes, at: &str, slots: Slots) -> Result<Self, Failure> {
        let mut survey = Self::default();
        let all: Vec<u16> = slots.each().collect();
        let counts = counts(nodes, at, &all)?;
        if counts.iter().any(|count| *count > AT_ONCE_MAX) {
            through(nodes, at, |nodes, mut keys| {
                keys.retain(|key| slots.has(front::slot(key)));
                survey.add(nodes, at, &keys)
            })?;
            return Ok(survey);
        }
        for (slot, _) in all.iter().zip(counts).filter(|(_, count)| *count > 0) {
            let keys = keys_of(nodes, at, *slot, AT_ONCE_MAX as usize)?;
            survey.add(nodes, at, &keys)?;
        }
        Ok(survey)
    }

    /// Looks at all keys of the node `at`, by slot.
    ///
    /// # Errors
    /// The node does not say.
    pub fn of_all(nodes: &mut Nodes, at: &str) -> Result<BTreeMap<u16, Self>, Failure> {
        let mut all: BTreeMap<u16, Self> = BTreeMap::new();
        through(nodes, at, |nodes, keys| {
            for keys in keys.chunks(SIZES) {
                for (key, bytes) in keys.iter().zip(sizes_of(nodes, at, keys)?) {
                    all.entry(front::slot(key)).or_default().count(key, bytes);
                }
            }
            Ok(())
        })?;
        Ok(all)
    }

    fn add(&mut self, nodes: &mut Nodes, at: &str, keys: &[Vec<u8>]) -> Result<(), Failure> {
        for keys in keys.chunks(SIZES) {
            for (key, bytes) in keys.iter().zip(sizes_of(nodes, at, keys)?) {
                self.count(key, bytes);
            }
        }
        Ok(())
    }

    fn count(&mut self, key: &[u8], bytes: u64) {
        self.keys += 1;
        self.bytes += bytes;
        if bytes > self.largest {
            (self.largest, self.largest_key) = (bytes, key.to_vec());
        }
    }

    /// How long a move of it takes, about, where nodes work for it for this part of the time.
    pub fn takes(&self, part: f64) -> Duration {
        takes(self.bytes + self.keys * KEY_BYTES).div_f64(part)
    }
}

/// Goes through all keys of the node `at`.
fn through(
    nodes: &mut Nodes,
    at: &str,
    mut see: impl FnMut(&mut Nodes, Vec<Vec<u8>>) -> Result<(), Failure>,
) -> Result<(), Failure> {
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
        see(nodes, texts(keys))?;
        cursor = next;
        if cursor == b"0" {
            return Ok(());
        }
    }
}

/// How many keys of each of these slots the node `at` has.
///
/// # Errors
/// The node does not say.
pub fn counts(nodes: &mut Nodes, at: &str, slots: &[u16]) -> Result<Vec<u64>, Failure> {
    let names: Vec<String> = slots.iter().map(u16::to_string).collect();
    let mut counts = Vec::new();
    for names in names.chunks(COUNTS) {
        let commands = names.iter().map(|name| {
            let words: Words<'_> = vec![b"CLUSTER", b"COUNTKEYSINSLOT", name.as_bytes()];
            words
        });
        let commands: Vec<Words<'_>> = commands.collect();
        for reply in nodes.ask_all(at, &commands)? {
            let Reply::Integer(count) = reply else {
                return Err(strange(at, &commands[0]));
            };
            counts.push(u64::try_from(count).unwrap_or(0));
        }
    }
    Ok(counts)
}

/// What is in slots, about: their part of the keys of their node.
///
/// # Errors
/// A node does not say.
pub fn sizes(
    nodes: &mut Nodes,
    views: &Views,
    slots: &BTreeSet<u16>,
) -> Result<BTreeMap<u16, u64>, Failure> {
    let mut sizes = BTreeMap::new();
    for node in views.first.masters() {
        let mine = slots.iter().copied().filter(|slot| node.has(*slot));
        let mine: Vec<u16> = mine.collect();
        if mine.is_empty() {
            continue;
        }
        let info = nodes.text(&node.at, &[b"INFO", b"memory"])?;
        let keys = nodes.number(&node.at, &[b"DBSIZE"])?;
        let each = field(&info, "used_memory_dataset") / keys.max(1);
        let counts = counts(nodes, &node.at, &mine)?;
        sizes.extend(
            mine.into_iter()
                .zip(counts.iter().map(|count| count * each)),
        );
    }
    Ok(sizes)
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
        nodes.up(at)?;
    }
    if plan.way == Way::Back {
        let goes = matches!(
            views.open_at(&plan.to, plan.slots.first()),
            Some(Open::Out(_))
        );
        return match goes && survey.keys > 0 {
            true => Err(too_late(survey.keys, from).into()),
            false => Ok(()),
        };
    }
    refuse_large(nodes, from, survey, stall)?;
    let info = nodes.text(to, &[b"INFO", b"memory"])?;
    match room(&info) {
        Some(room) if survey.bytes > room => Err(format!(
            "{to} has no room: {:.1} MB would come, and {:.1} MB of its {:.1} MB (maxmemory) are used",
            survey.bytes as f64 / 1e6,
            field(&info, "used_memory") as f64 / 1e6,
            field(&info, "maxmemory") as f64 / 1e6
        )
        .into()),
        _ => Ok(()),
    }
}

/// Refuses to move what is at the node `at` if it has keys in other databases than the first, which
/// Valkey 9 may have in a cluster (`cluster-databases`). A move would take none of them along, and
/// a node that loses a slot deletes what it has of it.
///
/// # Errors
/// Which databases, and what to do.
pub fn refuse_databases(nodes: &mut Nodes, at: &str) -> Result<(), Failure> {
    let info = nodes.text(at, &[b"INFO", b"keyspace"])?;
    let others = other_databases(&info);
    match others.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "{at} has keys in {}, which a move would not take along: let Valkey move slots itself (CLUSTER MIGRATESLOTS), or delete them",
            others.join(", ")
        )
        .into()),
    }
}

/// The databases with keys, beside the first, of what a node says of its keyspace.
fn other_databases(info: &str) -> Vec<&str> {
    let names = info
        .lines()
        .filter_map(|line| Some(line.split_once(":keys=")?.0));
    names.filter(|name| *name != "db0").collect()
}

/// For how many bytes more a node has room, as it says of its memory; none: as much as comes. A
/// ninth of it stays free: what moves grows meanwhile, and so does what else is there.
pub fn room(info: &str) -> Option<u64> {
    let (used, max) = (field(info, "used_memory"), field(info, "maxmemory"));
    (max > 0).then(|| max.saturating_sub(used) / 9 * 8)
}

/// Refuses what has a key that would hold nodes up for too long.
///
/// # Errors
/// Which, and what to do.
pub fn refuse_large(
    nodes: &mut Nodes,
    from: &str,
    survey: &Survey,
    stall: Duration,
) -> Result<(), Failure> {
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
    if survey.largest > largest(stall) {
        return Err(format!(
            "{large}: both nodes would answer nobody for about {} ms; if that may be, say --allow-stall {}ms",
            takes.as_millis(),
            takes.as_millis() + 1
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
