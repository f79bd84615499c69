//! The commands that act on the connection, the tenant or the server, by name: whoever runs sessions matches on these,
//! so that a command in the table without an implementation does not compile.

/// One such command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the command of its name
pub enum SessionCommand {
    Acl(AclCommand),
    Auth,
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
    Latency(LatencyCommand),
    Lolwut,
    Multi,
    Ping,
    Quit,
    Readonly,
    Readwrite,
    Reset,
    Select,
    Shutdown,
    Slowlog(SlowlogCommand),
    Time,
    Unwatch,
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
    Getname,
    Getredir,
    Id,
    Info,
    Kill,
    List,
    NoEvict,
    NoTouch,
    Reply,
    Setinfo,
    Setname,
    Tracking,
    Trackinginfo,
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
    Stage,
    Tenant,
}

/// `LATENCY …`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the subcommand of its name
pub enum LatencyCommand {
    Histogram,
    History,
    Latest,
    Reset,
}

/// `SLOWLOG …`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the subcommand of its name
pub enum SlowlogCommand {
    Get,
    Len,
    Reset,
}
