//! What is known of a command besides how to run it.

use resp::{Args, Reply};
use telemetry::Class;

use crate::data::{DataCommand, KeyspaceCommand};
use crate::keyspec::{Find, KeySpec};
use crate::session::SessionCommand;

/// Properties of a command, by the names that `COMMAND INFO` uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// No property.
    pub const NONE: Flags = Flags(0);
    /// May change data.
    pub const WRITE: Flags = Flags(1);
    /// Reads data and changes none.
    pub const READONLY: Flags = Flags(1 << 1);
    /// May need more storage.
    pub const DENYOOM: Flags = Flags(1 << 2);
    /// For an operator.
    pub const ADMIN: Flags = Flags(1 << 3);
    /// Not for scripts.
    pub const NOSCRIPT: Flags = Flags(1 << 4);
    /// Runs while data is being loaded.
    pub const LOADING: Flags = Flags(1 << 5);
    /// Runs on a replica without its master.
    pub const STALE: Flags = Flags(1 << 6);
    /// Not in `MONITOR`.
    pub const SKIP_MONITOR: Flags = Flags(1 << 7);
    /// Not in the slow log.
    pub const SKIP_SLOWLOG: Flags = Flags(1 << 8);
    /// Takes constant or logarithmic time.
    pub const FAST: Flags = Flags(1 << 9);
    /// Runs before authentication.
    pub const NO_AUTH: Flags = Flags(1 << 10);
    /// Refused inside `MULTI`.
    pub const NO_MULTI: Flags = Flags(1 << 11);
    /// Not while data is being loaded in the background.
    pub const NO_ASYNC_LOADING: Flags = Flags(1 << 12);
    /// Runs while a script is busy.
    pub const ALLOW_BUSY: Flags = Flags(1 << 13);

    const NAMES: [&'static str; 14] = [
        "write",
        "readonly",
        "denyoom",
        "admin",
        "noscript",
        "loading",
        "stale",
        "skip_monitor",
        "skip_slowlog",
        "fast",
        "no_auth",
        "no_multi",
        "no_async_loading",
        "allow_busy",
    ];

    /// Both sets together.
    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// True when every flag of `other` is set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of the flags that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        (0..Self::NAMES.len())
            .filter(move |bit| self.0 >> bit & 1 == 1)
            .map(|bit| Self::NAMES[bit])
    }
}

/// Families of commands, as `COMMAND DOCS` groups them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Strings.
    String,
    /// Strings seen as arrays of bits.
    Bitmap,
    /// Hashes.
    Hash,
    /// Sorted sets.
    SortedSet,
    /// Keys of any type, expiry, whole keyspaces.
    Generic,
    /// `MULTI` and its kin.
    Transactions,
    /// The client's own connection.
    Connection,
    /// The server.
    Server,
    /// Single-node answers for clients that ask about a cluster.
    Cluster,
    /// Functions, of which there are none.
    Scripting,
}

impl Group {
    /// The name in `COMMAND DOCS`.
    pub const fn name(self) -> &'static str {
        match self {
            Group::String => "string",
            Group::Bitmap => "bitmap",
            Group::Hash => "hash",
            Group::SortedSet => "sorted-set",
            Group::Generic => "generic",
            Group::Transactions => "transactions",
            Group::Connection => "connection",
            Group::Server => "server",
            Group::Cluster => "cluster",
            Group::Scripting => "scripting",
        }
    }

    /// The ACL category that goes with the group, if one does.
    const fn category(self) -> Option<&'static str> {
        match self {
            Group::String => Some("@string"),
            Group::Bitmap => Some("@bitmap"),
            Group::Hash => Some("@hash"),
            Group::SortedSet => Some("@sortedset"),
            Group::Generic => Some("@keyspace"),
            Group::Transactions => Some("@transaction"),
            Group::Connection => Some("@connection"),
            Group::Scripting => Some("@scripting"),
            Group::Server | Group::Cluster => None,
        }
    }
}

/// What a command acts on, and so what runs it. A command that needs more than this table is named
/// here, and whatever runs it has a function of that name.
#[derive(Clone, Copy)]
pub enum Action {
    /// On the keys it names.
    Data(DataCommand),
    /// On a snapshot of the whole keyspace; changes nothing.
    Keyspace(KeyspaceCommand),
    /// On the whole keyspace, alone.
    KeyspaceWriter(KeyspaceCommand),
    /// On nothing but the table of commands: `COMMAND`, `… HELP`.
    Table(fn(&Spec, &Args, &mut Reply)),
    /// The session's own business, done on its core.
    Session(SessionCommand),
    /// What the server says of itself or has changed of itself: it may take a while, and runs on a
    /// handler.
    Report(SessionCommand),
    /// Nobody: the command exists only through its subcommands.
    Container,
    /// On an engine of its own behind this server, which alone knows the command. No command of
    /// this table is one.
    Engine,
}

/// One command or subcommand. Built as constants by the files under `table`.
#[derive(Clone, Copy)]
pub struct Spec {
    /// Lower-case name; a subcommand's is `command|subcommand`.
    pub name: &'static str,
    /// Number of words with the name; negative: at least this many.
    pub arity: i8,
    /// Properties.
    pub flags: Flags,
    /// Family.
    pub group: Group,
    /// Where its keys are.
    pub keys: &'static [KeySpec],
    /// ACL categories that follow neither from the flags nor from the group.
    pub categories: &'static [&'static str],
    /// Hints for clients of a cluster, and about replies that vary, in Redis's words.
    pub tips: &'static [&'static str],
    /// What shares, SLOs and metrics file it under.
    pub class: Class,
    /// What it acts on.
    pub action: Action,
    /// Subcommands; empty for most.
    pub subcommands: &'static [Spec],
    /// Redis version that introduced it; for our own, ours.
    pub since: &'static str,
    /// Cost here, which is not always Redis's.
    pub complexity: &'static str,
    /// Arguments after the name.
    pub syntax: &'static str,
    /// One sentence.
    pub summary: &'static str,
}

impl Spec {
    /// A command without keys, to be completed by the builders below.
    pub const fn new(
        name: &'static str,
        arity: i8,
        group: Group,
        flags: Flags,
        action: Action,
    ) -> Spec {
        Spec {
            name,
            arity,
            flags,
            group,
            keys: &[],
            categories: &[],
            tips: &[],
            class: Class::Other,
            action,
            subcommands: &[],
            since: "1.0.0",
            complexity: "O(1)",
            syntax: "",
            summary: "",
        }
    }

    /// Sets the flags.
    pub const fn flags(self, flags: Flags) -> Spec {
        Spec { flags, ..self }
    }

    /// Sets where the keys are.
    pub const fn keys(self, keys: &'static [KeySpec]) -> Spec {
        Spec { keys, ..self }
    }

    /// Sets the class.
    pub const fn class(self, class: Class) -> Spec {
        Spec { class, ..self }
    }

    /// Sets further ACL categories.
    pub const fn categories(self, categories: &'static [&'static str]) -> Spec {
        Spec { categories, ..self }
    }

    /// Sets the hints for clients.
    pub const fn tips(self, tips: &'static [&'static str]) -> Spec {
        Spec { tips, ..self }
    }

    /// Sets the subcommands.
    pub const fn subcommands(self, subcommands: &'static [Spec]) -> Spec {
        Spec {
            subcommands,
            ..self
        }
    }

    /// Sets what a reader of the documentation sees: since, complexity, syntax, summary.
    pub const fn doc(
        self,
        since: &'static str,
        complexity: &'static str,
        syntax: &'static str,
        summary: &'static str,
    ) -> Spec {
        Spec {
            since,
            complexity,
            syntax,
            summary,
            ..self
        }
    }

    /// True when the command does nothing without a subcommand.
    pub fn is_container(&self) -> bool {
        matches!(self.action, Action::Container)
    }

    /// True for what is about the client's own connection, or about where the keys of a cluster
    /// are, and for any client.
    pub const fn is_about_connection(&self) -> bool {
        matches!(self.group, Group::Connection | Group::Cluster) && !self.flags.has(Flags::ADMIN)
    }

    /// The name without its command: `list` for `client|list`.
    pub fn short_name(&self) -> &'static str {
        self.name
            .split_once('|')
            .map_or(self.name, |(_, short)| short)
    }

    /// True when `len` words, the name included, are neither too few nor too many.
    pub const fn takes(&self, len: usize) -> bool {
        if self.arity < 0 {
            len >= self.arity.unsigned_abs() as usize
        } else {
            len == self.arity as usize
        }
    }

    /// How many keys `args` name, without a look at each.
    pub fn count_keys(&self, args: &Args) -> usize {
        let indices = self.keys.iter().filter_map(|spec| spec.indices(args));
        indices.map(|indices| indices.len()).sum()
    }

    /// Calls `each` with every key in `args`, in order. A count of keys that is wrong counts none:
    /// the command itself says so before it looks for any.
    #[inline]
    pub fn each_key<'a>(&self, args: &Args<'a>, mut each: impl FnMut(&'a [u8])) {
        for spec in self.keys {
            for index in spec.indices(args).into_iter().flatten() {
                each(args.get(index));
            }
        }
    }

    /// First key, last key and step as `COMMAND INFO` has always had them; zeros when a range
    /// cannot say it.
    pub fn legacy_range(&self) -> (i64, i64, i64) {
        let ranges = self.keys.iter().filter_map(|spec| match spec.find {
            Find::Range { last, step } => {
                Some((i64::from(spec.at), i64::from(last), i64::from(step)))
            }
            Find::Count => None,
        });
        ranges
            .map(|(at, last, step)| (at, if last < 0 { last } else { at + last }, step))
            .reduce(|(first, _, step), (_, last, _)| (first, last, step))
            .unwrap_or((0, 0, 0))
    }

    /// True when the keys cannot be told from first, last and step.
    pub fn has_movable_keys(&self) -> bool {
        self.keys
            .iter()
            .any(|spec| matches!(spec.find, Find::Count))
    }

    /// ACL categories: those that follow from flags and group, then the special ones.
    pub fn acl_categories(&self) -> impl Iterator<Item = &'static str> {
        let flags = self.flags;
        let implied = [
            (self.group.category(), !self.is_container()),
            (Some("@read"), flags.has(Flags::READONLY)),
            (Some("@write"), flags.has(Flags::WRITE)),
            (Some("@admin"), flags.has(Flags::ADMIN)),
            (Some("@dangerous"), flags.has(Flags::ADMIN)),
            (Some("@fast"), flags.has(Flags::FAST)),
            (Some("@slow"), !flags.has(Flags::FAST)),
        ];
        implied
            .into_iter()
            .filter_map(|(name, holds)| name.filter(|_| holds))
            .chain(self.categories.iter().copied())
    }
}

impl std::fmt::Debug for Spec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
