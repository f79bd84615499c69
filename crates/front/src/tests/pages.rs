//! `SCAN` over nodes that come, go, take each other's places and are given partitions, between any
//! two of its pages: what is there all the time is shown.

use std::collections::{BTreeMap, BTreeSet};

use resp::{Args, Limits, Output, Parser};

use crate::{frame, scan, Asked, Lies, Space, Value};

/// Draws numbers: the same for a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }
}

/// One byte more of what makes a number.
fn mix(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte))
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(23)
}

/// Nodes by name, each with the partitions that it has. The place of a node is that of its name.
struct Cluster {
    space: Space,
    keys: Vec<Vec<u8>>,
    names: BTreeMap<u16, String>,
    born: usize,
}

impl Cluster {
    fn new(parts: u16, nodes: usize, keys: usize) -> Self {
        let space = Space::in_parts("t", parts);
        let key = |number: usize| {
            let own = format!("k{number}").into_bytes();
            [space.mark(space.part(&own)), &own[..]].concat()
        };
        Self {
            keys: (0..keys).map(key).collect(),
            names: (0..parts)
                .map(|part| (part, format!("h:{}", usize::from(part) % nodes)))
                .collect(),
            space,
            born: nodes,
        }
    }

    /// Something happens: a node fails over, or comes, or partitions move.
    fn changes(&mut self, chance: &mut Chance) {
        let names: Vec<String> = self.names.values().cloned().collect();
        let one = names[chance.below(names.len())].clone();
        self.born += 1;
        // Before all others, or behind them.
        let new = format!("{}:{}", ["a", "z"][chance.below(2)], self.born);
        match chance.below(3) {
            0 => self
                .names
                .values_mut()
                .filter(|name| **name == one)
                .for_each(|name| name.clone_from(&new)),
            1 => {
                let part = chance.below(self.names.len()) as u16;
                self.names.insert(part, one);
            }
            _ => {
                let part = chance.below(self.names.len()) as u16;
                self.names.insert(part, new);
            }
        }
    }

    /// What a node has, in an order of its own: as an engine's, it depends on each key alone.
    fn at(&self, name: &str) -> Vec<(u64, &[u8])> {
        let seed = name.bytes().fold(7, mix);
        let own = |key: &[u8]| self.space.own(key).expect("a key").to_vec();
        let its = |key: &&Vec<u8>| self.names[&self.space.part(&own(key))] == name;
        let keys = self.keys.iter().filter(its);
        let placed = keys.map(|key| (1 + (key.iter().copied().fold(seed, mix) >> 24), &key[..]));
        let mut keys: Vec<(u64, &[u8])> = placed.collect();
        keys.sort_unstable();
        keys
    }

    /// A page: the client's next cursor, and keys.
    fn page(&self, cursor: &str, count: usize) -> (String, Vec<String>) {
        let places: Vec<&String> = self
            .names
            .values()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let place = |name: &String| places.iter().position(|known| *known == name);
        let lies = self.names.iter().map(|(part, name)| {
            let lies = place(name).map(|place| (place, name.as_str()));
            (*part, lies)
        });
        let parts: Vec<(u16, Lies<'_>)> = lies.collect();
        let mut asked = Vec::new();
        let request = ["SCAN", cursor];
        let (place, shows) = with(&request, |args| {
            match scan(args, &self.space, Some(&parts), "nobody", &mut asked) {
                Ok(Asked::Node(place, shows)) => (place, shows),
                other => panic!("{other:?}"),
            }
        });
        let asked = Value::read(&asked).expect("a request");
        let words: Vec<&str> = asked
            .items()
            .iter()
            .map(|word| word.text().expect("text"))
            .collect();
        let (from, glob) = (
            words[1].parse::<u64>().expect("a cursor"),
            words[3].trim_end_matches('*'),
        );
        let mut there = self.at(places[place]);
        there.retain(|(at, _)| *at > from);
        let next = there.get(count).map_or(0, |_| there[count - 1].0);
        there.truncate(count);
        let matches = |key: &[u8]| {
            let mut pairs = glob.bytes().zip(key);
            pairs.all(|(one, other)| one == b'?' || one == *other)
        };
        let found = there.iter().map(|(_, key)| *key);
        let found: Vec<&[u8]> = found.filter(|key| matches(key)).collect();
        let mut reply = format!("*2\r\n${}\r\n{next}\r\n", next.to_string().len()).into_bytes();
        frame(found.into_iter(), &mut reply);
        let mut out = Output::new();
        shows.write(&reply, &self.space, &mut out);
        let shown = Value::read(&out.to_vec()).expect("a reply");
        let [cursor, keys] = shown.items() else {
            panic!("a page")
        };
        let keys = keys
            .items()
            .iter()
            .map(|key| key.text().expect("text").to_owned());
        (cursor.text().expect("text").to_owned(), keys.collect())
    }
}

fn with<T>(words: &[&str], ask: impl FnOnce(&Args) -> T) -> T {
    let mut bytes = Vec::new();
    frame(words.iter().map(|word| word.as_bytes()), &mut bytes);
    let mut parser = Parser::new();
    assert!(parser.parse(&bytes, &Limits::default()).is_ok());
    ask(&parser.args(&bytes))
}

/// How often each key is shown, if something changes before one page in so many.
fn shown(cluster: &mut Cluster, chance: &mut Chance, quiet: usize) -> BTreeMap<String, usize> {
    let (mut cursor, mut seen) = ("0".to_owned(), BTreeMap::new());
    for _ in 0..10_000 {
        let (next, keys) = cluster.page(&cursor, 1 + chance.below(20));
        for key in keys {
            *seen.entry(key).or_insert(0) += 1;
        }
        if next == "0" {
            return seen;
        }
        cursor = next;
        if quiet > 0 && chance.below(quiet) == 0 {
            cluster.changes(chance);
        }
    }
    panic!("it has no end");
}

#[test]
fn what_is_there_all_the_time_is_shown_whatever_nodes_do() {
    for seed in 1..400 {
        let mut chance = Chance(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15) | 1);
        let parts = [1, 2, 5, 16, 256][chance.below(5)];
        let nodes = 1 + chance.below(6);
        let mut cluster = Cluster::new(parts, nodes, 200);
        let quiet = 3 + chance.below(30);
        let seen = shown(&mut cluster, &mut chance, quiet);
        assert_eq!(
            seen.len(),
            200,
            "seed {seed}, {parts} partitions, {nodes} nodes"
        );
    }
}

#[test]
fn each_node_is_gone_over_once_while_nothing_changes() {
    for (parts, nodes) in [(1, 1), (2, 2), (16, 3), (256, 8)] {
        let mut cluster = Cluster::new(parts, nodes, 300);
        let seen = shown(&mut cluster, &mut Chance(7), 0);
        assert_eq!(seen.len(), 300, "{parts} {nodes}");
        assert!(seen.values().all(|times| *times == 1), "{parts} {nodes}");
    }
}

#[test]
fn a_partition_that_nobody_has_is_not_passed_over() {
    let space = Space::in_parts("t", 2);
    let parts = [(0, Some((0, "h:1"))), (1, None)];
    let ask = |cursor: &str, parts: &[(u16, Lies<'_>)]| {
        with(&["SCAN", cursor], |args| {
            scan(args, &space, Some(parts), "nobody", &mut Vec::new())
        })
    };
    let Ok(Asked::Node(0, crate::Shows::Page { next, .. })) = ask("0", &parts) else {
        panic!("the first is asked")
    };
    assert_eq!(ask(&next.to_string(), &parts), Err("nobody"));
    let back = [(0, Some((0, "h:1"))), (1, Some((4, "h:2")))];
    assert!(matches!(
        ask(&next.to_string(), &back),
        Ok(Asked::Node(4, _))
    ));
    // What is none of a front's, whatever its client brings.
    assert_eq!(ask(&next.to_string(), &parts[..1]), Ok(Asked::Nothing));
    assert_eq!(ask("0", &[]), Ok(Asked::Nothing));
    for wrong in ["", "x", "-1", "1.5", "99999999999999999999"] {
        assert_eq!(ask(wrong, &parts), Err("ERR invalid cursor"));
    }
    assert!(ask("9223372036854775807", &parts[..1]).is_ok());
}
