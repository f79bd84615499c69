//! What a language declares: every key once. The reader takes types, ranges and defaults from here;
//! error texts and pages of the reference are written from here.

use std::borrow::Cow;

use policy::words::{Choice, Words};

/// What a key's value must be.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// `[section]`, or `{ … }` behind a key.
    Table,
    /// `[[section]]`, any number of times.
    Tables,
    /// Any text of the shape described.
    Text(&'static str),
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of the words that stand for some values, each with what it means.
    Choice(fn() -> Vec<Choice>),
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Integer(u64, u64),
    /// A number, perhaps with a fraction.
    Number(f64, f64),
    /// An amount of data.
    Bytes(&'static str, &'static str),
    /// A length of time.
    Time(&'static str, &'static str),
    /// A length of time, or `"never"`.
    TimeOrNever(&'static str, &'static str),
    /// Requests in a time.
    Rate(&'static str, &'static str),
    /// Bytes in a time.
    ByteRate(&'static str, &'static str),
    /// A list of amounts of data.
    ByteList(&'static str, &'static str),
    /// A list of numbers.
    NumberList(f64, f64),
    /// A table in another language, taken as it is.
    Foreign(&'static str),
    /// An IP address and port.
    Address,
    /// One or several of those.
    Addresses,
    /// A name or a list of names.
    Names,
    /// A pattern or a list of patterns for what clients call themselves.
    Patterns,
    /// A path.
    Path,
}

impl Takes {
    /// The value and its range in words: "a time from 1s to 365d, or "never"".
    pub fn describe(&self) -> String {
        match self {
            Self::Table => "a table".into(),
            Self::Tables => "a list of tables".into(),
            Self::Text(shape) => (*shape).into(),
            Self::Word(words) => one_of(words),
            Self::Choice(choices) => {
                one_of(&choices().iter().map(|(word, _)| *word).collect::<Vec<_>>())
            }
            Self::Flag => "true or false".into(),
            Self::Integer(min, max) => format!("a whole number from {min} to {max}"),
            Self::Number(min, max) => format!("a number from {min} to {max}"),
            Self::Bytes(min, max) => format!("an amount of data from {min} to {max}"),
            Self::Time(min, max) => format!("a time from {min} to {max}"),
            Self::TimeOrNever(min, max) => format!("a time from {min} to {max}, or \"never\""),
            Self::Rate(min, max) => format!("a rate of requests from {min} to {max}"),
            Self::ByteRate(min, max) => format!("a rate of bytes from {min} to {max}"),
            Self::ByteList(min, max) => format!("a list of amounts of data from {min} to {max}"),
            Self::NumberList(min, max) => format!("a list of numbers from {min} to {max}"),
            Self::Foreign(what) => (*what).into(),
            Self::Address => {
                "an address and port, as 127.0.0.1:6380 or [::1]:6380; port 0 takes a free one"
                    .into()
            }
            Self::Addresses => "an address and port, or a list of them".into(),
            Self::Names => "a name, as entremet.example.org, or a list of them".into(),
            Self::Patterns => "a pattern, as batch-* or report-?, or a list of them".into(),
            Self::Path => "a path; relative ones count from the working directory".into(),
        }
    }
}

fn one_of(words: &[&str]) -> String {
    match words {
        [word] => format!("{word:?}"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|word| format!("{word:?}")).collect();
            format!("{} or {last:?}", first.join(", "))
        }
        [] => String::new(),
    }
}

/// The choices that a type offers, for a key that takes one of its words.
pub const fn choices<T: Words>() -> Takes {
    Takes::Choice(|| T::ALL.iter().map(|(_, choice)| *choice).collect())
}

/// What holds when a key is absent.
#[derive(Clone, Copy, Debug)]
pub enum Otherwise {
    /// This value, as one would write it.
    Value(&'static str),
    /// Something that depends, in words.
    Unset(&'static str),
    /// The key must be there.
    Required,
}

/// When a change of the key in the file takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takeover {
    /// When the file is read again (SIGHUP).
    Reload,
    /// When the server starts.
    Start,
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Sections and key, joined by points.
    pub path: &'static str,
    /// Its type and range.
    pub takes: Takes,
    /// Its default.
    pub otherwise: Otherwise,
    /// When a change takes effect.
    pub takeover: Takeover,
    /// What it does.
    pub effect: &'static str,
}

/// Declares a key.
pub const fn key(
    path: &'static str,
    takes: Takes,
    otherwise: Otherwise,
    takeover: Takeover,
    effect: &'static str,
) -> Key {
    Key {
        path,
        takes,
        otherwise,
        takeover,
        effect,
    }
}

impl Key {
    /// The last part of the path.
    pub fn name(&self) -> &'static str {
        self.path
            .rsplit_once('.')
            .map_or(self.path, |(_, name)| name)
    }

    /// The path without the last part; empty for sections.
    pub fn section(&self) -> &'static str {
        self.path
            .rsplit_once('.')
            .map_or("", |(section, _)| section)
    }
}

/// A language: its keys, and which sections take the keys of another one as well.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    /// Every key, section by section, in the order of the reference; parts that several languages
    /// share stand alone.
    pub parts: &'static [&'static [Key]],
    /// (section, the section whose keys it takes as well).
    pub alike: &'static [(&'static str, &'static str)],
}

impl Language {
    /// Every key.
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> {
        self.parts.iter().flat_map(|part| part.iter())
    }

    /// The key of that path, if there is one.
    pub fn find(&self, path: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.path == path).or_else(|| {
            let other = self.canonical(path)?;
            self.keys().find(|key| key.path == other)
        })
    }

    /// The keys of a section, in the order of the reference.
    pub fn of_section<'a>(&self, section: &'a str) -> impl Iterator<Item = &'static Key> + use<'a> {
        let own: Vec<&'static Key> = self.keys().filter(|key| key.section() == section).collect();
        let other = self.canonical(section).unwrap_or_default();
        let shared = self
            .keys()
            .filter(|key| !other.is_empty() && key.section() == other);
        own.into_iter().chain(shared.collect::<Vec<_>>())
    }

    /// The path in the section that is alike, if it is below one that has its keys from elsewhere.
    fn canonical(&self, path: &str) -> Option<Cow<'static, str>> {
        self.alike.iter().find_map(|(section, other)| {
            let rest = path.strip_prefix(section)?;
            match rest.chars().next() {
                None => Some(Cow::Borrowed(*other)),
                Some('.') => Some(Cow::Owned(format!("{other}{rest}"))),
                Some(_) => None,
            }
        })
    }

    /// Mistakes in the declaration itself, for a test: paths given twice, keys without a section,
    /// effects that are no sentence.
    pub fn mistakes(&self) -> Vec<String> {
        let keys: Vec<&Key> = self.keys().collect();
        let mut mistakes = Vec::new();
        for (place, key) in keys.iter().enumerate() {
            if keys[..place].iter().any(|other| other.path == key.path) {
                mistakes.push(format!("{} is declared twice", key.path));
            }
            let section = key.section();
            let parent = self.find(section).map(|parent| parent.takes);
            if !section.is_empty() && !matches!(parent, Some(Takes::Table | Takes::Tables)) {
                mistakes.push(format!("{} has no section", key.path));
            }
            if !key.effect.ends_with('.') {
                mistakes.push(format!("{}: the effect is no sentence", key.path));
            }
        }
        mistakes
    }
}
