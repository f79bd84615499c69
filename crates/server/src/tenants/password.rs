//! Who may speak for a tenant.
//!
//! Passwords are kept as Argon2 hashes, which take tens of milliseconds to check on purpose. A core cannot
//! spend that, nor can a reconnect storm: the first success leaves a keyed digest in memory, and later
//! logins with the same password are compared with that in about a microsecond.

use std::thread;

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::Argon2;
use crossbeam_channel::{bounded, Sender, TrySendError};
use parking_lot::Mutex;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

/// Logins that may wait for the slow check before further ones are refused.
const QUEUE_MAX: usize = 1_024;

/// What a tenant asks of those who log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Password {
    /// Anybody may; the tenant has no password (`nopass` in Redis's words).
    None,
    /// An Argon2 hash in PHC form, `$argon2id$…`.
    Hashed(String),
}

impl Password {
    /// Hashes a plain password with a fresh salt.
    ///
    /// # Errors
    /// The system has no randomness to give, or the password is too long for Argon2.
    pub fn hash(plain: &[u8]) -> Result<Self, String> {
        let mut salt = [0u8; 16];
        SystemRandom::new()
            .fill(&mut salt)
            .map_err(|_| "no system randomness for a salt".to_string())?;
        let salt = SaltString::encode_b64(&salt).map_err(|e| e.to_string())?;
        let hash = Argon2::default()
            .hash_password(plain, &salt)
            .map_err(|e| e.to_string())?;
        Ok(Self::Hashed(hash.to_string()))
    }

    /// A password of which only the hash is known, as `entremet hash-password` prints it.
    ///
    /// # Errors
    /// It is no Argon2 hash in PHC form.
    pub fn from_hash(phc: &str) -> Result<Self, String> {
        match PasswordHash::new(phc) {
            Ok(hash) if hash.algorithm.as_str().starts_with("argon2") && hash.hash.is_some() => {
                Ok(Self::Hashed(phc.to_string()))
            }
            Ok(hash) => Err(format!(
                "'{}' is not an Argon2 hash with its result",
                hash.algorithm
            )),
            Err(error) => Err(format!("not a hash in PHC form: {error}")),
        }
    }

    /// The slow check: tens of milliseconds for a hash.
    fn verify(&self, plain: &[u8]) -> bool {
        match self {
            Self::None => true,
            Self::Hashed(phc) => PasswordHash::new(phc)
                .is_ok_and(|hash| Argon2::default().verify_password(plain, &hash).is_ok()),
        }
    }
}

/// A tenant's password together with the digest of the last one that was right.
pub struct Gate {
    state: Mutex<State>,
}

struct State {
    password: Password,
    accepted: Option<hmac::Tag>,
}

/// The answer of the quick check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quick {
    /// Let in.
    Yes,
    /// Only the slow check can tell.
    Unknown,
}

impl Gate {
    /// A gate that nobody has passed yet.
    pub fn new(password: Password) -> Self {
        Self {
            state: Mutex::new(State {
                password,
                accepted: None,
            }),
        }
    }

    /// Changes the password; whoever is inside stays inside, as in Redis.
    pub fn change(&self, password: Password) {
        let mut state = self.state.lock();
        if state.password != password {
            *state = State {
                password,
                accepted: None,
            };
        }
    }

    /// The password rule now in force.
    pub fn password(&self) -> Password {
        self.state.lock().password.clone()
    }

    /// True when no password is asked for.
    pub fn open(&self) -> bool {
        self.state.lock().password == Password::None
    }

    fn quick(&self, key: &hmac::Key, plain: &[u8]) -> Quick {
        let state = self.state.lock();
        match (&state.password, &state.accepted) {
            (Password::None, _) => Quick::Yes,
            (_, Some(tag)) if hmac::verify(key, plain, tag.as_ref()).is_ok() => Quick::Yes,
            _ => Quick::Unknown,
        }
    }

    fn slow(&self, key: &hmac::Key, plain: &[u8]) -> bool {
        let password = self.password();
        if !password.verify(plain) {
            return false;
        }
        let mut state = self.state.lock();
        // The password may have been changed while the old one was being checked.
        if state.password == password {
            state.accepted = Some(hmac::sign(key, plain));
        }
        state.password == password
    }
}

/// A check that goes to the slow thread; `done` is told the result there.
struct Job {
    gate: std::sync::Arc<super::Tenant>,
    plain: Vec<u8>,
    done: Box<dyn FnOnce(bool) + Send>,
}

/// Checks passwords: quickly where that will do, else on a thread of its own.
pub struct Doorkeeper {
    key: hmac::Key,
    jobs: Sender<Job>,
}

impl Doorkeeper {
    /// Starts the slow thread. It ends when the doorkeeper is dropped.
    ///
    /// # Errors
    /// No randomness for the digest key, or no thread to be had.
    pub fn start() -> Result<Self, String> {
        let mut secret = [0u8; 32];
        SystemRandom::new()
            .fill(&mut secret)
            .map_err(|_| "no system randomness for the password digest key".to_string())?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let slow_key = key.clone();
        let (jobs, inbox) = bounded::<Job>(QUEUE_MAX);
        thread::Builder::new()
            .name("password".into())
            .spawn(move || {
                for job in inbox {
                    let right = job.gate.gate.slow(&slow_key, &job.plain);
                    (job.done)(right);
                }
            })
            .map_err(|e| format!("cannot start the password thread: {e}"))?;
        Ok(Self { key, jobs })
    }

    /// The check that costs about a microsecond.
    pub fn quick(&self, tenant: &super::Tenant, plain: &[u8]) -> Quick {
        tenant.gate.quick(&self.key, plain)
    }

    /// The check that takes tens of milliseconds; `done` runs on another thread.
    ///
    /// # Errors
    /// `Err(())` when too many logins wait already.
    pub fn slow(
        &self,
        tenant: &std::sync::Arc<super::Tenant>,
        plain: &[u8],
        done: Box<dyn FnOnce(bool) + Send>,
    ) -> Result<(), Crowded> {
        let job = Job {
            gate: std::sync::Arc::clone(tenant),
            plain: plain.to_vec(),
            done,
        };
        match self.jobs.try_send(job) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Err(Crowded),
        }
    }
}

/// Too many logins wait for the slow check.
#[derive(Debug)]
pub struct Crowded;
