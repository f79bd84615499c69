//! Numbers in few characters.

const PREFIXES: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
const BYTES: [(f64, &str); 4] = [
    (1_099_511_627_776.0, "TiB"),
    (1_073_741_824.0, "GiB"),
    (1_048_576.0, "MiB"),
    (1_024.0, "KiB"),
];

/// Three digits that matter, and no more than `0.001` of small ones.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A number for people: `0.042`, `12.3`, `4567`, `12.3k`, `4.5M`.
pub fn number(value: f64) -> String {
    if value.abs() < 9_999.5 {
        return digits(value);
    }
    let prefix = PREFIXES
        .iter()
        .find(|(unit, _)| value.abs() >= unit * 0.9995);
    prefix.map_or_else(|| digits(value), |(unit, name)| digits(value / unit) + name)
}

/// A rate of what mostly does not happen: nothing is a dot.
pub fn rare(value: f64) -> String {
    if value == 0.0 {
        "·".into()
    } else {
        number(value)
    }
}

/// A number that may not be known.
pub fn maybe(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), number)
}

/// One decimal.
pub fn percent(value: f64) -> String {
    format!("{value:.1}")
}

/// Bytes with a binary unit.
pub fn bytes(value: f64) -> String {
    match BYTES.iter().find(|(unit, _)| value >= *unit) {
        Some((unit, name)) => format!("{} {name}", digits(value / unit)),
        None => format!("{} B", digits(value)),
    }
}

/// Seconds as the two largest units.
pub fn duration(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let mut left = seconds;
    let mut parts = Vec::new();
    for (unit, name) in units {
        if left >= unit || !parts.is_empty() {
            parts.push((left / unit, name));
            left %= unit;
        }
    }
    let shown = parts.iter().take(2).filter(|(count, _)| *count > 0);
    let text: Vec<String> = shown
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    if text.is_empty() {
        "0 s".into()
    } else {
        text.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (0.04237, "0.042"),
            (0.9999, "1"),
            (12.345, "12.3"),
            (99.96, "100"),
            (4_567.4, "4567"),
            (9_999.6, "10k"),
            (12_345.0, "12.3k"),
            (999_600.0, "1M"),
            (4.5e9, "4.5G"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert_eq!((rare(0.0), maybe(None)), ("·".into(), "–".into()));
        assert_eq!(
            (bytes(512.0), bytes(1_610_612_736.0)),
            ("512 B".into(), "1.5 GiB".into())
        );
    }

    #[test]
    fn durations_have_two_units() {
        let cases = [
            (0, "0 s"),
            (59, "59 s"),
            (3_600, "1 h"),
            (3_661, "1 h 1 min"),
            (90_061, "1 d 1 h"),
            (86_401, "1 d"),
        ];
        for (seconds, text) in cases {
            assert_eq!(duration(seconds), text);
        }
    }
}
