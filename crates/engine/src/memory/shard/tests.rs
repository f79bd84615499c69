//! What a shard of memory keeps, and what it lets go.

use super::*;
use bytes::Bytes;

fn written(seq: Seq, len: usize) -> Cached {
    let entry = Some(Entry::string(Bytes::from(vec![seq as u8; len])));
    Cached { seq, entry }
}

fn seq_of(shard: &mut Shard, key: &[u8]) -> Option<Seq> {
    shard.lookup(key).map(|cached| cached.seq)
}

#[test]
fn an_undecided_write_is_never_evicted_from_memory() {
    let mut shard = Shard::new(4096, 1 << 20);
    for i in 0..100u8 {
        shard.write(Key::from_slice(&[i]), written(u64::from(i) + 1, 300), 0);
    }
    for i in 0..100u8 {
        assert_eq!(seq_of(&mut shard, &[i]), Some(u64::from(i) + 1));
    }
    // Decided up to 60: what the cache does not hold may go, the rest may not.
    assert!(!shard.release(60));
    for i in 60..100u8 {
        assert_eq!(seq_of(&mut shard, &[i]), Some(u64::from(i) + 1));
    }
    assert!(shard.release(100));
}

#[test]
fn an_old_pin_does_not_outlive_a_newer_write() {
    let mut shard = Shard::new(8192, 1 << 20);
    let key = Key::from_slice(b"k");
    // Too large for the cache: pinned.
    assert!(shard.write(key.clone(), written(1, 5000), 0));
    // Cached; then decided, evicted, and forgotten.
    shard.write(key.clone(), written(2, 10), 0);
    drop(shard.drop_cache(2));
    assert_eq!(seq_of(&mut shard, &key), None);
}

#[test]
fn a_cache_that_shrinks_or_goes_keeps_what_is_undecided() {
    let mut shard = Shard::new(64 << 10, 1 << 20);
    for i in 0..20u8 {
        shard.write(Key::from_slice(&[i]), written(u64::from(i) + 1, 300), 0);
    }
    assert!(shard.resize(1024, 10).pinned);
    assert!((10..20u8).all(|i| seq_of(&mut shard, &[i]).is_some()));
    assert!(shard.resize(0, 10).pinned);
    assert!((10..20u8).all(|i| seq_of(&mut shard, &[i]).is_some()));
    assert_eq!(seq_of(&mut shard, &[3]), None);
}

#[test]
fn a_large_cache_shrinks_a_little_at_a_time() {
    let mut shard = Shard::new(4 << 20, 1 << 20);
    for i in 0..20_000u64 {
        shard.write(
            Key::from_slice(&i.to_be_bytes()),
            written(i + 1, 300),
            i + 1,
        );
    }
    let mut calls = 0;
    loop {
        let before = shard.usage().used;
        let resized = shard.resize(1 << 20, 20_000);
        let after = shard.usage().used;
        assert!(before - after <= SHRINK_BYTES + 1_024 && !resized.pinned);
        calls += 1;
        if resized.done {
            break;
        }
    }
    assert!(calls > 10, "{calls}");
    assert!(shard.usage().used <= 1 << 20);
    assert!(shard.resize(8 << 20, 20_000).done, "it grows at once");
}

#[test]
fn what_is_undecided_outlives_a_cache_that_shrinks() {
    let mut shard = Shard::new(4 << 20, 1 << 20);
    for i in 0..20_000u64 {
        let decided = i.min(18_000);
        shard.write(
            Key::from_slice(&i.to_be_bytes()),
            written(i + 1, 300),
            decided,
        );
    }
    while !shard.resize(1 << 10, 18_000).done {}
    for i in 18_000..20_000u64 {
        assert_eq!(seq_of(&mut shard, &i.to_be_bytes()), Some(i + 1));
    }
    assert_eq!(seq_of(&mut shard, &17_000u64.to_be_bytes()), None);
    assert!(shard.release(20_000));
}

#[test]
fn what_there_was_no_room_for_is_counted() {
    let mut shard = Shard::new(64 << 10, 1 << 20);
    shard.fill(b"fits", written(1, 100).entry, 0);
    assert_eq!(shard.usage().lost, 0);
    shard.fill(b"large", written(1, 60_000).entry, 0);
    assert_eq!(shard.usage().lost, 1, "with more memory it would be cached");
    shard.fill(b"never", written(1, 2 << 20).entry, 0);
    assert_eq!(shard.usage().lost, 1);
    for i in 0..200u8 {
        shard.fill(&[i], written(1, 1_000).entry, 0);
    }
    assert!(shard.usage().lost > 100, "evicted");
}

#[test]
fn what_is_not_a_whole_string_is_not_lent() {
    let mut shard = Shard::new(64 << 10, 1 << 20);
    shard.write(Key::from_slice(b"string"), written(1, 10), 0);
    let object = crate::Object::Collection(crate::Header {
        kind: crate::Kind::Hash,
        id: 1,
        len: 1,
    });
    let entry = Some(Entry {
        object,
        expire_at_ms: None,
    });
    shard.write(Key::from_slice(b"hash"), Cached { seq: 2, entry }, 0);
    let lent = [&b"string"[..], b"hash", b"none"].map(|key| shard.lend(key).is_some());
    assert_eq!(lent, [true, false, false]);
    assert!(shard.lookup(b"hash").is_some() && shard.lookup(b"none").is_none());
}

#[test]
fn a_failure_forgets_what_was_not_decided() {
    let mut shard = Shard::new(64 << 10, 1 << 20);
    shard.write(Key::from_slice(b"old"), written(1, 10), 0);
    shard.write(Key::from_slice(b"new"), written(2, 10), 0);
    shard.write(Key::from_slice(b"large"), written(3, 60_000), 0);
    drop(shard.forget_after(1));
    assert_eq!(seq_of(&mut shard, b"old"), Some(1));
    assert_eq!(seq_of(&mut shard, b"new"), None);
    assert_eq!(seq_of(&mut shard, b"large"), None);
}
