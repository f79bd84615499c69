//! What a power failure may do to a log is no damage; what it cannot do is.

use super::*;
use crate::files::rocks::Db;
use rocksdb::{Options, WriteBatch};
use tempfile::TempDir;

const WRITES: u64 = 60;
/// The machine runs for another time.
const LATER: u64 = 1;

/// A database whose log has so many writes, synced each or after the first half or never.
struct Written(TempDir);

#[derive(Clone, Copy, PartialEq)]
enum Synced {
    Each,
    Half,
    Never,
}

impl Written {
    fn new(synced: Synced) -> Written {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.create_if_missing(true);
        let db = Db::open(&options, folder.path()).unwrap();
        for number in 0..WRITES {
            let mut batch = WriteBatch::default();
            batch.put(number.to_be_bytes(), [number as u8; 4_000]);
            db.write(batch, synced == Synced::Each).unwrap();
            if synced == Synced::Half && number == WRITES / 2 {
                db.sync().unwrap();
            }
        }
        // As a kill leaves it: the log as it is, and no word of an orderly end.
        drop(db);
        Written(folder)
    }

    fn log(&self) -> PathBuf {
        let manifest = Manifest::read(self.0.path()).unwrap().unwrap();
        let mut logs = logs(self.0.path(), manifest.first_log).unwrap();
        assert_eq!(logs.len(), 1);
        logs.remove(0)
    }

    /// Loses a page in the middle of a write.
    fn lose(&self, number: u64) {
        let mut bytes = std::fs::read(self.log()).unwrap();
        let at = (number * 4_060) as usize;
        bytes[at..at + 2_000].fill(0);
        std::fs::write(self.log(), bytes).unwrap();
    }

    fn verdict(&self, boot: u64) -> Verdict {
        let manifest = Manifest::read(self.0.path()).unwrap().unwrap();
        judge(&manifest, &[self.log()], boot).unwrap()
    }

    fn kept(&self, boot: u64) -> bool {
        match self.verdict(boot) {
            Verdict::Hole(hole) => hole.kept,
            other => panic!("{other:?}"),
        }
    }

    /// How many writes RocksDB finds before the first that it misses, and how many it finds behind
    /// that.
    fn found(&self) -> (u64, usize) {
        let db = Db::open(&Options::default(), self.0.path()).unwrap();
        let there = |number: &u64| db.rocks.get(number.to_be_bytes()).unwrap().is_some();
        let found = (0..WRITES).take_while(there).count() as u64;
        (found, (found..WRITES).filter(there).count())
    }
}

#[test]
fn what_was_synced_cannot_be_missing_by_a_power_failure() {
    for (synced, number, kept) in [
        (Synced::Each, 10, true),
        (Synced::Each, WRITES - 3, true),
        (Synced::Half, 10, true),
        (Synced::Half, WRITES / 2 + 5, false),
        (Synced::Never, 10, false),
    ] {
        let written = Written::new(synced);
        written.lose(number);
        assert_eq!(written.kept(LATER), kept, "write {number}");
        assert!(written.kept(boot()), "no power failed since");
    }
}

#[test]
fn a_log_that_a_power_failure_left_with_a_hole_is_cut_there() {
    let written = Written::new(Synced::Half);
    let lost = WRITES / 2 + 5;
    written.lose(lost);
    check("t", written.0.path(), LATER).unwrap();
    let (found, behind) = written.found();
    assert!(
        found > WRITES / 2 && found <= lost && behind == 0,
        "{found}"
    );
}

#[test]
fn a_cut_that_a_crash_interrupted_is_made_again() {
    let written = Written::new(Synced::Never);
    written.lose(20);
    let before = written.verdict(LATER);
    let place = Break {
        log: 0,
        at: 0,
        what: "it was cut",
    };
    cut::cut(written.0.path(), &[], &place, false).unwrap();
    assert_eq!(written.verdict(LATER), before, "nothing was cut yet");
    check("t", written.0.path(), LATER).unwrap();
    assert_eq!(written.verdict(LATER), Verdict::Whole);
    check("t", written.0.path(), LATER).unwrap();
}

#[test]
fn a_log_without_marks_is_given_the_benefit_of_the_doubt() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.create_if_missing(true);
    let db = Db::open(&options, folder.path()).unwrap();
    for number in 0..WRITES {
        db.rocks.put(number.to_be_bytes(), [7; 4_000]).unwrap();
    }
    drop(db);
    let written = Written(folder);
    assert_eq!(written.verdict(boot()), Verdict::Whole);
    written.lose(20);
    assert!(!written.kept(boot()));
}

/// Whatever is written over a log, what is found is a beginning of what was written, or an error.
#[test]
fn no_damage_is_taken_for_a_whole_log() {
    let whole = Written::new(Synced::Each);
    let bytes = std::fs::read(whole.log()).unwrap();
    let path = whole.log();
    let mut generator = policy::generator::Generator::new(1);
    let mut dice = |below: usize| generator.below(below as u64) as usize;
    for _ in 0..300 {
        let mut damaged = bytes.clone();
        let (at, len) = (dice(bytes.len() - 4_200), 1 + dice(64));
        let kind = dice(3);
        for byte in &mut damaged[at..at + len] {
            *byte = match kind {
                0 => 0,
                1 => *byte ^ 0x40,
                _ => dice(256) as u8,
            };
        }
        if damaged == bytes {
            continue;
        }
        std::fs::write(&path, damaged).unwrap();
        assert!(whole.kept(LATER), "at {at}, {len} bytes, {kind}");
    }
}
