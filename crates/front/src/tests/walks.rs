//! Walks over nodes, step by step.

use resp::{Limits, Output, Parser};

use crate::{frame, scan, slot, Space, Step, Value, Walk, Walker};

/// A walk over two nodes, with keys of two partitions at the first.
#[test]
fn a_walk_goes_over_all_nodes_and_deletes_by_partition() {
    let space = Space::in_parts("t", 3);
    let marked = |key: &str| [space.mark(space.part(key.as_bytes())), key.as_bytes()].concat();
    let args = ["FLUSHDB"];
    let mut bytes = Vec::new();
    frame(args.iter().map(|word| word.as_bytes()), &mut bytes);
    let mut parser = Parser::new();
    assert!(parser.parse(&bytes, &Limits::default()).is_ok());
    let begun = Walker::begin(
        Walk::Delete,
        &parser.args(&bytes),
        &space,
        vec![8, 5],
        1 << 20,
        0,
    );
    let (mut walker, node, _) = begun.expect("a walk");
    assert_eq!(node, 5);
    let mut page = b"*2\r\n$1\r\n0\r\n".to_vec();
    let keys = ["a", "b", "c", "d", "{a}2"].map(marked);
    frame(keys.iter().map(|key| &key[..]), &mut page);
    let (mut reply, mut deleted, mut split) = (page, Vec::new(), false);
    let second = loop {
        let Step::Ask(node, request) = walker.step(&reply, &space) else {
            panic!("the second node comes");
        };
        if node == 8 {
            break request;
        }
        let request = Value::read(&request).expect("a request");
        let words: Vec<Vec<u8>> = request.items()[1..]
            .iter()
            .map(|word| word.text().expect("text").into())
            .collect();
        assert!(words.iter().all(|word| slot(word) == slot(&words[0])));
        reply = match words.len() > 1 && !split {
            true => b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n".to_vec(),
            false => {
                deleted.extend(words);
                b":1\r\n".to_vec()
            }
        };
        split |= reply[0] == b'-';
    };
    assert!(split && second.starts_with(b"*6\r\n$4\r\nSCAN\r\n$1\r\n0\r\n"));
    deleted.sort();
    let mut expected = keys.to_vec();
    expected.sort();
    assert_eq!(deleted, expected);
    assert_eq!(walker.step(b"*2\r\n$1\r\n0\r\n*0\r\n", &space), Step::Done);
}

#[test]
fn a_scan_has_the_engine_look_at_no_more_at_once() {
    let space = Space::of("t");
    let asked = |request: &str| {
        let mut bytes = Vec::new();
        let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        frame(words.into_iter(), &mut bytes);
        let mut parser = Parser::new();
        assert!(parser.parse(&bytes, &Limits::default()).is_ok());
        let mut out = Vec::new();
        scan(&parser.args(&bytes), &space, None, "", &mut out).map(|_| {
            let words = Value::read(&out).expect("a request");
            let words = words.items().iter().map(|word| word.text().expect("text"));
            words.collect::<Vec<_>>().join(" ")
        })
    };
    for (request, expected) in [
        ("SCAN 0", "SCAN 0 MATCH {@t}*"),
        ("SCAN 7 COUNT 1000", "SCAN 7 MATCH {@t}* COUNT 1000"),
        (
            "SCAN 7 count 1001 TYPE set",
            "SCAN 7 MATCH {@t}* count 1000 TYPE set",
        ),
        (
            "SCAN 0 MATCH a* COUNT 9223372036854775807",
            "SCAN 0 MATCH {@t}a* COUNT 1000",
        ),
        // The engine says what is wrong with them.
        ("SCAN 0 COUNT 0", "SCAN 0 MATCH {@t}* COUNT 0"),
        ("SCAN 0 COUNT x", "SCAN 0 MATCH {@t}* COUNT x"),
    ] {
        assert_eq!(asked(request).as_deref(), Ok(expected));
    }
    assert!(asked("SCAN 0 COUNT").is_err());
}

/// Two nodes; at the one where it begins there is nothing of the tenant's, at the other something
/// before the place where it begins.
#[test]
fn a_key_is_picked_at_random_and_each_node_looked_at_once_or_twice() {
    let space = Space::of("t");
    let mut bytes = Vec::new();
    frame([&b"RANDOMKEY"[..]].into_iter(), &mut bytes);
    let mut parser = Parser::new();
    assert!(parser.parse(&bytes, &Limits::default()).is_ok());
    let page = |cursor: u64, keys: &[&str]| {
        let mut page = format!("*2\r\n${}\r\n{cursor}\r\n", cursor.to_string().len());
        let mut list = Vec::new();
        frame(keys.iter().map(|key| key.as_bytes()), &mut list);
        page.push_str(&String::from_utf8_lossy(&list));
        page.into_bytes()
    };
    let picked = |chance: u64, last: &[&str]| {
        let args = parser.args(&bytes);
        let begun = Walker::begin(Walk::Random, &args, &space, vec![4, 5], 1 << 20, chance);
        let (mut walker, node, asks) = begun.expect("a walk");
        let mut asked = vec![(node, Value::read(&asks))];
        let begins = (chance & ((1 << 48) - 1)).to_string();
        let pages = [
            page(9, &["{@u}a"]),
            page(0, &[]),
            page(0, &["b"]),
            page(0, last),
        ];
        for page in pages.iter().chain([&page(0, &[])]) {
            match walker.step(page, &space) {
                Step::Ask(node, asks) => asked.push((node, Value::read(&asks))),
                Step::Done => break,
                Step::Failed(why) => panic!("{why}"),
            }
        }
        let cursors = asked.iter().map(|(node, asks)| {
            let cursor = asks.as_ref().expect("a request").items()[1].text();
            (*node, cursor.expect("a cursor").replace(&begins, "any"))
        });
        let mut out = Output::new();
        let cursors = cursors.collect::<Vec<_>>();
        walker.reply(resp::Protocol::Resp3, &mut out);
        (cursors, String::from_utf8_lossy(&out.to_vec()).into_owned())
    };
    let at = |node, cursor: &str| (node, cursor.to_owned());
    let all = [
        at(5, "any"),
        at(5, "9"),
        at(5, "0"),
        at(4, "any"),
        at(4, "0"),
    ];
    let (asked, none) = picked(1 << 50 | 1 << 20, &[]);
    assert_eq!((&asked[..], &none[..]), (&all[..], "_\r\n"));
    // A number that is odd begins at the other node.
    let (asked, key) = picked(7 << 48 | 1, &["{@t}a", "{@u}b", "{@t}c", "{@t}d"]);
    assert_eq!((asked[0].0, asked[3].0, asked.len()), (4, 5, 4));
    assert_eq!(key, "$1\r\nc\r\n");
}
