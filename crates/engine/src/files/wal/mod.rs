//! Whether a database's log is whole, asked before RocksDB replays it.
//!
//! RocksDB replays a log up to the first record that is damaged, and says nothing; zeros between
//! two records it steps over. That is right at the end of the log, where a crash cuts off what was
//! being written, and wrong anywhere else. What tells the two apart: **RocksDB numbers writes
//! without gaps**. If a record that is whole follows damage and its number goes on where the last
//! one before the damage ended, nothing is missing. If its number is higher, what is between is
//! lost.
//!
//! A loss need not be damage. A power failure may leave the last second of a log that is synced
//! each second in any state: a page there and the one before it not. So each batch carries a
//! [`Mark`]: what was on the disk when it was written, and in which run of the machine. Records
//! that were on the disk, or were written since the machine's last start, can only be missing
//! because somebody damaged them: the database is not opened. Others were never promised: the log
//! is cut there, and that is said.

mod crc;
mod cut;
mod manifest;
mod mark;
mod records;

use crate::EngineError;
use manifest::Manifest;
use records::{Found, Record, Records};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

pub(crate) use mark::{boot, Mark};

/// A file of this name in a tenant's directory is an operator's word that what is behind damage in
/// the log may be given up.
const CONSENT: &str = "CUT_LOG";

/// Where a log ceases to be whole.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Break {
    /// Of the logs, in order.
    log: usize,
    at: u64,
    what: &'static str,
}

/// What is missing at a break.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hole {
    place: Break,
    /// Numbers of the missing writes.
    missing: Range<u64>,
    /// Whether they were on the disk, or with a kernel that did not stop since.
    kept: bool,
}

/// What was found out about a log.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Whole,
    /// The end was cut off while it was written.
    Torn(Break),
    Hole(Hole),
}

/// Looks through the log of a database that is about to be opened, and cuts it where that is right.
///
/// # Errors
/// It is damaged, or could not be cut.
pub(crate) fn check(tenant: &str, directory: &Path, boot: u64) -> Result<(), EngineError> {
    // What cannot be read here RocksDB cannot read either, and says so.
    let Ok(Some(manifest)) = Manifest::read(directory) else {
        return Ok(());
    };
    let Ok(logs) = logs(directory, manifest.first_log) else {
        return Ok(());
    };
    let Ok(verdict) = judge(&manifest, &logs, boot) else {
        return Ok(());
    };
    let file = |place: &Break| logs.get(place.log).unwrap_or(&directory.to_owned()).clone();
    match verdict {
        Verdict::Whole => Ok(()),
        Verdict::Torn(place) => {
            let (file, at, what) = (file(&place), place.at, place.what);
            tracing::info!(tenant, file = %file.display(), at, what, "the end of the log, which was being written when the server ended, is dropped");
            Ok(())
        }
        Verdict::Hole(hole) => {
            let place = &hole.place;
            let missing = hole.missing.end - hole.missing.start;
            let (at, what) = (place.at, place.what);
            let file = file(place);
            let consent = directory.join(CONSENT);
            let consented = consent.exists();
            if hole.kept && !consented {
                return Err(EngineError::Log {
                    tenant: tenant.to_owned(),
                    file,
                    at,
                    what,
                    consent,
                });
            }
            tracing::warn!(tenant, file = %file.display(), at, what, missing, consented, "the log is cut here: what is missing was not on the disk when the power failed, or an operator has given up what lies behind it");
            cut::cut(directory, &logs, place, consented)
                .map_err(|source| EngineError::io("cut the log", directory)(source))?;
            if consented {
                std::fs::remove_file(&consent).map_err(EngineError::io("remove", &consent))?;
            }
            Ok(())
        }
    }
}

/// The logs that are not in data files yet, oldest first.
fn logs(directory: &Path, first: u64) -> io::Result<Vec<PathBuf>> {
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let number = path
            .file_stem()
            .and_then(|stem| stem.to_str()?.parse().ok());
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        if let Some(number) = number.filter(|number: &u64| is_log && *number >= first) {
            logs.push((number, path));
        }
    }
    logs.sort_unstable();
    Ok(logs.into_iter().map(|(_, path)| path).collect())
}

/// What a batch says of itself: the number of its first write, and how many they are
/// (`db/write_batch.cc`).
fn numbers(record: &Record) -> Option<(u64, u64)> {
    let (sequence, rest) = record.head.split_first_chunk::<8>()?;
    let (count, _) = rest.split_first_chunk::<4>()?;
    let sequence = u64::from_le_bytes(*sequence);
    Some((sequence, u64::from(u32::from_le_bytes(*count))))
}

fn judge(manifest: &Manifest, logs: &[PathBuf], boot: u64) -> io::Result<Verdict> {
    // An opening makes a log before it removes those that it has read.
    if logs.is_empty() {
        let place = Break {
            log: 0,
            at: 0,
            what: "there is no log",
        };
        let missing = manifest.sequence + 1..manifest.sequence + 1;
        let hole = Verdict::Hole(Hole {
            place,
            missing,
            kept: true,
        });
        return Ok(if manifest.sequence == 0 {
            Verdict::Whole
        } else {
            hole
        });
    }
    let mut judge = Judge {
        next: manifest.sequence + 1,
        any: false,
        broken: None,
        hole: None,
        boot,
    };
    for (log, path) in logs.iter().enumerate() {
        let mut records = Records::new(File::open(path)?);
        while let Some(found) = records.next()? {
            match found {
                Found::Record(record) => judge.record(log, &record),
                Found::Bad(at, what) => judge.bad(Break { log, at, what }),
            }
            if judge.hole.as_ref().is_some_and(|hole| hole.kept) {
                break;
            }
        }
    }
    Ok(match (judge.hole, judge.broken) {
        (Some(hole), _) => Verdict::Hole(hole),
        (None, Some(place)) => Verdict::Torn(place),
        (None, None) => Verdict::Whole,
    })
}

struct Judge {
    /// The number that the next write must have. The first may have a lower one: it is in a data
    /// file, too.
    next: u64,
    any: bool,
    /// Damage that nothing has followed yet.
    broken: Option<Break>,
    hole: Option<Hole>,
    boot: u64,
}

impl Judge {
    fn bad(&mut self, place: Break) {
        self.broken.get_or_insert(place);
    }

    fn record(&mut self, log: usize, record: &Record) {
        let Some((sequence, count)) = numbers(record) else {
            return self.bad(Break {
                log,
                at: record.begin,
                what: "a record is too short",
            });
        };
        let mark = Mark::at_end(&record.tail);
        if let Some(hole) = &mut self.hole {
            hole.kept |= kept(mark, hole.missing.start, self.boot);
            return;
        }
        let first = !std::mem::replace(&mut self.any, true);
        let goes_on = sequence == self.next || (first && sequence < self.next);
        if goes_on {
            // Whatever was damaged before it was cut off by an earlier opening.
            self.broken = None;
            self.next = sequence + count;
            return;
        }
        let place = self.broken.take().unwrap_or(Break {
            log,
            at: record.begin,
            what: match sequence > self.next {
                true => "writes before it are missing",
                false => "it goes back to writes that are there already",
            },
        });
        let missing = self.next..sequence.max(self.next);
        let kept = kept(mark, missing.start, self.boot);
        self.hole = Some(Hole {
            place,
            missing,
            kept,
        });
    }
}

/// Whether a batch with this mark says of an earlier write that it cannot be missing by a power
/// failure. Logs of versions that made no marks are given the benefit of the doubt.
fn kept(mark: Option<Mark>, write: u64, boot: u64) -> bool {
    mark.is_some_and(|mark| mark.synced >= write || (boot != 0 && mark.boot == boot))
}

#[cfg(test)]
mod tests;
