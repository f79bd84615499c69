//! Fills keyspaces before a run.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::conn::Status;
use super::fleet::Fleet;
use super::{Clock, Identity};
use crate::draw::{Class, Draw, Ttl};
use crate::encode::{self, KeyText};
use crate::error::WorkloadError;
use crate::stats::{Recorder, StreamStats};

/// Connections per keyspace.
const CONNECTIONS: usize = 4;
/// A batch ends after so many requests …
const BATCH_REQUESTS: usize = 64;
/// … or bytes of values, so that large values do not pile up in the send buffer.
const BATCH_BYTES: u64 = 1 << 20;
/// Ends a preload whose server has stopped answering.
const STALL: Duration = Duration::from_secs(30);

/// One keyspace to fill.
pub struct Keyspace {
    /// Whose.
    pub identity: Identity,
    /// Key numbers and value sizes (bytes).
    pub entries: Box<dyn Iterator<Item = (u64, u32)> + Send>,
    /// Length of keys, bytes (clamped to 16..=255).
    pub key_bytes: u16,
    /// The seed of the load that follows: it fixes the keys' text.
    pub seed: u64,
}

/// Stores every entry. Returns the number stored and the bytes sent.
///
/// # Errors
/// [`WorkloadError::Unreachable`] or [`WorkloadError::ServerGone`]; [`WorkloadError::Refused`] if
/// any put was refused, because a load on half a keyspace would measure misses.
pub fn run(
    target: SocketAddr,
    keyspaces: Vec<Keyspace>,
    stop: &AtomicBool,
) -> Result<(u64, u64), WorkloadError> {
    let clock = Clock::start();
    let identities: Vec<Identity> = keyspaces.iter().map(|k| k.identity.clone()).collect();
    let mut recorder = Recorder::new(
        identities
            .iter()
            .map(|i| StreamStats::new(i.tenant(), &i.tag))
            .collect(),
        0,
        u64::MAX,
    );
    let mut fleet = Fleet::new(target, identities, clock)?;
    let mut filling: Vec<Filling> = Vec::new();
    for (index, keyspace) in keyspaces.into_iter().enumerate() {
        for _ in 0..CONNECTIONS {
            fleet.open(index)?;
        }
        let text = KeyText::new(keyspace.seed, keyspace.key_bytes);
        filling.push(Filling {
            entries: keyspace.entries,
            text,
            done: false,
        });
    }
    let (mut answered, mut answered_ns) = (0, clock.now_ns());
    loop {
        fleet.flush(&mut recorder);
        fleet.poll(Some(Duration::from_millis(50)), &mut recorder)?;
        while let Some(token) = fleet.next_read(&mut recorder) {
            batch(&mut fleet, &mut filling, token);
            fleet.flush_one(token, &mut recorder);
        }
        check(&recorder)?;
        let now_ns = clock.now_ns();
        if fleet.completed != answered {
            (answered, answered_ns) = (fleet.completed, now_ns);
        }
        let finished = filling.iter().all(|f| f.done) && fleet.outstanding() == 0;
        if finished || stop.load(Ordering::Relaxed) {
            return Ok((answered, fleet.bytes_out));
        }
        if now_ns - answered_ns > STALL.as_nanos() as u64 {
            let reason = format!("no reply for {} s while loading data", STALL.as_secs());
            return Err(WorkloadError::ServerGone {
                target,
                reason,
                completed: answered,
            });
        }
    }
}

struct Filling {
    entries: Box<dyn Iterator<Item = (u64, u32)> + Send>,
    text: KeyText,
    done: bool,
}

fn batch(fleet: &mut Fleet, filling: &mut [Filling], token: usize) {
    let conn = fleet.conn(token);
    let fill = &mut filling[conn.stream];
    if conn.status != Status::Up || conn.outstanding() > 0 || fill.done {
        return;
    }
    let mut bytes = 0;
    for _ in 0..BATCH_REQUESTS {
        let Some((key, value_bytes)) = fill.entries.next() else {
            fill.done = true;
            return;
        };
        let draw = Draw::put(value_bytes, Ttl::None);
        let text = fill.text;
        fleet.push(token, Class::Put, 0, |out| {
            encode::request(out, draw, &[key], text)
        });
        bytes += u64::from(value_bytes);
        if bytes >= BATCH_BYTES {
            return;
        }
    }
}

fn check(recorder: &Recorder) -> Result<(), WorkloadError> {
    match recorder
        .streams
        .iter()
        .find_map(|s| Some((s, s.errors.values().next()?)))
    {
        None => Ok(()),
        Some((stream, error)) => Err(WorkloadError::Refused {
            tenant: stream.tenant.clone(),
            command: "SET while loading data".into(),
            reply: error.example.clone(),
        }),
    }
}
