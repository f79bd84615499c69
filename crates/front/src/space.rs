//! How a tenant's keys are called at the engine.

/// Every mark begins so. A tenant without a mark may use no key that does.
const RESERVED: &[u8] = b"{@";

/// The part of the engine's keyspace that is one tenant's.
///
/// A tenant's mark is `{@NAME}`. No name has a brace, so no mark is the beginning of another; and a
/// mark is a hash tag, so that all keys of a tenant share a hash slot in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// Empty: the keys are called as they are.
    mark: Vec<u8>,
}

impl Space {
    /// That of the tenant of this name.
    pub fn of(tenant: &str) -> Self {
        let mark = format!("{{@{tenant}}}").into_bytes();
        Self { mark }
    }

    /// All keys without a mark: those that were there before there were tenants.
    pub fn unmarked() -> Self {
        Self { mark: Vec::new() }
    }

    /// What its keys begin with.
    pub fn mark(&self) -> &[u8] {
        &self.mark
    }

    /// Whether the tenant may use a key of this name.
    pub fn may_use(&self, key: &[u8]) -> bool {
        !self.mark.is_empty() || !key.starts_with(RESERVED)
    }

    /// Whether the tenant may use a pattern in which `*` stands for anything (`SORT … BY`): the key
    /// that it becomes must be one of its own whatever that is.
    pub fn may_derive(&self, pattern: &[u8]) -> bool {
        let fixed = pattern.split(|byte| *byte == b'*').next();
        let fixed = fixed.unwrap_or_default();
        !self.mark.is_empty() || !fixed.starts_with(RESERVED) && !RESERVED.starts_with(fixed)
    }

    /// What the tenant calls the key that the engine calls so; none: it is another's.
    pub fn own<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        if self.mark.is_empty() {
            return (!key.starts_with(RESERVED)).then_some(key);
        }
        key.strip_prefix(&self.mark[..])
    }

    /// The glob that matches those of its keys that `glob` matches.
    pub fn glob(&self, glob: &[u8]) -> Vec<u8> {
        // No byte of a mark has a meaning in a glob.
        [&self.mark, glob].concat()
    }

    /// A text of the engine's (an error) without the tenant's mark.
    pub fn without_mark(&self, text: &[u8]) -> Vec<u8> {
        let mut plain = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some(byte) = rest.first() {
            match rest.strip_prefix(&self.mark[..]) {
                Some(behind) if !self.mark.is_empty() => rest = behind,
                _ => {
                    plain.push(*byte);
                    rest = &rest[1..];
                }
            }
        }
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tenant_has_another_s_keys() {
        let names = ["a", "ab", "a.b", "A", "a-", "_"];
        for name in names {
            for other in names {
                let key = [Space::of(other).mark(), b"key"].concat();
                let own = Space::of(name).own(&key);
                assert_eq!(own, (name == other).then_some(&b"key"[..]));
            }
            assert_eq!(Space::unmarked().own(Space::of(name).mark()), None);
        }
        assert_eq!(Space::unmarked().own(b"{user}:1"), Some(&b"{user}:1"[..]));
        assert_eq!(Space::of("a").own(b"key"), None);
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
    }
}
