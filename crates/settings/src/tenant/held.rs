//! The types that settings have: how each is read, said and shown.

use policy::words::Words;
use policy::{Durability, Reads};
use toml::de::DeValue;

use super::lists;
use super::promised::{Slo, SloClass, Workload};
use crate::schema::Key;
use crate::units::{ByteRate, Bytes, Rate, Time};
use crate::{Otherwise, Section, Takes, Value};

/// A value as replies have it.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// Nothing is set.
    Nothing,
    /// Yes or no.
    Flag(bool),
    /// A number, perhaps with a fraction; rates are a second's.
    Number(f64),
    /// A whole number; sizes are in bytes.
    Integer(u64),
    /// As the file writes it.
    Text(String),
}

/// A field of [`Settings`](super::Settings). `takes` is that of its row.
pub trait Held {
    /// Reads it from the file; what is wrong is reported, and stands for the default or for
    /// nothing.
    fn read(&mut self, section: &Section, name: &str, takes: &Takes);

    /// Reads it from a word of a command; none: the word says no such thing, and nothing has
    /// changed.
    fn take(&mut self, word: &str, takes: &Takes) -> Option<()>;

    /// Takes the value back; none: there must be one.
    fn clear(&mut self) -> Option<()> {
        None
    }

    /// As the file writes it, without quotes; none where nothing is set.
    fn said(&self, takes: &Takes) -> Option<String>;

    /// As replies have it.
    fn shown(&self, takes: &Takes) -> Shown;
}

/// A word as the file would have it in quotes, with the file's range.
fn quoted<T: Value>(word: &str, takes: &Takes) -> Option<T> {
    T::read(&DeValue::String(word.into()), takes).ok()
}

impl Held for bool {
    fn read(&mut self, section: &Section, name: &str, _: &Takes) {
        *self = section.get_or_default(name);
    }

    fn take(&mut self, word: &str, _: &Takes) -> Option<()> {
        *self = match word.to_ascii_lowercase().as_str() {
            "yes" | "true" => true,
            "no" | "false" => false,
            _ => return None,
        };
        Some(())
    }

    fn said(&self, _: &Takes) -> Option<String> {
        Some(self.to_string())
    }

    fn shown(&self, _: &Takes) -> Shown {
        Shown::Flag(*self)
    }
}

impl Held for f64 {
    fn read(&mut self, section: &Section, name: &str, _: &Takes) {
        *self = section.get_or_default(name);
    }

    fn take(&mut self, word: &str, takes: &Takes) -> Option<()> {
        let Takes::Number(min, max) = takes else {
            return None;
        };
        *self = word
            .parse()
            .ok()
            .filter(|number| (min..=max).contains(&number))?;
        Some(())
    }

    fn said(&self, _: &Takes) -> Option<String> {
        Some(self.to_string())
    }

    fn shown(&self, _: &Takes) -> Shown {
        Shown::Number(*self)
    }
}

fn integer(word: &str, takes: &Takes) -> Option<u32> {
    let Takes::Integer(min, max) = takes else {
        return None;
    };
    let number = word
        .parse()
        .ok()
        .filter(|number| (min..=max).contains(&number))?;
    u32::try_from(number).ok()
}

impl Held for u32 {
    fn read(&mut self, section: &Section, name: &str, _: &Takes) {
        *self = section.get_or_default(name);
    }

    fn take(&mut self, word: &str, takes: &Takes) -> Option<()> {
        *self = integer(word, takes)?;
        Some(())
    }

    fn said(&self, _: &Takes) -> Option<String> {
        Some(self.to_string())
    }

    fn shown(&self, _: &Takes) -> Shown {
        Shown::Integer((*self).into())
    }
}

impl Held for Option<u32> {
    fn read(&mut self, section: &Section, name: &str, _: &Takes) {
        *self = section.get(name);
    }

    fn take(&mut self, word: &str, takes: &Takes) -> Option<()> {
        *self = Some(integer(word, takes)?);
        Some(())
    }

    fn clear(&mut self) -> Option<()> {
        *self = None;
        Some(())
    }

    fn said(&self, _: &Takes) -> Option<String> {
        self.map(|number| number.to_string())
    }

    fn shown(&self, _: &Takes) -> Shown {
        self.map_or(Shown::Nothing, |number| Shown::Integer(number.into()))
    }
}

/// A rate, per second.
impl Held for Option<f64> {
    fn read(&mut self, section: &Section, name: &str, takes: &Takes) {
        *self = match takes {
            Takes::ByteRate(..) => section.get(name).map(ByteRate::per_s),
            _ => section.get(name).map(Rate::per_s),
        };
    }

    fn take(&mut self, word: &str, takes: &Takes) -> Option<()> {
        *self = Some(match takes {
            Takes::Rate(min, max) => quoted(word, takes)
                .map(Rate::per_s)
                .or_else(|| per_second(word, (min, max), Rate::per_s))?,
            Takes::ByteRate(min, max) => quoted(word, takes)
                .map(ByteRate::per_s)
                .or_else(|| per_second(word, (min, max), ByteRate::per_s))?,
            _ => return None,
        });
        Some(())
    }

    fn clear(&mut self) -> Option<()> {
        *self = None;
        Some(())
    }

    fn said(&self, takes: &Takes) -> Option<String> {
        Some(match takes {
            Takes::ByteRate(..) => ByteRate::words((*self)?),
            _ => Rate::words((*self)?),
        })
    }

    fn shown(&self, _: &Takes) -> Shown {
        self.map_or(Shown::Nothing, Shown::Number)
    }
}

/// `2000`, `2000/s` or `0.5/s`: commands take a second's number as it is, with a fraction, too.
fn per_second<T: std::str::FromStr>(
    word: &str,
    range: (&str, &str),
    per_s: fn(T) -> f64,
) -> Option<f64> {
    let bound = |text: &str| text.parse().ok().map(per_s);
    let number: f64 = word.strip_suffix("/s").unwrap_or(word).parse().ok()?;
    (bound(range.0)?..=bound(range.1)?)
        .contains(&number)
        .then_some(number)
}

/// Bytes, or a time in ns.
impl Held for Option<u64> {
    fn read(&mut self, section: &Section, name: &str, takes: &Takes) {
        *self = match takes {
            Takes::Time(..) => section.get(name).map(Time::ns),
            _ => section.get(name).map(Bytes::get),
        };
    }

    fn take(&mut self, word: &str, takes: &Takes) -> Option<()> {
        *self = Some(match takes {
            Takes::Time(..) => quoted(word, takes).map(Time::ns)?,
            Takes::Bytes(..) => quoted(word, takes)
                .or_else(|| quoted(&redis_size(word)?.to_string(), takes))
                .map(Bytes::get)?,
            _ => return None,
        });
        Some(())
    }

    fn clear(&mut self) -> Option<()> {
        *self = None;
        Some(())
    }

    fn said(&self, takes: &Takes) -> Option<String> {
        let number = (*self)?;
        Some(match takes {
            Takes::Time(..) => Time::from_ns(number).to_string(),
            _ => Bytes::new(number).to_string(),
        })
    }

    fn shown(&self, takes: &Takes) -> Shown {
        match (self, takes) {
            (None, _) => Shown::Nothing,
            (Some(bytes), Takes::Bytes(..)) => Shown::Integer(*bytes),
            (Some(_), _) => self.said(takes).map_or(Shown::Nothing, Shown::Text),
        }
    }
}

/// A size with Redis's units: `k` is 1000, `kb` is 1024, and so on; without one, bytes.
fn redis_size(word: &str) -> Option<Bytes> {
    let word = word.to_ascii_lowercase();
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
    digits
        .parse::<u64>()
        .ok()?
        .checked_mul(unit)
        .map(Bytes::new)
}

/// Settings that are one of a few words.
macro_rules! held_as_word {
    ($($choice:ty),*) => {$(
        impl Held for $choice {
            fn read(&mut self, section: &Section, name: &str, _: &Takes) {
                *self = section.get_or_default(name);
            }

            fn take(&mut self, word: &str, _: &Takes) -> Option<()> {
                // As Redis's `appendfsync` has it.
                let second = Durability::EverySecond.word();
                *self = Self::from_word(&word.to_ascii_lowercase().replace("everysec", second))?;
                Some(())
            }

            fn said(&self, _: &Takes) -> Option<String> {
                Some(self.word().to_string())
            }

            fn shown(&self, _: &Takes) -> Shown {
                Shown::Text(self.word().to_string())
            }
        }
    )*};
}

held_as_word!(Durability, Reads);

impl Held for Option<String> {
    fn read(&mut self, section: &Section, name: &str, _: &Takes) {
        *self = section.get(name);
    }

    fn take(&mut self, word: &str, takes: &Takes) -> Option<()> {
        *self = Some(quoted(word, takes)?);
        Some(())
    }

    fn clear(&mut self) -> Option<()> {
        *self = None;
        Some(())
    }

    fn said(&self, _: &Takes) -> Option<String> {
        self.clone()
    }

    fn shown(&self, takes: &Takes) -> Shown {
        self.said(takes).map_or(Shown::Nothing, Shown::Text)
    }
}

impl Held for String {
    fn read(&mut self, section: &Section, name: &str, _: &Takes) {
        *self = section.get(name).unwrap_or_default();
    }

    fn take(&mut self, word: &str, takes: &Takes) -> Option<()> {
        *self = quoted(word, takes)?;
        Some(())
    }

    fn said(&self, _: &Takes) -> Option<String> {
        Some(self.clone())
    }

    fn shown(&self, _: &Takes) -> Shown {
        Shown::Text(self.clone())
    }
}

/// Patterns: a list in the file, with commas between them in a command.
impl Held for Vec<String> {
    fn read(&mut self, section: &Section, name: &str, _: &Takes) {
        *self = section.get(name).unwrap_or_default();
    }

    fn take(&mut self, word: &str, takes: &Takes) -> Option<()> {
        let one = |word: &str| quoted::<Self>(word, takes);
        let all: Option<Vec<Self>> = word.split(',').map(one).collect();
        *self = all?.concat();
        Some(())
    }

    fn clear(&mut self) -> Option<()> {
        self.clear();
        Some(())
    }

    fn said(&self, _: &Takes) -> Option<String> {
        (!self.is_empty()).then(|| self.join(","))
    }

    fn shown(&self, takes: &Takes) -> Shown {
        self.said(takes).map_or(Shown::Nothing, Shown::Text)
    }
}

impl Held for SloClass {
    fn read(&mut self, section: &Section, name: &str, _: &Takes) {
        *self = section.get(name).unwrap_or(*self);
    }

    fn take(&mut self, word: &str, _: &Takes) -> Option<()> {
        *self = Self::from_word(&word.to_ascii_lowercase())?;
        Some(())
    }

    fn said(&self, _: &Takes) -> Option<String> {
        Some(self.word().to_string())
    }

    fn shown(&self, _: &Takes) -> Shown {
        Shown::Text(self.word().to_string())
    }
}

/// A list of tables: the file gives all of it, commands change one table at a time.
macro_rules! list {
    ($of:ty, $read:path) => {
        impl Held for Vec<$of> {
            fn read(&mut self, section: &Section, name: &str, _: &Takes) {
                *self = $read(section, name);
            }

            fn take(&mut self, _: &str, _: &Takes) -> Option<()> {
                None
            }

            fn said(&self, _: &Takes) -> Option<String> {
                let all: Vec<String> = self.iter().map(ToString::to_string).collect();
                (!all.is_empty()).then(|| all.join("; "))
            }

            fn shown(&self, takes: &Takes) -> Shown {
                self.said(takes).map_or(Shown::Nothing, Shown::Text)
            }
        }
    };
}

list!(Workload, lists::workloads);
list!(Slo, lists::slos);

/// No value is longer; a client may send words of many MiB.
const WORD_BYTES_MAX: usize = 64;
/// Patterns may be.
const LIST_BYTES_MAX: usize = 1_024;

/// Sets it to what a word of a command says: as the file writes it without quotes, or as Redis
/// writes sizes and switches; `none` or `auto` takes a value back.
///
/// # Errors
/// What it must be, in words.
pub(super) fn take(key: &Key, held: &mut dyn Held, word: &str) -> Result<(), String> {
    let nothing = match key.takes {
        Takes::Rate(..) | Takes::ByteRate(..) | Takes::Patterns | Takes::Text(_) => "NONE",
        _ => "AUTO",
    };
    let unset = matches!(key.otherwise, Otherwise::Unset(_));
    let bytes_max = match key.takes {
        Takes::Patterns => LIST_BYTES_MAX,
        _ => WORD_BYTES_MAX,
    };
    let back = ["none", "auto"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known));
    let taken = match back && unset {
        true => held.clear(),
        false if word.len() > bytes_max => None,
        false => held.take(word, &key.takes),
    };
    let or = if unset {
        format!(", or {nothing}")
    } else {
        String::new()
    };
    taken.ok_or_else(|| format!("must be {}{or}", key.takes.describe()))
}
