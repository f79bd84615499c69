//! Numbers as Redis reads them.

/// A double as C's `strtod` reads a whole word: decimal or hexadecimal, with `inf` and `infinity`
/// but no NaN and no blank around it. Values too large, or too small to differ from zero, are
/// refused as Redis refuses them.
pub fn parse_f64(word: &[u8]) -> Option<f64> {
    let value = strtod(word)?;
    let text_is_infinite = word.iter().any(|byte| byte.eq_ignore_ascii_case(&b'n'));
    if value.is_infinite() && !text_is_infinite {
        return None;
    }
    let lost = value == 0.0 && has_nonzero_mantissa(word);
    (!value.is_nan() && !lost).then_some(value)
}

/// A score bound: as [`parse_f64`], but blanks may lead, nothing at all is zero, and what overflows
/// is infinite.
pub fn parse_bound(word: &[u8]) -> Option<f64> {
    let blanks = word
        .iter()
        .take_while(|b| b.is_ascii_whitespace() || **b == 0x0b)
        .count();
    match &word[blanks..] {
        b"" if blanks == 0 => Some(0.0),
        text => strtod(text).filter(|value| !value.is_nan()),
    }
}

fn strtod(word: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(word).ok()?;
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned
        .strip_prefix("0x")
        .or_else(|| unsigned.strip_prefix("0X"))
    {
        Some(digits) => hexadecimal(digits).map(|v| if text.starts_with('-') { -v } else { v }),
        None => text.parse().ok(),
    }
}

/// `1.8p3` of `0x1.8p3`. At most 13 significant digits are exact, which is all a double holds.
fn hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = match text.split_once(['p', 'P']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    Some(value * 2f64.powi(exponent.saturating_sub(4 * fraction.len() as i32)))
}

fn has_nonzero_mantissa(word: &[u8]) -> bool {
    let hex = word.iter().any(|b| matches!(b, b'x' | b'X'));
    let end = if hex { [b'p', b'P'] } else { [b'e', b'E'] };
    word.iter()
        .take_while(|byte| !end.contains(byte))
        .any(|byte| matches!(byte, b'1'..=b'9') || hex && matches!(byte, b'a'..=b'f' | b'A'..=b'F'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_read_as_strtod_does() {
        for (text, value) in [
            ("1", Some(1.0)),
            ("+1.5", Some(1.5)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("-1e3", Some(-1000.0)),
            ("0x1.8p3", Some(12.0)),
            ("-0xA", Some(-10.0)),
            ("inf", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("0e999", Some(0.0)),
            ("", None),
            (" 1", None),
            ("1 ", None),
            ("nan", None),
            ("1e999", None),
            ("1e-999", None),
            ("abc", None),
            ("0x", None),
        ] {
            assert_eq!(parse_f64(text.as_bytes()), value, "{text}");
        }
        assert_eq!(parse_bound(b""), Some(0.0));
        assert_eq!(parse_bound(b" 7"), Some(7.0));
        assert_eq!(parse_bound(b"1e999"), Some(f64::INFINITY));
        assert_eq!(parse_bound(b"7 "), None);
    }
}
