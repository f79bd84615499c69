//! The checks in the crate's own idiom.

use crate::{connect, setting};
use redis::{Commands, Connection};
use std::collections::HashMap;
use std::fmt::Debug;

type Check = fn(&mut Connection) -> Result<(), String>;

/// Every check, by the name that all client programs use.
pub const CHECKS: [(&str, Check); 7] = [
    ("typed-set-get", set_get),
    ("typed-hash", hash),
    ("typed-sorted-set", sorted_set),
    ("typed-pipeline", pipeline),
    ("typed-watch", watch),
    ("typed-refused-password", refused_password),
    ("typed-many-connections", many_connections),
];

pub fn same<T: PartialEq + Debug>(
    want: T,
    got: Result<T, redis::RedisError>,
) -> Result<(), String> {
    let got = got.map_err(|error| error.to_string())?;
    if want == got {
        return Ok(());
    }
    Err(format!("expected {want:?}, got {got:?}"))
}

fn set_get(redis: &mut Connection) -> Result<(), String> {
    same((), redis.set_ex("ts", "v", 100))?;
    same("v".to_string(), redis.get("ts"))
}

fn hash(redis: &mut Connection) -> Result<(), String> {
    same((), redis.hset_multiple("th", &[("a", "1"), ("b", "two")]))?;
    let want = HashMap::from([
        ("a".to_string(), "1".to_string()),
        ("b".to_string(), "two".to_string()),
    ]);
    same(want, redis.hgetall("th"))
}

fn sorted_set(redis: &mut Connection) -> Result<(), String> {
    same(2, redis.zadd_multiple("tz", &[(1.0, "a"), (2.5, "b")]))?;
    same(
        vec![("a".to_string(), 1.0), ("b".to_string(), 2.5)],
        redis.zrange_withscores("tz", 0, -1),
    )
}

fn pipeline(redis: &mut Connection) -> Result<(), String> {
    let (count,): (i64,) = redis::pipe()
        .atomic()
        .set("tp", 1)
        .ignore()
        .incr("tp", 1)
        .query(redis)
        .map_err(|error| error.to_string())?;
    same(2, Ok(count))
}

fn watch(redis: &mut Connection) -> Result<(), String> {
    let mut other = connect(&setting("SUITE_PASSWORD")).map_err(|error| error.to_string())?;
    let mut rounds = 0;
    let outcome: Result<(i64,), _> = redis::transaction(redis, &["tw"], |connection, pipe| {
        rounds += 1;
        if rounds == 1 {
            let _: () = other.set("tw", 2)?;
        }
        pipe.incr("tw", 1).query(connection)
    });
    same((3,), outcome)?;
    same(2, Ok(rounds))
}

fn refused_password(_: &mut Connection) -> Result<(), String> {
    match connect("wrong") {
        Ok(_) => Err("a wrong password was accepted".into()),
        Err(_) => Ok(()),
    }
}

fn many_connections(_: &mut Connection) -> Result<(), String> {
    let password = setting("SUITE_PASSWORD");
    let opened: Result<Vec<Connection>, _> = (0..50).map(|_| connect(&password)).collect();
    let mut connections = opened.map_err(|error| error.to_string())?;
    for (index, connection) in connections.iter_mut().enumerate() {
        same((), connection.set(format!("many:{index}"), index))?;
    }
    same(49, connections[0].get("many:49"))
}
