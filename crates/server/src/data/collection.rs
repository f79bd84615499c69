//! A key that holds many records: what hashes and sorted sets have in common.

use engine::{Entry, Header, Kind, Object};

use super::call::{Call, Done, Fail};

/// An open collection. Changes of its length become part of the keyspace with
/// [`Collection::close`].
pub(super) struct Collection<'c> {
    key: &'c [u8],
    header: Header,
    expire_at_ms: Option<u64>,
    /// The number of elements that the key's object has on record; `None` when there is no object
    /// yet.
    recorded_len: Option<u64>,
}

impl<'c> Collection<'c> {
    /// The collection under `key`, if there is one.
    pub(super) fn open(call: &mut Call, key: &'c [u8], kind: Kind) -> Result<Option<Self>, Fail> {
        let found = call.collection(key, kind)?;
        Ok(found.map(|(header, expire_at_ms)| Collection {
            key,
            header,
            expire_at_ms,
            recorded_len: Some(header.len),
        }))
    }

    /// An empty one that replaces whatever is under `key` once it is closed.
    pub(super) fn create(call: &mut Call, key: &'c [u8], kind: Kind) -> Result<Self, Fail> {
        let header = call.access.new_collection(kind)?;
        Ok(Collection {
            key,
            header,
            expire_at_ms: None,
            recorded_len: None,
        })
    }

    /// The collection under `key`, or an empty one that will be there once it is closed.
    pub(super) fn open_or_new(call: &mut Call, key: &'c [u8], kind: Kind) -> Result<Self, Fail> {
        match Self::open(call, key, kind)? {
            Some(collection) => Ok(collection),
            None => Self::create(call, key, kind),
        }
    }

    /// Number of elements.
    pub(super) fn len(&self) -> u64 {
        self.header.len
    }

    /// Unique among the keyspace's collections.
    pub(super) fn id(&self) -> u64 {
        self.header.id
    }

    /// True while it is new and empty: then no record can be there.
    pub(super) fn is_blank(&self) -> bool {
        self.recorded_len.is_none() && self.header.len == 0
    }

    /// An element was added.
    pub(super) fn added(&mut self) {
        self.header.len += 1;
    }

    /// An element that was there was removed.
    pub(super) fn removed(&mut self) {
        self.header.len -= 1;
    }

    /// Records the new number of elements; a collection without any ceases to be.
    pub(super) fn close(self, call: &mut Call) -> Done {
        if self.header.len == 0 {
            call.access.delete(self.key)?;
        } else if self.recorded_len != Some(self.header.len) {
            let object = Object::Collection(self.header);
            let expire_at_ms = self.expire_at_ms;
            let entry = Entry {
                object,
                expire_at_ms,
            };
            call.access.put(self.key, entry)?;
        }
        Ok(())
    }
}
