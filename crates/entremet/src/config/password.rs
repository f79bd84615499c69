//! Passwords are stored as Argon2 hashes only.

use argon2::password_hash::rand_core::OsRng;
use argon2::password_hash::{PasswordHash, PasswordHasher, SaltString};
use argon2::{Algorithm, Argon2, Params};

/// Longer ones are refused, so that nobody makes the server hash a megabyte.
const PASSWORD_MAX: usize = 512;

/// The Argon2id hash of a password with a fresh salt, in PHC form.
///
/// # Errors
/// Empty, longer than 512 bytes, or no memory for Argon2; in words.
pub fn hash(plain: &[u8]) -> Result<String, String> {
    if plain.is_empty() {
        return Err("is empty".into());
    }
    if plain.len() > PASSWORD_MAX {
        return Err(format!(
            "is {} bytes long, more than {PASSWORD_MAX}",
            plain.len()
        ));
    }
    let salt = SaltString::generate(&mut OsRng);
    let hash = Argon2::default().hash_password(plain, &salt);
    hash.map(|hash| hash.to_string())
        .map_err(|cause| format!("cannot be hashed: {cause}"))
}

/// Whether a text is an Argon2 hash that passwords can be compared with.
///
/// # Errors
/// Why not, in words.
pub fn check_hash(phc: &str) -> Result<(), String> {
    let hash = PasswordHash::new(phc).map_err(|cause| format!("is not a PHC string: {cause}"))?;
    let algorithm = Algorithm::try_from(hash.algorithm);
    algorithm.map_err(|_| format!("is a hash by {:?}, not by Argon2", hash.algorithm.as_str()))?;
    Params::try_from(&hash).map_err(|cause| format!("has wrong Argon2 parameters: {cause}"))?;
    if hash.salt.is_none() || hash.hash.is_none() {
        return Err("is cut off: salt or hash is missing".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_differ_and_are_recognised() {
        let (one, other) = (
            hash(b"secret").expect("hash"),
            hash(b"secret").expect("hash"),
        );
        assert_ne!(one, other, "each has its salt");
        assert!(one.starts_with("$argon2id$"));
        assert_eq!(check_hash(&one), Ok(()));
        let cut = &one[..one.len() - 44];
        assert!(check_hash(cut).is_err(), "{cut}");
        for (text, why) in [
            ("secret", "not a PHC string"),
            ("$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E", "not by Argon2"),
            ("$argon2id$v=19$m=1,t=0,p=1$c29tZXNhbHQ$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E", "parameters"),
        ] {
            let error = check_hash(text).expect_err(text);
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn lengths_are_bounded() {
        assert!(hash(b"").is_err());
        assert!(hash(&[b'x'; 513]).is_err());
    }
}
