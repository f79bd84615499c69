//! Which function runs a command of the table.

use commands::{
    DataCommand, HashCommand, KeyCommand, KeyspaceCommand, SortedSetCommand, StringCommand,
};

use super::call::{Call, Done};
use super::{hashes, keys, keyspace, sorted_sets, strings};

/// Runs a command on the keys it names.
#[inline]
pub(super) fn run(command: DataCommand, call: &mut Call) -> Done {
    match command {
        DataCommand::String(command) => run_string(command, call),
        DataCommand::Hash(command) => run_hash(command, call),
        DataCommand::SortedSet(command) => run_sorted_set(command, call),
        DataCommand::Key(command) => run_key(command, call),
    }
}

fn run_string(command: StringCommand, call: &mut Call) -> Done {
    match command {
        StringCommand::Append => strings::append(call),
        StringCommand::Bitcount => strings::bitcount(call),
        StringCommand::Bitfield => strings::bitfield(call),
        StringCommand::Bitop => strings::bitop(call),
        StringCommand::Bitpos => strings::bitpos(call),
        StringCommand::Decr => strings::decr(call),
        StringCommand::Decrby => strings::decrby(call),
        StringCommand::Get => strings::get(call),
        StringCommand::Getbit => strings::getbit(call),
        StringCommand::Getdel => strings::getdel(call),
        StringCommand::Getex => strings::getex(call),
        StringCommand::Getrange => strings::getrange(call),
        StringCommand::Getset => strings::getset(call),
        StringCommand::Incr => strings::incr(call),
        StringCommand::Incrby => strings::incrby(call),
        StringCommand::Incrbyfloat => strings::incrbyfloat(call),
        StringCommand::Lcs => strings::lcs(call),
        StringCommand::Mget => strings::mget(call),
        StringCommand::Mset => strings::mset(call),
        StringCommand::Msetnx => strings::msetnx(call),
        StringCommand::Psetex => strings::psetex(call),
        StringCommand::Set => strings::set(call),
        StringCommand::Setbit => strings::setbit(call),
        StringCommand::Setex => strings::setex(call),
        StringCommand::Setnx => strings::setnx(call),
        StringCommand::Setrange => strings::setrange(call),
        StringCommand::Strlen => strings::strlen(call),
    }
}

fn run_hash(command: HashCommand, call: &mut Call) -> Done {
    match command {
        HashCommand::Hdel => hashes::hdel(call),
        HashCommand::Hexists => hashes::hexists(call),
        HashCommand::Hget => hashes::hget(call),
        HashCommand::Hgetall => hashes::hgetall(call),
        HashCommand::Hincrby => hashes::hincrby(call),
        HashCommand::Hincrbyfloat => hashes::hincrbyfloat(call),
        HashCommand::Hkeys => hashes::hkeys(call),
        HashCommand::Hlen => hashes::hlen(call),
        HashCommand::Hmget => hashes::hmget(call),
        HashCommand::Hmset => hashes::hmset(call),
        HashCommand::Hrandfield => hashes::hrandfield(call),
        HashCommand::Hscan => hashes::hscan(call),
        HashCommand::Hset => hashes::hset(call),
        HashCommand::Hsetnx => hashes::hsetnx(call),
        HashCommand::Hstrlen => hashes::hstrlen(call),
        HashCommand::Hvals => hashes::hvals(call),
    }
}

fn run_sorted_set(command: SortedSetCommand, call: &mut Call) -> Done {
    match command {
        SortedSetCommand::Zadd => sorted_sets::zadd(call),
        SortedSetCommand::Zcard => sorted_sets::zcard(call),
        SortedSetCommand::Zcount => sorted_sets::zcount(call),
        SortedSetCommand::Zdiff => sorted_sets::zdiff(call),
        SortedSetCommand::Zdiffstore => sorted_sets::zdiffstore(call),
        SortedSetCommand::Zincrby => sorted_sets::zincrby(call),
        SortedSetCommand::Zinter => sorted_sets::zinter(call),
        SortedSetCommand::Zintercard => sorted_sets::zintercard(call),
        SortedSetCommand::Zinterstore => sorted_sets::zinterstore(call),
        SortedSetCommand::Zlexcount => sorted_sets::zlexcount(call),
        SortedSetCommand::Zmpop => sorted_sets::zmpop(call),
        SortedSetCommand::Zmscore => sorted_sets::zmscore(call),
        SortedSetCommand::Zpopmax => sorted_sets::zpopmax(call),
        SortedSetCommand::Zpopmin => sorted_sets::zpopmin(call),
        SortedSetCommand::Zrandmember => sorted_sets::zrandmember(call),
        SortedSetCommand::Zrange => sorted_sets::zrange(call),
        SortedSetCommand::Zrangebylex => sorted_sets::zrangebylex(call),
        SortedSetCommand::Zrangebyscore => sorted_sets::zrangebyscore(call),
        SortedSetCommand::Zrangestore => sorted_sets::zrangestore(call),
        SortedSetCommand::Zrank => sorted_sets::zrank(call),
        SortedSetCommand::Zrem => sorted_sets::zrem(call),
        SortedSetCommand::Zremrangebylex => sorted_sets::zremrangebylex(call),
        SortedSetCommand::Zremrangebyrank => sorted_sets::zremrangebyrank(call),
        SortedSetCommand::Zremrangebyscore => sorted_sets::zremrangebyscore(call),
        SortedSetCommand::Zrevrange => sorted_sets::zrevrange(call),
        SortedSetCommand::Zrevrangebylex => sorted_sets::zrevrangebylex(call),
        SortedSetCommand::Zrevrangebyscore => sorted_sets::zrevrangebyscore(call),
        SortedSetCommand::Zrevrank => sorted_sets::zrevrank(call),
        SortedSetCommand::Zscan => sorted_sets::zscan(call),
        SortedSetCommand::Zscore => sorted_sets::zscore(call),
        SortedSetCommand::Zunion => sorted_sets::zunion(call),
        SortedSetCommand::Zunionstore => sorted_sets::zunionstore(call),
    }
}

fn run_key(command: KeyCommand, call: &mut Call) -> Done {
    match command {
        KeyCommand::Copy => keys::copy(call),
        KeyCommand::Del => keys::del(call),
        KeyCommand::Dump => keys::dump(call),
        KeyCommand::Encoding => keys::encoding(call),
        KeyCommand::Exists => keys::exists(call),
        KeyCommand::Expire => keys::expire(call),
        KeyCommand::Expireat => keys::expireat(call),
        KeyCommand::Expiretime => keys::expiretime(call),
        KeyCommand::Freq => keys::freq(call),
        KeyCommand::Idletime => keys::idletime(call),
        KeyCommand::MemoryUsage => keys::memory_usage(call),
        KeyCommand::Move => keys::move_key(call),
        KeyCommand::Persist => keys::persist(call),
        KeyCommand::Pexpire => keys::pexpire(call),
        KeyCommand::Pexpireat => keys::pexpireat(call),
        KeyCommand::Pexpiretime => keys::pexpiretime(call),
        KeyCommand::Pttl => keys::pttl(call),
        KeyCommand::Refcount => keys::refcount(call),
        KeyCommand::Rename => keys::rename(call),
        KeyCommand::Renamenx => keys::renamenx(call),
        KeyCommand::Restore => keys::restore(call),
        KeyCommand::Ttl => keys::ttl(call),
        KeyCommand::Type => keys::type_of(call),
    }
}

/// Runs a command on a whole keyspace.
pub(super) fn run_keyspace(command: KeyspaceCommand, call: &mut Call) -> Done {
    match command {
        KeyspaceCommand::Dbsize => keyspace::dbsize(call),
        KeyspaceCommand::Flushall => keyspace::flushall(call),
        KeyspaceCommand::Flushdb => keyspace::flushdb(call),
        KeyspaceCommand::Keys => keyspace::keys(call),
        KeyspaceCommand::Randomkey => keyspace::randomkey(call),
        KeyspaceCommand::Range => keyspace::range(call),
        KeyspaceCommand::Scan => keyspace::scan(call),
        KeyspaceCommand::Swapdb => keyspace::swapdb(call),
    }
}
