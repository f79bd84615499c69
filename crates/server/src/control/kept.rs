//! How well promises were kept, as a file: each line is a JSON text about one promise, here or at
//! all fronts, and some hours and minutes. If one appears twice, the last one counts. These are
//! statistics, so what cannot be read is left out, and a failed write is logged once.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use settings::tenant::Slo;

use crate::slo::{Bucket, History};

/// Whoever may read the data may read these.
const PRIVATE: u32 = 0o600;
/// Lines that are added before the file is made anew: one for each promise every few minutes.
const ADDED_MAX: usize = 10_000;

/// An hour or a minute since the Unix epoch; in it, windows met, missed and without data; requests,
/// and late ones.
type Time = (u64, [u32; 3], [u64; 2]);

/// Some hours and minutes of one promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    tenant: String,
    /// Whose requests, as `get of batch`.
    of: String,
    /// What was promised: a promise that has been changed is another one.
    targets: String,
    /// It is about the requests of all fronts together.
    #[serde(default)]
    all_fronts: bool,
    hours: Vec<Time>,
    #[serde(default)]
    minutes: Vec<Time>,
}

/// Since when something may have changed, as hours and minutes since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Since {
    /// In this hour or later.
    pub hour: u64,
    /// In this minute or later.
    pub minute: u64,
}

impl Line {
    /// What is known of a promise since then, here or at `all_fronts`; none: nothing.
    pub fn new(
        tenant: &str,
        slo: &Slo,
        all_fronts: bool,
        history: &History,
        since: Since,
    ) -> Option<Self> {
        let hours = history.hours().filter(|(hour, _)| *hour >= since.hour);
        let minutes = history.minutes();
        let minutes = minutes.filter(|(minute, _)| *minute >= since.minute);
        let line = Self {
            tenant: tenant.to_string(),
            of: slo.of(),
            targets: slo.targets(),
            all_fronts,
            hours: hours.map(time).collect(),
            minutes: minutes.map(time).collect(),
        };
        (!line.hours.is_empty()).then_some(line)
    }

    /// Whether it is about this promise, here or at `all_fronts`.
    pub fn is_of(&self, tenant: &str, slo: &Slo, all_fronts: bool) -> bool {
        let same = self.tenant == tenant && self.all_fronts == all_fronts;
        same && self.of == slo.of() && self.targets == slo.targets()
    }
}

/// What is known of a promise by these lines, oldest first: of each hour and minute the last
/// counts.
pub fn remember<'l>(lines: impl Iterator<Item = &'l Line>, history: &mut History) {
    let (mut hours, mut minutes) = (BTreeMap::new(), BTreeMap::new());
    for line in lines {
        hours.extend(line.hours.iter().map(bucket));
        minutes.extend(line.minutes.iter().map(bucket));
    }
    for (hour, bucket) in hours {
        history.remember(hour, bucket);
    }
    for (minute, bucket) in minutes {
        history.remember_minute(minute, bucket);
    }
}

fn time((at, one): (u64, &Bucket)) -> Time {
    let windows = [one.met, one.missed, one.no_data];
    (at, windows, [one.requests, one.late])
}

fn bucket((at, [met, missed, no_data], [requests, late]): &Time) -> (u64, Bucket) {
    let bucket = Bucket {
        met: *met,
        missed: *missed,
        no_data: *no_data,
        requests: *requests,
        late: *late,
    };
    (*at, bucket)
}

/// The file.
pub struct Kept {
    path: PathBuf,
    added: usize,
    failed: bool,
}

impl Kept {
    /// Reads what is there, oldest first.
    pub fn open(directory: &Path) -> (Self, Vec<Line>) {
        let path = directory.join("promises.jsonl");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let lines = lines.collect();
        let kept = Self {
            path,
            // A last line that a crash cut short must not be continued: the file is made anew
            // before anything is added.
            added: ADDED_MAX,
            failed: false,
        };
        (kept, lines)
    }

    /// Whether the next lines must say all that is known, because the file is made anew of them.
    pub fn wants_all(&self) -> bool {
        self.added >= ADDED_MAX
    }

    /// Writes these lines.
    pub fn write(&mut self, lines: &[Line]) {
        if lines.is_empty() {
            return;
        }
        let written = match self.wants_all() {
            true => self.make_anew(lines),
            false => self.append(lines),
        };
        match written {
            Ok(()) => self.failed = false,
            Err(error) => {
                // What was written of it may be half a line.
                self.added = ADDED_MAX;
                if !std::mem::replace(&mut self.failed, true) {
                    tracing::warn!(file = %self.path.display(), %error, "how well promises were kept could not be written down; it is tried again");
                }
            }
        }
    }

    fn append(&mut self, lines: &[Line]) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(&self.path)?;
        put(&mut file, lines)?;
        self.added += lines.len();
        Ok(())
    }

    fn make_anew(&mut self, lines: &[Line]) -> io::Result<()> {
        let beside = self.path.with_extension("new");
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true);
        let mut file = options.mode(PRIVATE).open(&beside)?;
        put(&mut file, lines)?;
        file.sync_data()?;
        fs::rename(&beside, &self.path)?;
        self.added = 0;
        Ok(())
    }
}

fn put(file: &mut fs::File, lines: &[Line]) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    for line in lines {
        serde_json::to_writer(&mut file, line)?;
        file.write_all(b"\n")?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(hour: u64, met: u32) -> Line {
        let mut history = History::default();
        let bucket = Bucket {
            met,
            ..Bucket::default()
        };
        history.remember(hour, bucket);
        let line = Line::new("web", &Slo::default(), false, &history, Since::default());
        line.expect("an hour")
    }

    /// A file of an older version has only hours, of the server's own requests.
    #[test]
    fn what_an_older_version_wrote_is_read() {
        let old = r#"{"tenant":"web","of":"any","targets":"nothing","hours":[[7,[1,2,3],[40,5]]]}"#;
        let line: Line = serde_json::from_str(old).expect("a line");
        assert!(!line.all_fronts);
        let mut history = History::default();
        remember([line].iter(), &mut history);
        let hours: Vec<_> = history
            .hours()
            .map(|(hour, one)| (hour, one.missed))
            .collect();
        assert_eq!((hours, history.minutes().count()), (vec![(7, 2)], 0));
    }

    #[test]
    fn a_line_that_a_crash_cut_short_is_left_out_and_not_continued() {
        let directory = tempfile::tempdir().expect("a folder");
        let read = || Kept::open(directory.path()).1;
        let (mut kept, none) = Kept::open(directory.path());
        assert_eq!(none, []);
        kept.write(&[line(1, 1)]);
        assert!(!kept.wants_all());
        kept.write(&[line(2, 3), line(3, 4)]);
        assert_eq!(read(), [line(1, 1), line(2, 3), line(3, 4)]);
        let path = directory.path().join("promises.jsonl");
        let whole = fs::read(&path).expect("there");
        fs::write(&path, &whole[..whole.len() - 5]).expect("written");
        let (mut kept, left) = Kept::open(directory.path());
        assert_eq!(left, [line(1, 1), line(2, 3)]);
        assert!(kept.wants_all());
        kept.write(&left);
        kept.write(&[line(4, 5)]);
        assert_eq!(read(), [line(1, 1), line(2, 3), line(4, 5)]);
    }
}
