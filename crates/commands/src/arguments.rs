//! The arguments of a command as `COMMAND DOCS` tells them, read from the table's own line of
//! syntax.
//!
//! | written | is |
//! |---|---|
//! | `word` | a value of that name |
//! | `WORD` | a word that is typed as it stands |
//! | `[…]` | may be left out |
//! | `<…>` | must be there |
//! | `a \| b` | one of them, as far as the brackets around |
//! | `x [x ...]` | one or more |
//! | `[x ...]` | any number |
//! | `[WORD x ...]` | the same, each with its token |
//! | `[WORD x]` | `WORD` is the token of what follows it, all of it |
//!
//! Which values are keys is known from where the command's keys are. What else a value is follows
//! from its name.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use resp::Reply;

use crate::keyspec::Find;
use crate::spec::Spec;
use crate::table::all;

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A value, of this type in Redis's words.
    Value(&'static str),
    /// A key, found by the key specification of this number.
    Key(usize),
    /// A word that is typed as it stands.
    PureToken,
    /// One of the arguments inside.
    OneOf,
    /// All of the arguments inside.
    Block,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Value(name) => name,
            Kind::Key(_) => "key",
            Kind::PureToken => "pure-token",
            Kind::OneOf => "oneof",
            Kind::Block => "block",
        }
    }
}

/// One argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    name: String,
    kind: Kind,
    token: Option<&'static str>,
    optional: bool,
    multiple: bool,
    /// Its token comes with each.
    multiple_token: bool,
    inner: Vec<Argument>,
}

/// Types of values by their names, or by those of their command and their own; the others are
/// strings.
#[rustfmt::skip]
const TYPES: &[(&str, &[&str])] = &[
    ("string", &["zrange start", "zrange stop"]),
    ("double", &[
        "hincrbyfloat increment", "incrbyfloat increment", "score",
        "zcount max", "zcount min", "zrangebyscore max", "zrangebyscore min", "zremrangebyscore max",
        "zremrangebyscore min", "zrevrangebyscore max", "zrevrangebyscore min",
    ]),
    ("integer", &[
        "bit", "bitfield value", "client-id", "count", "cursor", "db", "decrement",
        "destination-db", "end", "frequency", "increment", "index", "index1", "index2", "len",
        "limit", "milliseconds", "numkeys", "numreplicas", "offset", "protover", "seconds",
        "setbit value", "start", "stop", "timeout", "ttl", "version", "weight",
    ]),
    ("pattern", &["pattern"]),
    ("unix-time", &["unix-time-seconds", "unix-time-milliseconds"]),
];

fn type_of(command: &str, name: &str) -> Kind {
    let exact = format!("{command} {name}");
    let found = |name: &str| TYPES.iter().find(|(_, names)| names.contains(&name));
    let found = found(&exact).or_else(|| found(name));
    Kind::Value(found.map_or("string", |(kind, _)| kind))
}

/// Says of each value what it is.
fn give_types(command: &str, arguments: &mut [Argument]) {
    for argument in arguments {
        match argument.kind {
            Kind::Value(_) => argument.kind = type_of(command, &argument.name),
            _ => give_types(command, &mut argument.inner),
        }
    }
}

impl Argument {
    fn new(name: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            token: None,
            optional: false,
            multiple: false,
            multiple_token: false,
            inner: Vec::new(),
        }
    }

    /// One argument that stands for these.
    fn of(kind: Kind, inner: Vec<Argument>) -> Self {
        let names: Vec<&str> = inner.iter().map(|one| one.name.as_str()).collect();
        let name = names.join("_");
        Self {
            inner,
            ..Self::new(&name, kind)
        }
    }

    /// All of these as one.
    fn together(mut arguments: Vec<Argument>) -> Self {
        match (arguments.pop(), arguments.is_empty()) {
            (Some(only), true) => only,
            (last, _) => {
                arguments.extend(last);
                Self::of(Kind::Block, arguments)
            }
        }
    }
}

/// A piece of a line of syntax.
enum Node {
    Word(&'static str),
    Group {
        optional: bool,
        repeats: bool,
        choices: Vec<Vec<Node>>,
    },
}

/// The words and brackets of a line.
fn lexemes(line: &'static str) -> Vec<&'static str> {
    let mut found = Vec::new();
    for mut word in line.split_whitespace() {
        while let Some(bare) = word.strip_prefix(['[', '<']) {
            found.push(&word[..1]);
            word = bare;
        }
        let bare = word.trim_end_matches([']', '>']);
        if !bare.is_empty() {
            found.push(bare);
        }
        found.extend((bare.len()..word.len()).map(|at| &word[at..=at]));
    }
    found
}

/// The choices up to the bracket that closes them, and whether there may be several of them.
fn choices(lexemes: &mut impl Iterator<Item = &'static str>) -> (Vec<Vec<Node>>, bool) {
    let (mut choices, mut repeats) = (vec![Vec::new()], false);
    while let Some(lexeme) = lexemes.next() {
        let last = choices.last_mut().expect("there is one from the start");
        match lexeme {
            "]" | ">" => break,
            "..." => repeats = true,
            "|" => choices.push(Vec::new()),
            "[" | "<" => {
                let (choices, repeats) = self::choices(lexemes);
                last.push(Node::Group {
                    optional: lexeme == "[",
                    repeats,
                    choices,
                });
            }
            word => last.push(Node::Word(word)),
        }
    }
    (choices, repeats)
}

fn is_token(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// One choice: what its first word, if that is typed as it stands, is the token of.
fn choice(nodes: &[Node]) -> Argument {
    let [Node::Word(token), rest @ ..] = nodes else {
        return Argument::together(sequence(nodes));
    };
    if !is_token(token) || rest.is_empty() {
        return Argument::together(sequence(nodes));
    }
    let what = Argument::together(sequence(rest));
    // The token would be as optional as what follows it.
    if what.kind == Kind::PureToken || what.optional {
        return Argument::together(sequence(nodes));
    }
    Argument {
        token: Some(*token),
        ..what
    }
}

/// Any of several choices.
fn group(choices: &[Vec<Node>]) -> Argument {
    match choices {
        [only] => choice(only),
        several => Argument::of(
            Kind::OneOf,
            several.iter().map(|nodes| choice(nodes)).collect(),
        ),
    }
}

fn sequence(nodes: &[Node]) -> Vec<Argument> {
    let mut found: Vec<Argument> = Vec::new();
    for node in nodes {
        match node {
            Node::Word(word) if is_token(word) => found.push(Argument {
                token: Some(*word),
                ..Argument::new(&word.to_ascii_lowercase(), Kind::PureToken)
            }),
            Node::Word(word) => found.push(Argument::new(word, Kind::Value("string"))),
            Node::Group {
                optional,
                repeats,
                choices,
            } => {
                let repeated = sequence(&choices[0]);
                let first = found.len().saturating_sub(repeated.len());
                if *repeats && choices.len() == 1 && found[first..] == repeated[..] {
                    found.truncate(first);
                    found.push(Argument {
                        multiple: true,
                        ..Argument::together(repeated)
                    });
                } else {
                    let made = group(choices);
                    found.push(Argument {
                        optional: *optional || made.optional,
                        multiple: *repeats || made.multiple,
                        multiple_token: *repeats && made.token.is_some(),
                        ..made
                    });
                }
            }
        }
    }
    found
}

/// Marks the argument that stands at word `at` as a key. Words that may be missing are behind all
/// keys.
fn mark_key(arguments: &mut [Argument], at: usize, number: usize) {
    let mut place = 0;
    for argument in arguments {
        let inside = match argument.kind {
            Kind::Block => argument.inner.len(),
            _ => 1,
        };
        if at < place + inside {
            return match argument.kind {
                Kind::Block => mark_key(&mut argument.inner, at - place, number),
                _ => argument.kind = Kind::Key(number),
            };
        }
        place += inside;
    }
}

fn read(spec: &Spec) -> Vec<Argument> {
    let (choices, _) = choices(&mut lexemes(spec.syntax).into_iter());
    let mut arguments = match &choices[..] {
        [only] => sequence(only),
        _ => vec![group(&choices)],
    };
    give_types(spec.name, &mut arguments);
    let words_before = spec.name.split('|').count();
    for (number, keys) in spec.keys.iter().enumerate() {
        let at = usize::from(keys.at) - words_before;
        match keys.find {
            Find::Range { last: 1, step: 1 } => {
                (at..=at + 1).for_each(|at| mark_key(&mut arguments, at, number));
            }
            Find::Range { .. } => mark_key(&mut arguments, at, number),
            Find::Count => mark_key(&mut arguments, at + 1, number),
        }
    }
    arguments
}

/// The arguments of all commands and subcommands, by name.
static ARGUMENTS: LazyLock<BTreeMap<&'static str, Vec<Argument>>> = LazyLock::new(|| {
    let specs = all().flat_map(|spec| [spec].into_iter().chain(spec.subcommands));
    specs.map(|spec| (spec.name, read(spec))).collect()
});

/// The arguments of a command.
pub fn arguments(spec: &Spec) -> &'static [Argument] {
    ARGUMENTS.get(spec.name).map_or(&[], Vec::as_slice)
}

/// Writes arguments as `COMMAND DOCS` has them.
pub fn write(arguments: &[Argument], reply: &mut Reply) {
    reply.array(arguments.len());
    for argument in arguments {
        let flags = [
            (argument.optional, "optional"),
            (argument.multiple, "multiple"),
            (argument.multiple_token, "multiple_token"),
        ];
        let flags = flags.iter().filter(|(set, _)| *set);
        let key = match argument.kind {
            Kind::Key(number) => Some(number),
            _ => None,
        };
        let optional = [
            key.is_some(),
            argument.token.is_some(),
            flags.clone().count() > 0,
            !argument.inner.is_empty(),
        ];
        reply.map(2 + optional.iter().filter(|there| **there).count());
        for (name, text) in [
            ("name", argument.name.as_str()),
            ("type", argument.kind.name()),
        ] {
            reply.bulk(name.as_bytes());
            reply.bulk(text.as_bytes());
        }
        if let Some(number) = key {
            reply.bulk(b"key_spec_index");
            reply.count(number);
        }
        if let Some(token) = argument.token {
            reply.bulk(b"token");
            reply.bulk(token.as_bytes());
        }
        if flags.clone().count() > 0 {
            reply.bulk(b"flags");
            reply.set(flags.clone().count());
            flags.for_each(|(_, flag)| reply.simple(flag));
        }
        if !argument.inner.is_empty() {
            reply.bulk(b"arguments");
            write(&argument.inner, reply);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of syntax that an argument was read from.
    fn shown(argument: &Argument) -> String {
        let inner: Vec<String> = argument.inner.iter().map(shown).collect();
        let mut text = match argument.kind {
            Kind::OneOf => inner.join(" | "),
            Kind::Block => inner.join(" "),
            Kind::PureToken => String::new(),
            Kind::Value(_) | Kind::Key(_) => argument.name.clone(),
        };
        let one_or_more = argument.multiple
            && !argument.multiple_token
            && !(argument.optional && argument.token.is_none());
        if one_or_more {
            text = format!("{text} [{text} ...]");
        }
        if let Some(token) = argument.token {
            if argument.kind == Kind::OneOf {
                text = format!("<{text}>");
            }
            text = format!("{token} {text}").trim_end().to_owned();
        }
        match (argument.optional, argument.kind) {
            (true, _) if argument.multiple && !one_or_more => format!("[{text} ...]"),
            (true, _) => format!("[{text}]"),
            (false, Kind::OneOf) if argument.token.is_none() => format!("<{text}>"),
            _ => text,
        }
    }

    fn keys(arguments: &[Argument]) -> usize {
        let own = |argument: &Argument| usize::from(matches!(argument.kind, Kind::Key(_)));
        let counts = arguments.iter().map(|one| own(one) + keys(&one.inner));
        counts.sum()
    }

    #[test]
    fn every_line_of_syntax_is_what_its_arguments_are_shown_as() {
        for spec in all().flat_map(|spec| [spec].into_iter().chain(spec.subcommands)) {
            let read = arguments(spec);
            let lines: Vec<String> = read.iter().map(shown).collect();
            // Around the whole line there need be no brackets.
            let line = lines.join(" ");
            let bare = line
                .strip_prefix('<')
                .and_then(|line| line.strip_suffix('>'));
            let line = bare.filter(|_| read.len() == 1).unwrap_or(&line);
            assert_eq!(line, spec.syntax, "{spec:?}: {read:?}");
            let wanted = spec.keys.iter().map(|keys| match keys.find {
                Find::Range { last: 1, step: 1 } => 2,
                _ => 1,
            });
            assert_eq!(keys(read), wanted.sum::<usize>(), "{spec:?}: {read:?}");
        }
    }

    #[test]
    fn a_line_is_read_as_redis_documents_the_same() {
        let set = arguments(super::super::lookup(b"set").unwrap());
        assert_eq!(
            (set[0].kind, set[1].kind),
            (Kind::Key(0), Kind::Value("string"))
        );
        let (condition, get, expiration) = (&set[2], &set[3], &set[4]);
        assert_eq!((condition.kind, condition.optional), (Kind::OneOf, true));
        assert_eq!((get.kind, get.token), (Kind::PureToken, Some("GET")));
        let ex = &expiration.inner[0];
        assert_eq!(
            (ex.name.as_str(), ex.kind, ex.token),
            ("seconds", Kind::Value("integer"), Some("EX"))
        );
        let mset = arguments(super::super::lookup(b"mset").unwrap());
        assert_eq!(
            (mset.len(), mset[0].kind, mset[0].multiple),
            (1, Kind::Block, true)
        );
        assert_eq!(mset[0].inner[0].kind, Kind::Key(0));
    }
}
