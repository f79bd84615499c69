//! The options of `ENTREMET TENANT SET`, checked one by one; whether they go together is checked
//! with the change.

use resp::{is, Args};
use settings::tenant::{Setting, Settings, SETTINGS};

use crate::tenants::Password;

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
    /// Settings, in the order given, each with a word that it takes.
    edits: Vec<(&'static Setting, String)>,
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
        if is(option, "PASSWORD") {
            self.password = Some(NewPassword::Plain(value.to_vec()));
            return Ok(());
        }
        if is(option, "PASSWORDHASH") {
            let known = Password::from_hash(&String::from_utf8_lossy(value)).map_err(|why| {
                format!("ERR PASSWORDHASH must be an Argon2 hash in PHC form, but it {why}")
            })?;
            self.password = Some(NewPassword::Known(known));
            return Ok(());
        }
        let known = |setting: &&Setting| setting.one_word() && is(option, &setting.option());
        let Some(setting) = SETTINGS.iter().find(known) else {
            return Err(unknown(option));
        };
        let word = String::from_utf8_lossy(value).into_owned();
        let tried = setting.take(&mut Settings::default(), &word);
        tried.map_err(|must| format!("ERR {} {must}", setting.option()))?;
        self.edits.push((setting, word));
        Ok(())
    }

    /// Applies everything but the password.
    pub fn apply(&self, settings: &mut Settings) {
        for (setting, word) in &self.edits {
            let taken = setting.take(settings, word);
            debug_assert!(taken.is_ok(), "it was tried when it was read");
        }
    }

    /// An option that would have no effect on `settings`, which this has been applied to.
    pub fn idle(&self, settings: &Settings) -> Option<String> {
        let limited = settings.asks("limit.requests") || settings.asks("limit.bytes");
        let mut of_limit = self.edits.iter().filter(|(setting, _)| {
            ["limit.burst", "limit.max_wait"].contains(&setting.name()) && !limited
        });
        let (setting, _) = of_limit.next()?;
        Some(format!(
            "{} limits nothing: set LIMIT-REQUESTS or LIMIT-BYTES",
            setting.option()
        ))
    }
}

fn unknown(option: &[u8]) -> String {
    let settings = SETTINGS.iter().filter(|setting| setting.one_word());
    let options: Vec<String> = settings.map(Setting::option).collect();
    format!(
        "ERR unknown option '{}' of ENTREMET TENANT SET; there are {}, PASSWORD, PASSWORDHASH and NOPASS",
        String::from_utf8_lossy(option).to_ascii_uppercase(),
        options.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use resp::OwnedArgs;
    use settings::tenant::Limit;

    fn read(words: &str) -> Result<Promise, String> {
        let owned = OwnedArgs::from_words(words.split_whitespace().map(str::as_bytes));
        Promise::read(owned.args())
    }

    #[test]
    fn every_option_reaches_its_setting() {
        let words =
            "weight 2.5 RESERVED-PERMITS 2 reserve-get 2000/s RESERVE-PUT 500 limit-requests 5e4 \
                     LIMIT-BYTES 1000000/s CONTRACT 1500/s SYNC always CACHE 64mb BLOCK-CACHE 32mb \
                     WRITE-BUFFERS 16MiB REQUEST-MEMORY 8mb MAX-CONNECTIONS 50 ADMIN yes NOPASS \
                     LIMIT-BURST 20ms limit-max-wait 0s";
        let promise = read(words).unwrap();
        assert_eq!(promise.password, Some(NewPassword::Known(Password::None)));
        let mut settings = Settings::default();
        promise.apply(&mut settings);
        let wanted = Settings {
            admin: true,
            weight: 2.5,
            connections_max: Some(50),
            reserved_permits: 2,
            reserve_get_per_s: Some(2_000.0),
            reserve_put_per_s: Some(500.0),
            limit: Limit {
                requests_per_s: Some(50_000.0),
                bytes_per_s: Some(1_000_000.0),
                burst_ns: Some(20_000_000),
                wait_ns_max: Some(0),
            },
            contract_per_s: Some(1_500.0),
            durability: policy::Durability::Always,
            cache_bytes: Some(64 << 20),
            block_cache_bytes: Some(32 << 20),
            write_buffer_bytes: Some(16 << 20),
            request_bytes: Some(8 << 20),
            ..Settings::default()
        };
        assert_eq!(settings, wanted);
        assert_eq!(promise.idle(&settings), None);
        let promise = read("CONTRACT none CACHE auto").unwrap();
        promise.apply(&mut settings);
        assert_eq!(
            (settings.contract_per_s, settings.cache_bytes),
            (None, None)
        );
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (words, error) in [
            ("WEIGHT", "ERR syntax error"),
            ("weight 0", "ERR WEIGHT must be a number from 0.001 to 1000"),
            (
                "CONTRACT 1e-320",
                "ERR CONTRACT must be a rate of requests from 1/h to 100M/s, or NONE",
            ),
            (
                "LIMIT-MAX-WAIT 5",
                "ERR LIMIT-MAX-WAIT must be a time from 0s to 1min",
            ),
        ] {
            assert_eq!(read(words).err().as_deref(), Some(error), "{words}");
        }
        for words in ["COLOUR red", "SLO get"] {
            let error = read(words).err().unwrap();
            assert!(error.contains("unknown option") && error.contains("LIMIT-MAX-WAIT, PASSWORD"));
        }
        assert!(read("PASSWORDHASH secret")
            .err()
            .unwrap()
            .starts_with("ERR PASSWORDHASH must be an Argon2 hash"));
    }

    #[test]
    fn what_would_have_no_effect_is_named() {
        let mut settings = Settings::default();
        let promise = read("WEIGHT 2 LIMIT-BURST 1s").unwrap();
        promise.apply(&mut settings);
        assert_eq!(
            promise.idle(&settings).as_deref(),
            Some("LIMIT-BURST limits nothing: set LIMIT-REQUESTS or LIMIT-BYTES")
        );
        settings.limit.bytes_per_s = Some(1e6);
        assert_eq!(promise.idle(&settings), None);
    }
}
