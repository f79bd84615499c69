//! The same commands, written as the server writes them, over an `Access`.

use crate::{database, keys_of, name, Op, Said};
use bytes::Bytes;
use engine::{
    score_key, Access, Blocks, Database, Entry, Header, Kind, Object, Order, Stop, Table, Text,
};
use std::ops::Bound;

/// A collection and its expiry.
type Found = (Header, Option<u64>);

/// The header of the collection under a key, made if `make` and absent; `Err(WrongType)` if
/// something else is there.
fn header(
    access: &mut Access,
    key: &[u8],
    kind: Kind,
    make: bool,
) -> Result<Result<Option<Found>, Said>, Stop> {
    Ok(match access.get(key)? {
        Some(Entry {
            object: Object::Collection(h),
            expire_at_ms,
        }) if h.kind == kind => Ok(Some((h, expire_at_ms))),
        Some(_) => Err(Said::WrongType),
        None if make => Ok(Some((access.new_collection(kind)?, None))),
        None => Ok(None),
    })
}

pub fn execute(access: &mut Access, op: &Op) -> Result<Said, Stop> {
    let now = access.now_ms();
    if let Some(first) = keys_of(op).first() {
        access.select(database(*first));
    }
    match op {
        Op::Get(k) => read(access, &name(*k), 0, u64::MAX),
        Op::Read(k, from, len) => read(access, &name(*k), *from, *len),
        Op::Set(k, v, ttl) => {
            let object = Object::String(Text::Whole(v.clone().into()));
            store(access, &name(*k), object, ttl.map(|t| now + t))?;
            Ok(Said::Nothing)
        }
        Op::Append(k, v) => change(access, &name(*k), |access, text| {
            access.write(text, text.len(), v.clone().into())
        }),
        Op::Write(k, at, v) => change(access, &name(*k), |access, text| {
            access.write(text, *at, v.clone().into())
        }),
        Op::Extend(k, len) => change(access, &name(*k), |access, text| access.extend(text, *len)),
        Op::Copy(a, b) => match access.get(&name(*a))? {
            None => Ok(Said::Flag(false)),
            Some(Entry {
                object: Object::String(text),
                expire_at_ms,
            }) => {
                access.select(database(*b));
                let text = access.copy(&text)?;
                store(access, &name(*b), Object::String(text), expire_at_ms)?;
                Ok(Said::Flag(true))
            }
            Some(_) => Ok(Said::WrongType),
        },
        Op::Delete(k) => Ok(Said::Flag(access.delete(&name(*k))?)),
        Op::Expire(k, ttl) => {
            let Some(mut entry) = access.get(&name(*k))? else {
                return Ok(Said::Flag(false));
            };
            entry.expire_at_ms = Some(now + ttl);
            access.put(&name(*k), entry)?;
            Ok(Said::Flag(true))
        }
        Op::Rename(a, b) => Ok(Said::Flag(access.rename(&name(*a), &name(*b))?)),
        Op::Exec(ops, abort) => {
            for op in ops {
                execute(access, op)?;
            }
            if *abort {
                return Err(Stop::Error(engine::EngineError::Misuse(
                    "aborted by the test",
                )));
            }
            Ok(Said::Nothing)
        }
        Op::Clear | Op::Empty(_) | Op::Swap(..) | Op::Keys(..) | Op::Count(_) => {
            execute_whole(access, op)
        }
        other => execute_collection(access, other),
    }
}

/// What is about whole databases.
fn execute_whole(access: &mut Access, op: &Op) -> Result<Said, Stop> {
    let numbered = |number: u8| Database::new(i64::from(number)).unwrap();
    match op {
        Op::Clear => access.clear().map(|()| Said::Nothing),
        Op::Empty(number) => {
            access.select(numbered(*number));
            access.clear_database().map(|()| Said::Nothing)
        }
        Op::Swap(a, b) => {
            let (one, other) = (numbered(*a), numbered(*b));
            access.swap_databases(one, other).map(|()| Said::Nothing)
        }
        Op::Keys(from, down, limit) => {
            access.select(database(*from));
            let order = if *down { Order::Down } else { Order::Up };
            let from = name(*from);
            let found = access.keys(
                Bound::Included(&from),
                Bound::Unbounded,
                order,
                *limit,
                Blocks::Keep,
            )?;
            Ok(Said::Names(
                found.items.into_iter().map(|(k, _)| k.to_vec()).collect(),
            ))
        }
        Op::Count(number) => {
            access.select(numbered(*number));
            Ok(Said::Count(access.estimate_keys()?))
        }
        _ => Ok(Said::Nothing),
    }
}

fn read(access: &mut Access, key: &[u8], from: u64, len: u64) -> Result<Said, Stop> {
    let text = match access.get(key)? {
        None => return Ok(Said::Bytes(None)),
        Some(Entry {
            object: Object::String(text),
            ..
        }) => text,
        Some(_) => return Ok(Said::WrongType),
    };
    let mut bytes = Vec::new();
    let mut parts = access.parts(&text, from..from.saturating_add(len))?;
    while let Some(part) = parts.next(access)? {
        bytes.extend_from_slice(&part);
    }
    Ok(Said::Bytes(Some(bytes)))
}

fn change(
    access: &mut Access,
    key: &[u8],
    change: impl Fn(&mut Access, &mut Text) -> Result<(), Stop>,
) -> Result<Said, Stop> {
    let (mut text, expire_at_ms) = match access.get(key)? {
        None => (Text::default(), None),
        Some(Entry {
            object: Object::String(text),
            expire_at_ms,
        }) => (text, expire_at_ms),
        Some(_) => return Ok(Said::WrongType),
    };
    change(access, &mut text)?;
    store(access, key, Object::String(text), expire_at_ms)?;
    Ok(Said::Nothing)
}

fn store(
    access: &mut Access,
    key: &[u8],
    object: Object,
    expire_at_ms: Option<u64>,
) -> Result<(), Stop> {
    let entry = Entry {
        object,
        expire_at_ms,
    };
    access.put(key, entry)
}

fn execute_collection(access: &mut Access, op: &Op) -> Result<Said, Stop> {
    match op {
        Op::HashSet(k, f, v) => set_field(access, &name(*k), *f, v),
        Op::HashDelete(k, f) => delete_field(access, &name(*k), *f),
        Op::HashAll(k, down) => {
            let head = match header(access, &name(*k), Kind::Hash, false)? {
                Ok(Some((head, _))) => head,
                Ok(None) => return Ok(Said::Pairs(vec![])),
                Err(said) => return Ok(said),
            };
            let order = if *down { Order::Down } else { Order::Up };
            let (from, to) = (Bound::Unbounded, Bound::Unbounded);
            let all = access
                .records(Table::Field, head.id, from, to, order, usize::MAX)?
                .items;
            assert_eq!(all.len() as u64, head.len);
            let pairs = all.into_iter().map(|(f, v)| (f.to_vec(), v.to_vec()));
            Ok(Said::Pairs(pairs.collect()))
        }
        Op::SetAdd(k, m, s) => add_member(access, &name(*k), *m, *s),
        Op::SetRange(k, a, b) => {
            let head = match header(access, &name(*k), Kind::SortedSet, false)? {
                Ok(Some((head, _))) => head,
                Ok(None) => return Ok(Said::Names(vec![])),
                Err(said) => return Ok(said),
            };
            let from = score_key(f64::from(*a));
            // Past every member with score b.
            let to = score_key(f64::from(*b) + 0.5);
            let (from, to) = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
            let found = access
                .records(Table::Score, head.id, from, to, Order::Up, usize::MAX)?
                .items;
            Ok(Said::Names(
                found.into_iter().map(|(n, _)| n[8..].to_vec()).collect(),
            ))
        }
        _ => Ok(Said::Nothing),
    }
}

fn set_field(access: &mut Access, key: &[u8], field: u8, value: &[u8]) -> Result<Said, Stop> {
    let (mut head, expire_at_ms) = match header(access, key, Kind::Hash, true)? {
        Ok(found) => found.expect("made"),
        Err(said) => return Ok(said),
    };
    let new = access.record(Table::Field, head.id, &[field])?.is_none();
    let value = Bytes::copy_from_slice(value);
    access.put_record(Table::Field, head.id, &[field], value)?;
    if new {
        head.len += 1;
        store(access, key, Object::Collection(head), expire_at_ms)?;
    }
    Ok(Said::Flag(new))
}

fn delete_field(access: &mut Access, key: &[u8], field: u8) -> Result<Said, Stop> {
    let (mut head, expire_at_ms) = match header(access, key, Kind::Hash, false)? {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(Said::Flag(false)),
        Err(said) => return Ok(said),
    };
    let there = access.record(Table::Field, head.id, &[field])?.is_some();
    if there {
        access.delete_record(Table::Field, head.id, &[field])?;
        head.len -= 1;
        if head.len == 0 {
            access.delete(key)?;
        } else {
            store(access, key, Object::Collection(head), expire_at_ms)?;
        }
    }
    Ok(Said::Flag(there))
}

fn add_member(access: &mut Access, key: &[u8], member: u8, score: i8) -> Result<Said, Stop> {
    let (mut head, expire_at_ms) = match header(access, key, Kind::SortedSet, true)? {
        Ok(found) => found.expect("made"),
        Err(said) => return Ok(said),
    };
    let old = access.record(Table::Member, head.id, &[member])?;
    let index = |score: &[u8]| [score, &[member][..]].concat();
    let new = score_key(f64::from(score));
    if let Some(old) = &old {
        access.delete_record(Table::Score, head.id, &index(old))?;
    } else {
        head.len += 1;
        store(access, key, Object::Collection(head), expire_at_ms)?;
    }
    access.put_record(
        Table::Member,
        head.id,
        &[member],
        Bytes::copy_from_slice(&new),
    )?;
    access.put_record(Table::Score, head.id, &index(&new), Bytes::new())?;
    Ok(Said::Flag(old.is_none()))
}
