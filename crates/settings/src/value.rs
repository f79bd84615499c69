//! From TOML values to typed ones, with the range the schema gives.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use policy::dispatch::Discipline;
use policy::slo::admission::Admission;
use policy::slo::control::Policy;
use policy::words::Words;
use policy::{Durability, Reads};
use toml::de::DeValue;

use crate::schema::Takes;
use crate::tenant::SloClass;
use crate::units::{ByteRate, Bytes, Rate, Time};

/// A type that keys can have.
pub trait Value: Sized {
    /// Reads the value; the error says what is wrong with it.
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String>;
}

/// A time, or none for `"never"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOrNever(pub Option<Time>);

fn found(value: &DeValue) -> String {
    match value {
        DeValue::String(text) => format!("the text {text:?}"),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(flag) => format!("{flag}"),
        other => format!(
            "{} {}",
            if other.is_array() { "an" } else { "a" },
            other.type_str()
        ),
    }
}

fn text<'a>(value: &'a DeValue, example: &str) -> Result<&'a str, String> {
    value
        .as_str()
        .ok_or_else(|| format!("is {}; write it in quotes, as {example}", found(value)))
}

/// Parses a quantity and holds it against a range written in the same way.
fn quantity<T>(
    value: &DeValue,
    example: &str,
    range: (&str, &str),
    size: fn(&T) -> f64,
) -> Result<T, String>
where
    T: FromStr<Err = String> + Display,
{
    let quantity: T = text(value, &format!("{example:?}"))?.parse()?;
    let bound = |text: &str| text.parse().map(|bound| size(&bound));
    let (min, max) = (bound(range.0)?, bound(range.1)?);
    if size(&quantity) < min {
        return Err(format!("{quantity} is too small"));
    }
    if size(&quantity) > max {
        return Err(format!("{quantity} is too large"));
    }
    Ok(quantity)
}

/// What a key is asked for must be what the schema declares it as; a test reads every key.
fn mismatch<T>(takes: &Takes) -> Result<T, String> {
    Err(format!(
        "is declared as {takes:?}; this is a mistake in entremet, please report it"
    ))
}

impl Value for String {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        match takes {
            Takes::Word(words) => {
                let word = text(value, &format!("{:?}", words[0]))?;
                let known = words.contains(&word);
                known
                    .then(|| word.to_string())
                    .ok_or_else(|| format!("{word:?} is not known"))
            }
            Takes::Text(_) => Ok(text(value, "\"text\"")?.to_string()),
            _ => mismatch(takes),
        }
    }
}

/// A value that has a word.
fn chosen<T: Words>(value: &DeValue, takes: &Takes) -> Result<T, String> {
    let Takes::Choice(choices) = takes else {
        return mismatch(takes);
    };
    let example = choices().first().map_or("", |(word, _)| *word);
    let word = text(value, &format!("{example:?}"))?;
    T::from_word(word).ok_or_else(|| format!("{word:?} is not known"))
}

impl Value for Discipline {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        chosen(value, takes)
    }
}

impl Value for Durability {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        chosen(value, takes)
    }
}

impl Value for Reads {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        chosen(value, takes)
    }
}

impl Value for Admission {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        chosen(value, takes)
    }
}

impl Value for Policy {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        chosen(value, takes)
    }
}

impl Value for SloClass {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        chosen(value, takes)
    }
}

impl Value for PathBuf {
    fn read(value: &DeValue, _takes: &Takes) -> Result<Self, String> {
        let path = text(value, "\"./path\"")?;
        if path.is_empty() {
            return Err("is empty".into());
        }
        Ok(Self::from(path))
    }
}

impl Value for bool {
    fn read(value: &DeValue, _takes: &Takes) -> Result<Self, String> {
        value
            .as_bool()
            .ok_or_else(|| format!("is {}; write true or false without quotes", found(value)))
    }
}

impl Value for u64 {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        let Takes::Integer(min, max) = takes else {
            return mismatch(takes);
        };
        let wrong = || format!("is {}; write a whole number without quotes", found(value));
        let number = value.as_integer().ok_or_else(wrong)?;
        let number = i128::from_str_radix(number.as_str(), number.radix());
        match number {
            Ok(n) if n < i128::from(*min) => Err(format!("{n} is too small")),
            Ok(n) if n <= i128::from(*max) => {
                u64::try_from(n).map_err(|_| format!("{n} is too large"))
            }
            _ => Err(format!(
                "{} is too large",
                value.as_integer().map_or("", |n| n.as_str())
            )),
        }
    }
}

impl Value for u32 {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        let number = u64::read(value, takes)?;
        Self::try_from(number).map_err(|_| format!("{number} is too large"))
    }
}

impl Value for f64 {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        let Takes::Number(min, max) = takes else {
            return mismatch(takes);
        };
        let digits = match value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            other => {
                return Err(format!(
                    "is {}; write a number without quotes",
                    found(other)
                ))
            }
        };
        let number: Self = digits
            .parse()
            .map_err(|_| format!("{digits} is not a number"))?;
        if number.is_nan() {
            return Err("is not a number".into());
        }
        if number < *min {
            return Err(format!("{number} is too small"));
        }
        if number > *max {
            return Err(format!("{number} is too large"));
        }
        Ok(number)
    }
}

impl Value for Bytes {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        let Takes::Bytes(min, max) = takes else {
            return mismatch(takes);
        };
        quantity(value, "64MiB", (min, max), |bytes: &Self| {
            bytes.get() as f64
        })
    }
}

impl Value for Time {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        let (Takes::Time(min, max) | Takes::TimeOrNever(min, max)) = takes else {
            return mismatch(takes);
        };
        quantity(value, "10s", (min, max), |time: &Self| time.ns() as f64)
    }
}

impl Value for TimeOrNever {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        if value.as_str() == Some("never") {
            return Ok(Self(None));
        }
        Time::read(value, takes).map(|time| Self(Some(time)))
    }
}

impl Value for Rate {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        let Takes::Rate(min, max) = takes else {
            return mismatch(takes);
        };
        quantity(value, "2000/s", (min, max), |rate: &Self| rate.per_s())
    }
}

impl Value for ByteRate {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        let Takes::ByteRate(min, max) = takes else {
            return mismatch(takes);
        };
        quantity(value, "100MB/s", (min, max), |rate: &Self| rate.per_s())
    }
}

impl Value for Vec<Bytes> {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        let Takes::ByteList(min, max) = takes else {
            return mismatch(takes);
        };
        each(value, &Takes::Bytes(min, max), "[\"100B\", \"1KiB\"]")
    }
}

impl Value for Vec<f64> {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        let Takes::NumberList(min, max) = takes else {
            return mismatch(takes);
        };
        each(value, &Takes::Number(*min, *max), "[1, 2.5]")
    }
}

/// Reads every element of a list that must not be empty.
fn each<T: Value>(value: &DeValue, takes: &Takes, example: &str) -> Result<Vec<T>, String> {
    let wrong = || format!("is {}; write a list, as {example}", found(value));
    let list = value.as_array().ok_or_else(wrong)?;
    if list.is_empty() {
        return Err("is empty".into());
    }
    list.iter()
        .map(|one| T::read(one.get_ref(), takes))
        .collect()
}

/// A table in another language: only that it is one is checked here.
pub struct Foreign;

impl Value for Foreign {
    fn read(value: &DeValue, _takes: &Takes) -> Result<Self, String> {
        let wrong = || format!("is {}; write a table", found(value));
        value.as_table().map(|_| Self).ok_or_else(wrong)
    }
}

impl Value for SocketAddr {
    fn read(value: &DeValue, _takes: &Takes) -> Result<Self, String> {
        address(text(value, "\"127.0.0.1:6380\"")?)
    }
}

impl Value for Vec<SocketAddr> {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        match value {
            DeValue::Array(list) => list
                .iter()
                .map(|one| SocketAddr::read(one.get_ref(), takes))
                .collect(),
            one => SocketAddr::read(one, takes).map(|address| vec![address]),
        }
    }
}

impl Value for Vec<String> {
    fn read(value: &DeValue, takes: &Takes) -> Result<Self, String> {
        let (example, fits, wrong): (_, fn(&str) -> bool, _) = match takes {
            Takes::Names => (
                "\"entremet.example.org\"",
                is_name,
                "is no name of a host, without a port",
            ),
            Takes::Patterns => (
                "\"batch-*\"",
                is_pattern,
                "is no pattern of 1 to 256 characters without spaces and commas",
            ),
            _ => return mismatch(takes),
        };
        let one = |value: &DeValue| match text(value, example)? {
            one if fits(one) => Ok(one.to_string()),
            other => Err(format!("{other:?} {wrong}")),
        };
        match value {
            DeValue::Array(list) => list.iter().map(|value| one(value.get_ref())).collect(),
            value => one(value).map(|one| vec![one]),
        }
    }
}

/// What clients call themselves is printable ASCII without spaces; commas are between patterns.
fn is_pattern(text: &str) -> bool {
    (1..=256).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic() && b != b',')
}

/// As RFC 1123 has names of hosts.
fn is_name(text: &str) -> bool {
    let part = |part: &str| {
        (1..=63).contains(&part.len())
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.len() <= 253 && text.split('.').all(part)
}

/// An address as config and command line take it; `localhost` is 127.0.0.1.
///
/// # Errors
/// Not an IP address and port, in words.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_string(),
    };
    if let Ok(address) = numeric.parse() {
        return Ok(address);
    }
    let why = match text.rsplit_once(':') {
        None => "has no port; write it as 127.0.0.1:6380",
        Some(("", _)) => "has no address; write 127.0.0.1 for this machine only or 0.0.0.0 for all",
        Some((_, port)) if port.parse::<u16>().is_err() => "has no port from 0 to 65535 at its end",
        Some((host, _)) if host.contains(':') => "is not an IPv6 address; write it as [::1]:6380",
        Some(_) => "is not an IP address and port; names other than localhost are not looked up",
    };
    Err(format!("{text:?} {why}"))
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn addresses_are_read_and_refused_in_words() {
        assert_eq!(
            address("localhost:1").map(|a| a.to_string()).as_deref(),
            Ok("127.0.0.1:1")
        );
        assert_eq!(address("[::1]:0").map(|a| a.port()), Ok(0));
        for (text, why) in [
            ("127.0.0.1", "no port"),
            (":6380", "has no address"),
            ("127.0.0.1:99999", "0 to 65535"),
            ("::1:6380x", "0 to 65535"),
            ("fe80:::6380", "[::1]:6380"),
            ("db.example:6380", "not looked up"),
        ] {
            let error = address(text).expect_err(text);
            assert!(error.contains(why), "{error}");
        }
    }
}
