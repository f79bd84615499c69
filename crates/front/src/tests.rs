//! The engine's own words, some of what Redis 7.0.15 and Valkey 9.1.2 say of their commands: marked
//! and unmarked.

use resp::{Limits, Output, Parsed, Parser};
use smallvec::smallvec;

use crate::{frame, Draft, Space, Table, Value, Way};

mod halves;
mod pages;
mod valkey;
mod walks;

const COMMANDS: &[u8] = include_bytes!("tests/redis-7.0.15.resp");

fn table() -> Table {
    let reply = Value::read(COMMANDS).expect("a reply");
    Table::read(&reply, None).expect("a table")
}

/// What the engine is sent for `request`, with blanks between its words.
fn sent(table: &Table, request: &str, space: &Space) -> Result<String, String> {
    let mut bytes = Vec::new();
    let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
    frame(words.into_iter(), &mut bytes);
    let mut parser = Parser::new();
    let parsed = parser.parse(&bytes, &Limits::default());
    assert_eq!(parsed, Ok(Parsed::Command(bytes.len())));
    let args = parser.args(&bytes);
    let command = table.find(&args).ok_or("unknown")?;
    match command.way {
        Way::Engine | Way::Waits | Way::Sort | Way::Script => {}
        Way::Watch | Way::Channel | Way::Subscribe | Way::Shard | Way::EveryShard => {}
        way => return Err(format!("{way:?}")),
    }
    let mut out = Draft::default();
    command.write(&args, space, &mut out)?;
    let sent = Value::read(&out.pieces().concat()).expect("a request");
    let words = sent.items().iter().map(|word| word.text().expect("text"));
    Ok(words.collect::<Vec<_>>().join(" "))
}

#[test]
fn every_key_is_marked_and_nothing_else() {
    let (table, space) = (table(), Space::of("t"));
    for (request, expected) in [
        ("GET k", "GET {@t}k"),
        ("set k k EX 1", "set {@t}k k EX 1"),
        ("MGET a b a", "MGET {@t}a {@t}b {@t}a"),
        ("MSET a a b b", "MSET {@t}a a {@t}b b"),
        ("BLPOP a b 0", "BLPOP {@t}a {@t}b 0"),
        ("WATCH a b", "WATCH {@t}a {@t}b"),
        ("PUBLISH c m", "PUBLISH {@t}c m"),
        ("PSUBSCRIBE a* b", "PSUBSCRIBE {@t}a* {@t}b"),
        ("SPUBLISH c m", "SPUBLISH {@t}c m"),
        ("SSUBSCRIBE a b", "SSUBSCRIBE {@t}a {@t}b"),
        ("SUNSUBSCRIBE", "SUNSUBSCRIBE"),
        ("SUNSUBSCRIBE a", "SUNSUBSCRIBE {@t}a"),
        ("PUBSUB SHARDCHANNELS", "PUBSUB SHARDCHANNELS {@t}*"),
        ("PUBSUB SHARDCHANNELS a*", "PUBSUB SHARDCHANNELS {@t}a*"),
        ("PUBSUB SHARDNUMSUB", "PUBSUB SHARDNUMSUB"),
        ("PUBSUB SHARDNUMSUB a b", "PUBSUB SHARDNUMSUB {@t}a {@t}b"),
        ("PUBSUB CHANNELS", "PUBSUB CHANNELS {@t}*"),
        ("PUBSUB CHANNELS a*", "PUBSUB CHANNELS {@t}a*"),
        ("PUBSUB NUMSUB a b", "PUBSUB NUMSUB {@t}a {@t}b"),
        ("LMPOP 2 a b LEFT", "LMPOP 2 {@t}a {@t}b LEFT"),
        ("BLMPOP 0 1 a LEFT", "BLMPOP 0 1 {@t}a LEFT"),
        (
            "XREAD COUNT 1 STREAMS a b 0 0",
            "XREAD COUNT 1 STREAMS {@t}a {@t}b 0 0",
        ),
        ("XREAD STREAMS STREAMS 0", "XREAD STREAMS {@t}STREAMS 0"),
        (
            "XREADGROUP GROUP g STREAMS STREAMS a >",
            "XREADGROUP GROUP g STREAMS STREAMS {@t}a >",
        ),
        (
            "ZUNIONSTORE d 2 a b WEIGHTS 1 2",
            "ZUNIONSTORE {@t}d 2 {@t}a {@t}b WEIGHTS 1 2",
        ),
        (
            "GEORADIUS a 0 0 1 km STORE d",
            "GEORADIUS {@t}a 0 0 1 km STORE {@t}d",
        ),
        ("BITOP AND d a b", "BITOP AND {@t}d {@t}a {@t}b"),
        ("OBJECT encoding k", "OBJECT encoding {@t}k"),
        ("MEMORY USAGE k SAMPLES 0", "MEMORY USAGE {@t}k SAMPLES 0"),
        ("COPY a b DB 0 REPLACE", "COPY {@t}a {@t}b DB 0 REPLACE"),
        (
            "SORT k BY w_* GET # GET v_*->f STORE d",
            "SORT {@t}k BY {@t}w_* GET # GET {@t}v_*->f STORE {@t}d",
        ),
        (
            "SORT k BY nosort LIMIT 0 1 DESC",
            "SORT {@t}k BY nosort LIMIT 0 1 DESC",
        ),
        ("SORT_RO k GET GET", "SORT_RO {@t}k GET GET"),
        ("COMMAND GETKEYS GET k", "COMMAND GETKEYS GET k"),
        ("EVAL x 2 a b c", "EVAL x 2 {@t}a {@t}b c"),
        ("EVALSHA x 0 a", "EVALSHA x 0 a"),
    ] {
        assert_eq!(sent(&table, request, &space).as_deref(), Ok(expected));
    }
}

#[test]
fn what_is_not_certain_is_refused() {
    let (table, space) = (table(), Space::of("t"));
    for request in [
        "GEORADIUS a 0 0 1 km STORE d STORE e",
        "LMPOP x a LEFT",
        "LMPOP 3 a LEFT",
        "LMPOP 9223372036854775807 a LEFT",
        "LMPOP -1 a LEFT",
        "XREAD STREAMS a",
        "COPY a b DB 1",
        "COPY a b DB",
        "COPY a b SOMETHING",
        "SORT k BY",
        "SORT k SOMETHING x",
        "EVAL x 2 a",
        "EVAL x -1 a",
        "EVAL x a",
        "FCALL f 0",
        "SCRIPT FLUSH",
        "SCRIPT KILL",
        "PUBSUB NUMPAT",
        "PUBSUB SHARDCHANNELS a b",
        "MIGRATE h 1 k 0 1",
        "CONFIG GET x",
        "WAIT 1 0",
        "ENTREMET.RANGE - +",
        "MEMORY DOCTOR",
    ] {
        assert!(sent(&table, request, &space).is_err(), "{request}");
    }
}

#[test]
fn who_has_no_mark_cannot_reach_marked_keys() {
    let (table, space) = (table(), Space::unmarked());
    for request in [
        "GET {@t}k",
        "MGET a {@t}k",
        "SORT a STORE {@t}k",
        "SORT a GET *",
        "SORT a GET {@t}*",
        "COPY a {@",
        "PUBLISH {@t}c m",
        "SPUBLISH {@t}c m",
        "SSUBSCRIBE a {@t}c",
        "SUNSUBSCRIBE {@t}c",
        "PUBSUB SHARDNUMSUB {@t}c",
        "PSUBSCRIBE {@*",
        "SUBSCRIBE __keyevent@0__:del",
    ] {
        assert!(sent(&table, request, &space).is_err(), "{request}");
    }
    let words = "SORT a GET w_* BY {*}";
    assert!(sent(&table, words, &space).is_err());
    let words = "MGET {user}k @";
    assert_eq!(sent(&table, words, &space).as_deref(), Ok(words));
}

#[test]
fn what_a_command_is_follows_from_the_engine_s_words() {
    let table = table();
    let find = |name: &str| {
        let found = table.all().find(|command| command.spec.name == name);
        found.unwrap_or_else(|| panic!("{name}"))
    };
    use telemetry::Class;
    for (name, way, class) in [
        ("get", Way::Engine, Class::Get),
        ("xadd", Way::Engine, Class::Put),
        ("lmpop", Way::Engine, Class::Multiget),
        ("blpop", Way::Waits, Class::Other),
        ("watch", Way::Watch, Class::Other),
        ("publish", Way::Channel, Class::Other),
        ("spublish", Way::Shard, Class::Other),
        ("ssubscribe", Way::Subscribe, Class::Other),
        ("config", Way::Here, Class::Admin),
        ("ping", Way::Here, Class::Other),
        ("memory|usage", Way::Engine, Class::Get),
        ("evalsha", Way::Script, Class::Other),
        ("script|exists", Way::EveryNode, Class::Other),
    ] {
        let command = find(name);
        assert_eq!(command.way, way, "{name}");
        if name != "config" {
            assert_eq!(command.spec.class, class, "{name}");
        }
    }
    let writes = |name: &str| find(name).spec.flags.has(commands::Flags::WRITE);
    assert!(writes("eval") && !writes("eval_ro"));
    let again = Table::read(&Value::read(COMMANDS).expect("a reply"), Some(&table));
    let again = again.expect("a table");
    let xadd = again.all().find(|command| command.spec.name == "xadd");
    assert!(std::ptr::eq(xadd.expect("xadd").spec, find("xadd").spec));
}

#[test]
fn an_engine_that_does_not_tell_its_keys_is_refused() {
    let old = b"*1\r\n*6\r\n$3\r\nget\r\n:2\r\n*0\r\n:1\r\n:1\r\n:1\r\n";
    let read = |bytes: &[u8]| Table::read(&Value::read(bytes).expect("a reply"), None);
    assert!(matches!(read(old), Err(crate::TableError::Old)));
    assert!(matches!(
        read(b"+OK\r\n"),
        Err(crate::TableError::Unreadable)
    ));
}

/// The parts of a request of a tenant with several partitions, by what the engine would be sent.
fn parts(
    table: &Table,
    request: &str,
    space: &Space,
) -> Result<(crate::Gather, Vec<crate::Part>), String> {
    let mut bytes = Vec::new();
    frame(
        request
            .split(' ')
            .map(str::as_bytes)
            .collect::<Vec<_>>()
            .into_iter(),
        &mut bytes,
    );
    let mut parser = Parser::new();
    assert!(parser.parse(&bytes, &Limits::default()).is_ok());
    let args = parser.args(&bytes);
    let command = table.find(&args).ok_or("unknown")?;
    Ok(command.split(&args, space)?.ok_or("whole")?)
}

#[test]
fn keys_of_several_partitions_are_asked_for_apart_and_answered_together() {
    let (table, space) = (table(), Space::in_parts("t", 3));
    let (mut gather, asked) = parts(&table, "MGET a b c d a", &space).expect("parts");
    assert!(asked.len() > 1);
    for (number, part) in asked.iter().enumerate() {
        let request = Value::read(&part.pieces.concat()).expect("a request");
        let keys = request.items()[1..]
            .iter()
            .map(|key| key.text().expect("text"));
        let own: Vec<&str> = keys
            .map(|key| {
                let own = space.own(key.as_bytes()).expect("own");
                std::str::from_utf8(own).expect("text")
            })
            .collect();
        let expected: Vec<&str> = part
            .keys
            .iter()
            .map(|at| ["a", "b", "c", "d", "a"][*at as usize])
            .collect();
        assert_eq!(own, expected);
        // Each is answered with its own name.
        let mut reply = Vec::new();
        frame(own.iter().map(|key| key.as_bytes()), &mut reply);
        assert_eq!(
            gather.take(part.keys.clone(), smallvec![reply.into()]),
            number + 1 == asked.len()
        );
    }
    let mut out = Output::new();
    gather.write(&space, &mut out);
    assert_eq!(
        out.to_vec(),
        b"*5\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\na\r\n"
    );

    let (mut gather, asked) = parts(&table, "DEL a b c d a", &space).expect("parts");
    for part in &asked {
        let reply = format!(":{}\r\n", part.keys.len());
        gather.take(part.keys.clone(), smallvec![reply.into()]);
    }
    let mut out = Output::new();
    gather.write(&space, &mut out);
    assert_eq!(out.to_vec(), b":5\r\n");

    let (mut gather, asked) = parts(&table, "MSET a 1 b 2 c 3", &space).expect("parts");
    let sent: Vec<String> = asked
        .iter()
        .map(|part| String::from_utf8_lossy(&part.pieces.concat()).into())
        .collect();
    assert!(
        sent.iter().any(|sent| sent.contains("}b\r\n$1\r\n2")),
        "{sent:?}"
    );
    for (number, part) in asked.iter().enumerate() {
        let reply = ["+OK\r\n", "-ERR no\r\n"][number.min(1)];
        gather.take(part.keys.clone(), smallvec![reply.into()]);
    }
    let mut out = Output::new();
    gather.write(&space, &mut out);
    assert_eq!(out.to_vec(), b"-ERR no\r\n");
}

#[test]
fn what_cannot_be_split_needs_one_partition() {
    let (table, space) = (table(), Space::in_parts("t", 3));
    for request in [
        "ZUNIONSTORE a 2 b c",
        "BITOP AND a b c",
        "SORT a BY w_*",
        "COPY a b",
        "SSUBSCRIBE a b",
    ] {
        assert!(sent(&table, request, &space).is_err(), "{request}");
        assert!(parts(&table, request, &space).is_err(), "{request}");
    }
    let crosses = sent(&table, "COPY a b", &space).expect_err("two partitions");
    assert!(crosses.starts_with("CROSSSLOT"), "{crosses}");
    assert!(sent(&table, "COPY {x}a {x}b", &space).is_ok());
    assert!(sent(&table, "SSUBSCRIBE {x}a {x}b", &space).is_ok());
    let each = sent(&table, "PUBSUB SHARDNUMSUB a b", &space).expect("of any partitions");
    let names = each
        .split(' ')
        .skip(2)
        .map(|name| space.own(name.as_bytes()));
    assert_eq!(names.collect::<Vec<_>>(), [Some(&b"a"[..]), Some(b"b")]);
    assert!(parts(&table, "MGET {x}a {x}b", &space).is_err());
    assert!(parts(&table, "MSET a 1 b", &space).is_err());
    assert!(parts(&table, "MGET a b c", &Space::of("t")).is_err());
}
