//! How often a tenant ran each command, how long that took and how it failed: `INFO commandstats`
//! and `errorstats`.

use std::collections::BTreeMap;

use commands::Spec;
use parking_lot::Mutex;
use policy::Nanos;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a reply that is no error.
    Done,
    /// With this error code (`WRONGTYPE`, `ERR`, …) while it ran.
    Failed(Box<str>),
    /// With this error code before it began.
    Rejected(Box<str>),
}

impl Ending {
    /// The ending that `reply`, the first bytes on the wire of what a command answered, tells of.
    #[inline]
    pub fn of(reply: &[u8]) -> Self {
        error_code(reply).map_or(Self::Done, |code| Self::Failed(code.into()))
    }

    /// The same as an ending before the command began.
    pub fn rejected(self) -> Self {
        match self {
            Self::Failed(code) => Self::Rejected(code),
            other => other,
        }
    }

    /// The reply was an error.
    pub fn is_error(&self) -> bool {
        *self != Self::Done
    }
}

/// The code of an error reply; none: it is no error. One without a code counts as `ERR`, as in
/// Redis.
fn error_code(reply: &[u8]) -> Option<&str> {
    let text = reply.strip_prefix(b"-")?;
    let end = text.iter().position(|byte| matches!(byte, b' ' | b'\r'));
    let code = end.and_then(|end| std::str::from_utf8(&text[..end]).ok());
    Some(code.filter(|code| !code.is_empty()).unwrap_or("ERR"))
}

/// What was counted of one command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Times it ran.
    pub calls: u64,
    /// Time that took, ns.
    pub took_ns: u64,
    /// Times it was refused before it began.
    pub rejected: u64,
    /// Times it ran and ended with an error.
    pub failed: u64,
}

impl Calls {
    fn add(&mut self, other: &Calls) {
        self.calls += other.calls;
        self.took_ns += other.took_ns;
        self.rejected += other.rejected;
        self.failed += other.failed;
    }
}

/// What one core counts of a tenant. A tenant uses few commands, so a short list is searched from
/// its start.
#[derive(Default)]
struct Book {
    commands: Vec<(&'static Spec, Calls)>,
    /// By code. The codes are the server's own, so that there are few.
    errors: Vec<(Box<str>, u64)>,
}

impl Book {
    fn error(&mut self, code: &str) {
        match self.errors.iter_mut().find(|(known, _)| **known == *code) {
            Some((_, count)) => *count += 1,
            None => self.errors.push((code.into(), 1)),
        }
    }

    fn calls(&mut self, spec: &'static Spec) -> &mut Calls {
        let at = self
            .commands
            .iter()
            .position(|(known, _)| std::ptr::eq(*known, spec));
        let at = at.unwrap_or_else(|| {
            self.commands.push((spec, Calls::default()));
            self.commands.len() - 1
        });
        &mut self.commands[at].1
    }
}

/// A book on cache lines of its own: each core writes to its own for every command.
#[derive(Default)]
#[repr(align(128))]
struct OfCore(Mutex<Book>);

/// The commands of one tenant, counted by core; only `INFO` and `CONFIG RESETSTAT` look at another
/// core's book.
pub struct CommandStats(Box<[OfCore]>);

impl CommandStats {
    pub(super) fn new(cores: usize) -> Self {
        Self((0..cores).map(|_| OfCore::default()).collect())
    }

    /// Counts a command that ended on `core` after `took`; a request that names no command counts
    /// as an error only.
    pub fn count(&self, core: usize, spec: Option<&'static Spec>, ending: &Ending, took: Nanos) {
        let mut book = self.0[core].0.lock();
        if let Ending::Failed(code) | Ending::Rejected(code) = ending {
            book.error(code);
        }
        let Some(spec) = spec else { return };
        let calls = book.calls(spec);
        if matches!(ending, Ending::Rejected(_)) {
            calls.rejected += 1;
            return;
        }
        calls.calls += 1;
        calls.took_ns += took;
        calls.failed += u64::from(ending.is_error());
    }

    /// Every command that was ever sent, by name.
    pub fn commands(&self) -> BTreeMap<&'static str, Calls> {
        let mut all: BTreeMap<_, Calls> = BTreeMap::new();
        for core in &self.0 {
            for (spec, calls) in &core.0.lock().commands {
                all.entry(spec.name).or_default().add(calls);
            }
        }
        all
    }

    /// Errors by their code.
    pub fn errors(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for core in &self.0 {
            for (code, count) in &core.0.lock().errors {
                *all.entry(code.to_string()).or_default() += count;
            }
        }
        all
    }

    /// Forgets everything.
    pub fn reset(&self) {
        self.0
            .iter()
            .for_each(|core| *core.0.lock() = Book::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use commands::lookup;

    #[test]
    fn the_code_of_an_error_is_its_first_word() {
        for (reply, ending) in [
            (&b"+OK\r\n"[..], Ending::Done),
            (b"", Ending::Done),
            (b"$1\r\n-\r\n", Ending::Done),
            (
                b"-WRONGTYPE Operation\r\n",
                Ending::Failed("WRONGTYPE".into()),
            ),
            (b"-BUSY\r\n", Ending::Failed("BUSY".into())),
            (b"- odd\r\n", Ending::Failed("ERR".into())),
        ] {
            assert_eq!(Ending::of(reply), ending, "{reply:?}");
        }
    }

    #[test]
    fn what_cores_count_is_added_up_by_command() {
        let stats = CommandStats::new(2);
        let [get, set] = ["get", "set"].map(|name| lookup(name.as_bytes()));
        stats.count(0, get, &Ending::Done, 1_000);
        stats.count(1, get, &Ending::Failed("WRONGTYPE".into()), 500);
        stats.count(1, set, &Ending::Failed("ERR".into()).rejected(), 700);
        stats.count(0, None, &Ending::Rejected("ERR".into()), 1);
        let commands = stats.commands();
        let expected = Calls {
            calls: 2,
            took_ns: 1_500,
            rejected: 0,
            failed: 1,
        };
        assert_eq!(commands["get"], expected);
        let expected = Calls {
            rejected: 1,
            ..Calls::default()
        };
        assert_eq!(commands["set"], expected);
        let errors: Vec<_> = stats.errors().into_iter().collect();
        assert_eq!(errors, [("ERR".into(), 2), ("WRONGTYPE".into(), 1)]);
        stats.reset();
        assert!(stats.commands().is_empty() && stats.errors().is_empty());
    }
}
