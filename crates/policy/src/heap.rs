//! An indexed heap: the smallest key first, and any member's key can be changed or taken out.
//!
//! Members are dense numbers. Key and member are packed in one `u128` (64 bits of key, 32 of member),
//! so an entry is 16 bytes, four children are one cache line, and equal keys are ordered by member,
//! which makes every decision reproducible.

const ARITY: usize = 4;
const ABSENT: u32 = u32::MAX;

/// A heap of members `0..2^32-1` by 64-bit keys. Memory grows with the largest member ever inserted
/// (4 bytes each) and with the number of members present (16 bytes each).
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexHeap {
    entries: Vec<u128>,
    position: Vec<u32>,
    /// Entries moved or compared with a parent; what a decision costs, in a unit that no clock blurs.
    #[cfg(test)]
    pub(crate) steps: u64,
}

fn pack(key: u64, member: usize) -> u128 {
    (u128::from(key) << 32) | member as u128
}

fn key_of(entry: u128) -> u64 {
    (entry >> 32) as u64
}

fn member_of(entry: u128) -> usize {
    entry as u32 as usize
}

impl IndexHeap {
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn contains(&self, member: usize) -> bool {
        self.position.get(member).is_some_and(|&at| at != ABSENT)
    }

    /// The member with the smallest key, and that key.
    #[inline]
    pub(crate) fn first(&self) -> Option<(u64, usize)> {
        self.entries.first().map(|&e| (key_of(e), member_of(e)))
    }

    /// Puts a member in, unless it is in with a key that is not larger.
    #[inline]
    pub(crate) fn lower(&mut self, member: usize, key: u64) {
        if let Some(&at) = self.position.get(member) {
            if at != ABSENT && key_of(self.entries[at as usize]) <= key {
                return;
            }
        }
        self.set(member, key);
    }

    /// Puts a member in, or gives a present one another key.
    pub(crate) fn set(&mut self, member: usize, key: u64) {
        if member >= self.position.len() {
            self.position.resize(member + 1, ABSENT);
        }
        let entry = pack(key, member);
        let at = self.position[member];
        if at == ABSENT {
            self.entries.push(entry);
            self.up(self.entries.len() - 1, entry);
            return;
        }
        let at = at as usize;
        let old = self.entries[at];
        if entry < old {
            self.up(at, entry);
        } else if entry > old {
            self.down(at, entry);
        }
    }

    /// Takes a member out; nothing happens if it is not in.
    pub(crate) fn remove(&mut self, member: usize) {
        let Some(&at) = self.position.get(member) else {
            return;
        };
        if at == ABSENT {
            return;
        }
        let at = at as usize;
        self.position[member] = ABSENT;
        let Some(last) = self.entries.pop() else {
            return;
        };
        if at == self.entries.len() {
            return;
        }
        if at > 0 && last < self.entries[(at - 1) / ARITY] {
            self.up(at, last);
        } else {
            self.down(at, last);
        }
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = usize> + '_ {
        self.entries.iter().map(|&e| member_of(e))
    }

    pub(crate) fn clear(&mut self) {
        for &entry in &self.entries {
            self.position[member_of(entry)] = ABSENT;
        }
        self.entries.clear();
    }

    fn place(&mut self, at: usize, entry: u128) {
        self.entries[at] = entry;
        self.position[member_of(entry)] = at as u32;
        #[cfg(test)]
        {
            self.steps += 1;
        }
    }

    fn up(&mut self, mut at: usize, entry: u128) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            let above = self.entries[parent];
            if above <= entry {
                break;
            }
            self.place(at, above);
            at = parent;
        }
        self.place(at, entry);
    }

    fn down(&mut self, mut at: usize, entry: u128) {
        let len = self.entries.len();
        loop {
            let from = at * ARITY + 1;
            if from >= len {
                break;
            }
            let children = &self.entries[from..len.min(from + ARITY)];
            let mut least = from;
            let mut smallest = children[0];
            for (offset, &child) in children.iter().enumerate().skip(1) {
                if child < smallest {
                    smallest = child;
                    least = from + offset;
                }
            }
            if smallest >= entry {
                break;
            }
            self.place(at, smallest);
            at = least;
        }
        self.place(at, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against a sorted map of (key, member): same first entry after every operation.
        #[test]
        fn agrees_with_a_sorted_model(ops in prop::collection::vec((0usize..40, prop::option::of(0u64..50)), 1..400)) {
            let mut heap = IndexHeap::default();
            let mut model = BTreeMap::new();
            for (member, key) in ops {
                match key {
                    Some(key) => { heap.set(member, key); model.insert(member, key); }
                    None => { heap.remove(member); model.remove(&member); }
                }
                let first = model.iter().map(|(&m, &k)| (k, m)).min();
                prop_assert_eq!(heap.first(), first);
                prop_assert_eq!(heap.len(), model.len());
                prop_assert_eq!(heap.contains(member), model.contains_key(&member));
            }
        }
    }
}
