//! A program's parameters, read from a scenario with everything that is wrong noted.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

use settings::units::Bytes;
use toml::{Table, Value};

/// What is a scenario's whoever plays it.
const COMMON: [&str; 2] = ["program", "seed"];

/// Reads parameters; what is missing or wrong is noted and answered with something usable, so that
/// all problems are found in one go.
pub struct Parameters<'t> {
    table: &'t Table,
    asked: RefCell<BTreeSet<&'static str>>,
    problems: RefCell<Vec<String>>,
}

impl<'t> Parameters<'t> {
    pub(super) fn new(table: &'t Table) -> Self {
        Self {
            table,
            asked: RefCell::new(BTreeSet::from(COMMON)),
            problems: RefCell::default(),
        }
    }

    fn value(&self, key: &'static str) -> Option<&'t Value> {
        self.asked.borrow_mut().insert(key);
        self.table.get(key)
    }

    fn wrong(&self, key: &str, what: &str) {
        self.problems.borrow_mut().push(format!("{key}: {what}"));
    }

    /// The scenario's seed; 1 where it has none.
    pub fn seed(&self) -> u64 {
        let seed = self.table.get("seed").and_then(Value::as_integer);
        seed.and_then(|seed| u64::try_from(seed).ok()).unwrap_or(1)
    }

    /// A whole number, at least 1; `usual` where it is not given.
    pub fn count(&self, key: &'static str, usual: usize) -> usize {
        let Some(value) = self.value(key) else {
            return usual;
        };
        let number = value.as_integer().and_then(|n| usize::try_from(n).ok());
        number.filter(|n| *n > 0).unwrap_or_else(|| {
            self.wrong(key, &format!("{value} is no whole number from 1 on"));
            usual
        })
    }

    /// A number that is not negative; `usual` where it is not given.
    pub fn number(&self, key: &'static str, usual: f64) -> f64 {
        let Some(value) = self.value(key) else {
            return usual;
        };
        let whole = value.as_integer().map(|n| n as f64);
        let number = value.as_float().or(whole);
        number.filter(|n| *n >= 0.0).unwrap_or_else(|| {
            self.wrong(key, &format!("{value} is no number from 0 on"));
            usual
        })
    }

    /// One of some words; the first where it is not given.
    pub fn word_or(&self, key: &'static str, words: &[&'static str]) -> &'static str {
        if self.table.contains_key(key) {
            return self.word(key, words);
        }
        self.asked.borrow_mut().insert(key);
        words[0]
    }

    /// A path; none where it is not given.
    pub fn path(&self, key: &'static str) -> Option<PathBuf> {
        let value = self.value(key)?;
        let path = value.as_str().map(PathBuf::from);
        if path.is_none() {
            self.wrong(key, &format!("{value} is no path"));
        }
        path
    }

    /// A list of sizes, bytes; `usual` where it is not given.
    pub fn sizes(&self, key: &'static str, usual: &[u64]) -> Vec<u64> {
        let Some(value) = self.value(key) else {
            return usual.to_vec();
        };
        let size = |value: &Value| value.as_str()?.parse::<Bytes>().ok().map(Bytes::get);
        let sizes: Option<Vec<u64>> = value
            .as_array()
            .and_then(|list| list.iter().map(size).collect());
        let good = sizes.filter(|sizes| !sizes.is_empty() && !sizes.contains(&0));
        good.unwrap_or_else(|| {
            self.wrong(
                key,
                &format!("{value} is no list of sizes, like [\"4KiB\"]"),
            );
            usual.to_vec()
        })
    }

    /// One of some words; it must be given.
    pub fn word(&self, key: &'static str, words: &[&'static str]) -> &'static str {
        let value = self.value(key);
        let given = value.and_then(Value::as_str);
        let found = words.iter().find(|word| Some(**word) == given);
        found.copied().unwrap_or_else(|| {
            let known = words.join(", ");
            match value {
                Some(value) => self.wrong(key, &format!("{value} is none of {known}")),
                None => self.wrong(key, &format!("is missing: one of {known}")),
            }
            words[0]
        })
    }

    /// Notes what nobody asked for, and tells all problems.
    pub(super) fn finish(self) -> Result<(), String> {
        let asked = self.asked.borrow();
        for key in self.table.keys() {
            if !asked.contains(key.as_str()) {
                self.wrong(key, "means nothing to this program");
            }
        }
        let problems = self.problems.borrow();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems.join("\n"))
        }
    }
}
