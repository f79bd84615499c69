//! Doubles as text, exactly as Redis 7.0 prints them: C's `%.17g`.

/// Appends `value` as `%.17g` does: at most 17 significant digits, no trailing zeros, an exponent
/// when it is below -4 or above 16; `inf`, `-inf` and `nan` for the rest.
pub fn write_double(value: f64, out: &mut Vec<u8>) {
    // Every integer below 10^17 has at most 17 digits and prints as itself; minus zero keeps its
    // sign.
    if value.abs() < 1e17 && value == value.trunc() && !(value == 0.0 && value.is_sign_negative()) {
        out.extend_from_slice(itoa::Buffer::new().format(value as i64).as_bytes());
        return;
    }
    if !value.is_finite() {
        let text = if value.is_nan() { "nan" } else { "inf" };
        out.extend_from_slice(if value < 0.0 { "-" } else { "" }.as_bytes());
        out.extend_from_slice(text.as_bytes());
        return;
    }
    // Rust rounds the exact binary value to 17 digits, as the C library does.
    let scientific = format!("{value:.16e}");
    let (mantissa, exponent) = scientific
        .split_once('e')
        .expect("`{:e}` writes an exponent");
    let exponent: i32 = exponent.parse().expect("`{:e}` writes a decimal exponent");
    let (sign, mantissa) = mantissa
        .strip_prefix('-')
        .map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        trimmed => trimmed,
    };
    out.extend_from_slice(sign.as_bytes());
    match exponent {
        -4..=-1 => {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + (-exponent - 1) as usize, b'0');
            out.extend_from_slice(digits.as_bytes());
        }
        0..=16 => {
            let whole = exponent as usize + 1;
            out.extend_from_slice(&digits.as_bytes()[..whole.min(digits.len())]);
            out.resize(out.len() + whole.saturating_sub(digits.len()), b'0');
            if digits.len() > whole {
                out.push(b'.');
                out.extend_from_slice(&digits.as_bytes()[whole..]);
            }
        }
        _ => {
            out.extend_from_slice(&digits.as_bytes()[..1]);
            if digits.len() > 1 {
                out.push(b'.');
                out.extend_from_slice(&digits.as_bytes()[1..]);
            }
            out.extend_from_slice(
                format!(
                    "e{}{:02}",
                    if exponent < 0 { '-' } else { '+' },
                    exponent.abs()
                )
                .as_bytes(),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_as_percent_17g() {
        // The right-hand sides are what redis-server 7.0.15 answers to ZSCORE.
        for (value, text) in [
            (3.0, "3"),
            (0.1, "0.10000000000000001"),
            (-0.0, "-0"),
            (0.0, "0"),
            (1.5, "1.5"),
            (-17.25, "-17.25"),
            (1e17, "1e+17"),
            (99999999999999984.0, "99999999999999984"),
            (123456789012345680.0, "1.2345678901234568e+17"),
            (1e-4, "0.0001"),
            (1.1e-5, "1.1e-05"),
            (5e-324, "4.9406564584124654e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ] {
            let mut out = Vec::new();
            write_double(value, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
