//! How a tenant's keys are called at the engine.

use crate::slot::{part, slot};

/// Every mark begins so. A tenant without a mark may use no key that does.
const RESERVED: &[u8] = b"{@";

/// Digits by which the marks of a tenant with several partitions differ.
const DIGITS: usize = 6;

/// The part of the engine's keyspace that is one tenant's.
///
/// A tenant's mark is `{@NAME}`. No name has a brace, so no mark is the beginning of another; and a
/// mark is a hash tag, so that all keys of a tenant share a hash slot in a cluster.
///
/// A tenant with several partitions has a mark for each, `{@NAME/NUMBER}`: no name has a slash. The
/// number is the first whose mark lies, as a slot, in the partition that it is for. So partitions
/// of a tenant never share a slot, they are spread over a cluster as its slots are, and which keys
/// belong to a mark can be told from the mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// What all marks begin with. Empty: the keys are called as they are.
    begin: Vec<u8>,
    /// By partition.
    marks: Vec<Mark>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mark {
    text: Vec<u8>,
    slot: u16,
}

impl Mark {
    fn of(text: Vec<u8>) -> Self {
        let slot = slot(&text);
        Self { text, slot }
    }
}

impl Space {
    /// That of the tenant of this name.
    pub fn of(tenant: &str) -> Self {
        let begin = format!("{{@{tenant}}}").into_bytes();
        let marks = vec![Mark::of(begin.clone())];
        Self { begin, marks }
    }

    /// That of a tenant with so many partitions, 1 to [`crate::PARTS_MAX`].
    pub fn in_parts(tenant: &str, parts: u16) -> Self {
        if parts <= 1 {
            return Self::of(tenant);
        }
        let begin = format!("{{@{tenant}/").into_bytes();
        let mut marks = vec![None; usize::from(parts)];
        let mut missing = parts;
        let mut number = 0;
        while missing > 0 {
            let mark = Mark::of([&begin[..], format!("{number:0DIGITS$}}}").as_bytes()].concat());
            let place = &mut marks[usize::from(part(mark.slot, parts))];
            if place.is_none() {
                *place = Some(mark);
                missing -= 1;
            }
            number += 1;
        }
        let marks = marks.into_iter().flatten().collect();
        Self { begin, marks }
    }

    /// All keys without a mark: those that were there before there were tenants.
    pub fn unmarked() -> Self {
        let (begin, marks) = (Vec::new(), vec![Mark::of(Vec::new())]);
        Self { begin, marks }
    }

    /// How many partitions it has.
    pub fn parts(&self) -> u16 {
        self.marks.len() as u16
    }

    /// The partition of a key.
    pub fn part(&self, key: &[u8]) -> u16 {
        match self.parts() {
            1 => 0,
            parts => part(slot(key), parts),
        }
    }

    /// What the keys of a partition begin with.
    pub fn mark(&self, part: u16) -> &[u8] {
        &self.marks[usize::from(part)].text
    }

    /// The slot that a partition's keys have at the engine.
    pub fn slot(&self, part: u16) -> u16 {
        self.marks[usize::from(part)].slot
    }

    /// Whether the tenant may use a key of this name.
    pub fn may_use(&self, key: &[u8]) -> bool {
        !self.begin.is_empty() || !key.starts_with(RESERVED)
    }

    /// Whether the tenant may use a pattern in which `*` stands for anything (`SORT … BY`): the key
    /// that it becomes must be one of its own whatever that is.
    pub fn may_derive(&self, pattern: &[u8]) -> bool {
        let fixed = pattern.split(|byte| *byte == b'*').next();
        let fixed = fixed.unwrap_or_default();
        !self.begin.is_empty() || !fixed.starts_with(RESERVED) && !RESERVED.starts_with(fixed)
    }

    /// What the tenant calls the key that the engine calls so; none: it is another's.
    pub fn own<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        if self.begin.is_empty() {
            return (!key.starts_with(RESERVED)).then_some(key);
        }
        let behind = key.strip_prefix(&self.begin[..])?;
        if self.parts() == 1 {
            return Some(behind);
        }
        let own = behind.get(DIGITS + 1..)?;
        key.starts_with(self.mark(self.part(own))).then_some(own)
    }

    /// The glob that matches those of its keys that `glob` matches.
    pub fn glob(&self, glob: &[u8]) -> Vec<u8> {
        // No byte of a mark has a meaning in a glob.
        match self.parts() {
            1 => [&self.begin, glob].concat(),
            _ => [&self.begin, &[b'?'; DIGITS][..], b"}", glob].concat(),
        }
    }

    /// Globs that match its keys, and no other's.
    pub fn globs(&self) -> Vec<Vec<u8>> {
        match self.begin.is_empty() {
            // All but what begins with `{@`.
            true => ["", "[^{]*", "{", "{[^@]*"]
                .map(|glob| glob.as_bytes().to_vec())
                .to_vec(),
            false => vec![self.glob(b"*")],
        }
    }

    /// A text of the engine's (an error) without the tenant's marks.
    pub fn without_mark(&self, text: &[u8]) -> Vec<u8> {
        let mut plain = Vec::with_capacity(text.len());
        let mut rest = text;
        // Scripts answer long ones, too.
        while let Some(at) = rest.iter().position(|byte| *byte == RESERVED[0]) {
            plain.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            let behind = rest.strip_prefix(&self.begin[..]);
            let behind = behind.and_then(|behind| match self.parts() {
                1 => Some(behind),
                _ => behind.get(DIGITS + 1..),
            });
            match behind {
                Some(behind) if !self.begin.is_empty() => rest = behind,
                _ => {
                    plain.push(rest[0]);
                    rest = &rest[1..];
                }
            }
        }
        plain.extend_from_slice(rest);
        plain
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::slot::PARTS_MAX;

    #[test]
    fn no_tenant_has_another_s_keys() {
        let names = ["a", "ab", "a.b", "A", "a-", "_"];
        let spaces = |name| [Space::of(name), Space::in_parts(name, 7)];
        for name in names {
            for other in names {
                for (space, its) in spaces(name).iter().zip(spaces(other)) {
                    let key = [its.mark(its.part(b"key")), b"key"].concat();
                    assert_eq!(space.own(&key), (name == other).then_some(&b"key"[..]));
                    assert_eq!(Space::unmarked().own(&key), None);
                }
            }
            let [one, several] = spaces(name);
            assert_eq!(one.own(&[several.mark(0), b"key"].concat()), None);
            assert_eq!(several.own(&[one.mark(0), b"key"].concat()), None);
        }
        assert_eq!(Space::unmarked().own(b"{user}:1"), Some(&b"{user}:1"[..]));
        assert_eq!(Space::of("a").own(b"key"), None);
    }

    proptest! {
        #[test]
        fn each_partition_has_a_slot_of_its_own_range(
            name in "[A-Za-z0-9_.-]{1,64}", parts in 1..=PARTS_MAX
        ) {
            let space = Space::in_parts(&name, parts);
            prop_assert_eq!(space.parts(), parts);
            for number in 0..parts {
                prop_assert_eq!(space.slot(number), slot(space.mark(number)));
                if parts > 1 {
                    prop_assert_eq!(part(space.slot(number), parts), number);
                }
            }
        }

        #[test]
        fn what_is_marked_is_found_again_in_its_slot(
            key in proptest::collection::vec(any::<u8>(), 0..40), parts in 1..=PARTS_MAX
        ) {
            let space = Space::in_parts("t", parts);
            let its = space.part(&key);
            let marked = [space.mark(its), &key].concat();
            prop_assert_eq!(slot(&marked), space.slot(its));
            prop_assert_eq!(space.own(&marked), Some(&key[..]));
            for other in (0..parts).filter(|other| *other != its) {
                let stray = [space.mark(other), &key].concat();
                prop_assert_eq!(space.own(&stray), None);
            }
        }
    }

    #[test]
    fn who_has_no_mark_cannot_make_one() {
        let space = Space::unmarked();
        assert!(space.may_use(b"{user}") && space.may_use(b"") && space.may_use(b"{"));
        assert!(!space.may_use(b"{@") && !space.may_use(b"{@a}key"));
        for pattern in [&b"*"[..], b"{*", b"{@*", b"{@a}*"] {
            assert!(!space.may_derive(pattern), "{pattern:?}");
            assert!(Space::of("a").may_derive(pattern));
        }
        assert!(space.may_derive(b"weight_*") && space.may_derive(b"{user*"));
    }

    #[test]
    fn a_mark_is_taken_out_of_a_text() {
        let text = b"-NOGROUP No such key '{@a}k' or '{@ab}k'\r\n";
        let plain = Space::of("a").without_mark(text);
        assert_eq!(plain, b"-NOGROUP No such key 'k' or '{@ab}k'\r\n");
        assert_eq!(Space::unmarked().without_mark(text), text);
        let space = Space::in_parts("a", 3);
        let text = [b"-ERR '", space.mark(1), b"k'\r\n"].concat();
        assert_eq!(space.without_mark(&text), b"-ERR 'k'\r\n");
    }
}
