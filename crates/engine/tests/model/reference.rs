//! The model: what every command should say, in a `BTreeMap`.

use crate::{Key, Op, Said, Value, NAMES};
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Model {
    pub now: u64,
    /// By database and key.
    pub keys: BTreeMap<(u8, Vec<u8>), (Value, Option<u64>)>,
}

fn name(key: Key) -> (u8, Vec<u8>) {
    (key / NAMES, crate::name(key))
}

impl Model {
    fn live(&mut self, key: Key) -> Option<&mut (Value, Option<u64>)> {
        let name = name(key);
        if self.keys.get(&name)?.1.is_some_and(|at| at <= self.now) {
            self.keys.remove(&name);
        }
        self.keys.get_mut(&name)
    }

    fn sweep(&mut self) {
        let now = self.now;
        self.keys.retain(|_, (_, at)| at.is_none_or(|at| at > now));
    }

    pub fn apply(&mut self, op: &Op) -> Said {
        match op {
            Op::Delete(k) => {
                let was = self.live(*k).is_some();
                self.keys.remove(&name(*k));
                Said::Flag(was)
            }
            Op::Expire(k, ttl) => {
                let at = self.now + ttl;
                let found = self.live(*k).map(|entry| entry.1 = Some(at));
                Said::Flag(found.is_some())
            }
            Op::Rename(a, b) => {
                let Some(entry) = self.live(*a).cloned() else {
                    return Said::Flag(false);
                };
                self.keys.remove(&name(*a));
                self.keys.insert(name(*b), entry);
                Said::Flag(true)
            }
            Op::Exec(ops, abort) => {
                let before = self.keys.clone();
                ops.iter().for_each(|op| drop(self.apply(op)));
                if *abort {
                    self.keys = before;
                }
                Said::Nothing
            }
            Op::Clear => {
                self.keys.clear();
                Said::Nothing
            }
            Op::Empty(database) => {
                self.keys.retain(|(of, _), _| of != database);
                Said::Nothing
            }
            Op::Swap(a, b) => {
                let keys = std::mem::take(&mut self.keys).into_iter();
                let swapped = |of| match of {
                    of if of == *a => *b,
                    of if of == *b => *a,
                    of => of,
                };
                let swapped = keys.map(|((of, key), value)| ((swapped(of), key), value));
                self.keys = swapped.collect();
                Said::Nothing
            }
            Op::Keys(from, down, limit) => self.names(&name(*from), *down, *limit),
            Op::Count(database) => {
                self.sweep();
                let keys = self.keys.keys().filter(|(of, _)| of == database);
                Said::Count(keys.count() as u64)
            }
            Op::Advance(t) => {
                self.now += t;
                Said::Nothing
            }
            Op::HashSet(..)
            | Op::HashDelete(..)
            | Op::HashAll(..)
            | Op::SetAdd(..)
            | Op::SetRange(..) => self.apply_collection(op),
            on_string => self.apply_string(on_string),
        }
    }

    fn apply_string(&mut self, op: &Op) -> Said {
        match op {
            Op::Get(k) => match self.live(*k) {
                None => Said::Bytes(None),
                Some((Value::String(v), _)) => Said::Bytes(Some(v.clone())),
                Some(_) => Said::WrongType,
            },
            Op::Set(k, v, ttl) => {
                let at = ttl.map(|t| self.now + t);
                self.keys.insert(name(*k), (Value::String(v.clone()), at));
                Said::Nothing
            }
            Op::Read(k, from, len) => match self.live(*k) {
                None => Said::Bytes(None),
                Some((Value::String(v), _)) => {
                    let from = v.len().min(*from as usize);
                    let len = (v.len() - from).min(*len as usize);
                    Said::Bytes(Some(v[from..from + len].to_vec()))
                }
                Some(_) => Said::WrongType,
            },
            Op::Append(k, v) => self.change(*k, |old| old.extend_from_slice(v)),
            Op::Write(k, at, v) => self.change(*k, |old| {
                let end = *at as usize + v.len();
                if !v.is_empty() {
                    old.resize(old.len().max(end), 0);
                    old[*at as usize..end].copy_from_slice(v);
                }
            }),
            Op::Extend(k, len) => {
                self.change(*k, |old| old.resize(old.len().max(*len as usize), 0))
            }
            Op::Copy(a, b) => match self.live(*a).cloned() {
                None => Said::Flag(false),
                Some(entry @ (Value::String(_), _)) => {
                    self.keys.insert(name(*b), entry);
                    Said::Flag(true)
                }
                Some(_) => Said::WrongType,
            },
            _ => Said::Nothing,
        }
    }

    fn change(&mut self, key: Key, change: impl Fn(&mut Vec<u8>)) -> Said {
        if self.live(key).is_none() {
            self.keys.insert(name(key), (Value::String(vec![]), None));
        }
        match self.live(key) {
            Some((Value::String(value), _)) => {
                change(value);
                Said::Nothing
            }
            _ => Said::WrongType,
        }
    }

    fn names(&mut self, from: &(u8, Vec<u8>), down: bool, limit: usize) -> Said {
        self.sweep();
        let names = self.keys.keys().filter(|k| k.0 == from.0 && *k >= from);
        let mut names: Vec<_> = names.map(|(_, key)| key.clone()).collect();
        if down {
            names.reverse();
        }
        names.truncate(limit);
        Said::Names(names)
    }

    fn apply_collection(&mut self, op: &Op) -> Said {
        match op {
            Op::HashSet(k, f, v) => {
                if self.live(*k).is_none() {
                    self.keys
                        .insert(name(*k), (Value::Hash(BTreeMap::new()), None));
                }
                match self.live(*k) {
                    Some((Value::Hash(h), _)) => {
                        Said::Flag(h.insert(vec![*f], v.clone()).is_none())
                    }
                    _ => Said::WrongType,
                }
            }
            Op::HashDelete(k, f) => {
                let (said, empty) = match self.live(*k) {
                    None => (Said::Flag(false), false),
                    Some((Value::Hash(h), _)) => {
                        (Said::Flag(h.remove(&vec![*f]).is_some()), h.is_empty())
                    }
                    Some(_) => (Said::WrongType, false),
                };
                if empty {
                    self.keys.remove(&name(*k));
                }
                said
            }
            Op::HashAll(k, down) => match self.live(*k) {
                None => Said::Pairs(vec![]),
                Some((Value::Hash(h), _)) => {
                    let mut all: Vec<_> = h.clone().into_iter().collect();
                    if *down {
                        all.reverse();
                    }
                    Said::Pairs(all)
                }
                Some(_) => Said::WrongType,
            },
            Op::SetAdd(k, m, s) => {
                if self.live(*k).is_none() {
                    self.keys
                        .insert(name(*k), (Value::Set(BTreeMap::new()), None));
                }
                match self.live(*k) {
                    Some((Value::Set(z), _)) => Said::Flag(z.insert(vec![*m], *s).is_none()),
                    _ => Said::WrongType,
                }
            }
            Op::SetRange(k, a, b) => match self.live(*k) {
                None => Said::Names(vec![]),
                Some((Value::Set(z), _)) => {
                    let within = z.iter().filter(|(_, s)| *a <= **s && **s <= *b);
                    let mut found: Vec<_> = within.map(|(m, s)| (*s, m.clone())).collect();
                    found.sort();
                    Said::Names(found.into_iter().map(|(_, m)| m).collect())
                }
                Some(_) => Said::WrongType,
            },
            _ => Said::Nothing,
        }
    }
}
