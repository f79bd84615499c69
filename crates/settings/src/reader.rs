//! Walks a TOML document by its language, noting every problem on the way.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::problem::{Report, Severity};
use crate::schema::{Key, Language, Otherwise, Takes};
use crate::tenant::Doubt;
use crate::value::Value;

/// The state of one reading.
pub struct Reader {
    /// What is wrong so far.
    pub report: RefCell<Report>,
    /// Where each value was, by path; elements of lists as `tenant[0].weight`.
    places: RefCell<BTreeMap<String, Range<usize>>>,
    /// The keys that were asked for: a test holds them against the schema.
    asked: RefCell<BTreeSet<&'static str>>,
    language: &'static Language,
    /// The text has syntax errors, so what seems to be missing may only be unreadable.
    broken: bool,
}

/// A table being read; absent ones yield defaults.
#[derive(Clone)]
pub struct Section<'a> {
    reader: &'a Reader,
    table: Option<&'a DeTable<'a>>,
    /// Where keys that the table does not give are looked for, in turn.
    beneath: Vec<Beneath<'a>>,
    span: Option<Range<usize>>,
    /// Path in the schema.
    path: String,
    /// Path with the places in lists.
    exact: String,
    /// How problems begin: `server.` or `tenant "web", `.
    label: String,
}

/// A table below another one.
#[derive(Clone, Copy)]
struct Beneath<'a> {
    table: &'a DeTable<'a>,
    /// It is part of the text that is read, so that its places mean something.
    here: bool,
}

impl Reader {
    /// Starts a reading in `language` that reports to `report`. `broken`: the text has syntax
    /// errors.
    pub fn new(language: &'static Language, report: Report, broken: bool) -> Self {
        Self {
            language,
            report: RefCell::new(report),
            places: RefCell::default(),
            asked: RefCell::default(),
            broken,
        }
    }

    /// The whole document.
    pub fn root<'a>(&'a self, document: &'a DeTable<'a>) -> Section<'a> {
        let (path, exact, label) = Default::default();
        let section = Section {
            reader: self,
            table: Some(document),
            beneath: Vec::new(),
            span: None,
            path,
            exact,
            label,
        };
        section.refuse_unknown();
        section
    }

    /// Where a value was.
    pub fn place(&self, exact: &str) -> Option<Range<usize>> {
        self.places.borrow().get(exact).cloned()
    }

    /// The paths of the keys asked for so far, for a test that every one is read.
    pub fn asked(&self) -> BTreeSet<&'static str> {
        self.asked.borrow().clone()
    }
}

impl<'a> Section<'a> {
    /// A key's value: the given one, else the default; none if there is neither or the value is
    /// wrong.
    pub fn get<T: Value>(&self, name: &str) -> Option<T> {
        let key = self.key(name);
        let Some((given, span)) = self.given(name) else {
            if matches!(key.otherwise, Otherwise::Required)
                && self.table.is_some()
                && !self.reader.broken
            {
                self.problem(self.span.clone(), key, "is missing");
            }
            return default(key);
        };
        match T::read(given, &key.takes) {
            Ok(value) => Some(value),
            Err(what) => {
                self.problem(span, key, &what);
                default(key)
            }
        }
    }

    /// A key that has a default in the schema.
    pub fn get_or_default<T: Value>(&self, name: &str) -> T {
        self.get(name)
            .expect("asked only for keys whose default the schema holds; a test reads them all")
    }

    /// A key that takes one of a few words, as the type that the words stand for.
    pub fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let text: String = self.get(name)?;
        words
            .iter()
            .find(|(word, _)| *word == text)
            .map(|(_, value)| *value)
    }

    /// A table below this one.
    pub fn table(&self, name: &str) -> Section<'a> {
        let key = self.key(name);
        let given = self.given(name);
        let table = given.as_ref().and_then(|(value, span)| {
            let table = value.as_table();
            if table.is_none() {
                let how = match value.is_array() {
                    true => format!(
                        "is a list; write [{}] with single brackets",
                        self.path_of(name)
                    ),
                    false => format!("is not a table; write [{}] or {{ … }}", self.path_of(name)),
                };
                self.problem(span.clone(), key, &how);
            }
            table
        });
        let label = format!("{}{name}.", self.label);
        let span = given.and_then(|(_, span)| span);
        let (path, exact) = (self.path_of(name), self.exact_of(name));
        let section = Section {
            reader: self.reader,
            table,
            beneath: Vec::new(),
            span,
            path,
            exact,
            label,
        };
        section.refuse_unknown();
        section
    }

    /// The tables of a list. `title` makes the label of each from its table and its place.
    pub fn tables(
        &self,
        name: &str,
        title: impl Fn(&Section<'a>, usize) -> String,
    ) -> Vec<Section<'a>> {
        let key = self.key(name);
        let Some((given, span)) = self.given(name) else {
            return Vec::new();
        };
        let Some(list) = given.as_array() else {
            let how = format!(
                "is not a list; write [[{}]] with double brackets",
                self.path_of(name)
            );
            self.problem(span, key, &how);
            return Vec::new();
        };
        let mut sections = Vec::with_capacity(list.len());
        for (place, element) in list.iter().enumerate() {
            let Some(table) = element.get_ref().as_table() else {
                let how = format!(
                    "holds something else than tables; write [[{}]]",
                    self.path_of(name)
                );
                self.problem(Some(element.span()), key, &how);
                continue;
            };
            let exact = format!("{}[{place}]", self.exact_of(name));
            let (path, span) = (self.path_of(name), Some(element.span()));
            let mut places = self.reader.places.borrow_mut();
            places.insert(exact.clone(), element.span());
            drop(places);
            let mut section = Section {
                reader: self.reader,
                table: Some(table),
                beneath: Vec::new(),
                span,
                path,
                exact,
                label: String::new(),
            };
            section.label = format!("{}{}, ", self.label, title(&section, place));
            section.refuse_unknown();
            sections.push(section);
        }
        sections
    }

    /// The same section, which takes what it does not give itself from `lower`: each key as a
    /// whole.
    pub fn over(mut self, lower: &Section<'a>) -> Self {
        let own = lower.table.map(|table| Beneath { table, here: true });
        self.beneath.extend(own);
        self.beneath.extend(&lower.beneath);
        self
    }

    /// The same section, which takes what it does not give itself from a table that is not in the
    /// text.
    pub fn over_table(mut self, table: &'a DeTable<'a>) -> Self {
        self.beneath.push(Beneath { table, here: false });
        self
    }

    /// True when the table is there.
    pub fn present(&self) -> bool {
        self.table.is_some()
    }

    /// The text that a key was given, whatever the key takes.
    pub fn raw_text(&self, name: &str) -> Option<&'a str> {
        self.table?.get(name)?.get_ref().as_str()
    }

    /// True when this table gives the key itself.
    pub fn gives(&self, name: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(name))
    }

    /// Adds an error about a key of this table.
    pub fn error(&self, name: &str, what: &str, advice: &str) {
        let (span, key) = self.place_of(name);
        let mut report = self.reader.report.borrow_mut();
        report.error(span, &key, what).advice(advice);
    }

    /// Adds a warning about a key of this table.
    pub fn warn(&self, name: &str, what: &str, advice: &str) {
        let (span, key) = self.place_of(name);
        let mut report = self.reader.report.borrow_mut();
        report.warn(span, &key, what).advice(advice);
    }

    /// Adds what is wrong with a table of a list of this table.
    pub fn doubt(&self, doubt: &Doubt) {
        let Doubt {
            list, place, key, ..
        } = doubt;
        let table = format!("{}[{place}]", self.exact_of(list));
        let at = |key: &str| self.reader.place(&format!("{table}.{key}"));
        let span = at(key)
            .or(at(&format!("latency.{key}")))
            .or(self.reader.place(&table));
        let label = format!("{}{list}", self.label);
        let mut report = self.reader.report.borrow_mut();
        let problem = match doubt.severity {
            Severity::Error => report.error(span, &label, &doubt.what),
            Severity::Warning => report.warn(span, &label, &doubt.what),
        };
        problem.advice(doubt.advice);
    }

    /// Where a key stands, or its table if it does not, and what messages call it.
    fn place_of(&self, name: &str) -> (Option<Range<usize>>, String) {
        let span = self.value(name).and_then(|(_, span)| span);
        let key = format!("{}{name}", self.label);
        (span.or(self.span.clone()), key)
    }

    /// A key's value, from this table or from those beneath, and its place if it has one in the
    /// text.
    fn value(&self, name: &str) -> Option<(&'a DeValue<'a>, Option<Range<usize>>)> {
        let own = self.table.map(|table| Beneath { table, here: true });
        own.iter().chain(&self.beneath).find_map(|layer| {
            let value = layer.table.get(name)?;
            Some((value.get_ref(), layer.here.then(|| value.span())))
        })
    }

    fn given(&self, name: &str) -> Option<(&'a DeValue<'a>, Option<Range<usize>>)> {
        let (value, span) = self.value(name)?;
        if let Some(span) = &span {
            let exact = self.exact_of(name);
            self.reader.places.borrow_mut().insert(exact, span.clone());
        }
        Some((value, span))
    }

    fn key(&self, name: &str) -> &'static Key {
        let path = self.path_of(name);
        let key = self
            .reader
            .language
            .find(&path)
            .expect("asked only for keys of the schema; a test reads them all");
        self.reader.asked.borrow_mut().insert(key.path);
        key
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.into()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    fn exact_of(&self, name: &str) -> String {
        if self.exact.is_empty() {
            name.into()
        } else {
            format!("{}.{name}", self.exact)
        }
    }

    fn problem(&self, span: Option<Range<usize>>, key: &Key, what: &str) {
        let label = format!("{}{}", self.label, key.name());
        let default = match key.otherwise {
            Otherwise::Value(default) => format!(" (default {default})"),
            Otherwise::Unset(_) | Otherwise::Required => String::new(),
        };
        let mut report = self.reader.report.borrow_mut();
        report
            .error(span, &label, what)
            .allowed(key.takes.describe() + &default);
    }

    /// A misspelt key must not pass as a default.
    fn refuse_unknown(&self) {
        let Some(table) = self.table else { return };
        for name in table.keys() {
            if self
                .reader
                .language
                .find(&self.path_of(name.get_ref()))
                .is_some()
            {
                continue;
            }
            let label = format!("{}{}", self.label, name.get_ref());
            let mut report = self.reader.report.borrow_mut();
            let problem = report.error(Some(name.span()), &label, "there is no such key");
            if let Some(advice) = suggest(self.reader.language, &self.path, name.get_ref()) {
                problem.advice(advice);
            }
        }
    }
}

fn default<T: Value>(key: &Key) -> Option<T> {
    let Otherwise::Value(text) = key.otherwise else {
        return None;
    };
    let value = DeValue::parse(text).ok()?;
    T::read(value.get_ref(), &key.takes).ok()
}

/// The nearest key of the section, or the section where a key of that name is at home.
fn suggest(language: &Language, section: &str, name: &str) -> Option<String> {
    let distance = |key: &&Key| strsim::osa_distance(key.name(), &name.to_lowercase());
    if let Some(near) = language.of_section(section).min_by_key(distance) {
        if distance(&near) <= 1 + name.len() / 4 {
            return Some(format!("did you mean {:?}?", near.name()));
        }
    }
    let homes = language
        .keys()
        .filter(|key| key.name() == name && !matches!(key.takes, Takes::Table));
    let homes: Vec<String> = homes
        .map(|key| match key.section() {
            "" => "the top of the file".into(),
            section => format!("[{section}]"),
        })
        .collect();
    if !homes.is_empty() {
        return Some(format!(
            "a key of that name belongs to {}",
            homes.join(" or ")
        ));
    }
    let known: Vec<&str> = language.of_section(section).map(Key::name).collect();
    Some(format!("remove it; the keys here are {}", known.join(", ")))
}
