//! The numbers of `INCRBYFLOAT` and `HINCRBYFLOAT`: x87 extended precision (64-bit mantissa), read,
//! added and printed as Redis does on x86-64, so that increments give the same digits.
//!
//! A finite number is `mantissa * 2^exponent` with a mantissa of at most 64 bits. Decimal text is
//! converted through exact integers and rounded once, to nearest even, as `strtold` and `printf`
//! do.

use std::f64::consts::LOG10_2;

use num_bigint::BigUint;

/// Bytes of such numbers that are read, added and printed in about a microsecond.
const BYTES_PER_STEP: usize = 64;
/// Words longer than this are refused unread, as in Redis.
const TEXT_BYTES_MAX: usize = 5 * 1024 - 1;
/// Exponent of the last bit of the smallest normal number.
const EXPONENT_MIN: i64 = -16445;
/// Exponent of the last bit of the largest number.
const EXPONENT_MAX: i64 = 16383 - 63;
/// The largest number has 4933 digits before the point: what has more than these overflows.
const DIGITS_MAX: f64 = 4_940.0;
/// Half the smallest number has its first digit in place 4951 behind the point: what begins behind
/// this one vanishes.
const PLACES_MAX: f64 = 4_960.0;

/// Steps ([`engine::TURN_STEPS`]) that it takes to read or print a number of this many bytes: a
/// request of a few may ask for the sum of two of thousands.
pub fn steps(bytes: usize) -> u64 {
    (bytes.min(TEXT_BYTES_MAX) / BYTES_PER_STEP) as u64
}

/// An extended-precision number that is not NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongDouble {
    negative: bool,
    /// `None` is infinite.
    magnitude: Option<(u64, i64)>,
}

impl LongDouble {
    /// Zero.
    pub const ZERO: LongDouble = LongDouble {
        negative: false,
        magnitude: Some((0, 0)),
    };

    /// False for an infinity.
    pub fn is_finite(self) -> bool {
        self.magnitude.is_some()
    }

    /// Reads a whole word as C's `strtold` does, refusing NaN, overflow, and what vanishes though
    /// it is not zero.
    pub fn parse(word: &[u8]) -> Option<LongDouble> {
        let text = std::str::from_utf8(word)
            .ok()
            .filter(|t| t.len() <= TEXT_BYTES_MAX)?;
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        if unsigned.eq_ignore_ascii_case("inf") || unsigned.eq_ignore_ascii_case("infinity") {
            return Some(LongDouble {
                negative,
                magnitude: None,
            });
        }
        let hex = unsigned
            .strip_prefix("0x")
            .or_else(|| unsigned.strip_prefix("0X"));
        let (radix, letters, body) = match hex {
            Some(body) => (16, ['p', 'P'], body),
            None => (10, ['e', 'E'], unsigned),
        };
        let (mantissa, exponent) = match body.split_once(letters) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (body, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = [whole, fraction].concat();
        if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
            return None;
        }
        let digits = BigUint::parse_bytes(digits.as_bytes(), radix)?;
        let places = fraction.len() as i64;
        let rounded = match radix {
            16 => round(&digits, &BigUint::from(1u8), exponent - 4 * places),
            _ => decimal(&digits, exponent - places),
        };
        match rounded {
            None => None,
            Some((0, _)) if digits != BigUint::ZERO => None,
            finite => Some(LongDouble {
                negative,
                magnitude: finite,
            }),
        }
    }

    /// The sum, or `None` when it is infinite or not a number.
    pub fn checked_add(self, other: LongDouble) -> Option<LongDouble> {
        let ((a, a_exp), (b, b_exp)) = (self.magnitude?, other.magnitude?);
        if a == 0 || b == 0 {
            return Some(if a == 0 { other } else { self });
        }
        let low = a_exp.min(b_exp);
        let (a, b) = (
            BigUint::from(a) << (a_exp - low),
            BigUint::from(b) << (b_exp - low),
        );
        let (negative, sum) = match (self.negative == other.negative, a >= b) {
            (true, _) => (self.negative, a + b),
            (false, true) => (self.negative, a - b),
            (false, false) => (other.negative, b - a),
        };
        let magnitude = round(&sum, &BigUint::from(1u8), low)?;
        Some(LongDouble {
            negative: negative && magnitude.0 != 0,
            magnitude: Some(magnitude),
        })
    }

    /// The number as `%.17Lf` prints it, without trailing zeros and without the sign of zero.
    pub fn to_text(self) -> String {
        let sign = if self.negative { "-" } else { "" };
        let Some((mantissa, exponent)) = self.magnitude else {
            return format!("{sign}inf");
        };
        let scaled = BigUint::from(mantissa) * BigUint::from(10u8).pow(17);
        let scaled = if exponent >= 0 {
            scaled << exponent
        } else {
            divide_to_even(&scaled, &(BigUint::from(1u8) << -exponent))
        };
        let digits = format!("{:0>18}", scaled.to_str_radix(10));
        let (whole, fraction) = digits.split_at(digits.len() - 17);
        let fraction = fraction.trim_end_matches('0');
        match (whole, fraction) {
            ("0", "") => "0".into(),
            (whole, "") => format!("{sign}{whole}"),
            (whole, fraction) => format!("{sign}{whole}.{fraction}"),
        }
    }
}

/// The decimal exponent after `e`, clamped to where the answer no longer depends on it.
fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value = digits.parse().unwrap_or(i64::MAX).min(1 << 40);
    Some(if text.starts_with('-') { -value } else { value })
}

/// `digits * 10^exponent`, rounded; `None` when it overflows.
///
/// What overflows or vanishes is known from its length alone, and no power is made for it: a client
/// writes an exponent of any size in a few bytes.
fn decimal(digits: &BigUint, exponent: i64) -> Option<(u64, i64)> {
    let length = digits.bits() as f64 * LOG10_2 + exponent as f64;
    if *digits == BigUint::ZERO || length < -PLACES_MAX {
        return Some((0, 0));
    }
    if length > DIGITS_MAX {
        return None;
    }
    let power = BigUint::from(10u8).pow(exponent.unsigned_abs() as u32);
    if exponent >= 0 {
        round(&(digits * power), &BigUint::from(1u8), 0)
    } else {
        round(digits, &power, 0)
    }
}

/// `numerator / denominator * 2^exponent` to 64 bits, to nearest even; `None` when it overflows.
fn round(numerator: &BigUint, denominator: &BigUint, exponent: i64) -> Option<(u64, i64)> {
    if *numerator == BigUint::ZERO {
        return Some((0, 0));
    }
    let bits = numerator.bits() as i64 - denominator.bits() as i64;
    // The number is between 2^(bits + exponent - 1) and 2^(bits + exponent + 1). Outside of the
    // range it is not shifted: the words of the result would be as many as the exponent says.
    if bits + exponent > EXPONENT_MAX + 64 {
        return None;
    }
    if bits + exponent < EXPONENT_MIN - 1 {
        return Some((0, 0));
    }
    let shifted = |shift: i64| {
        let (up, down) = (shift.max(0), (-shift).max(0));
        (numerator << up, denominator << down)
    };
    // With this shift the quotient has 64 bits or one less; below the normal range it has fewer.
    let mut shift = 63 - bits;
    let (above, below) = shifted(shift);
    if (above / below).bits() < 64 {
        shift += 1;
    }
    shift = shift.min(exponent - EXPONENT_MIN);
    let (above, below) = shifted(shift);
    let mut rounded = divide_to_even(&above, &below);
    let mut exponent = exponent - shift;
    if rounded.bits() > 64 {
        // Rounding up carried into a 65th bit: the number is a power of two.
        rounded >>= 1;
        exponent += 1;
    }
    let mantissa = u64::try_from(rounded).expect("at most 64 bits are left");
    let overflows = mantissa != 0 && exponent > EXPONENT_MAX;
    (!overflows).then_some((mantissa, exponent))
}

fn divide_to_even(numerator: &BigUint, denominator: &BigUint) -> BigUint {
    let quotient = numerator / denominator;
    let twice_rest = (numerator - &quotient * denominator) << 1u8;
    let up = twice_rest > *denominator || (twice_rest == *denominator && quotient.bit(0));
    if up {
        quotient + 1u8
    } else {
        quotient
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(a: &str, b: &str) -> Option<String> {
        let (a, b) = (
            LongDouble::parse(a.as_bytes())?,
            LongDouble::parse(b.as_bytes())?,
        );
        a.checked_add(b).map(LongDouble::to_text)
    }

    #[test]
    fn sums_print_as_redis_prints_them() {
        // The right-hand sides are redis-server 7.0.15's on x86-64.
        for (a, b, expected) in [
            ("1", "0.25", "1.25"),
            ("1.5", "1.5", "3"),
            ("3", "1.1", "4.1"),
            ("0.1", "0.2", "0.3"),
            ("1", "-1.1", "-0.1"),
            ("5.0e3", "2.0e2", "5200"),
            ("17179869184", "1.5", "17179869185.5"),
            ("0", "0x1.8p3", "12"),
            ("-0", "-0", "0"),
            ("1e-17", "0", "0.00000000000000001"),
            ("1e-18", "0", "0"),
        ] {
            assert_eq!(sum(a, b).as_deref(), Some(expected), "{a} + {b}");
        }
    }

    #[test]
    fn what_is_not_a_finite_number_is_refused() {
        for text in [
            "",
            " 1",
            "1 ",
            "abc",
            "nan",
            "1e5000",
            "1e-6000",
            "1e",
            "0x",
            "1e99999999999999",
            "1e-9223372036854775808",
            "0x1p-99999999999",
            "-0x1p-9223372036854775808",
            "0x1p99999999999",
            "1.2e4932",
            "1e-4951",
            "0x1p-16446",
            "0x1p16384",
        ] {
            assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(sum("inf", "1"), None);
        assert_eq!(sum("1e4932", "1e4932"), None);
    }

    #[test]
    fn the_ends_of_the_range_are_known_however_they_are_written() {
        let parse = |text: &str| LongDouble::parse(text.as_bytes());
        let (fives, zeros) = ("5".repeat(4_900), "0".repeat(4_900));
        for (one, other) in [
            ("2e-4951", "3e-4951"),
            ("0x1p-16445", "0x.8p-16444"),
            ("0x1.8p-16446", "0x1p-16445"),
            ("0xffffffffffffffffp16320", "0x1.fffffffffffffffep16383"),
            (&format!("{fives}e-4900"), &format!(".{fives}")),
            (&format!("1{zeros}e-9800"), "1e-4900"),
            (&format!(".{zeros}1e9800"), "1e4899"),
            (&format!("0x{zeros}1p000"), "1"),
        ] {
            assert!(parse(one).is_some(), "{one}");
            assert_eq!(parse(one), parse(other), "{one} {other}");
        }
    }

    #[test]
    fn rounding_agrees_with_doubles_where_both_are_exact() {
        for value in [0.5, 1.0 / 1024.0, 123456.78125, 9007199254740992.0] {
            assert_eq!(
                sum(&format!("{value}"), "0").as_deref(),
                Some(&*format!("{value}"))
            );
        }
    }
}
