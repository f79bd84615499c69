//! Readers of the real workloads, and synthesised equivalents for where they are absent.
//!
//! Each module reads one folder of the trace collection (`$ENTREMET_TRACES`, default
//! `../shared/data`) whose README says what the columns mean. A malformed line is an error that
//! names file and line; nothing is skipped silently.

pub mod meta;
pub mod multiget;
pub mod rate;
pub mod synthetic;
pub mod twitter;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::error::WorkloadError;

/// Longest line of a text trace, bytes. The longest known holds 608 keys.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// Largest JSON file, bytes decompressed.
const JSON_BYTES_MAX: u64 = 64 << 20;

/// Where the traces are looked for.
pub fn folder() -> PathBuf {
    std::env::var_os("ENTREMET_TRACES").map_or_else(|| "../shared/data".into(), PathBuf::from)
}

/// The lines of a gzip'd text file.
pub(crate) struct Lines {
    path: PathBuf,
    reader: BufReader<MultiGzDecoder<File>>,
    line: u64,
    text: String,
}

impl Lines {
    pub(crate) fn open(path: &Path) -> Result<Self, WorkloadError> {
        let reader = BufReader::new(gunzip(path)?);
        Ok(Self {
            path: path.into(),
            reader,
            line: 0,
            text: String::new(),
        })
    }

    /// Opens a table and checks its header line.
    pub(crate) fn table(path: &Path, header: &str) -> Result<Self, WorkloadError> {
        let mut lines = Self::open(path)?;
        let found = lines.next_line()?.unwrap_or_default().to_string();
        if found == header {
            Ok(lines)
        } else {
            lines.line = 1;
            Err(lines.bad(format!(
                "expected the header `{header}`, found `{}`",
                clip(&found)
            )))
        }
    }

    /// The next line without its end; `None` at the end of the file.
    pub(crate) fn next_line(&mut self) -> Result<Option<&str>, WorkloadError> {
        self.text.clear();
        self.line += 1;
        let read = self
            .reader
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_line(&mut self.text);
        match read {
            Ok(0) => Ok(None),
            Ok(n) if n as u64 == LINE_BYTES_MAX => Err(self.bad("the line is too long")),
            Ok(_) => Ok(Some(self.text.trim_end_matches(['\n', '\r']))),
            Err(e) if e.kind() == io::ErrorKind::InvalidData => {
                Err(self.bad("the line is not UTF-8 text"))
            }
            Err(source) => Err(WorkloadError::TraceFile {
                path: self.path.clone(),
                source,
            }),
        }
    }

    /// An error about the current line.
    pub(crate) fn bad(&self, reason: impl Into<String>) -> WorkloadError {
        WorkloadError::TraceLine {
            path: self.path.clone(),
            line: self.line,
            reason: reason.into(),
        }
    }
}

/// A whole gzip'd JSON file.
pub(crate) fn json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, WorkloadError> {
    let reader = BufReader::new(gunzip(path)?.take(JSON_BYTES_MAX));
    serde_json::from_reader(reader).map_err(|e| match e.io_error_kind() {
        Some(kind) => WorkloadError::TraceFile {
            path: path.into(),
            source: kind.into(),
        },
        None => {
            let line = e.line() as u64;
            WorkloadError::TraceLine {
                path: path.into(),
                line,
                reason: e.to_string(),
            }
        }
    })
}

fn gunzip(path: &Path) -> Result<MultiGzDecoder<File>, WorkloadError> {
    let file = File::open(path).map_err(|source| WorkloadError::TraceFile {
        path: path.into(),
        source,
    })?;
    Ok(MultiGzDecoder::new(file))
}

/// Parses one field, saying which one is wrong and what is there.
pub(crate) fn field<T: std::str::FromStr>(name: &str, text: Option<&str>) -> Result<T, String> {
    let text = text.ok_or_else(|| format!("`{name}` is missing"))?;
    text.trim()
        .parse()
        .map_err(|_| format!("`{name}` is not a number: `{}`", clip(text)))
}

fn clip(text: &str) -> String {
    text.chars().take(60).collect()
}

/// For tests: writes a gzip'd file.
#[cfg(test)]
pub(crate) fn write_gz(path: &Path, text: &str) {
    use std::io::Write;
    let file = File::create(path).expect("test file");
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    encoder
        .write_all(text.as_bytes())
        .and_then(|()| encoder.try_finish())
        .expect("test file");
}
