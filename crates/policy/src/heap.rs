//! An indexed heap: the smallest key first, and any member's key can be changed or taken out.
//!
//! Members are dense numbers. Keys lie in an array of their own, four children next to each other
//! and padded, so that the least of them is found without a branch that nobody can predict; that is
//! most of what a decision costs. Equal keys come in an order that depends on what was done before,
//! and on nothing else, so decisions are reproducible.

const ARITY: usize = 4;
const ABSENT: u32 = u32::MAX;
/// Behind the last key, so that every group of children is complete. No member has this key.
const PADDING: u64 = u64::MAX;

/// A heap of members `0..2^32-1` by keys below 2^64-1. Memory grows with the largest member ever
/// inserted (4 bytes each) and with the number of members present (12 bytes each).
#[derive(Clone, Debug)]
pub(crate) struct IndexHeap {
    /// By position; then [`PADDING`].
    keys: Vec<u64>,
    /// By position.
    members: Vec<u32>,
    /// By member.
    position: Vec<u32>,
    /// Entries put in their place; what a decision costs, in a unit that no clock blurs.
    #[cfg(test)]
    pub(crate) steps: u64,
}

impl Default for IndexHeap {
    fn default() -> Self {
        IndexHeap {
            keys: vec![PADDING; ARITY],
            members: Vec::new(),
            position: Vec::new(),
            #[cfg(test)]
            steps: 0,
        }
    }
}

impl IndexHeap {
    pub(crate) fn contains(&self, member: usize) -> bool {
        self.position.get(member).is_some_and(|&at| at != ABSENT)
    }

    /// Whether there is exactly one member.
    #[inline]
    pub(crate) fn alone(&self) -> bool {
        self.members.len() == 1
    }

    /// The member with the smallest key, and that key.
    #[inline]
    pub(crate) fn first(&self) -> Option<(u64, usize)> {
        let member = *self.members.first()?;
        Some((self.keys[0], member as usize))
    }

    /// Puts a member in, unless it is in with a key that is not larger.
    #[inline]
    pub(crate) fn lower(&mut self, member: usize, key: u64) {
        if let Some(&at) = self.position.get(member) {
            if at != ABSENT && self.keys[at as usize] <= key {
                return;
            }
        }
        self.set(member, key);
    }

    /// Puts a member in, or gives a present one another key.
    #[inline]
    pub(crate) fn set(&mut self, member: usize, key: u64) {
        let key = key.min(PADDING - 1);
        if member >= self.position.len() {
            self.position.resize(member + 1, ABSENT);
        }
        let at = self.position[member];
        if at == ABSENT {
            let last = self.members.len();
            self.members.push(member as u32);
            self.keys.push(PADDING);
            self.up(last, key, member as u32);
        } else if key < self.keys[at as usize] {
            self.up(at as usize, key, member as u32);
        } else {
            self.down(at as usize, key, member as u32);
        }
    }

    /// Takes a member out; nothing happens if it is not in.
    pub(crate) fn remove(&mut self, member: usize) {
        let Some(&at) = self.position.get(member).filter(|&&at| at != ABSENT) else {
            return;
        };
        let at = at as usize;
        self.position[member] = ABSENT;
        let Some(moved) = self.members.pop() else {
            return;
        };
        let last = self.members.len();
        let key = std::mem::replace(&mut self.keys[last], PADDING);
        self.keys.pop();
        if at == last {
            return;
        }
        if at > 0 && key < self.keys[(at - 1) / ARITY] {
            self.up(at, key, moved);
        } else {
            self.down(at, key, moved);
        }
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = usize> + '_ {
        self.members.iter().map(|&member| member as usize)
    }

    pub(crate) fn clear(&mut self) {
        for &member in &self.members {
            self.position[member as usize] = ABSENT;
        }
        self.members.clear();
        self.keys.clear();
        self.keys.resize(ARITY, PADDING);
    }

    #[inline]
    fn place(&mut self, at: usize, key: u64, member: u32) {
        self.keys[at] = key;
        self.members[at] = member;
        self.position[member as usize] = at as u32;
        #[cfg(test)]
        {
            self.steps += 1;
        }
    }

    fn up(&mut self, mut at: usize, key: u64, member: u32) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.keys[parent] <= key {
                break;
            }
            self.place(at, self.keys[parent], self.members[parent]);
            at = parent;
        }
        self.place(at, key, member);
    }

    fn down(&mut self, mut at: usize, key: u64, member: u32) {
        let len = self.members.len();
        loop {
            let from = at * ARITY + 1;
            if from >= len {
                break;
            }
            let Some(children) = self.keys[from..].first_chunk::<ARITY>() else {
                break;
            };
            let least = from + least_of(children);
            let smallest = self.keys[least];
            if smallest >= key {
                break;
            }
            self.place(at, smallest, self.members[least]);
            at = least;
        }
        self.place(at, key, member);
    }
}

/// The index of the smallest, as selections instead of branches.
#[inline]
fn least_of(keys: &[u64; ARITY]) -> usize {
    let left = usize::from(keys[1] < keys[0]);
    let right = 2 + usize::from(keys[3] < keys[2]);
    let swap = usize::from(keys[right] < keys[left]);
    left + swap * (right - left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against a map: after every operation the first has the smallest key, and it is its own.
        #[test]
        fn agrees_with_a_sorted_model(ops in prop::collection::vec((0usize..40, prop::option::of(0u64..50)), 1..400)) {
            let mut heap = IndexHeap::default();
            let mut model = BTreeMap::new();
            for (member, key) in ops {
                match key {
                    Some(key) => { heap.set(member, key); model.insert(member, key); }
                    None => { heap.remove(member); model.remove(&member); }
                }
                let first = heap.first();
                prop_assert_eq!(first.map(|(key, _)| key), model.values().min().copied());
                prop_assert!(first.is_none_or(|(key, member)| model[&member] == key));
                prop_assert_eq!(heap.members().count(), model.len());
                prop_assert_eq!(heap.contains(member), model.contains_key(&member));
            }
        }
    }
}
