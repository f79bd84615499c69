//! What transcripts cannot show: collections longer than a chunk, walks while others write,
//! estimates and chance.

mod tenant;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::{Engine, EngineOptions};
use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;
use tenant::{Tenant, Way};

/// Longer than several chunks of the engine, and than what a collection's walk returns whole.
const MANY: usize = 2_000;

fn with_tenant(name: &str, test: impl Fn(&Tenant)) {
    let data = tempfile::tempdir().unwrap();
    let engine: Arc<Engine> = Engine::open(EngineOptions::new(data.path())).unwrap();
    test(&Tenant::new(&engine, name, Way::Memory));
    test(&Tenant::new(
        &engine,
        &format!("{name}-streamed"),
        Way::Stream,
    ));
    engine.shutdown();
}

fn ask(tenant: &Tenant, command: &str) -> OwnedFrame {
    let reply = tenant.answer(command);
    let (frame, len) = decode(&reply).unwrap().expect("a whole reply");
    assert_eq!(len, reply.len(), "{command}");
    assert!(
        !matches!(frame, OwnedFrame::Error(_)),
        "{command}: {frame:?}"
    );
    frame
}

fn int(tenant: &Tenant, command: &str) -> i64 {
    match ask(tenant, command) {
        OwnedFrame::Integer(value) => value,
        other => panic!("{command}: {other:?}"),
    }
}

fn texts(frame: OwnedFrame) -> Vec<String> {
    let OwnedFrame::Array(items) = frame else {
        panic!("an array: {frame:?}")
    };
    items
        .into_iter()
        .map(|item| match item {
            OwnedFrame::BulkString(bytes) => String::from_utf8(bytes).unwrap(),
            other => panic!("a string: {other:?}"),
        })
        .collect()
}

fn list(tenant: &Tenant, command: &str) -> Vec<String> {
    texts(ask(tenant, command))
}

/// One call of a walk: the next cursor and the elements.
fn step(tenant: &Tenant, command: &str) -> (String, Vec<String>) {
    let OwnedFrame::Array(mut parts) = ask(tenant, command) else {
        panic!("a pair")
    };
    let elements = texts(parts.pop().unwrap());
    let OwnedFrame::BulkString(cursor) = parts.pop().unwrap() else {
        panic!("a cursor")
    };
    (String::from_utf8(cursor).unwrap(), elements)
}

/// A whole walk: `before` and the cursor and `after` make a call. `meanwhile` runs between calls.
fn walk(
    tenant: &Tenant,
    before: &str,
    after: &str,
    mut meanwhile: impl FnMut(usize),
) -> Vec<String> {
    let (mut cursor, mut found) = ("0".to_owned(), Vec::new());
    for call in 0.. {
        let (next, elements) = step(tenant, &format!("{before} {cursor} {after}"));
        found.extend(elements);
        if next == "0" {
            return found;
        }
        cursor = next;
        meanwhile(call);
        assert!(call < 10 * MANY, "the walk does not end");
    }
    unreachable!()
}

fn set_keys(tenant: &Tenant, prefix: &str) {
    for first in (0..MANY).step_by(100) {
        let pairs: Vec<_> = (first..first + 100)
            .map(|i| format!("{prefix}{i} {i}"))
            .collect();
        ask(tenant, &format!("MSET {}", pairs.join(" ")));
    }
}

#[test]
fn scan_returns_what_stays_once_while_others_come_and_go() {
    with_tenant("scan", |tenant| {
        set_keys(tenant, "stay:");
        set_keys(tenant, "go:");
        let found = walk(tenant, "SCAN", "COUNT 37", |call| {
            ask(tenant, &format!("DEL go:{call} go:{}", MANY - call));
            ask(tenant, &format!("SET new:{call} 1"));
        });
        let unique: BTreeSet<_> = found.iter().collect();
        assert_eq!(unique.len(), found.len(), "no key comes twice");
        assert_eq!(
            found.iter().filter(|key| key.starts_with("stay:")).count(),
            MANY
        );
    });
}

#[test]
fn scan_with_a_pattern_reads_only_its_prefix() {
    with_tenant("prefix", |tenant| {
        set_keys(tenant, "a:");
        set_keys(tenant, "b:");
        ask(tenant, "HSET b:hash f v");
        let mut calls = 0;
        let found = walk(tenant, "SCAN", "MATCH b:1* COUNT 100", |_| calls += 1);
        assert_eq!(found.len(), 1 + 10 + 100 + 1000);
        assert!(calls <= 12, "{calls} calls");
        assert_eq!(
            walk(tenant, "SCAN", "TYPE hash COUNT 500", |_| {}),
            ["b:hash"]
        );
        assert_eq!(list(tenant, "KEYS b:199*").len(), 11);
        assert_eq!(list(tenant, "KEYS *9").len(), 2 * MANY / 10);
    });
}

#[test]
fn an_unknown_cursor_starts_again() {
    with_tenant("cursor", |tenant| {
        set_keys(tenant, "k");
        let (_, start) = step(tenant, "SCAN 0 COUNT 5");
        let (_, restarted) = step(tenant, "SCAN 123456789 COUNT 5");
        assert_eq!(start, restarted);
        let (cursor, _) = step(tenant, "SCAN 0 COUNT 5");
        let once = step(tenant, &format!("SCAN {cursor} COUNT 5"));
        assert_eq!(
            once,
            step(tenant, &format!("SCAN {cursor} COUNT 5")),
            "a cursor can be used again"
        );
    });
}

#[test]
fn a_keyspace_is_counted_and_sampled() {
    with_tenant("count", |tenant| {
        set_keys(tenant, "k");
        assert_eq!(int(tenant, "DBSIZE"), MANY as i64);
        let picked: BTreeSet<_> = (0..400).map(|_| tenant.answer("RANDOMKEY")).collect();
        assert!(picked.len() > 100, "{} different keys in 400", picked.len());
        ask(tenant, "FLUSHALL");
        assert_eq!(int(tenant, "DBSIZE"), 0);
        ask(tenant, "MSET a 1 b 2 c 3");
        let picked: BTreeSet<_> = (0..200).map(|_| tenant.answer("RANDOMKEY")).collect();
        assert_eq!(picked.len(), 3);
    });
}

#[test]
fn a_long_hash_is_read_whole_and_walked() {
    with_tenant("hash", |tenant| {
        for i in 0..MANY {
            assert_eq!(int(tenant, &format!("HSET h field:{i} {i}")), 1);
        }
        let all = list(tenant, "HGETALL h");
        let pairs: BTreeMap<_, _> = all.chunks(2).map(|pair| (&pair[0], &pair[1])).collect();
        assert_eq!(pairs.len(), MANY);
        assert!(pairs
            .iter()
            .all(|(field, value)| **field == format!("field:{value}")));
        assert_eq!(list(tenant, "HKEYS h").len(), MANY);
        assert_eq!(list(tenant, "HVALS h").len(), MANY);
        let found = walk(tenant, "HSCAN h", "COUNT 91", |call| {
            ask(tenant, &format!("HSET h new:{call} 1"));
        });
        assert_eq!(
            found
                .iter()
                .filter(|field| field.starts_with("field:"))
                .count(),
            MANY
        );
        assert_eq!(
            walk(tenant, "HSCAN h", "MATCH field:77*", |_| {}).len(),
            2 * 11
        );
        let random: BTreeSet<_> = list(tenant, "HRANDFIELD h 1500").into_iter().collect();
        assert_eq!(random.len(), 1500);
        assert_eq!(list(tenant, "HRANDFIELD h -3000").len(), 3000);
        assert_eq!(int(tenant, "COPY h copy"), 1);
        assert_eq!(list(tenant, "HGETALL h"), list(tenant, "HGETALL copy"));
        ask(tenant, "DEL h");
        assert!(int(tenant, "HLEN copy") > MANY as i64);
        assert_eq!(list(tenant, "HGETALL h").len(), 0);
    });
}

#[test]
fn a_long_sorted_set_agrees_with_a_sorted_list() {
    with_tenant("zset", |tenant| {
        let mut model: Vec<(i64, String)> = Vec::new();
        for i in 0..MANY as i64 {
            let (score, member) = ((i * 7919) % 1000 - 500, format!("m{i}"));
            ask(tenant, &format!("ZADD z {score} {member}"));
            model.push((score, member));
        }
        model.sort();
        let names = |range: std::ops::Range<usize>| -> Vec<String> {
            model[range]
                .iter()
                .map(|(_, member)| member.clone())
                .collect()
        };
        assert_eq!(list(tenant, "ZRANGE z 0 -1"), names(0..MANY));
        for (start, stop) in [(0, 9), (700, 1300), (1990, 1999), (600, 600)] {
            assert_eq!(
                list(tenant, &format!("ZRANGE z {start} {stop}")),
                names(start..stop + 1)
            );
            let mut reversed = names(MANY - 1 - stop..MANY - start);
            reversed.reverse();
            assert_eq!(
                list(tenant, &format!("ZREVRANGE z {start} {stop}")),
                reversed
            );
        }
        for rank in [0, 1, 999, 1999] {
            let member = &model[rank].1;
            assert_eq!(int(tenant, &format!("ZRANK z {member}")), rank as i64);
            assert_eq!(
                int(tenant, &format!("ZREVRANK z {member}")),
                (MANY - 1 - rank) as i64
            );
        }
        let between = model
            .iter()
            .filter(|(score, _)| (-100..=100).contains(score))
            .count();
        assert_eq!(int(tenant, "ZCOUNT z -100 100"), between as i64);
        let page = list(tenant, "ZRANGEBYSCORE z -500 500 LIMIT 777 5");
        assert_eq!(page, names(777..782));
        let found = walk(tenant, "ZSCAN z", "COUNT 77", |call| {
            // Scores change under the walk; the members stay.
            ask(tenant, &format!("ZINCRBY z 1000 m{call}"));
        });
        let members: BTreeSet<_> = found.iter().step_by(2).collect();
        assert_eq!((members.len(), found.len()), (MANY, 2 * MANY));
        assert_eq!(int(tenant, "ZREMRANGEBYRANK z 0 -11"), MANY as i64 - 10);
        assert_eq!(int(tenant, "ZCARD z"), 10);
        assert_eq!(int(tenant, "ZREMRANGEBYSCORE z -inf +inf"), 10);
        assert_eq!(int(tenant, "EXISTS z"), 0);
    });
}

#[test]
fn large_values_come_back_whole() {
    with_tenant("large", |tenant| {
        let value = "v".repeat(3 << 20);
        ask(tenant, &format!("SET k {value}"));
        let OwnedFrame::BulkString(back) = ask(tenant, "GET k") else {
            panic!("a string")
        };
        assert_eq!(back.len(), value.len());
        assert_eq!(int(tenant, "APPEND k tail"), value.len() as i64 + 4);
        let OwnedFrame::BulkString(tail) = ask(tenant, "GETRANGE k -5 -1") else {
            panic!("a string")
        };
        assert_eq!(tail, b"vtail");
    });
}
