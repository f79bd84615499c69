//! The progress line.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use crate::client::drive::Progress;
use crate::report::rate;

/// Changes told one by one; of more at once only the number is told.
const NEWS_MAX: usize = 6;

/// Says on standard error what is going on: one line that is written over on a terminal, a line
/// every few seconds elsewhere.
pub(super) struct Teller {
    terminal: bool,
    duration_s: f64,
    warm_up_s: f64,
    last: Progress,
    every_s: f64,
    shown: bool,
}

impl Teller {
    pub(super) fn new(warm_up: Duration, duration: Duration) -> Self {
        let terminal = io::stderr().is_terminal();
        let warm_up_s = warm_up.as_secs_f64();
        Self {
            terminal,
            duration_s: duration.as_secs_f64(),
            warm_up_s,
            last: Progress {
                at_s: -warm_up_s,
                ..Progress::default()
            },
            // A log file does not want a line a second.
            every_s: if terminal { 0.5 } else { 5.0 },
            shown: false,
        }
    }

    pub(super) fn tell(&mut self, now: &Progress) {
        let at_s = now.at_s;
        for news in now.news.iter().take(NEWS_MAX) {
            self.line(&format!("{at_s:.1} s: {news}"));
        }
        if now.news.len() > NEWS_MAX {
            self.line(&format!("{at_s:.1} s: {} more", now.news.len() - NEWS_MAX));
        }
        if now.at_s - self.last.at_s < self.every_s {
            return;
        }
        let line = self.describe(now);
        self.over(&line);
        self.last = now.clone();
    }

    /// One line about now.
    fn describe(&self, now: &Progress) -> String {
        let span_s = now.at_s - self.last.at_s;
        let per_s = |n: u64, before: u64| rate(n.saturating_sub(before) as f64 / span_s);
        let when = if now.ending {
            "waiting for the last replies".to_string()
        } else if now.at_s < 0.0 {
            let (at_s, of_s) = (now.at_s + self.warm_up_s, self.warm_up_s);
            format!("warming up, {at_s:.0} of {of_s:.0} s")
        } else {
            format!("{:.0} of {:.0} s", now.at_s, self.duration_s)
        };
        format!(
            "{when}: offered {}/s, done {}/s, outstanding {}, failed {}",
            per_s(now.offered, self.last.offered),
            per_s(now.completed, self.last.completed),
            now.outstanding,
            now.failed
        )
    }

    /// A line that stays.
    pub(super) fn line(&mut self, text: &str) {
        let start = if self.terminal { "\r\x1b[K" } else { "" };
        // Progress that cannot be shown is no reason to stop.
        let _ = writeln!(io::stderr(), "{start}{text}");
        self.shown = false;
    }

    /// A line that the next one replaces where that is possible.
    fn over(&mut self, text: &str) {
        if !self.terminal {
            return self.line(text);
        }
        let mut stderr = io::stderr();
        let _ = write!(stderr, "\r{text}\x1b[K").and_then(|()| stderr.flush());
        self.shown = true;
    }

    pub(super) fn finish(&self) {
        if self.shown {
            let _ = writeln!(io::stderr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_what_is_going_on() {
        let teller = Teller::new(Duration::from_secs(3), Duration::from_secs(20));
        let mut now = Progress {
            at_s: -1.0,
            offered: 2_000,
            completed: 1_000,
            failed: 3,
            outstanding: 7,
            ..Progress::default()
        };
        let line = teller.describe(&now);
        assert_eq!(
            line,
            "warming up, 2 of 3 s: offered 1,000/s, done 500/s, outstanding 7, failed 3"
        );
        now.at_s = 2.0;
        assert!(teller
            .describe(&now)
            .starts_with("2 of 20 s: offered 400/s"));
        now.ending = true;
        assert!(teller
            .describe(&now)
            .starts_with("waiting for the last replies: "));
    }
}
