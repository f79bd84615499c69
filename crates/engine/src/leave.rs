//! What a key's old state leaves behind: its entry in the expiry index, and the records under its id.
//!
//! The pieces of a string are named one by one: their names are known without a look. The records of a collection go in
//! one range.

use crate::access::{Access, RECORD_WORK_BYTES};
use crate::strings::piece_keys;
use crate::{record, Entry, Header, Object, Stop, Text};

impl Access<'_> {
    /// Removes what belongs to a key's old state and not to its new one.
    pub(crate) fn leave(
        &mut self,
        key: &[u8],
        old: Option<&Entry>,
        new: Option<&Entry>,
    ) -> Result<(), Stop> {
        let Some(old) = old else { return Ok(()) };
        if let Some(at) = old.expire_at_ms {
            if new.is_none_or(|new| new.expire_at_ms != Some(at)) {
                let index = &mut self.buffer.extra().index;
                index.insert(record::expiry_key(at, key), false);
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
        for table in record::tables(header.kind) {
            self.buffer.forget_records(*table, header.id);
            self.buffer.extra().dropped.push((*table, header.id));
        }
        Ok(())
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
