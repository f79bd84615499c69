//! What becomes of each command.

/// What becomes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The front answers it.
    Here,
    /// It goes to the engine with its keys marked.
    Engine,
    /// The same, and it may wait there for something.
    Waits,
    /// `SORT`: keys in patterns and behind options.
    Sort,
    /// A script. Which keys it reaches the engine checks, as the tenant's own user of it
    /// ([`crate::ScriptUser`]).
    Script,
    /// About scripts at every node, likewise as that user.
    EveryNode,
    /// `WATCH`: the engine watches keys for this client alone.
    Watch,
    /// Its words are channels (`PUBLISH`, `PUBSUB CHANNELS`).
    Channel,
    /// The same, and what is published is sent by the engine from then on (`SUBSCRIBE`), or no
    /// more.
    Subscribe,
    /// `SPUBLISH`: a channel of a shard lies in a partition, as a key does.
    Shard,
    /// About channels of shards, at every node that may have some (`PUBSUB SHARDCHANNELS`).
    EveryShard,
    /// Over the tenant's part of the keyspace, in steps.
    Walk(Walk),
    /// Refused, for this reason.
    Refused(&'static str),
}

/// Commands on all keys of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// `SCAN`: one step, as the client asks for it.
    Scan,
    /// `KEYS`.
    Keys,
    /// `DBSIZE`.
    Count,
    /// `FLUSHDB`, `FLUSHALL`.
    Delete,
    /// `RANDOMKEY`.
    Random,
}

const WHOLE: &str = "it acts on the engine as a whole, which tenants share";
const OTHER_DATABASE: &str = "tenants before an engine have one database, 0";
const FUNCTIONS: &str = "the engine's functions are those of all tenants";
const ALL_SCRIPTS: &str = "the engine's scripts are those of all tenants";
const WAITS_FOR_OTHERS: &str = "the engine counts for a connection what that has written, and its \
    connections here are those of many clients";
const ENDS_SCRIPTS: &str =
    "it would end whatever runs, whosever that is; what runs for too long, the front ends itself";
const PATTERNS: &str = "it counts the patterns of all tenants";
const NODES: &str = "it is about the engine's nodes, which tenants do not see";
const CONNECTIONS: &str = "the engine's connections are those of many clients";
const LOGGED: &str = "it tells of the commands of all tenants; SLOWLOG tells of a tenant's own";
const SLOT_BY_SLOT: &str = "it goes over the engine's slots; SCAN goes over a tenant's keys";
const UNKNOWN: &str = "which of its words are keys is not known";

impl Way {
    /// Of a command that is known by its name.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "sort" | "sort_ro" => Self::Sort,
            "watch" => Self::Watch,
            "scan" => Self::Walk(Walk::Scan),
            "keys" => Self::Walk(Walk::Keys),
            "dbsize" => Self::Walk(Walk::Count),
            "flushdb" | "flushall" => Self::Walk(Walk::Delete),
            "randomkey" => Self::Walk(Walk::Random),
            // They tell of commands only.
            "object|help" | "xgroup|help" | "xinfo|help" | "script|help" => Self::Engine,
            _ if name == "command" || name.starts_with("command|") => Self::Engine,
            "move" | "swapdb" => Self::Refused(OTHER_DATABASE),
            "migrate" | "restore-asking" | "save" | "bgsave" | "lastsave" => Self::Refused(WHOLE),
            "wait" | "waitaof" => Self::Refused(WAITS_FOR_OTHERS),
            "eval" | "eval_ro" | "evalsha" | "evalsha_ro" => Self::Script,
            "script|load" | "script|exists" => Self::EveryNode,
            "script|kill" => Self::Refused(ENDS_SCRIPTS),
            _ if name.starts_with("script") => Self::Refused(ALL_SCRIPTS),
            _ if name.starts_with("function") || name.starts_with("fcall") => {
                Self::Refused(FUNCTIONS)
            }
            "publish" | "pubsub|channels" | "pubsub|numsub" => Self::Channel,
            "subscribe" | "psubscribe" | "unsubscribe" | "punsubscribe" => Self::Subscribe,
            "ssubscribe" | "sunsubscribe" => Self::Subscribe,
            "spublish" => Self::Shard,
            "pubsub|shardchannels" | "pubsub|shardnumsub" => Self::EveryShard,
            "pubsub|help" => Self::Engine,
            "pubsub|numpat" => Self::Refused(PATTERNS),
            "clusterscan" => Self::Refused(SLOT_BY_SLOT),
            _ if name.starts_with("commandlog") => Self::Refused(LOGGED),
            _ => return None,
        })
    }

    /// Of a subcommand that the engine has and the front has not, where the front answers the
    /// others of its command.
    pub(crate) fn beside_own(name: &str) -> Option<Self> {
        match name.split_once('|')?.0 {
            "cluster" => Some(Self::Refused(NODES)),
            "client" => Some(Self::Refused(CONNECTIONS)),
            _ => None,
        }
    }

    /// Of a command with these flags that is to be refused.
    pub(crate) fn by_flags(has: impl Fn(&str) -> bool) -> Option<Self> {
        if has("pubsub") {
            Some(Self::UNKNOWN)
        } else if has("admin") || has("module") {
            Some(Self::Refused(WHOLE))
        } else {
            None
        }
    }

    /// Whether it is a script, or about scripts.
    pub fn scripts(self) -> bool {
        matches!(self, Self::Script | Self::EveryNode)
    }

    /// Of a command whose keys are not known.
    pub(crate) const UNKNOWN: Self = Self::Refused(UNKNOWN);
}
