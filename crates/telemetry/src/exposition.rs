//! Prometheus's text format, version 0.0.4.

use std::fmt::Write;

use crate::snapshot::HistogramSnapshot;

/// What kind of number a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Cumulative buckets, sum and count.
    Histogram,
}

impl Kind {
    /// The word in the exposition's `# TYPE` line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Upper bounds of the exposed buckets in nanoseconds and as the label says them in seconds: 1, 2,
/// 5 a decade, so that usual latency targets are bounds. The finer buckets go to the bound that
/// most of theirs lies under (1.6 % off at most).
pub const BOUNDS: [(u64, &str); 20] = [
    (20_000, "0.00002"),
    (50_000, "0.00005"),
    (100_000, "0.0001"),
    (200_000, "0.0002"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_000_000, "0.002"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (20_000_000, "0.02"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (200_000_000, "0.2"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (2_000_000_000, "2"),
    (5_000_000_000, "5"),
    (10_000_000_000, "10"),
    (20_000_000_000, "20"),
    (100_000_000_000, "100"),
];

/// A page of metrics being written.
#[derive(Default)]
pub struct Page {
    text: String,
}

impl Page {
    /// Starts a family: its samples must follow before the next family starts.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(
            self.text,
            "# HELP {name} {help}\n# TYPE {name} {}",
            kind.name()
        );
    }

    /// One sample.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.series(name, labels, None);
        let _ = if value.is_finite() {
            writeln!(self.text, " {value}")
        } else if value.is_nan() {
            writeln!(self.text, " NaN")
        } else {
            writeln!(self.text, " {}Inf", if value > 0.0 { '+' } else { '-' })
        };
    }

    /// The samples of one histogram of times; the page says seconds.
    pub fn histogram(&mut self, name: &str, labels: &[(&str, &str)], times: &HistogramSnapshot) {
        let bucket = format!("{name}_bucket");
        for (bound_ns, label) in BOUNDS {
            self.series(&bucket, labels, Some(label));
            let _ = writeln!(self.text, " {}", times.count_up_to(bound_ns));
        }
        self.series(&bucket, labels, Some("+Inf"));
        let _ = writeln!(self.text, " {}", times.count());
        self.sample(&format!("{name}_sum"), labels, times.sum_ns() as f64 / 1e9);
        self.sample(&format!("{name}_count"), labels, times.count() as f64);
    }

    /// The finished page.
    pub fn finish(self) -> String {
        self.text
    }

    fn series(&mut self, name: &str, labels: &[(&str, &str)], bound: Option<&str>) {
        self.text.push_str(name);
        let bound = bound.map(|bound| ("le", bound));
        let mut separator = '{';
        for (label, value) in labels.iter().copied().chain(bound) {
            self.text.push(separator);
            self.text.push_str(label);
            self.text.push_str("=\"");
            for c in value.chars() {
                match c {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    c => self.text.push(c),
                }
            }
            self.text.push('"');
            separator = ',';
        }
        if separator == ',' {
            self.text.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Histogram;

    #[test]
    fn the_page_is_written_as_the_format_says() {
        let mut page = Page::default();
        page.family("a_total", Kind::Counter, "Two\nlines and a \\.");
        page.sample("a_total", &[], 3.0);
        page.sample("a_total", &[("tenant", "q\"\\\n")], 0.5);
        page.sample("a_total", &[("x", "1"), ("y", "2")], f64::INFINITY);
        let expected = "# HELP a_total Two\\nlines and a \\\\.\n# TYPE a_total counter\n\
            a_total 3\na_total{tenant=\"q\\\"\\\\\\n\"} 0.5\na_total{x=\"1\",y=\"2\"} +Inf\n";
        assert_eq!(page.finish(), expected);
    }

    #[test]
    fn labels_of_bounds_say_the_bounds() {
        for (bound_ns, label) in BOUNDS {
            let seconds: f64 = label.parse().expect("a number");
            assert_eq!((seconds * 1e9).round() as u64, bound_ns);
        }
    }

    #[test]
    fn a_histogram_is_cumulative() {
        let histogram = Histogram::new();
        for ns in [10_000, 90_000, 3_000_000, 130_000_000_000] {
            histogram.record(ns);
        }
        let mut page = Page::default();
        page.histogram("t_seconds", &[("tenant", "web")], &histogram.snapshot());
        let text = page.finish();
        for line in [
            "t_seconds_bucket{tenant=\"web\",le=\"0.00002\"} 1",
            "t_seconds_bucket{tenant=\"web\",le=\"0.0001\"} 2",
            "t_seconds_bucket{tenant=\"web\",le=\"0.005\"} 3",
            "t_seconds_bucket{tenant=\"web\",le=\"100\"} 3",
            "t_seconds_bucket{tenant=\"web\",le=\"+Inf\"} 4",
            "t_seconds_sum{tenant=\"web\"} 130.0031",
            "t_seconds_count{tenant=\"web\"} 4",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
    }
}
