//! Argon2 in memory that is kept from one hash to the next.
//!
//! A hash works over tens of megabytes, aligned to cache lines. An allocator that is asked for those again and again keeps
//! most of what it gets back without finding it fit for the next (glibc before 2.38: 19 MiB more for each hash). So one
//! part of memory, as large as the largest hash needed, serves all, one after the other: hashing is for logins that the
//! quick check cannot tell and for operators.

use argon2::password_hash::{Error, Output, ParamsString, PasswordHash, Salt, SaltString};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use parking_lot::Mutex;

static SPACE: Mutex<Vec<Block>> = Mutex::new(Vec::new());

/// Hashes `plain` with the parameters that Argon2 has by default, in PHC form.
pub(super) fn hash(plain: &[u8], salt: &SaltString) -> Result<String, Error> {
    let argon2 = Argon2::default();
    let output = run(&argon2, plain, salt.as_salt(), Params::DEFAULT_OUTPUT_LEN)?;
    let hash = PasswordHash {
        algorithm: Algorithm::default().ident(),
        version: Some(Version::default().into()),
        params: ParamsString::try_from(argon2.params())?,
        salt: Some(salt.as_salt()),
        hash: Some(output),
    };
    Ok(hash.to_string())
}

/// True if `plain` has this hash. The comparison takes the same time wherever they differ.
pub(super) fn verify(plain: &[u8], hash: &PasswordHash<'_>) -> Result<bool, Error> {
    let (Some(salt), Some(expected)) = (hash.salt, hash.hash) else {
        return Ok(false);
    };
    let version = hash.version.map(Version::try_from).transpose()?;
    let argon2 = Argon2::new(
        Algorithm::try_from(hash.algorithm)?,
        version.unwrap_or_default(),
        Params::try_from(hash)?,
    );
    Ok(run(&argon2, plain, salt, expected.len())? == expected)
}

fn run(argon2: &Argon2<'_>, plain: &[u8], salt: Salt<'_>, length: usize) -> Result<Output, Error> {
    let mut salt_bytes = [0; Salt::MAX_LENGTH];
    let salt = salt.decode_b64(&mut salt_bytes)?;
    let blocks = argon2.params().block_count();
    let mut space = SPACE.lock();
    if space.len() < blocks {
        // The old memory goes first: both together may be more than there is.
        *space = Vec::new();
        *space = vec![Block::default(); blocks];
    }
    let space = &mut space[..blocks];
    Output::init_with(length, |output| {
        Ok(argon2.hash_password_into_with_memory(plain, salt, output, space)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use argon2::password_hash::{PasswordHasher, PasswordVerifier};

    /// Of each variant, smaller and larger than what was before it in the same memory.
    #[test]
    fn hashes_are_those_of_the_library_whatever_the_memory_held() {
        let salt = SaltString::encode_b64(b"a salt of 16 byt").unwrap();
        let variants = [Algorithm::Argon2id, Algorithm::Argon2i, Algorithm::Argon2d];
        for (variant, kib) in variants.into_iter().zip([64, 512, 128]) {
            for version in [Version::V0x10, Version::V0x13] {
                let params = Params::new(kib, 2, 2, Some(24)).unwrap();
                let library = Argon2::new(variant, version, params);
                let hash = library.hash_password(b"secret", &salt).unwrap();
                assert_eq!(verify(b"secret", &hash), Ok(true), "{hash}");
                assert_eq!(verify(b"Secret", &hash), Ok(false), "{hash}");
            }
        }
        let ours = hash(b"secret", &salt).unwrap();
        let hash = PasswordHash::new(&ours).unwrap();
        assert_eq!(Argon2::default().verify_password(b"secret", &hash), Ok(()));
    }
}
