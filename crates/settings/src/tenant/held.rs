//! The types that settings have: how each is read, said and shown.

use policy::words::Words;
use policy::Durability;
use toml::de::DeValue;

use super::{Slo, SloClass};
use crate::units::{ByteRate, Bytes, Rate, Time};
use crate::{Section, Takes, Value};

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

impl Held for Durability {
    fn read(&mut self, section: &Section, name: &str, _: &Takes) {
        *self = section.get_or_default(name);
    }

    fn take(&mut self, word: &str, _: &Takes) -> Option<()> {
        // As Redis's `appendfsync` has it.
        let word = match word.to_ascii_lowercase().as_str() {
            "everysec" => Self::EverySecond.word().to_string(),
            word => word.to_string(),
        };
        *self = Self::from_word(&word)?;
        Some(())
    }

    fn said(&self, _: &Takes) -> Option<String> {
        Some(self.word().to_string())
    }

    fn shown(&self, _: &Takes) -> Shown {
        Shown::Text(self.word().to_string())
    }
}

impl Held for Vec<Slo> {
    fn read(&mut self, section: &Section, name: &str, _: &Takes) {
        *self = slos(section, name);
    }

    fn take(&mut self, _: &str, _: &Takes) -> Option<()> {
        None
    }

    fn said(&self, _: &Takes) -> Option<String> {
        let slos: Vec<String> = self.iter().map(ToString::to_string).collect();
        (!slos.is_empty()).then(|| slos.join("; "))
    }

    fn shown(&self, takes: &Takes) -> Shown {
        self.said(takes).map_or(Shown::Nothing, Shown::Text)
    }
}

impl std::fmt::Display for Slo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let latency = self.latency.map(|(percentile, ns)| {
            format!("{percentile} % of requests within {}", Time::from_ns(ns))
        });
        let throughput = self
            .throughput_per_s
            .map(|per_s| format!("{} requests", Rate::words(per_s)));
        let targets: Vec<String> = latency.into_iter().chain(throughput).collect();
        write!(f, "{} {}", self.class.word(), targets.join(" and "))
    }
}

/// One for each table of the list but those that are wrong.
fn slos(tenant: &Section, name: &str) -> Vec<Slo> {
    let titled = |slo: &Section, place: usize| match slo.raw_text("class") {
        Some(class) => format!("slo {class:?}"),
        None => format!("slo number {}", place + 1),
    };
    let sections = tenant.tables(name, titled);
    if !sections.is_empty() {
        let what = "SLOs are recorded and shown but not yet enforced: there is no controller in this version";
        let advice = "keep promises with weight, reserve and reserved_permits until then";
        tenant.warn(name, what, advice);
    }
    let mut slos: Vec<Slo> = Vec::new();
    for section in &sections {
        let Some(slo) = slo(section) else { continue };
        if slos.iter().any(|earlier| earlier.class == slo.class) {
            let what = format!("there is another SLO for {:?}", slo.class.word());
            let advice = "put latency and throughput into one [[tenant.slo]]";
            section.error("class", &what, advice);
        }
        slos.push(slo);
    }
    slos
}

fn slo(section: &Section) -> Option<Slo> {
    let latency = section.table("latency");
    let (percentile, at_most) = (latency.get("p"), latency.get("at_most"));
    if !latency.present() && !section.gives("throughput") {
        let advice = "add latency = { p = 99.0, at_most = \"20ms\" } or throughput = \"40/s\"";
        section.error("class", "promises nothing", advice);
    }
    let (class, throughput): (Option<SloClass>, Option<Rate>) =
        (section.get("class"), section.get("throughput"));
    let contract: Option<Rate> = section.get("contract");
    let importance = section.get_or_default("importance");
    let latency = match latency.present() {
        true => Some((percentile?, Time::ns(at_most?))),
        false => None,
    };
    Some(Slo {
        class: class?,
        latency,
        throughput_per_s: throughput.map(Rate::per_s),
        contract_per_s: contract.map(Rate::per_s),
        importance,
    })
}
