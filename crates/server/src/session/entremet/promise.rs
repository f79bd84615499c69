//! The options of `ENTREMET TENANT SET`, checked one by one; whether they go together is checked with the change.

use policy::words::Words;
use policy::Durability;

use crate::commands::is;
use crate::resp::Args;
use crate::tenants::{Password, Settings};

/// Weights that the scheduler tells apart (`policy::dispatch::Allocation`).
const WEIGHTS: std::ops::RangeInclusive<f64> = 0.001..=1_000.0;

/// A change of one setting.
type Edit = Box<dyn FnOnce(&mut Settings) + Send>;

/// The password to be.
#[derive(Debug, PartialEq)]
pub enum NewPassword {
    /// To be hashed, which takes tens of milliseconds.
    Plain(Vec<u8>),
    /// Hashed already, or none at all.
    Known(Password),
}

/// What `SET` asks for.
#[derive(Default)]
pub struct Promise {
    /// Another password.
    pub password: Option<NewPassword>,
    edits: Vec<Edit>,
}

impl Promise {
    /// Reads the words after the tenant's name.
    ///
    /// # Errors
    /// What is wrong, as a reply.
    pub fn read(args: Args<'_>) -> Result<Self, String> {
        let mut promise = Self::default();
        let mut at = 0;
        while let Some(option) = args.find(at) {
            if is(option, "NOPASS") {
                promise.password = Some(NewPassword::Known(Password::None));
                at += 1;
                continue;
            }
            let Some(value) = args.find(at + 1) else {
                return Err("ERR syntax error".into());
            };
            promise.take(option, value)?;
            at += 2;
        }
        Ok(promise)
    }

    fn take(&mut self, option: &[u8], value: &[u8]) -> Result<(), String> {
        let name = String::from_utf8_lossy(option).to_ascii_uppercase();
        let wrong = |what: &str| format!("ERR {name} must be {what}");
        let edit: Edit = match name.as_str() {
            "PASSWORD" => {
                self.password = Some(NewPassword::Plain(value.to_vec()));
                return Ok(());
            }
            "PASSWORDHASH" => {
                let known = Password::from_hash(&String::from_utf8_lossy(value));
                let known = known
                    .map_err(|why| wrong(&format!("an Argon2 hash in PHC form, but it {why}")))?;
                self.password = Some(NewPassword::Known(known));
                return Ok(());
            }
            "WEIGHT" => {
                let weight = number(value).filter(|weight| WEIGHTS.contains(weight));
                let weight = weight.ok_or_else(|| wrong("a number from 0.001 to 1000"))?;
                Box::new(move |settings| settings.weight = weight)
            }
            "MAX-CONNECTIONS" => {
                let max = count(value).ok_or_else(|| wrong("a whole number above 0, or AUTO"))?;
                Box::new(move |settings| settings.connections_max = max)
            }
            "RESERVED-PERMITS" => {
                let permits: u32 = text(value)
                    .parse()
                    .map_err(|_| wrong("a whole number, 0 or more"))?;
                Box::new(move |settings| settings.reserved_permits = permits)
            }
            "RESERVE-GET" | "RESERVE-PUT" | "LIMIT-REQUESTS" | "LIMIT-BYTES" | "CONTRACT" => {
                let rate = rate(value)
                    .ok_or_else(|| wrong("a rate above 0 per second, like 2000/s, or NONE"))?;
                rate_edit(&name, rate)
            }
            "SYNC" => {
                let durability = durability(value)
                    .ok_or_else(|| wrong("ALWAYS, \"EVERY 1S\" (or EVERYSEC) or NEVER"))?;
                Box::new(move |settings| settings.durability = durability)
            }
            "CACHE" | "BLOCK-CACHE" | "WRITE-BUFFERS" | "REQUEST-MEMORY" => {
                let bytes =
                    bytes(value).ok_or_else(|| wrong("a size in bytes, like 64mb, or AUTO"))?;
                memory_edit(&name, bytes)
            }
            "ADMIN" if is(value, "YES") || is(value, "NO") => {
                let admin = is(value, "YES");
                Box::new(move |settings| settings.admin = admin)
            }
            "ADMIN" => return Err(wrong("YES or NO")),
            _ => {
                return Err(format!(
                    "ERR unknown option '{name}' of ENTREMET TENANT SET"
                ))
            }
        };
        self.edits.push(edit);
        Ok(())
    }

    /// Applies everything but the password.
    pub fn apply(self, settings: &mut Settings) {
        self.edits.into_iter().for_each(|edit| edit(settings));
    }
}

/// The word of the configuration, or as `appendfsync` has it.
fn durability(word: &[u8]) -> Option<Durability> {
    let known = Durability::ALL
        .iter()
        .find(|(_, (known, _))| is(word, known));
    let redis = is(word, "EVERYSEC").then_some(Durability::EverySecond);
    known.map(|(durability, _)| *durability).or(redis)
}

/// REQUIRES: `name` is one of the rates.
fn rate_edit(name: &str, rate: Option<f64>) -> Edit {
    let field: fn(&mut Settings) -> &mut Option<f64> = match name {
        "RESERVE-GET" => |settings| &mut settings.reserve_get_per_s,
        "RESERVE-PUT" => |settings| &mut settings.reserve_put_per_s,
        "LIMIT-REQUESTS" => |settings| &mut settings.limit.requests_per_s,
        "LIMIT-BYTES" => |settings| &mut settings.limit.bytes_per_s,
        _ => |settings| &mut settings.contract_per_s,
    };
    Box::new(move |settings| *field(settings) = rate)
}

/// REQUIRES: `name` is one of the memories.
fn memory_edit(name: &str, bytes: Option<u64>) -> Edit {
    let field: fn(&mut Settings) -> &mut Option<u64> = match name {
        "CACHE" => |settings| &mut settings.cache_bytes,
        "BLOCK-CACHE" => |settings| &mut settings.block_cache_bytes,
        "REQUEST-MEMORY" => |settings| &mut settings.request_bytes,
        _ => |settings| &mut settings.write_buffer_bytes,
    };
    Box::new(move |settings| *field(settings) = bytes)
}

fn text(word: &[u8]) -> &str {
    std::str::from_utf8(word).unwrap_or_default()
}

fn number(word: &[u8]) -> Option<f64> {
    text(word)
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite())
}

/// `2000`, `2000/s` or `none`.
fn rate(word: &[u8]) -> Option<Option<f64>> {
    if is(word, "NONE") {
        return Some(None);
    }
    number(word.strip_suffix(b"/s").unwrap_or(word))
        .filter(|rate| *rate > 0.0)
        .map(Some)
}

/// A number above 0, or `auto`.
fn count(word: &[u8]) -> Option<Option<u32>> {
    if is(word, "AUTO") {
        return Some(None);
    }
    text(word).parse().ok().filter(|count| *count > 0).map(Some)
}

/// A size with Redis's units (`k` is 1000, `kb` is 1024, …), or `auto`: by weight.
fn bytes(word: &[u8]) -> Option<Option<u64>> {
    if is(word, "AUTO") {
        return Some(None);
    }
    let word = text(word).to_ascii_lowercase();
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match &word[digits.len()..] {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::OwnedArgs;

    fn read(words: &str) -> Result<Promise, String> {
        let owned = OwnedArgs::from_words(words.split_whitespace().map(str::as_bytes));
        Promise::read(owned.args())
    }

    #[test]
    fn every_option_reaches_its_setting() {
        let words =
            "weight 2.5 RESERVED-PERMITS 2 reserve-get 2000/s RESERVE-PUT 500 limit-requests 5e4 \
                     LIMIT-BYTES 1000000/s CONTRACT 1500/s SYNC always CACHE 64mb BLOCK-CACHE 32mb \
                     WRITE-BUFFERS 16mb REQUEST-MEMORY 8mb MAX-CONNECTIONS 50 ADMIN yes NOPASS";
        let promise = read(words).unwrap();
        assert_eq!(promise.password, Some(NewPassword::Known(Password::None)));
        let mut settings = Settings::default();
        promise.apply(&mut settings);
        let limit = crate::tenants::Limit {
            requests_per_s: Some(50_000.0),
            bytes_per_s: Some(1_000_000.0),
            ..Default::default()
        };
        let wanted = Settings {
            admin: true,
            weight: 2.5,
            connections_max: Some(50),
            reserved_permits: 2,
            reserve_get_per_s: Some(2_000.0),
            reserve_put_per_s: Some(500.0),
            limit,
            contract_per_s: Some(1_500.0),
            durability: Durability::Always,
            cache_bytes: Some(64 << 20),
            block_cache_bytes: Some(32 << 20),
            write_buffer_bytes: Some(16 << 20),
            request_bytes: Some(8 << 20),
            slos: Vec::new(),
        };
        assert_eq!(settings, wanted);
        read("CONTRACT none CACHE auto")
            .unwrap()
            .apply(&mut settings);
        assert_eq!(
            (settings.contract_per_s, settings.cache_bytes),
            (None, None)
        );
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (words, error) in [
            ("WEIGHT", "ERR syntax error"),
            ("WEIGHT 0", "ERR WEIGHT must be a number from 0.001 to 1000"),
            (
                "WEIGHT inf",
                "ERR WEIGHT must be a number from 0.001 to 1000",
            ),
            (
                "RESERVED-PERMITS -1",
                "ERR RESERVED-PERMITS must be a whole number, 0 or more",
            ),
            (
                "CONTRACT 0",
                "ERR CONTRACT must be a rate above 0 per second, like 2000/s, or NONE",
            ),
            (
                "SYNC often",
                "ERR SYNC must be ALWAYS, \"EVERY 1S\" (or EVERYSEC) or NEVER",
            ),
            (
                "CACHE 5x",
                "ERR CACHE must be a size in bytes, like 64mb, or AUTO",
            ),
            (
                "MAX-CONNECTIONS 0",
                "ERR MAX-CONNECTIONS must be a whole number above 0, or AUTO",
            ),
            ("ADMIN maybe", "ERR ADMIN must be YES or NO"),
            (
                "COLOUR red",
                "ERR unknown option 'COLOUR' of ENTREMET TENANT SET",
            ),
        ] {
            assert_eq!(read(words).err().as_deref(), Some(error), "{words}");
        }
        for (durability, (word, _)) in Durability::ALL {
            assert_eq!(super::durability(word.as_bytes()), Some(*durability));
        }
        assert_eq!(
            super::durability(b"everysec"),
            Some(Durability::EverySecond)
        );
        assert!(read("PASSWORDHASH secret")
            .err()
            .unwrap()
            .starts_with("ERR PASSWORDHASH must be an Argon2 hash"));
    }
}
