//! Who may speak for a tenant.
//!
//! Passwords are kept as Argon2 hashes, which take tens of milliseconds to check on purpose. A core
//! cannot spend that, nor can a reconnect storm: the first success leaves a keyed digest in memory,
//! and later logins with the same password are compared with that in about a microsecond. The slow
//! check is the [`super::Doorkeeper`]'s.

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params};
use parking_lot::Mutex;
use ring::rand::{SecureRandom, SystemRandom};

/// Longer passwords are wrong, so that nobody makes the server hash a megabyte.
pub const PLAIN_MAX: usize = 512;

/// Memory that checking a hash may take: four times what RFC 9106 (section 4) recommends where
/// memory is short, its second choice. The first, 2 GiB, is not for a server whose memory is
/// promised to tenants.
const MEMORY_KIB_MAX: u32 = 256 << 10;

/// Memory that checking a hash may go over, all passes together: some seconds of a processor.
const WORK_KIB_MAX: u64 = 4 << 20;

/// What a tenant asks of those who log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Password {
    /// Anybody may; the tenant has no password (`nopass` in Redis's words).
    None,
    /// An Argon2 hash in PHC form, `$argon2id$…`.
    Hashed(String),
}

/// A password in plain text, to be compared with a hash and then forgotten.
#[derive(Clone, PartialEq)]
pub struct Plain(Box<str>);

impl Plain {
    /// Takes the text.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// True if it is this password. Takes as long as a login.
    pub fn is(&self, password: &Password) -> bool {
        match password {
            Password::None => false,
            Password::Hashed(phc) => verify(phc, self.0.as_bytes()),
        }
    }
}

impl std::fmt::Debug for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Plain(…)")
    }
}

impl Password {
    /// Hashes a plain password with a fresh salt.
    ///
    /// # Errors
    /// Empty, longer than 512 bytes, or no randomness or memory to be had; in words that go on from
    /// "the password".
    pub fn hash(plain: &[u8]) -> Result<Self, String> {
        if plain.is_empty() {
            return Err("is empty".into());
        }
        if plain.len() > PLAIN_MAX {
            return Err(format!(
                "is {} bytes long, more than {PLAIN_MAX}",
                plain.len()
            ));
        }
        let mut salt = [0u8; 16];
        let hash = SystemRandom::new()
            .fill(&mut salt)
            .map_err(|_| "no system randomness for a salt".to_string())
            .and_then(|()| SaltString::encode_b64(&salt).map_err(|e| e.to_string()))
            .and_then(|salt| {
                let hash = Argon2::default().hash_password(plain, &salt);
                hash.map(|hash| hash.to_string()).map_err(|e| e.to_string())
            });
        hash.map(Self::Hashed)
            .map_err(|cause| format!("cannot be hashed: {cause}"))
    }

    /// A password of which only the hash is known, as `entremet hash-password` prints it.
    ///
    /// # Errors
    /// It is no whole Argon2 hash in PHC form, or one that takes too much to check; in words that
    /// go on from "the hash".
    pub fn from_hash(phc: &str) -> Result<Self, String> {
        let hash =
            PasswordHash::new(phc).map_err(|cause| format!("is not a PHC string: {cause}"))?;
        Algorithm::try_from(hash.algorithm)
            .map_err(|_| format!("is a hash by {:?}, not by Argon2", hash.algorithm.as_str()))?;
        let params = Params::try_from(&hash)
            .map_err(|cause| format!("has wrong Argon2 parameters: {cause}"))?;
        let (memory_kib, passes) = (params.m_cost(), params.t_cost());
        if memory_kib > MEMORY_KIB_MAX || u64::from(memory_kib) * u64::from(passes) > WORK_KIB_MAX {
            return Err(format!(
                "would take {} MiB and {passes} passes over them at a login; at most {} MiB, and {} MiB in all passes, so \
                 that nobody who tries a password ends the server",
                memory_kib >> 10,
                MEMORY_KIB_MAX >> 10,
                WORK_KIB_MAX >> 10
            ));
        }
        if hash.salt.is_none() || hash.hash.is_none() {
            return Err("is cut off: salt or hash is missing".into());
        }
        Ok(Self::Hashed(phc.to_string()))
    }
}

/// The slow check: tens of milliseconds for a hash in PHC form.
pub fn verify(phc: &str, plain: &[u8]) -> bool {
    PasswordHash::new(phc).is_ok_and(|hash| Argon2::default().verify_password(plain, &hash).is_ok())
}

/// What stands for a name and a password in memory: keyed, so that it says nothing of either.
pub type Digest = [u8; 32];

/// A tenant's password together with the digest of the last one that was right.
pub struct Gate {
    state: Mutex<State>,
}

struct State {
    password: Password,
    /// How often it was changed.
    generation: u64,
    accepted: Option<Digest>,
}

/// What the gate knows without a slow check.
#[derive(Debug, PartialEq, Eq)]
pub enum Quick {
    /// Let in.
    Yes,
    /// Only the slow check against this hash can tell, and only as long as the password is of this
    /// generation.
    Unknown {
        /// In PHC form.
        hash: String,
        /// The password's.
        generation: u64,
    },
}

impl Gate {
    /// A gate that nobody has passed yet.
    pub fn new(password: Password) -> Self {
        Self {
            state: Mutex::new(State {
                password,
                generation: 0,
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
                generation: state.generation + 1,
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

    /// The quick check; `digest_of` makes the digest for a generation of the password.
    pub fn quick(&self, digest_of: impl FnOnce(u64) -> Digest) -> (Quick, Digest) {
        let state = self.state.lock();
        let digest = digest_of(state.generation);
        let quick = match &state.password {
            Password::None => Quick::Yes,
            // How long the comparison takes tells something of a keyed digest only, which nobody
            // can choose.
            Password::Hashed(_) if state.accepted == Some(digest) => Quick::Yes,
            Password::Hashed(hash) => Quick::Unknown {
                hash: hash.clone(),
                generation: state.generation,
            },
        };
        (quick, digest)
    }

    /// What the slow check found right is from now on found by the quick one; false if the password
    /// is another by now.
    pub fn accept(&self, generation: u64, digest: Digest) -> bool {
        let mut state = self.state.lock();
        let same = state.generation == generation;
        if same {
            state.accepted = Some(digest);
        }
        same
    }

    /// Whether the quick check would find it right, of this generation.
    pub fn accepted(&self, generation: u64, digest: Digest) -> bool {
        let state = self.state.lock();
        state.generation == generation && state.accepted == Some(digest)
    }

    /// Whether the password is still of this generation.
    pub fn still(&self, generation: u64) -> bool {
        self.state.lock().generation == generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_differ_and_are_recognised() {
        let hash = |plain: &[u8]| match Password::hash(plain) {
            Ok(Password::Hashed(phc)) => phc,
            other => panic!("{other:?}"),
        };
        let (one, other) = (hash(b"secret"), hash(b"secret"));
        assert_ne!(one, other, "each has its salt");
        assert!(one.starts_with("$argon2id$"));
        assert_eq!(Password::from_hash(&one), Ok(Password::Hashed(one.clone())));
        let cut = &one[..one.len() - 44];
        assert!(Password::from_hash(cut).is_err(), "{cut}");
        for (text, why) in [
            ("secret", "not a PHC string"),
            ("$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E", "not by Argon2"),
            ("$argon2id$v=19$m=1,t=0,p=1$c29tZXNhbHQ$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E", "parameters"),
            ("$argon2id$v=19$m=262145,t=1,p=1$c29tZXNhbHQ$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E", "at most 256 MiB"),
            ("$argon2id$v=19$m=65536,t=65,p=1$c29tZXNhbHQ$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E", "65 passes"),
        ] {
            let error = Password::from_hash(text).expect_err(text);
            assert!(error.contains(why), "{error}");
        }
        // RFC 9106, section 4, second choice.
        let strong = "$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHQ$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E";
        assert!(Password::from_hash(strong).is_ok());
    }

    #[test]
    fn lengths_are_bounded() {
        assert!(Password::hash(b"").is_err());
        assert!(Password::hash(&[b'x'; 512]).is_ok());
        assert!(Password::hash(&[b'x'; 513]).is_err());
    }
}
