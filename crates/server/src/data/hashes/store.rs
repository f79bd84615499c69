//! One hash as its records.

use std::ops::Bound;

use bytes::Bytes;
use engine::{Kind, Order, Page, Table};

use crate::data::call::{Call, Done, Fail};
use crate::data::collection::Collection;
use crate::data::CHUNK;

/// An open hash. Changes become part of the keyspace with [`Hash::close`].
pub(in crate::data) struct Hash<'c>(Collection<'c>);

impl<'c> Hash<'c> {
    /// The hash under `key`, if there is one.
    pub(super) fn open(call: &mut Call, key: &'c [u8]) -> Result<Option<Self>, Fail> {
        Ok(Collection::open(call, key, Kind::Hash)?.map(Hash))
    }

    /// An empty hash that replaces whatever is under `key` once it is closed.
    pub(in crate::data) fn create(call: &mut Call, key: &'c [u8]) -> Result<Self, Fail> {
        Collection::create(call, key, Kind::Hash).map(Hash)
    }

    /// The hash under `key`, or an empty one that will be there once it is closed.
    pub(super) fn open_or_new(call: &mut Call, key: &'c [u8]) -> Result<Self, Fail> {
        Collection::open_or_new(call, key, Kind::Hash).map(Hash)
    }

    pub(super) fn len(&self) -> u64 {
        self.0.len()
    }

    /// Unique among the keyspace's collections.
    pub(super) fn id(&self) -> u64 {
        self.0.id()
    }

    pub(super) fn get(&self, call: &mut Call, field: &[u8]) -> Result<Option<Bytes>, Fail> {
        if self.0.is_blank() {
            return Ok(None);
        }
        Ok(call.access.record(Table::Field, self.0.id(), field)?)
    }

    /// Sets a field; true when it is new.
    pub(in crate::data) fn set(
        &mut self,
        call: &mut Call,
        field: &[u8],
        value: Bytes,
    ) -> Result<bool, Fail> {
        let is_new = self.get(call, field)?.is_none();
        call.access
            .put_record(Table::Field, self.0.id(), field, value)?;
        if is_new {
            self.0.added();
        }
        Ok(is_new)
    }

    /// Removes a field; true when it was there.
    pub(super) fn remove(&mut self, call: &mut Call, field: &[u8]) -> Result<bool, Fail> {
        let was_there = self.get(call, field)?.is_some();
        if was_there {
            call.access
                .delete_record(Table::Field, self.0.id(), field)?;
            self.0.removed();
        }
        Ok(was_there)
    }

    /// Records the new number of fields; a hash without fields ceases to be.
    pub(in crate::data) fn close(self, call: &mut Call) -> Done {
        self.0.close(call)
    }

    /// Up to `CHUNK` (and `limit`) fields with their values between two bounds, in byte order.
    pub(super) fn chunk(
        &self,
        call: &mut Call,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        limit: usize,
    ) -> Result<Page<Bytes>, Fail> {
        let limit = limit.min(CHUNK);
        Ok(call
            .access
            .records(Table::Field, self.0.id(), from, to, Order::Up, limit)?)
    }

    /// Calls `each` for every field and value in byte order.
    pub(super) fn for_each<'w, 'k>(
        &self,
        call: &mut Call<'w, 'k>,
        mut each: impl FnMut(&mut Call<'w, 'k>, Bytes, Bytes),
    ) -> Done {
        let mut last: Option<Bytes> = None;
        loop {
            let from = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let chunk = self.chunk(call, from, Bound::Unbounded, CHUNK)?;
            last = chunk.items.last().map(|(field, _)| field.clone());
            for (field, value) in chunk.items {
                each(call, field, value);
            }
            if !chunk.more {
                return Ok(());
            }
        }
    }
}
