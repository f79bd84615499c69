//! The few numbers of a manifest that say which logs count: the first fields of its records
//! (`db/version_edit.cc`).

use super::records::{Found, Records};
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

/// Tags of fields, in the order in which a record has them. What comes behind them is about data
/// files.
const DB_ID: u64 = (1 << 13) + 1;
const COMPARATOR: u64 = 1;
const LOG_NUMBER: u64 = 2;
const PREVIOUS_LOG_NUMBER: u64 = 9;
const NEXT_FILE_NUMBER: u64 = 3;
const COLUMN_FAMILIES: u64 = 203;
const FIRST_LOG_KEPT: u64 = 10;
const LAST_SEQUENCE: u64 = 4;

/// What a database says of its logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    /// Logs with lower numbers are in data files.
    pub first_log: u64,
    /// As is everything up to here, at least.
    pub sequence: u64,
}

impl Manifest {
    /// That of a database; `None`: there is none, or it cannot be understood, which RocksDB will
    /// say.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn read(directory: &Path) -> io::Result<Option<Manifest>> {
        let name = match std::fs::read_to_string(directory.join("CURRENT")) {
            Ok(name) => name,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let file = match File::open(directory.join(name.trim_end())) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let (mut manifest, mut any) = (Manifest::default(), false);
        let mut records = Records::new(BufReader::new(file));
        // What is damaged behind the last record was being written when the process ended.
        while let Some(Found::Record(record)) = records.next()? {
            if manifest.take(&record.head).is_none() {
                return Ok(None);
            }
            any = true;
        }
        Ok(any.then_some(manifest))
    }

    fn take(&mut self, mut fields: &[u8]) -> Option<()> {
        while !fields.is_empty() {
            match varint(&mut fields)? {
                DB_ID | COMPARATOR => {
                    let len = usize::try_from(varint(&mut fields)?).ok()?;
                    fields = fields.get(len..)?;
                }
                LOG_NUMBER | FIRST_LOG_KEPT => {
                    self.first_log = self.first_log.max(varint(&mut fields)?);
                }
                PREVIOUS_LOG_NUMBER | NEXT_FILE_NUMBER | COLUMN_FAMILIES => {
                    varint(&mut fields)?;
                }
                LAST_SEQUENCE => self.sequence = self.sequence.max(varint(&mut fields)?),
                _ => break,
            }
        }
        Some(())
    }
}

/// A number of seven bits a byte, the lowest first.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
