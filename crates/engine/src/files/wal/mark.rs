//! What each batch says about the log before it: which part of that was on the disk when the batch
//! was written, and since which start of the machine. It is kept with the batch, in the log only.

use std::sync::LazyLock;

/// So that nothing else is taken for a mark.
const MAGIC: [u8; 4] = *b"\xe7mk1";
const BYTES: usize = 20;
/// How a write batch holds data for the log: a tag and the length before it (`kTypeLogData`,
/// `db/write_batch.cc`).
const AS_LOG_DATA: [u8; 2] = [3, BYTES as u8];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Names a start of the machine; 0: unknown.
    pub boot: u64,
    /// Everything up to this sequence number of RocksDB's is on the disk.
    pub synced: u64,
}

impl Mark {
    pub(crate) fn encode(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..12].copy_from_slice(&self.boot.to_le_bytes());
        bytes[12..].copy_from_slice(&self.synced.to_le_bytes());
        bytes
    }

    /// The mark at the end of a batch, if there is one.
    pub(super) fn at_end(batch: &[u8]) -> Option<Mark> {
        let (_, bytes) = batch.split_last_chunk::<BYTES>()?;
        let before = &batch[..batch.len() - BYTES];
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (boot, synced) = rest.split_first_chunk::<8>()?;
        before.ends_with(&AS_LOG_DATA).then_some(Mark {
            boot: u64::from_le_bytes(*boot),
            synced: u64::from_le_bytes(synced.try_into().ok()?),
        })
    }
}

/// This start of the machine. Nothing that was written since is lost but by damage: the kernel has
/// it. 0: unknown.
pub(crate) fn boot() -> u64 {
    static BOOT: LazyLock<u64> = LazyLock::new(|| {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let digits: String = id
            .chars()
            .filter(char::is_ascii_hexdigit)
            .take(16)
            .collect();
        u64::from_str_radix(&digits, 16).unwrap_or(0)
    });
    *BOOT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_at_the_end_of_a_batch_and_nothing_else_is_one() {
        let mark = Mark {
            boot: 0x0123_4567_89ab_cdef,
            synced: 42,
        };
        let mut batch = rocksdb::WriteBatch::default();
        batch.put(b"key", b"value");
        assert_eq!(Mark::at_end(batch.data()), None);
        batch.put_log_data(mark.encode());
        assert_eq!(Mark::at_end(batch.data()), Some(mark));
        assert_eq!(batch.len(), 1, "it is no record");
        batch.put(b"key", mark.encode());
        assert_eq!(Mark::at_end(batch.data()), None, "a client's value");
    }
}
