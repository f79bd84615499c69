//! Checks passwords: quickly where that will do, else on a thread of its own, in the order that
//! [`policy::login`] says.
//!
//! A slow check takes memory (19 MiB for a hash made here) and tens of milliseconds of a processor,
//! one at a time, on a thread that the cores go before. Nothing of that is in a turn of a core.
//!
//! A name that nobody has is treated as one that somebody has, up to the last step: it waits in the
//! same line and costs a hash as somebody else's would. So neither the answer nor its time tells
//! names apart.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex};
use policy::login::{Asked, Checks, ChecksOptions, LineOptions};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use stage::Clock;

use super::password::{verify, Digest, PLAIN_MAX};
use super::{Password, Quick, Registry, Tenant};
use crate::tenants::Peer;

/// Slow checks that wait: at 13 ms each the last would be told in 13 s, about as long as clients
/// wait.
const LINE_MAX: usize = 1_024;

/// Of these, for one tenant from one peer. That counts different passwords: equal ones wait for the
/// same check.
const PAIR_MAX: usize = 16;

/// How long a wrong password is known to be wrong: longer than clients pause between two tries.
const WRONG_NS: policy::Nanos = 5_000_000_000;

/// Wrong passwords known, about 100 bytes each.
const WRONG_MAX: usize = 4_096;

/// The longest name that a tenant can have.
const NAME_MAX: usize = 64;

/// How a slow check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// It is the password: the quick check knows it from now on.
    Right,
    /// It is not.
    Wrong,
    /// Too many wait, most of them from the same peer or for the same tenant.
    Crowded,
    /// The password was changed meanwhile: ask again.
    Changed,
}

/// Told the result of a slow check, on another thread.
pub type Told = Box<dyn FnOnce(Checked) + Send>;

/// What is known of a name and a password without a slow check.
pub enum Answer {
    /// Let in.
    Yes(Arc<Tenant>),
    /// It cannot be right.
    No,
    /// Only the slow check can tell.
    Ask(Box<Question>),
}

/// A name and a password for the slow check.
pub struct Question {
    /// Stands for the name.
    name: u64,
    /// Stands for both, and for which of its passwords the tenant had.
    digest: Digest,
    work: Work,
}

struct Work {
    plain: Vec<u8>,
    /// To be compared with, in PHC form.
    hash: String,
    /// Whose it is, and of which generation; none: nobody has that name.
    owner: Option<(Arc<Tenant>, u64)>,
}

type Desk = Checks<Peer, u64, Digest, Work, Told>;

/// The line, and who works on it.
struct Office {
    desk: Mutex<Option<Desk>>,
    /// Something has come into the line, or the doorkeeper has gone.
    news: Condvar,
    clock: Arc<dyn Clock + Send + Sync>,
    hashed: AtomicU64,
    refused: AtomicU64,
}

/// Checks passwords.
pub struct Doorkeeper {
    key: hmac::Key,
    /// What is hashed for names that nobody has while nobody has a password.
    nobodys: String,
    office: Arc<Office>,
}

impl Doorkeeper {
    /// Starts the slow thread. It ends when the doorkeeper is dropped.
    ///
    /// # Errors
    /// No randomness for the digest key, or no thread to be had.
    pub fn start(clock: Arc<dyn Clock + Send + Sync>) -> Result<Self, String> {
        let mut secret = [0u8; 32];
        SystemRandom::new()
            .fill(&mut secret)
            .map_err(|_| "no system randomness for the password digest key".to_string())?;
        let nobodys = match Password::hash(&secret) {
            Ok(Password::Hashed(phc)) => phc,
            Ok(Password::None) => return Err("a password has no hash".into()),
            Err(why) => return Err(format!("the password of nobody {why}")),
        };
        let line = LineOptions {
            entries_max: LINE_MAX,
            pair_entries_max: PAIR_MAX,
        };
        let options = ChecksOptions {
            line,
            wrong_ns: WRONG_NS,
            wrong_max: WRONG_MAX,
        };
        let office = Arc::new(Office {
            desk: Mutex::new(Some(Checks::new(options))),
            news: Condvar::new(),
            clock,
            hashed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        });
        let worker = Arc::clone(&office);
        thread::Builder::new()
            .name("password".into())
            .spawn(move || {
                threads::Duty::Handle.begin();
                worker.work();
            })
            .map_err(|e| format!("cannot start the password thread: {e}"))?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        Ok(Self {
            key,
            nobodys,
            office,
        })
    }

    /// The check that costs about a microsecond, and a copy of at most 512 bytes.
    pub fn quick(&self, tenants: &Registry, name: &[u8], plain: &[u8]) -> Answer {
        if name.len() > NAME_MAX || plain.len() > PLAIN_MAX {
            return Answer::No;
        }
        let tenant = std::str::from_utf8(name)
            .ok()
            .and_then(|name| tenants.get(name));
        let digest_of = |generation| self.digest(name, generation, plain);
        let (hash, owner, digest) = match tenant {
            Some(tenant) => match tenant.gate.quick(digest_of) {
                (Quick::Yes, _) => return Answer::Yes(tenant),
                (Quick::Unknown { hash, generation }, digest) => {
                    (hash, Some((tenant, generation)), digest)
                }
            },
            // As a tenant of that name might cost.
            None => {
                let hash = tenants.hash_near(name);
                (
                    hash.unwrap_or_else(|| self.nobodys.clone()),
                    None,
                    digest_of(0),
                )
            }
        };
        let plain = plain.to_vec();
        Answer::Ask(Box::new(Question {
            name: self.short(name),
            digest,
            work: Work { plain, hash, owner },
        }))
    }

    fn digest(&self, name: &[u8], generation: u64, plain: &[u8]) -> Digest {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(&[name.len() as u8]);
        context.update(name);
        context.update(&generation.to_le_bytes());
        context.update(plain);
        let mut digest = Digest::default();
        digest.copy_from_slice(context.sign().as_ref());
        digest
    }

    fn short(&self, name: &[u8]) -> u64 {
        let digest = self.digest(name, u64::MAX, b"");
        digest[..8]
            .iter()
            .fold(0, |all, byte| all << 8 | u64::from(*byte))
    }

    /// The check that takes tens of milliseconds, in its turn. `told` runs on another thread, or
    /// here.
    pub fn ask(&self, question: Question, peer: Peer, told: Told) {
        let now = self.office.clock.now();
        let Question { name, digest, work } = question;
        let asked = match &mut *self.office.desk.lock() {
            Some(desk) => desk.ask(now, peer, name, digest, work, told),
            None => Asked::Refused(told),
        };
        match asked {
            Asked::Waits(displaced) => {
                self.office.news.notify_one();
                for told in displaced {
                    self.crowded(told);
                }
            }
            Asked::Wrong(told) => told(Checked::Wrong),
            Asked::Refused(told) => self.crowded(told),
        }
    }

    fn crowded(&self, told: Told) {
        self.office.refused.fetch_add(1, Ordering::Relaxed);
        told(Checked::Crowded);
    }

    /// Slow checks in line.
    pub fn waiting(&self) -> usize {
        self.office.desk.lock().as_ref().map_or(0, Checks::len)
    }

    /// Slow checks made since the start.
    pub fn hashed(&self) -> u64 {
        self.office.hashed.load(Ordering::Relaxed)
    }

    /// Log-ins refused since the start because too many waited.
    pub fn refused(&self) -> u64 {
        self.office.refused.load(Ordering::Relaxed)
    }
}

impl Drop for Doorkeeper {
    fn drop(&mut self) {
        *self.office.desk.lock() = None;
        self.office.news.notify_all();
    }
}

impl Office {
    fn work(&self) {
        while let Some((digest, work)) = self.next() {
            let checked = self.check(digest, &work);
            let now = self.clock.now();
            let told = match &mut *self.desk.lock() {
                Some(desk) => desk.done(now, digest, checked == Checked::Wrong),
                None => return,
            };
            told.into_iter().for_each(|told| told(checked));
        }
    }

    fn check(&self, digest: Digest, work: &Work) -> Checked {
        if let Some((tenant, generation)) = &work.owner {
            // Somebody else asked the same, and was answered after the quick check of this one.
            if tenant.gate.accepted(*generation, digest) {
                return Checked::Right;
            }
        }
        let right = verify(&work.hash, &work.plain);
        self.hashed.fetch_add(1, Ordering::Relaxed);
        let Some((tenant, generation)) = &work.owner else {
            return Checked::Wrong;
        };
        let still = match right {
            true => tenant.gate.accept(*generation, digest),
            false => tenant.gate.still(*generation),
        };
        match (still, right) {
            (true, true) => Checked::Right,
            (true, false) => Checked::Wrong,
            (false, _) => Checked::Changed,
        }
    }

    /// The next check; none when the doorkeeper has gone.
    fn next(&self) -> Option<(Digest, Work)> {
        let mut desk = self.desk.lock();
        loop {
            if let Some(next) = desk.as_mut()?.pop() {
                return Some(next);
            }
            self.news.wait(&mut desk);
        }
    }
}

#[cfg(test)]
mod tests;
