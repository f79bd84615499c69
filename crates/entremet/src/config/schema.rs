//! Every key of the configuration, declared once: the reader takes types, ranges and defaults from here,
//! error texts and docs/reference/config.md are written from here.

mod keys;

pub use keys::KEYS;

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
    /// An IP address and port.
    Address,
    /// One or several of those.
    Addresses,
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
            Self::Word(words) => match words {
                [word] => format!("{word:?}"),
                [first @ .., last] => {
                    let first: Vec<String> = first.iter().map(|word| format!("{word:?}")).collect();
                    format!("{} or {last:?}", first.join(", "))
                }
                [] => String::new(),
            },
            Self::Flag => "true or false".into(),
            Self::Integer(min, max) => format!("a whole number from {min} to {max}"),
            Self::Number(min, max) => format!("a number from {min} to {max}"),
            Self::Bytes(min, max) => format!("an amount of data from {min} to {max}"),
            Self::Time(min, max) => format!("a time from {min} to {max}"),
            Self::TimeOrNever(min, max) => format!("a time from {min} to {max}, or \"never\""),
            Self::Rate(min, max) => format!("a rate of requests from {min} to {max}"),
            Self::ByteRate(min, max) => format!("a rate of bytes from {min} to {max}"),
            Self::Address => {
                "an address and port, as 127.0.0.1:6380 or [::1]:6380; port 0 takes a free one"
                    .into()
            }
            Self::Addresses => "an address and port, or a list of them".into(),
            Self::Path => "a path; relative ones count from the working directory".into(),
        }
    }
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
    /// Not in this version: the key is read, checked and warned about.
    NotYet,
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

/// The key of that path, if there is one.
pub fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// The keys of a section, in the order of the reference.
pub fn of_section(section: &str) -> impl Iterator<Item = &'static Key> + '_ {
    KEYS.iter().filter(move |key| key.section() == section)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_unique_and_have_their_sections() {
        for (place, key) in KEYS.iter().enumerate() {
            assert!(
                KEYS[..place].iter().all(|other| other.path != key.path),
                "{} twice",
                key.path
            );
            let section = key.section();
            let parent = find(section).map(|parent| parent.takes);
            assert!(
                section.is_empty() || matches!(parent, Some(Takes::Table | Takes::Tables)),
                "{}",
                key.path
            );
            assert!(key.effect.ends_with('.'), "{}", key.path);
        }
    }
}
