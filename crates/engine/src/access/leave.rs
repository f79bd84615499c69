//! What a key's old state leaves behind: its entry in the expiry index, and the records under its
//! id.
//!
//! Records go one by one where they are few, else in one range. A range deletion is one record
//! whatever it removes, but each new one makes the next read of the tenant's newest memtable sort
//! all that are in it again: after many of them every read is slow. So a range is written only
//! where it stands for much that was written before it, and since a memtable holds that much only a
//! few times, there are few ranges in it. Decision 0020 has the figures.

use crate::access::strings::piece_keys;
use crate::access::{Access, RECORD_WORK_BYTES};
use crate::{record, Entry, Header, Object, Stop, Text};

/// The largest collection whose records are named one by one: about where that begins to cost more
/// than what reads lose by a range. A core can do it in its turn.
const NAMED_MAX: u64 = 128;
/// And the bytes of such records, which may have to be read from the disk for their names.
const NAMED_BYTES_MAX: usize = 256 << 10;

impl Access<'_> {
    /// Removes what belongs to a key's old state and not to its new one.
    pub(crate) fn leave(
        &mut self,
        name: &[u8],
        old: Option<&Entry>,
        new: Option<&Entry>,
    ) -> Result<(), Stop> {
        let Some(old) = old else { return Ok(()) };
        if let Some(at) = old.expire_at_ms {
            if new.is_none_or(|new| new.expire_at_ms != Some(at)) {
                let index = &mut self.buffer.extra().index;
                index.insert(record::expiry_key(at, name), false);
            }
        }
        let kept = new.and_then(|new| new.object.id());
        match &old.object {
            same if same.id() == kept => Ok(()),
            Object::String(Text::Whole(_)) => Ok(()),
            Object::String(Text::Pieces { id, len }) => {
                let names = piece_keys(*id, *len);
                self.foresee(names.len() as u64)?;
                self.buffer.forget_records(crate::Table::Piece, *id);
                self.remove(names)
            }
            Object::Collection(header) => self.drop_collection(header),
        }
    }

    fn drop_collection(&mut self, header: &Header) -> Result<(), Stop> {
        let tables = record::tables(header.kind);
        let names = match header.len <= NAMED_MAX {
            true => self.record_names(tables, header.id, NAMED_BYTES_MAX)?,
            false => None,
        };
        let deleted = tables.iter();
        let deleted = deleted.flat_map(|table| self.buffer.forget_records(*table, header.id));
        let deleted: Vec<_> = deleted.collect();
        match names {
            // What this command has deleted is in the database all the same.
            Some(mut names) => {
                names.extend(deleted);
                self.remove(names.into_iter())
            }
            None => {
                let dropped = tables.iter().map(|table| (*table, header.id));
                self.buffer.extra().dropped.extend(dropped);
                Ok(())
            }
        }
    }

    fn remove(&mut self, names: impl ExactSizeIterator<Item = Box<[u8]>>) -> Result<(), Stop> {
        self.steps(names.len() as u64)?;
        for raw in names {
            self.work(raw.len() + RECORD_WORK_BYTES)?;
            self.buffer.extra().removed.push(raw);
        }
        Ok(())
    }
}
