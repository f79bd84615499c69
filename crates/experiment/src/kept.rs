//! Runs that were made before, as files: hours of them need not be made at once, nor twice.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use workload::stats::Pace;

use crate::error::ExperimentError;
use crate::observed::Observed;
use crate::result;

/// Which of the runs that there are already are made again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Again {
    /// None.
    #[default]
    None,
    /// Those that were disturbed.
    Disturbed,
    /// All.
    All,
}

/// The runs of one experiment that there are.
#[derive(Clone, Debug)]
pub struct Kept {
    folder: PathBuf,
    build: String,
    again: Again,
}

/// A run as its file has it.
#[derive(Deserialize, Serialize)]
struct File {
    /// All that the run depends on.
    key: String,
    observed: Observed,
    /// Replies in each window.
    pace: Vec<u32>,
}

impl Kept {
    /// Those in a folder that were made by this build.
    pub fn new(folder: PathBuf, build: &str, again: Again) -> Self {
        let build = build.to_string();
        Self {
            folder,
            build,
            again,
        }
    }

    /// The run that `what` says all of, besides the build, if there is one that counts.
    pub fn find(&self, what: &str) -> Option<Observed> {
        if self.again == Again::All {
            return None;
        }
        let text = fs::read_to_string(self.path(what)).ok()?;
        // A file that was not written to its end, or by another version, is no run.
        let file: File = serde_json::from_str(&text).ok()?;
        let observed = Observed {
            pace: Pace::from_iter(file.pace),
            kept: true,
            ..file.observed
        };
        let again = self.again == Again::Disturbed && observed.disturbed();
        (file.key == self.key(what) && !again).then_some(observed)
    }

    /// Keeps a run.
    ///
    /// # Errors
    /// [`ExperimentError::Output`].
    pub fn keep(&self, what: &str, observed: &Observed) -> Result<(), ExperimentError> {
        let file = File {
            key: self.key(what),
            observed: observed.clone(),
            pace: observed.pace.windows().to_vec(),
        };
        let text = serde_json::json!(file).to_string();
        let name = self.path(what);
        let name = name.file_name().unwrap_or_default().to_string_lossy();
        result::write(&self.folder, &name, &text).map(|_| ())
    }

    fn key(&self, what: &str) -> String {
        format!("{}\n{what}", self.build)
    }

    fn path(&self, what: &str) -> PathBuf {
        let name = hash(HASH, self.key(what).as_bytes());
        self.folder.join(format!("{name:016x}.json"))
    }
}

/// FNV-1a, 64 bits: names files and tells builds apart, and defends against nobody.
fn hash(from: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(from, step)
}

/// Where it begins.
const HASH: u64 = 0xcbf2_9ce4_8422_2325;

/// What these binaries are: a run is not one of another build. One that is missing is a build, too.
pub fn build(binaries: &[&Path]) -> String {
    let contents = binaries
        .iter()
        .map(|path| fs::read(path).unwrap_or_default());
    let build = contents.fold(HASH, |build, content| {
        hash(hash(build, &content), &content.len().to_le_bytes())
    });
    format!("{build:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(withheld: f64) -> Observed {
        Observed {
            withheld,
            pace: Pace::from_iter([3, 0, 5]),
            ..Observed::default()
        }
    }

    #[test]
    fn a_run_is_found_by_all_that_it_depends_on() {
        let folder = tempfile::tempdir().expect("folder");
        let kept = |build: &str, again| Kept::new(folder.path().join("runs"), build, again);
        let one = kept("a", Again::None);
        assert!(one.find("x").is_none());
        one.keep("x", &seen(0.0)).expect("kept");
        let found = one.find("x").expect("found");
        assert_eq!(found.pace.windows(), [3, 0, 5]);
        assert!(found.kept);
        assert!(one.find("y").is_none(), "another scenario");
        assert!(kept("b", Again::None).find("x").is_none(), "another build");
        assert!(kept("a", Again::All).find("x").is_none());
        assert!(kept("a", Again::Disturbed).find("x").is_some());
        one.keep("x", &seen(0.5)).expect("kept");
        assert!(kept("a", Again::Disturbed).find("x").is_none());
        assert!(kept("a", Again::None).find("x").is_some());
    }

    #[test]
    fn half_a_file_is_no_run() {
        let folder = tempfile::tempdir().expect("folder");
        let kept = Kept::new(folder.path().into(), "a", Again::None);
        kept.keep("x", &seen(0.0)).expect("kept");
        let path = kept.path("x");
        let text = fs::read_to_string(&path).expect("text");
        fs::write(&path, &text[..text.len() / 2]).expect("cut");
        assert!(kept.find("x").is_none());
    }

    #[test]
    fn a_build_is_all_of_its_bytes() {
        let folder = tempfile::tempdir().expect("folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("file");
            path
        };
        let (one, other) = (file("one", "ab"), file("other", "b"));
        let empty = file("empty", "");
        assert_ne!(build(&[&one]), build(&[&one, &empty]));
        assert_ne!(build(&[&one, &other]), build(&[&other, &one]));
        assert_eq!(build(&[&one]), build(&[&file("same", "ab")]));
    }
}
