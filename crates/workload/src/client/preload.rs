//! Fills keyspaces before a run.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::conn::Status;
use super::fleet::Fleet;
use super::plan::Manners;
use super::{Clock, Identity};
use crate::draw::{Class, Draw, Mixture, Ttl};
use crate::encode::{self, KeyText};
use crate::error::WorkloadError;
use crate::stats::Recorder;

/// Connections per keyspace.
const CONNECTIONS: usize = 4;
/// Keyspaces filled at once, so that a thousand tenants do not need thousands of connections.
const AT_ONCE: usize = 32;
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
    /// How many entries there are.
    pub count: u64,
    /// Length of keys, bytes (clamped to 16..=255).
    pub key_bytes: u16,
    /// The seed of the load that follows: it fixes the keys' text.
    pub seed: u64,
}

impl Keyspace {
    /// These keys, which look as `seed` and `key_bytes` say.
    pub fn new(
        identity: &Identity,
        (seed, key_bytes): (u64, u16),
        entries: impl ExactSizeIterator<Item = (u64, u32)> + Send + 'static,
    ) -> Self {
        Self {
            identity: identity.clone(),
            count: entries.len() as u64,
            entries: Box::new(entries),
            key_bytes,
            seed,
        }
    }

    /// The keys of a mixture.
    pub fn of(identity: &Identity, look: (u64, u16), mixture: &Mixture) -> Self {
        let (mixture, keys) = (mixture.clone(), mixture.keys());
        let entries = (0..keys).map(move |key| (key, mixture.value_bytes(key)));
        Self {
            identity: identity.clone(),
            count: keys,
            entries: Box::new(entries),
            key_bytes: look.1,
            seed: look.0,
        }
    }
}

/// Stores every entry, of some keyspaces at a time. Returns the number stored and the bytes sent.
///
/// # Errors
/// [`WorkloadError::Unreachable`] or [`WorkloadError::ServerGone`]; [`WorkloadError::Refused`] if
/// any put was refused, because a load on half a keyspace would measure misses.
pub fn run(
    target: SocketAddr,
    keyspaces: Vec<Keyspace>,
    stop: &AtomicBool,
) -> Result<(u64, u64), WorkloadError> {
    let (mut keyspaces, mut sum) = (keyspaces.into_iter(), (0, 0));
    loop {
        let some: Vec<Keyspace> = keyspaces.by_ref().take(AT_ONCE).collect();
        if some.is_empty() || stop.load(Ordering::Relaxed) {
            return Ok(sum);
        }
        let (keys, bytes) = fill(target, some, stop)?;
        sum = (sum.0 + keys, sum.1 + bytes);
    }
}

fn fill(
    target: SocketAddr,
    keyspaces: Vec<Keyspace>,
    stop: &AtomicBool,
) -> Result<(u64, u64), WorkloadError> {
    let clock = Clock::start();
    let identities: Vec<Identity> = keyspaces.iter().map(|k| k.identity.clone()).collect();
    let names = identities
        .iter()
        .map(|i| (i.tenant().to_string(), i.tag.clone()));
    let mut recorder = Recorder::new(names, 0, u64::MAX);
    let mut fleet = Fleet::new(target, identities, clock)?;
    let mut filling: Vec<Filling> = Vec::new();
    for (index, keyspace) in keyspaces.into_iter().enumerate() {
        for _ in 0..CONNECTIONS {
            fleet.open(index, Manners::default())?;
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
    match recorder.first_error() {
        None => Ok(()),
        Some((tenant, example)) => Err(WorkloadError::Refused {
            tenant: tenant.tenant.clone(),
            command: "SET while loading data".into(),
            reply: example.into(),
        }),
    }
}
