//! The commands that work on data, by name: whoever has data matches on these, so that a command in
//! the table without a function does not compile.

/// One such command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataCommand {
    /// On strings, and on bits of them.
    String(StringCommand),
    /// On hashes.
    Hash(HashCommand),
    /// On sorted sets.
    SortedSet(SortedSetCommand),
    /// On keys of any type.
    Key(KeyCommand),
}

/// On strings, and on bits of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the command of its name
pub enum StringCommand {
    Append,
    Bitcount,
    Bitfield,
    Bitop,
    Bitpos,
    Decr,
    Decrby,
    Get,
    Getbit,
    Getdel,
    Getex,
    Getrange,
    Getset,
    Incr,
    Incrby,
    Incrbyfloat,
    Lcs,
    Mget,
    Mset,
    Msetnx,
    Psetex,
    Set,
    Setbit,
    Setex,
    Setnx,
    Setrange,
    Strlen,
}

/// On hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the command of its name
pub enum HashCommand {
    Hdel,
    Hexists,
    Hget,
    Hgetall,
    Hincrby,
    Hincrbyfloat,
    Hkeys,
    Hlen,
    Hmget,
    Hmset,
    Hrandfield,
    Hscan,
    Hset,
    Hsetnx,
    Hstrlen,
    Hvals,
}

/// On sorted sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the command of its name
pub enum SortedSetCommand {
    Zadd,
    Zcard,
    Zcount,
    Zdiff,
    Zdiffstore,
    Zincrby,
    Zinter,
    Zintercard,
    Zinterstore,
    Zlexcount,
    Zmpop,
    Zmscore,
    Zpopmax,
    Zpopmin,
    Zrandmember,
    Zrange,
    Zrangebylex,
    Zrangebyscore,
    Zrangestore,
    Zrank,
    Zrem,
    Zremrangebylex,
    Zremrangebyrank,
    Zremrangebyscore,
    Zrevrange,
    Zrevrangebylex,
    Zrevrangebyscore,
    Zrevrank,
    Zscan,
    Zscore,
    Zunion,
    Zunionstore,
}

/// On keys of any type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the command of its name
pub enum KeyCommand {
    Copy,
    Del,
    Dump,
    Encoding,
    Exists,
    Expire,
    Expireat,
    Expiretime,
    Freq,
    Idletime,
    MemoryUsage,
    Move,
    Persist,
    Pexpire,
    Pexpireat,
    Pexpiretime,
    Pttl,
    Refcount,
    Rename,
    Renamenx,
    Restore,
    Ttl,
    Type,
}

/// On whole keyspaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the command of its name
pub enum KeyspaceCommand {
    Dbsize,
    Flushall,
    Flushdb,
    Keys,
    Randomkey,
    Range,
    Scan,
    Swapdb,
}
