//! The commands that act on the connection, the tenant or the server, by name: whoever runs
//! sessions matches on these, so that a command in the table without an implementation does not
//! compile.

/// One such command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the command of its name
pub enum SessionCommand {
    Acl(AclCommand),
    Auth,
    Bgsave,
    Client(ClientCommand),
    Cluster(ClusterCommand),
    Config(ConfigCommand),
    Discard,
    Echo,
    Entremet(EntremetCommand),
    Exec,
    /// There are no functions, so there is nothing to flush: the reply is `OK`.
    FunctionFlush,
    Hello,
    Info,
    Lastsave,
    Latency(LatencyCommand),
    Lolwut,
    Memory(MemoryCommand),
    /// There are no modules, so the list is empty.
    ModuleList,
    Multi,
    Ping,
    Quit,
    Readonly,
    Readwrite,
    Reset,
    Role,
    Save,
    Select,
    Shutdown,
    Slowlog(SlowlogCommand),
    Time,
    Unwatch,
    Wait,
    Watch,
}

/// `ACL …`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the subcommand of its name
pub enum AclCommand {
    Whoami,
}

/// `CLIENT …`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the subcommand of its name
pub enum ClientCommand {
    Capa,
    Getname,
    Getredir,
    Id,
    Info,
    Kill,
    List,
    NoEvict,
    NoTouch,
    Pause,
    Reply,
    Setinfo,
    Setname,
    Tracking,
    Trackinginfo,
    Unblock,
    Unpause,
}

/// `CLUSTER …`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the subcommand of its name
pub enum ClusterCommand {
    Info,
    Keyslot,
    Myid,
    Nodes,
    Shards,
    Slots,
}

/// `CONFIG …`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the subcommand of its name
pub enum ConfigCommand {
    Get,
    Resetstat,
    Rewrite,
    Set,
}

/// `ENTREMET …`; their own arguments are the session's to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the subcommand of its name
pub enum EntremetCommand {
    Explain,
    Slo,
    Slowest,
    Stage,
    Tenant,
    Workload,
}

/// `LATENCY …`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the subcommand of its name
pub enum LatencyCommand {
    Doctor,
    Graph,
    Histogram,
    History,
    Latest,
    Reset,
}

/// `MEMORY …`, but for what is about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the subcommand of its name
pub enum MemoryCommand {
    Doctor,
    MallocStats,
    Stats,
}

/// `SLOWLOG …`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the subcommand of its name
pub enum SlowlogCommand {
    Get,
    Len,
    Reset,
}
