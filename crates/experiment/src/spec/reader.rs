//! Reading a table key by key, collecting everything that is wrong instead of stopping at the
//! first.

use std::cell::RefCell;
use std::collections::BTreeSet;

use settings::units::Time;
use toml::{Table, Value};

/// What is wrong with a file, in the order found.
#[derive(Debug, Default)]
pub struct Problems(RefCell<Vec<String>>);

impl Problems {
    /// Adds one: where, and what is wrong with it.
    pub fn add(&self, place: &str, what: impl AsRef<str>) {
        let what = what.as_ref();
        self.0.borrow_mut().push(if place.is_empty() {
            format!("  {what}")
        } else {
            format!("  {place}: {what}")
        });
    }

    /// All of them, one a line; `None` if there is none.
    pub fn text(&self) -> Option<String> {
        let problems = self.0.borrow();
        (!problems.is_empty()).then(|| problems.join("\n"))
    }
}

/// A table that is being read. [`Reader::finish`] reports the keys that nobody asked for.
pub struct Reader<'a> {
    table: &'a Table,
    place: String,
    problems: &'a Problems,
    asked: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Reader<'a> {
    /// Reads `table`, which is called `place` in messages.
    pub fn new(table: &'a Table, place: impl Into<String>, problems: &'a Problems) -> Self {
        Self {
            table,
            place: place.into(),
            problems,
            asked: RefCell::default(),
        }
    }

    fn get(&self, key: &'static str) -> Option<&'a Value> {
        self.asked.borrow_mut().insert(key);
        self.table.get(key)
    }

    /// Whether a key is there.
    pub fn has(&self, key: &'static str) -> bool {
        self.get(key).is_some()
    }

    /// Reports a problem with a key.
    pub fn wrong(&self, key: &str, what: impl AsRef<str>) {
        let place = if self.place.is_empty() {
            key.to_string()
        } else {
            format!("{}, {key}", self.place)
        };
        self.problems.add(&place, what);
    }

    fn typed<T>(
        &self,
        key: &'static str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(key)?;
        let read = read(value);
        if read.is_none() {
            self.wrong(key, format!("{value} is not {expected}"));
        }
        read
    }

    /// A text.
    pub fn text(&self, key: &'static str) -> Option<String> {
        self.typed(key, "a text", |value| value.as_str().map(String::from))
    }

    /// A text that must be there; empty after a problem was reported.
    pub fn required_text(&self, key: &'static str) -> String {
        if !self.has(key) {
            self.wrong(key, "is missing");
        }
        self.text(key).unwrap_or_default()
    }

    /// A finite number.
    pub fn number(&self, key: &'static str) -> Option<f64> {
        self.typed(key, "a number", |value| {
            let number = value
                .as_float()
                .or_else(|| value.as_integer().map(|n| n as f64));
            number.filter(|number| number.is_finite())
        })
    }

    /// A whole number from 1.
    pub fn count(&self, key: &'static str) -> Option<usize> {
        self.typed(key, "a whole number from 1", |value| {
            let number = usize::try_from(value.as_integer()?).ok()?;
            (number >= 1).then_some(number)
        })
    }

    /// True or false.
    pub fn flag(&self, key: &'static str) -> Option<bool> {
        self.typed(key, "true or false", Value::as_bool)
    }

    /// A time with its unit, seconds.
    pub fn seconds(&self, key: &'static str) -> Option<f64> {
        self.typed(key, "a time such as \"500ms\" or \"5s\"", |value| {
            let time: Time = value.as_str()?.parse().ok()?;
            Some(time.duration().as_secs_f64())
        })
    }

    /// A text or a list of texts.
    pub fn texts(&self, key: &'static str) -> Option<Vec<String>> {
        self.typed(key, "a text or a list of texts", |value| match value {
            Value::String(one) => Some(vec![one.clone()]),
            Value::Array(many) => many
                .iter()
                .map(|one| one.as_str().map(String::from))
                .collect(),
            _ => None,
        })
    }

    /// A list of whole numbers from 0.
    pub fn indices(&self, key: &'static str) -> Option<Vec<usize>> {
        self.typed(key, "a list of whole numbers from 0", |value| {
            let numbers = value.as_array()?.iter();
            numbers
                .map(|one| usize::try_from(one.as_integer()?).ok())
                .collect()
        })
    }

    /// A table as it is.
    pub fn table(&self, key: &'static str) -> Option<&'a Table> {
        self.typed(key, "a table", Value::as_table)
    }

    /// A table to be read on.
    pub fn inner(&self, key: &'static str) -> Option<Reader<'a>> {
        let place = match self.place.as_str() {
            "" => key.to_string(),
            outer => format!("{outer}, {key}"),
        };
        let table = self.table(key)?;
        Some(Reader::new(table, place, self.problems))
    }

    /// A list of tables (`[[key]]`), each to be read on; called by its `label` key or its number.
    pub fn list(&self, key: &'static str, label: &str) -> Vec<Reader<'a>> {
        let list = self.typed(key, "a list of tables", |value| {
            let list = value.as_array()?.iter();
            list.map(Value::as_table).collect::<Option<Vec<_>>>()
        });
        let named = |(index, table): (usize, &'a Table)| {
            let place = match table.get(label).and_then(Value::as_str) {
                Some(name) => format!("{key} {name:?}"),
                None => format!("{key} number {}", index + 1),
            };
            Reader::new(table, place, self.problems)
        };
        list.unwrap_or_default()
            .into_iter()
            .enumerate()
            .map(named)
            .collect()
    }

    /// Reports keys that mean nothing here.
    pub fn finish(&self) {
        let asked = self.asked.borrow();
        for key in self
            .table
            .keys()
            .filter(|key| !asked.contains(key.as_str()))
        {
            let known: Vec<&str> = asked.iter().copied().collect();
            self.wrong(
                key,
                format!("means nothing here; known are {}", known.join(", ")),
            );
        }
    }
}
