//! What the server says of its commands: `COMMAND` and its subcommands, `ACL CAT`, and every `…
//! HELP`.

use resp::{is, Args, Reply};

use crate::glob::{glob_matches_any_case, PATTERN_BYTES_MAX, PATTERN_TOO_LONG};
use crate::keyspec::{Find, KeySpec};
use crate::spec::Spec;
use crate::{all, arguments, check, lookup, table};

/// Every category that a command can have, in Redis's order.
const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// `COMMAND`
pub fn command(_: &Spec, _: &Args, reply: &mut Reply) {
    reply.array(all().count());
    all().for_each(|spec| write_info(spec, reply));
}

/// `COMMAND COUNT`
pub fn count(_: &Spec, _: &Args, reply: &mut Reply) {
    reply.count(all().count());
}

/// `COMMAND INFO [name …]`
pub fn info(_: &Spec, args: &Args, reply: &mut Reply) {
    if args.len() == 2 {
        reply.array(all().count());
        return all().for_each(|spec| write_info(spec, reply));
    }
    reply.array(args.len() - 2);
    for name in args.iter().skip(2) {
        match by_full_name(name) {
            Some(spec) => write_info(spec, reply),
            None => reply.null(),
        }
    }
}

/// A command, or a subcommand written as `command|subcommand`.
fn by_full_name(name: &[u8]) -> Option<&'static Spec> {
    match name.iter().position(|&byte| byte == b'|') {
        Some(bar) => table::subcommand(lookup(&name[..bar])?, &name[bar + 1..]),
        None => lookup(name),
    }
}

fn write_info(spec: &Spec, reply: &mut Reply) {
    let (first, last, step) = spec.legacy_range();
    reply.array(10);
    reply.bulk(spec.name.as_bytes());
    reply.int(i64::from(spec.arity));
    let movable = spec.has_movable_keys().then_some("movablekeys");
    let flags: Vec<_> = spec.flags.names().chain(movable).collect();
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.simple(flag));
    [first, last, step]
        .into_iter()
        .for_each(|number| reply.int(number));
    let mut categories: Vec<_> = spec.acl_categories().collect();
    categories.sort_by_key(|category| CATEGORIES.iter().position(|name| *name == &category[1..]));
    reply.set(categories.len());
    categories
        .iter()
        .for_each(|category| reply.simple(category));
    reply.set(spec.tips.len());
    spec.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(spec.keys.len());
    spec.keys
        .iter()
        .for_each(|keys| write_key_spec(keys, reply));
    reply.set(spec.subcommands.len());
    spec.subcommands
        .iter()
        .for_each(|subcommand| write_info(subcommand, reply));
}

fn write_key_spec(keys: &KeySpec, reply: &mut Reply) {
    let numbers = |reply: &mut Reply, kind: &str, numbers: &[(&str, i64)]| {
        reply.map(2);
        reply.bulk(b"type");
        reply.bulk(kind.as_bytes());
        reply.bulk(b"spec");
        reply.map(numbers.len());
        for (name, number) in numbers {
            reply.bulk(name.as_bytes());
            reply.int(*number);
        }
    };
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(keys.access.len());
    keys.access.iter().for_each(|flag| reply.simple(flag));
    reply.bulk(b"begin_search");
    numbers(reply, "index", &[("index", i64::from(keys.at))]);
    reply.bulk(b"find_keys");
    match keys.find {
        Find::Range { last, step } => numbers(
            reply,
            "range",
            &[
                ("lastkey", i64::from(last)),
                ("keystep", i64::from(step)),
                ("limit", 0),
            ],
        ),
        Find::Count => {
            numbers(
                reply,
                "keynum",
                &[("keynumidx", 0), ("firstkey", 1), ("keystep", 1)],
            );
        }
    }
}

/// `COMMAND DOCS [name …]`: unknown names are left out.
pub fn docs(_: &Spec, args: &Args, reply: &mut Reply) {
    let chosen: Vec<&Spec> = match args.len() {
        2 => all().collect(),
        _ => args.iter().skip(2).filter_map(by_full_name).collect(),
    };
    write_docs(&chosen, reply);
}

fn write_docs(specs: &[&Spec], reply: &mut Reply) {
    reply.map(specs.len());
    for spec in specs {
        reply.bulk(spec.name.as_bytes());
        let texts = [
            ("summary", spec.summary),
            ("since", spec.since),
            ("group", spec.group.name()),
            ("complexity", spec.complexity),
        ];
        let texts = texts.iter().filter(|(_, text)| !text.is_empty());
        let arguments = arguments::arguments(spec);
        let subcommands: Vec<&Spec> = spec.subcommands.iter().collect();
        let lists = [!arguments.is_empty(), !subcommands.is_empty()];
        let lists = lists.iter().filter(|there| **there).count();
        reply.map(texts.clone().count() + lists);
        for (name, text) in texts {
            reply.bulk(name.as_bytes());
            reply.bulk(text.as_bytes());
        }
        if !arguments.is_empty() {
            reply.bulk(b"arguments");
            arguments::write(arguments, reply);
        }
        if !subcommands.is_empty() {
            reply.bulk(b"subcommands");
            write_docs(&subcommands, reply);
        }
    }
}

/// `COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern]`
pub fn list(_: &Spec, args: &Args, reply: &mut Reply) {
    let everything = || all().flat_map(|spec| [spec].into_iter().chain(spec.subcommands));
    let word_is = |index: usize, word: &str| is(args.get(index), word);
    let names: Vec<&str> = match args.len() {
        2 => everything().map(|spec| spec.name).collect(),
        5 if word_is(2, "FILTERBY") && word_is(3, "MODULE") => Vec::new(),
        5 if word_is(2, "FILTERBY") && word_is(3, "ACLCAT") => everything()
            .filter(|spec| has_category(spec, args.get(4)))
            .map(|s| s.name)
            .collect(),
        5 if word_is(3, "PATTERN") && args.get(4).len() > PATTERN_BYTES_MAX => {
            return reply.error(PATTERN_TOO_LONG);
        }
        5 if word_is(2, "FILTERBY") && word_is(3, "PATTERN") => everything()
            .map(|spec| spec.name)
            .filter(|name| glob_matches_any_case(args.get(4), name.as_bytes()))
            .collect(),
        _ => return reply.error("ERR syntax error"),
    };
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name.as_bytes()));
}

fn has_category(spec: &Spec, name: &[u8]) -> bool {
    spec.acl_categories()
        .any(|category| category.as_bytes()[1..].eq_ignore_ascii_case(name))
}

/// `COMMAND GETKEYS command [arg …]`
pub fn getkeys(_: &Spec, args: &Args, reply: &mut Reply) {
    if let Some((_, keys)) = keys_in(args, reply) {
        reply.array(keys.len());
        keys.iter().for_each(|(key, _)| reply.bulk(key));
    }
}

/// `COMMAND GETKEYSANDFLAGS command [arg …]`
pub fn getkeysandflags(_: &Spec, args: &Args, reply: &mut Reply) {
    if let Some((_, keys)) = keys_in(args, reply) {
        reply.array(keys.len());
        for (key, access) in keys {
            reply.array(2);
            reply.bulk(key);
            reply.set(access.len());
            access.iter().for_each(|flag| reply.simple(flag));
        }
    }
}

type Keys<'a> = Vec<(&'a [u8], &'static [&'static str])>;

/// The keys in the command line from word 2 on; writes the error when there are none to find.
fn keys_in<'a>(args: &Args<'a>, reply: &mut Reply) -> Option<(&'static Spec, Keys<'a>)> {
    let line = args.from(2);
    let found = match (check(&line), lookup(line.get(0))) {
        (Ok(spec), _) => Ok(spec),
        (Err(_), Some(command)) if command.subcommands.is_empty() => {
            Err("ERR Invalid number of arguments specified for command")
        }
        _ => Err("ERR Invalid command specified"),
    };
    let keys = found.and_then(|spec| {
        if spec.keys.is_empty() {
            return Err("ERR The command has no key arguments");
        }
        let mut keys = Vec::new();
        for of in spec.keys {
            let indices = of
                .indices(&line)
                .ok_or("ERR Invalid arguments specified for command")?;
            let access = of.access_in(&line);
            keys.extend(indices.map(|index| (line.get(index), access)));
        }
        Ok((spec, keys))
    });
    keys.map_err(|error| reply.error(error)).ok()
}

/// `ACL CAT [category]`
pub fn acl_cat(_: &Spec, args: &Args, reply: &mut Reply) {
    let Some(category) = args.find(2) else {
        reply.array(CATEGORIES.len());
        return CATEGORIES
            .iter()
            .for_each(|name| reply.bulk(name.as_bytes()));
    };
    if !CATEGORIES.iter().any(|name| is(category, name)) {
        let category = String::from_utf8_lossy(category);
        return reply.error(&format!("ERR Unknown category '{category}'"));
    }
    let names: Vec<_> = all()
        .flat_map(|spec| [spec].into_iter().chain(spec.subcommands))
        .filter(|spec| has_category(spec, category))
        .collect();
    reply.array(names.len());
    names
        .iter()
        .for_each(|spec| reply.bulk(spec.name.as_bytes()));
}

/// `command HELP`, for every command with subcommands.
pub fn help(spec: &Spec, _: &Args, reply: &mut Reply) {
    let command = spec
        .name
        .split('|')
        .next()
        .and_then(|name| lookup(name.as_bytes()));
    let Some(command) = command else {
        return reply.array(0);
    };
    let mut lines = vec![format!(
        "{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        command.name.to_uppercase()
    )];
    for subcommand in command.subcommands {
        let name = subcommand.short_name().to_uppercase();
        lines.push(
            format!("{name} {}", subcommand.syntax)
                .trim_end()
                .to_owned(),
        );
        lines.push(format!("    {}", subcommand.summary));
    }
    reply.array(lines.len());
    lines.iter().for_each(|line| reply.simple(line));
}
