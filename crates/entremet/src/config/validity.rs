//! When a certificate is valid: the only thing that is read of one here. rustls reads the rest, and
//! does not tell this.
//!
//! A parser of X.509 would bring a dozen crates, and with them RocksDB's bindings another set of
//! features to be compiled for. What is needed is the fifth element of a certificate's first (RFC
//! 5280, 4.1), two times.

/// A certificate's time, s since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Not before.
    pub from_s: i64,
    /// Not after.
    pub until_s: i64,
}

const DAY_S: i64 = 86_400;

/// Tags of DER (X.690, 8.1.2).
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

impl Validity {
    /// That of a certificate in DER; none: it is no certificate.
    pub fn of(certificate: &[u8]) -> Option<Self> {
        let mut outer = Der(certificate).inside(SEQUENCE)?;
        let mut inner = outer.inside(SEQUENCE)?;
        if inner.0.first() == Some(&VERSION) {
            inner.next()?;
        }
        // Serial number, signature, issuer.
        for _ in 0..3 {
            inner.next()?;
        }
        let mut times = inner.inside(SEQUENCE)?;
        let (from, until) = (times.next()?, times.next()?);
        Some(Self {
            from_s: time(from)?,
            until_s: time(until)?,
        })
    }

    /// What is wrong with it at a time, or will be within this many days; and whether it is valid
    /// then.
    pub fn doubt(&self, now_s: i64, days: i64) -> Option<(String, bool)> {
        let left_s = self.until_s - now_s;
        if left_s <= 0 {
            return Some((format!("expired on {}", date(self.until_s)), false));
        }
        if self.from_s > now_s {
            return Some((format!("is not valid before {}", date(self.from_s)), false));
        }
        (left_s < days * DAY_S).then(|| (format!("expires on {}", date(self.until_s)), true))
    }

    /// When it expires, in words.
    pub fn expires(&self, now_s: i64) -> String {
        let days = (self.until_s - now_s) / DAY_S;
        format!("expires on {}, in {days} days", date(self.until_s))
    }
}

/// What is left of some DER.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next element: its tag and its content.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let [tag, first, rest @ ..] = self.0 else {
            return None;
        };
        let (len, rest) = match *first {
            short @ ..0x80 => (usize::from(short), rest),
            long => {
                let (bytes, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
                // A certificate of more than 16 MiB is none.
                let len = (1..=3).contains(&bytes.len()).then(|| {
                    let add = |len, byte: &u8| len << 8 | usize::from(*byte);
                    bytes.iter().fold(0, add)
                });
                (len?, rest)
            }
        };
        let (content, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some((*tag, content))
    }

    /// The content of the next element, which must have this tag.
    fn inside(&mut self, tag: u8) -> Option<Der<'a>> {
        let (found, content) = self.next()?;
        (found == tag).then_some(Der(content))
    }
}

/// A time as RFC 5280 (4.1.2.5) allows it: with seconds, in UTC.
fn time((tag, text): (u8, &[u8])) -> Option<i64> {
    let digits = text.strip_suffix(b"Z")?;
    let number = |part: &[u8]| {
        let text = std::str::from_utf8(part).ok()?;
        text.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| text.parse::<i64>().ok())?
    };
    let (year, rest) = match (tag, digits.len()) {
        (UTC_TIME, 12) => {
            let (year, rest) = digits.split_at(2);
            let year = number(year)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        (GENERALIZED_TIME, 14) => {
            let (year, rest) = digits.split_at(4);
            (number(year)?, rest)
        }
        _ => return None,
    };
    let part = |at: usize, range: std::ops::RangeInclusive<i64>| {
        number(&rest[at..at + 2]).filter(|value| range.contains(value))
    };
    let (month, day) = (part(0, 1..=12)?, part(2, 1..=31)?);
    let (hour, minute, second) = (part(4, 0..=23)?, part(6, 0..=59)?, part(8, 0..=60)?);
    Some(days(year, month, day) * DAY_S + hour * 3_600 + minute * 60 + second)
}

/// Days since 1970-01-01 of a day of the Gregorian calendar (Hinnant, chrono-compatible low-level
/// date algorithms, `days_from_civil`).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// A day as ISO 8601 writes it (the same, `civil_from_days`).
fn date(unix_s: i64) -> String {
    let days = unix_s.div_euclid(DAY_S) + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days - era * 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use rcgen::{date_time_ymd, CertificateParams, KeyPair};

    use super::*;

    #[test]
    fn the_time_of_certificates_is_read() {
        // Up to 2049 a time has two digits of its year, later ones four.
        for (from, until, from_s, until_s) in [
            ((2026, 1, 31), (2027, 2, 28), 1_769_817_600, 1_803_772_800),
            ((1999, 12, 31), (2060, 3, 1), 946_598_400, 2_845_324_800),
        ] {
            let mut params = CertificateParams::new(vec!["localhost".to_string()]).expect("names");
            params.not_before = date_time_ymd(from.0, from.1, from.2);
            params.not_after = date_time_ymd(until.0, until.1, until.2);
            let key = KeyPair::generate().expect("a key");
            let certificate = params.self_signed(&key).expect("a certificate");
            assert_eq!(
                Validity::of(certificate.der()),
                Some(Validity { from_s, until_s })
            );
            // Cut anywhere it is none, and nothing panics.
            for end in 0..certificate.der().len() {
                let _ = Validity::of(&certificate.der()[..end]);
            }
        }
        assert_eq!(Validity::of(b""), None);
        assert_eq!(Validity::of(b"\x30\x84\xff\xff\xff\xff"), None);
    }

    #[test]
    fn days_and_dates_agree() {
        for (unix_s, written) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_803_772_800, "2027-02-28"),
            (4_107_542_399, "2100-02-28"),
            (-1, "1969-12-31"),
        ] {
            assert_eq!(date(unix_s), written);
        }
        for day in (-200_000..200_000).step_by(37) {
            let text = date(day * DAY_S);
            let parts: Vec<i64> = text
                .splitn(3, '-')
                .map(|part| part.parse().expect(&text))
                .collect();
            assert_eq!(days(parts[0], parts[1], parts[2]), day, "{text}");
        }
    }

    #[test]
    fn what_is_doubtful_is_said() {
        let valid = Validity {
            from_s: 10 * DAY_S,
            until_s: 100 * DAY_S,
        };
        assert_eq!(valid.doubt(50 * DAY_S, 14), None);
        assert_eq!(
            valid.doubt(90 * DAY_S, 14),
            Some(("expires on 1970-04-11".into(), true))
        );
        assert_eq!(
            valid.doubt(100 * DAY_S, 14),
            Some(("expired on 1970-04-11".into(), false))
        );
        assert_eq!(
            valid.doubt(DAY_S, 14),
            Some(("is not valid before 1970-01-11".into(), false))
        );
        assert_eq!(
            valid.expires(50 * DAY_S),
            "expires on 1970-04-11, in 50 days"
        );
    }
}
