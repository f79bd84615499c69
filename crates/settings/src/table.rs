//! Tables that no language declares, read key by key: experiments, their programs' parameters, a
//! device's profile. Everything that is wrong is noted, and the reading goes on.

use std::cell::RefCell;
use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::units::{Bytes, Time};

/// What is wrong with a file, in the order found.
#[derive(Debug, Default)]
pub struct Problems(RefCell<Vec<String>>);

impl Problems {
    /// Adds one: where, and what is wrong there.
    pub fn add(&self, place: &str, what: impl AsRef<str>) {
        let what = what.as_ref();
        self.0.borrow_mut().push(match place {
            "" => what.to_string(),
            place => format!("{place}: {what}"),
        });
    }

    /// All of them.
    pub fn list(self) -> Vec<String> {
        self.0.into_inner()
    }
}

/// A table that is being read. [`Fields::finish`] reports the keys that nobody asked for.
pub struct Fields<'a> {
    table: &'a Table,
    place: String,
    problems: &'a Problems,
    asked: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Fields<'a> {
    /// Reads `table`, which messages call `place`.
    pub fn new(table: &'a Table, place: impl Into<String>, problems: &'a Problems) -> Self {
        Self {
            table,
            place: place.into(),
            problems,
            asked: RefCell::default(),
        }
    }

    fn value(&self, key: &'static str) -> Option<&'a Value> {
        self.asked.borrow_mut().insert(key);
        self.table.get(key)
    }

    /// Whether a key is there.
    pub fn has(&self, key: &'static str) -> bool {
        self.value(key).is_some()
    }

    fn place_of(&self, key: &str) -> String {
        match self.place.as_str() {
            "" => key.to_string(),
            outer => format!("{outer}, {key}"),
        }
    }

    /// Reports a problem with a key.
    pub fn wrong(&self, key: &str, what: impl AsRef<str>) {
        self.problems.add(&self.place_of(key), what);
    }

    /// A key's value as what `read` makes of it; nothing if it is not there, or is not what is
    /// `expected`.
    pub fn get<T>(
        &self,
        key: &'static str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(key)?;
        let read = read(value);
        if read.is_none() {
            self.wrong(key, format!("{value} is not {expected}"));
        }
        read
    }

    /// As [`Fields::get`], of a key that must be there.
    pub fn required<T>(
        &self,
        key: &'static str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        if !self.has(key) {
            self.wrong(key, format!("is missing; it must be {expected}"));
        }
        self.get(key, expected, read)
    }

    /// A text.
    pub fn text(&self, key: &'static str) -> Option<String> {
        self.get(key, "a text", text)
    }

    /// A text that must be there; empty after a problem was reported.
    pub fn required_text(&self, key: &'static str) -> String {
        self.required(key, "a text", text).unwrap_or_default()
    }

    /// One of some words; the first where the key is not there, or is none of them.
    pub fn word_or_first(&self, key: &'static str, words: &[&'static str]) -> &'static str {
        let known = |value: &Value| {
            let given = value.as_str()?;
            words.iter().copied().find(|word| *word == given)
        };
        let expected = format!("one of {}", words.join(", "));
        self.get(key, &expected, known).unwrap_or(words[0])
    }

    /// As [`Fields::word_or_first`], of a key that must be there.
    pub fn word(&self, key: &'static str, words: &[&'static str]) -> &'static str {
        if !self.has(key) {
            self.wrong(key, format!("is missing: one of {}", words.join(", ")));
        }
        self.word_or_first(key, words)
    }

    /// A finite number.
    pub fn number(&self, key: &'static str) -> Option<f64> {
        self.get(key, "a number", number)
    }

    /// A finite number that is not negative.
    pub fn amount(&self, key: &'static str) -> Option<f64> {
        self.get(key, "a number from 0", |value| {
            number(value).filter(|number| *number >= 0.0)
        })
    }

    /// A whole number from 1.
    pub fn count(&self, key: &'static str) -> Option<usize> {
        self.get(key, "a whole number from 1", |value| {
            let number = usize::try_from(whole(value)?).ok()?;
            (number >= 1).then_some(number)
        })
    }

    /// True or false.
    pub fn flag(&self, key: &'static str) -> Option<bool> {
        self.get(key, "true or false", Value::as_bool)
    }

    /// A time with its unit, seconds.
    pub fn seconds(&self, key: &'static str) -> Option<f64> {
        self.get(key, "a time such as \"500ms\" or \"5s\"", |value| {
            let time: Time = value.as_str()?.parse().ok()?;
            Some(time.duration().as_secs_f64())
        })
    }

    /// A list of sizes above 0, bytes.
    pub fn sizes(&self, key: &'static str) -> Option<Vec<u64>> {
        self.get(key, "a list of sizes such as [\"4KiB\"]", |value| {
            let size = |value: &Value| Some(value.as_str()?.parse::<Bytes>().ok()?.get());
            let sizes: Option<Vec<u64>> = value.as_array()?.iter().map(size).collect();
            sizes.filter(|sizes| !sizes.is_empty() && !sizes.contains(&0))
        })
    }

    /// A text or a list of texts.
    pub fn texts(&self, key: &'static str) -> Option<Vec<String>> {
        self.get(key, "a text or a list of texts", |value| match value {
            Value::String(one) => Some(vec![one.clone()]),
            Value::Array(many) => many.iter().map(text).collect(),
            _ => None,
        })
    }

    /// A list of whole numbers from 0.
    pub fn indices(&self, key: &'static str) -> Option<Vec<usize>> {
        self.get(key, "a list of whole numbers from 0", |value| {
            let numbers = value.as_array()?.iter();
            numbers
                .map(|one| usize::try_from(whole(one)?).ok())
                .collect()
        })
    }

    /// A table as it is.
    pub fn table(&self, key: &'static str) -> Option<&'a Table> {
        self.get(key, "a table", Value::as_table)
    }

    /// A table to be read on.
    pub fn inner(&self, key: &'static str) -> Option<Fields<'a>> {
        let table = self.table(key)?;
        Some(Fields::new(table, self.place_of(key), self.problems))
    }

    /// A list of tables (`[[key]]`), each to be read on; called by its `label` key or its number.
    pub fn list(&self, key: &'static str, label: &str) -> Vec<Fields<'a>> {
        let list = self.get(key, "a list of tables", |value| {
            let list = value.as_array()?.iter();
            list.map(Value::as_table).collect::<Option<Vec<_>>>()
        });
        let named = |(index, table): (usize, &'a Table)| {
            let which = match table.get(label).and_then(Value::as_str) {
                Some(name) => format!("{name:?}"),
                None => format!("number {}", index + 1),
            };
            let place = format!("{} {which}", self.place_of(key));
            Fields::new(table, place, self.problems)
        };
        let tables = list.unwrap_or_default().into_iter();
        tables.enumerate().map(named).collect()
    }

    /// Reports keys that mean nothing here.
    pub fn finish(&self) {
        let asked = self.asked.borrow();
        let known: Vec<&str> = asked.iter().copied().collect();
        for key in self.table.keys().filter(|key| !known.contains(&&***key)) {
            let what = format!("means nothing here; known are {}", known.join(", "));
            self.wrong(key, what);
        }
    }
}

/// A value that is a text.
pub fn text(value: &Value) -> Option<String> {
    value.as_str().map(String::from)
}

/// A value that is a whole number from 0.
pub fn whole(value: &Value) -> Option<u64> {
    u64::try_from(value.as_integer()?).ok()
}

/// A value that is a finite number.
pub fn number(value: &Value) -> Option<f64> {
    let whole = value.as_integer().map(|number| number as f64);
    let number = value.as_float().or(whole);
    number.filter(|number| number.is_finite())
}
