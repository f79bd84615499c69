//! A request that is done in halves, until the keys of each are at one node, is answered as a
//! whole.

use commands::{Action, Flags, Group, Spec};

use super::*;
use crate::{halve, Gather, Pieces};

fn spec(name: &'static str) -> Spec {
    Spec::new(name, -2, Group::Generic, Flags::NONE, Action::Engine)
}

fn request(name: &str, keys: usize) -> Pieces {
    let keys: Vec<String> = (0..keys).map(|key| format!("{{@t}}{key}")).collect();
    let words: Vec<&[u8]> = std::iter::once(name)
        .chain(keys.iter().map(String::as_str))
        .map(str::as_bytes)
        .collect();
    let mut bytes = Vec::new();
    frame(words.into_iter(), &mut bytes);
    smallvec![bytes.into()]
}

/// What is answered where a node does what has keys of one side of a move only.
fn answered(name: &'static str, count: usize, went: impl Fn(usize) -> bool) -> String {
    let spec = spec(name);
    let mut gather = Gather::of_one(&spec, count).expect("it may be done in parts");
    let mut parts = vec![(request(name, count), None::<Box<[u32]>>)];
    let mut out = Output::new();
    while let Some((pieces, numbers)) = parts.pop() {
        let asked = Value::read(&pieces.concat()).expect("a request");
        let keys: Vec<usize> = asked.items()[1..]
            .iter()
            .map(|word| word.text().expect("a key")[4..].parse().expect("a number"))
            .collect();
        let both = keys.iter().any(|key| went(*key)) && keys.iter().any(|key| !went(*key));
        if both {
            let halves = halve(&spec, &pieces, numbers.as_deref()).expect("halves");
            gather.halved();
            parts.extend(halves.map(|half| (half.pieces, Some(half.keys))));
            continue;
        }
        let numbers = numbers.unwrap_or_else(|| (0..count as u32).collect());
        assert_eq!(
            numbers
                .iter()
                .map(|number| *number as usize)
                .collect::<Vec<_>>(),
            keys
        );
        let reply = match name {
            "mget" => keys
                .iter()
                .fold(format!("*{}\r\n", keys.len()), |reply, key| {
                    reply + &format!("+{key}\r\n")
                }),
            _ => format!(":{}\r\n", keys.len()),
        };
        if gather.take(numbers, smallvec![reply.into_bytes().into()]) {
            assert!(parts.is_empty());
            gather.write(&Space::of("t"), &mut out);
            break;
        }
    }
    String::from_utf8(out.to_vec()).expect("text")
}

#[test]
fn halves_come_to_the_same_as_the_whole() {
    for count in [1, 2, 3, 7, 64, 100] {
        for sides in [1_u64, 2, 3, 5, 0x5a5a_1234_9876_fedc] {
            let went = |key: usize| sides.rotate_left(key as u32 * 7) & 1 == 1;
            let values = (0..count).fold(format!("*{count}\r\n"), |reply, key| {
                reply + &format!("+{key}\r\n")
            });
            assert_eq!(answered("mget", count, went), values, "{count} {sides}");
            for name in ["del", "unlink", "exists", "touch"] {
                assert_eq!(answered(name, count, went), format!(":{count}\r\n"));
            }
        }
    }
}

#[test]
fn what_is_done_as_a_whole_is_not_halved() {
    for name in ["mset", "rename", "get", "exec"] {
        assert!(
            halve(&spec(name), &request(name, 4), None).is_none(),
            "{name}"
        );
    }
    assert!(halve(&spec("mget"), &request("mget", 1), None).is_none());
    assert!(halve(&spec("mget"), &request("mget", 4097), None).is_none());
    let long: Pieces = smallvec![
        b"*2\r\n".to_vec().into(),
        b"x".to_vec().into(),
        b"y".to_vec().into()
    ];
    assert!(halve(&spec("mget"), &long, None).is_none());
}
