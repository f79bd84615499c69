//! Numbers and tables as people read them.

use std::fmt::Write as _;

/// A number of nanoseconds as people read it.
pub fn duration(ns: u64) -> String {
    match ns as f64 {
        ns if ns < 1e6 => format!("{:.0} µs", ns / 1e3),
        ns if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}

/// A rate with thousands separated.
pub fn rate(per_s: f64) -> String {
    if per_s < 100.0 {
        return format!("{per_s:.1}");
    }
    let digits = format!("{per_s:.0}");
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A table: the first column left, the others right.
#[derive(Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The text, columns aligned; the first `left` columns to the left.
    pub fn render(&self, left: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[column] - cell.chars().count());
                let (before, after) = if column < left {
                    ("", pad)
                } else {
                    (pad.as_str(), String::new())
                };
                let _ = write!(line, "{before}{cell}{after}  ");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(rate(9.25), "9.2");
        assert_eq!(rate(1_234_567.4), "1,234,567");
        assert_eq!(rate(100.0), "100");
        assert_eq!(duration(950), "1 µs");
        assert_eq!(duration(1_500_000), "1.50 ms");
        assert_eq!(duration(2_000_000_000), "2.00 s");
    }
}
