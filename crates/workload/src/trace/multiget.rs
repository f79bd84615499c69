//! `multiget-mooncake` (multi-key reads with arrival times) and `multiget-kosarak` (key lists
//! without times).
//!
//! Sources: Qin et al., "Mooncake", FAST 2025; Ferenc Bodon's click-stream sessions (FIMI).

use std::path::Path;

use super::{field, Lines};
use crate::error::WorkloadError;

/// Lists of keys, one per request, held in one allocation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lists {
    keys: Vec<u32>,
    /// Where each list ends.
    ends: Vec<usize>,
}

impl Lists {
    /// Number of lists.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True without any list.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The keys of list `index`. Panics if there is no such list.
    pub fn get(&self, index: usize) -> &[u32] {
        let from = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.keys[from..self.ends[index]]
    }

    /// Every key mentioned, once, in order.
    pub fn distinct(&self) -> Vec<u32> {
        let mut keys = self.keys.clone();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Mean number of keys per list.
    pub fn mean_keys(&self) -> f64 {
        self.keys.len() as f64 / self.len().max(1) as f64
    }

    /// Adds a list.
    pub fn push(&mut self, keys: impl Iterator<Item = u32>) {
        self.keys.extend(keys);
        self.ends.push(self.keys.len());
    }

    fn parse(&mut self, text: &str) -> Result<(), String> {
        for key in text.split_ascii_whitespace() {
            self.keys.push(field("key", Some(key))?);
        }
        if self.keys.len() == self.ends.last().copied().unwrap_or(0) {
            return Err("a request without keys".into());
        }
        self.ends.push(self.keys.len());
        Ok(())
    }
}

/// Requests with arrival times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timed {
    /// Arrival of each list, ms from the start, never falling. The source stamps every 3 s.
    pub at_ms: Vec<u64>,
    /// What each one reads.
    pub lists: Lists,
}

/// Time between two stamps of the Mooncake trace, ms.
pub const MOONCAKE_STEP_MS: u64 = 3_000;

/// Reads the Mooncake conversation trace from the collection at `folder`.
///
/// # Errors
/// [`WorkloadError::TraceFile`] or [`WorkloadError::TraceLine`].
pub fn mooncake(folder: &Path) -> Result<Timed, WorkloadError> {
    let path = folder.join("multiget-mooncake/mooncake-conversation-min0to39.tsv.gz");
    let mut lines = Lines::table(&path, "t_ms\tinput_tokens\toutput_tokens\tkeys")?;
    let mut timed = Timed::default();
    while let Some(line) = lines.next_line()? {
        let mut fields = line.split('\t');
        let parsed = field::<u64>("t_ms", fields.next()).and_then(|at_ms| {
            if timed.at_ms.last().is_some_and(|last| *last > at_ms) {
                return Err("the rows are not in order of time".to_string());
            }
            let keys = fields.nth(2).ok_or("`keys` is missing")?;
            timed.lists.parse(keys)?;
            timed.at_ms.push(at_ms);
            Ok(())
        });
        parsed.map_err(|reason| lines.bad(reason))?;
    }
    if timed.lists.is_empty() {
        return Err(lines.bad("the file holds no requests"));
    }
    Ok(timed)
}

/// Reads the Kosarak sessions from the collection at `folder`.
///
/// # Errors
/// [`WorkloadError::TraceFile`] or [`WorkloadError::TraceLine`].
pub fn kosarak(folder: &Path) -> Result<Lists, WorkloadError> {
    let path = folder.join("multiget-kosarak/kosarak-part1.txt.gz");
    let mut lines = Lines::open(&path)?;
    let mut lists = Lists::default();
    while let Some(line) = lines.next_line()? {
        let parsed = lists.parse(line);
        parsed.map_err(|reason| lines.bad(reason))?;
    }
    if lists.is_empty() {
        return Err(lines.bad("the file holds no requests"));
    }
    Ok(lists)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::write_gz;

    fn with<T>(
        sub: &str,
        file: &str,
        text: &str,
        read: fn(&Path) -> Result<T, WorkloadError>,
    ) -> Result<T, WorkloadError> {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::create_dir(folder.path().join(sub)).expect("folder");
        write_gz(&folder.path().join(sub).join(file), text);
        read(folder.path())
    }

    #[test]
    fn reads_timed_requests() {
        let read = |rows: &str| {
            let text = format!("t_ms\tinput_tokens\toutput_tokens\tkeys\n{rows}");
            let file = "mooncake-conversation-min0to39.tsv.gz";
            with("multiget-mooncake", file, &text, mooncake)
        };
        let timed = read("0\t9\t9\t1 2 3\n3000\t9\t9\t2\n").expect("valid");
        assert_eq!((timed.at_ms, timed.lists.len()), (vec![0, 3000], 2));
        assert_eq!(
            (timed.lists.get(0), timed.lists.get(1)),
            (&[1, 2, 3][..], &[2][..])
        );
        assert_eq!(timed.lists.distinct(), [1, 2, 3]);
        let error = |rows| read(rows).expect_err("malformed").to_string();
        assert!(error("5\t9\t9\t1\n4\t9\t9\t1\n").contains(":3: the rows are not in order"));
        assert!(error("5\t9\n").contains(":2: `keys` is missing"));
        assert!(error("5\t9\t9\t\n").contains(":2: a request without keys"));
    }

    #[test]
    fn reads_sessions() {
        let read = |text| with("multiget-kosarak", "kosarak-part1.txt.gz", text, kosarak);
        let lists = read("1 2 3\n7\n").expect("valid");
        assert_eq!((lists.len(), lists.mean_keys()), (2, 2.0));
        let error = read("1 2\n1 x\n").expect_err("malformed").to_string();
        assert!(
            error.ends_with("kosarak-part1.txt.gz:2: `key` is not a number: `x`"),
            "{error}"
        );
        assert!(read("").is_err());
    }
}
