//! Fills keyspaces before a run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::clients::Clients;
use super::fleet::Fleet;
use super::plan::Manners;
use super::{Clock, Completion, Goal, Identity, Observer};
use crate::draw::{Class, Draw, Mixture, Ttl};
use crate::encode::KeyText;
use crate::error::WorkloadError;
use crate::stats::UNSENT;

/// Clients per keyspace.
const CLIENTS: usize = 4;
/// Keyspaces filled at once, so that a thousand tenants do not need thousands of connections.
const AT_ONCE: usize = 32;
/// A batch ends after this many requests …
const BATCH_REQUESTS: usize = 64;
/// … or bytes of values, so that large values do not pile up in the send buffer.
const BATCH_BYTES: u64 = 1 << 20;
/// Interruption is noticed at least so often.
const TICK: Duration = Duration::from_millis(50);
/// After a refusal for a limit, so long nothing is sent to that keyspace.
const PAUSE: Duration = Duration::from_millis(10);
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
    /// How keys look: as in the load that follows.
    pub text: KeyText,
}

impl Keyspace {
    /// These keys.
    pub fn new(
        identity: &Identity,
        text: KeyText,
        entries: impl ExactSizeIterator<Item = (u64, u32)> + Send + 'static,
    ) -> Self {
        Self {
            identity: identity.clone(),
            count: entries.len() as u64,
            entries: Box::new(entries),
            text,
        }
    }

    /// The keys of a mixture.
    pub fn of(identity: &Identity, text: KeyText, mixture: &Mixture) -> Self {
        let (mixture, keys) = (mixture.clone(), mixture.keys());
        let entries = (0..keys).map(move |key| (key, mixture.value_bytes(key)));
        Self {
            identity: identity.clone(),
            count: keys,
            entries: Box::new(entries),
            text,
        }
    }
}

/// How long a front may take to say its map.
const PATIENCE: Duration = Duration::from_secs(5);

/// Stores every entry, of some keyspaces at a time; in a cluster each at the home of its key.
/// Returns the number stored and the bytes sent.
///
/// # Errors
/// [`WorkloadError::Unreachable`] or [`WorkloadError::ServerGone`]; [`WorkloadError::Refused`] if
/// any put was refused for good, because a load on half a keyspace would measure misses. What is
/// refused for a tenant's limit, or lost with its connection, is sent again.
pub fn run(
    goal: &Goal,
    keyspaces: Vec<Keyspace>,
    stop: &AtomicBool,
) -> Result<(u64, u64), WorkloadError> {
    let (mut keyspaces, mut sum) = (keyspaces.into_iter(), (0, 0));
    loop {
        let some: Vec<Keyspace> = keyspaces.by_ref().take(AT_ONCE).collect();
        if some.is_empty() || stop.load(Ordering::Relaxed) {
            return Ok(sum);
        }
        let (keys, bytes) = fill(goal, some, stop)?;
        sum = (sum.0 + keys, sum.1 + bytes);
    }
}

fn fill(
    goal: &Goal,
    keyspaces: Vec<Keyspace>,
    stop: &AtomicBool,
) -> Result<(u64, u64), WorkloadError> {
    let clock = Clock::start();
    let identities: Vec<Identity> = keyspaces.iter().map(|k| k.identity.clone()).collect();
    let mut fleet = Fleet::new(goal.clone(), identities.clone(), clock)?;
    let (mut filler, mut clients) = (Filler::default(), Vec::new());
    for (index, keyspace) in keyspaces.into_iter().enumerate() {
        let map = goal.map(&keyspace.identity, PATIENCE)?;
        let mut its = Clients::new(index, map);
        its.resize(CLIENTS, Manners::default(), true, &mut fleet, &mut filler)?;
        clients.push(its);
        filler.keyspaces.push(Filling::new(keyspace));
    }
    let (mut stored, mut stored_ns) = (0, 0);
    loop {
        fleet.flush(&mut filler);
        let paused = filler.keyspaces.iter().any(|filling| filling.paused_ns > 0);
        let patience = if paused { PAUSE } else { TICK };
        fleet.poll(Some(patience), &mut filler)?;
        while let Some(token) = fleet.next_read(&mut filler) {
            follow(&mut fleet, &mut filler, &mut clients, clock.now_ns())?;
            batch(&mut fleet, &mut filler, &clients, token, clock.now_ns());
            fleet.flush(&mut filler);
        }
        let now_ns = clock.now_ns();
        if filler.wake(now_ns) {
            // Connections that waited for nothing but the end of a pause.
            for token in clients.iter().flat_map(Clients::tokens) {
                batch(&mut fleet, &mut filler, &clients, *token, now_ns);
            }
        }
        if let Some((stream, reply)) = filler.refused.take() {
            return Err(WorkloadError::Refused {
                tenant: identities[stream].tenant().into(),
                command: "SET while loading data".into(),
                reply,
            });
        }
        if filler.stored != stored {
            (stored, stored_ns) = (filler.stored, now_ns);
        }
        if filler.done() || stop.load(Ordering::Relaxed) {
            return Ok((stored, fleet.bytes_out));
        }
        if now_ns - stored_ns > STALL.as_nanos() as u64 {
            let reason = format!(
                "stored nothing for {} s while loading data",
                STALL.as_secs()
            );
            return Err(WorkloadError::ServerGone {
                target: goal.first(),
                reason,
                completed: stored,
            });
        }
    }
}

/// One keyspace while it is filled.
struct Filling {
    entries: Box<dyn Iterator<Item = (u64, u32)> + Send>,
    text: KeyText,
    /// All entries were sent once.
    done: bool,
    /// Sent and not answered: value sizes by key.
    outstanding: BTreeMap<u64, u32>,
    /// To be sent again.
    again: Vec<(u64, u32)>,
    /// Nothing is sent before then; 0: now.
    paused_ns: u64,
}

impl Filling {
    fn new(keyspace: Keyspace) -> Self {
        Self {
            text: keyspace.text,
            entries: keyspace.entries,
            done: false,
            outstanding: BTreeMap::new(),
            again: Vec::new(),
            paused_ns: 0,
        }
    }

    fn next(&mut self) -> Option<(u64, u32)> {
        let next = self.again.pop().or_else(|| self.entries.next());
        self.done = next.is_none();
        next
    }
}

/// Hears what became of puts. Their start is the number of their key.
#[derive(Default)]
struct Filler {
    keyspaces: Vec<Filling>,
    stored: u64,
    refused: Option<(usize, String)>,
}

impl Filler {
    fn done(&self) -> bool {
        let done = |filling: &Filling| {
            filling.done && filling.outstanding.is_empty() && filling.again.is_empty()
        };
        self.keyspaces.iter().all(done)
    }

    /// Ends the pauses that are over; true if there was one.
    fn wake(&mut self, now_ns: u64) -> bool {
        let mut woken = false;
        for filling in &mut self.keyspaces {
            if filling.paused_ns > 0 && filling.paused_ns <= now_ns {
                (filling.paused_ns, woken) = (0, true);
            }
        }
        woken
    }

    fn once_more(&mut self, stream: usize, key: u64, now_ns: u64) {
        let filling = &mut self.keyspaces[stream];
        filling.again.extend(filling.outstanding.remove_entry(&key));
        filling.paused_ns = now_ns + PAUSE.as_nanos() as u64;
    }
}

impl Observer for Filler {
    fn completed(&mut self, completion: Completion<'_>) {
        let (stream, key) = (completion.stream, completion.start_ns);
        let error = completion.reply.error;
        if error.is_empty() {
            self.keyspaces[stream].outstanding.remove(&key);
            self.stored += 1;
        } else if error.starts_with(b"THROTTLED") {
            // The tenant has a limit, which holds for its preload too.
            self.once_more(stream, key, completion.now_ns);
        } else {
            let text = String::from_utf8_lossy(error).into_owned();
            self.refused.get_or_insert((stream, text));
        }
    }

    fn lost(&mut self, stream: usize, _class: Class, key: u64, now_ns: u64) {
        self.once_more(stream, key, now_ns);
    }
}

/// Sends again what fronts sent on.
fn follow(
    fleet: &mut Fleet,
    filler: &mut Filler,
    clients: &mut [Clients],
    now_ns: u64,
) -> Result<(), WorkloadError> {
    for moved in fleet.take_moved() {
        let (stream, key) = (moved.whose.stream, moved.start_ns);
        match clients[stream].follow(moved, fleet, filler)? {
            None => {}
            Some(UNSENT) => filler.once_more(stream, key, now_ns),
            Some(why) => {
                filler.refused.get_or_insert((stream, why.into()));
            }
        }
    }
    Ok(())
}

fn batch(fleet: &mut Fleet, filler: &mut Filler, clients: &[Clients], token: usize, now_ns: u64) {
    let Some(stream) = fleet.find(token).map(|conn| conn.whose.stream) else {
        return;
    };
    let (fill, clients) = (&mut filler.keyspaces[stream], &clients[stream]);
    let Some(row) = clients
        .idle(&token, fleet)
        .filter(|_| fill.paused_ns <= now_ns)
    else {
        return;
    };
    let mut bytes = 0;
    for _ in 0..BATCH_REQUESTS {
        let Some((key, value_bytes)) = fill.next() else {
            return;
        };
        fill.outstanding.insert(key, value_bytes);
        let (draw, text) = (Draw::put(value_bytes, Ttl::None), fill.text);
        let token = row[clients.place(Class::Put, &[key], text)];
        clients.send(token, draw, &[key], text, key, fleet);
        bytes += u64::from(value_bytes);
        if bytes >= BATCH_BYTES {
            return;
        }
    }
}
