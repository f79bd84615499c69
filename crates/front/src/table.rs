//! The engine's commands, and what becomes of each.

use commands::{Action, Flags, Group, Spec};
use hashbrown::HashMap;
use resp::Args;
use smallvec::SmallVec;
use telemetry::Class;

use crate::find::KeySpec;
use crate::reply::Shows;
use crate::value::Value;
use crate::way::Way;

/// Why a list of commands is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// Not what `COMMAND` replies.
    #[error("the engine's reply to COMMAND is not understood")]
    Unreadable,
    /// `COMMAND` of Redis before 7 does not tell where keys are.
    #[error("the engine does not say where the keys of its commands are; Redis 7.0, Valkey 7.2 or later does")]
    Old,
}

/// One command, or one subcommand.
#[derive(Debug)]
pub struct Command {
    /// What it is counted as. Its keys are told by [`Command::write`] only.
    pub spec: &'static Spec,
    /// What becomes of it.
    pub way: Way,
    /// Where its reply shows keys.
    pub shows: Shows,
    pub(crate) keys: Vec<KeySpec>,
    subcommands: HashMap<Box<[u8]>, Command>,
}

/// The engine's commands, by name.
#[derive(Debug, Default)]
pub struct Table {
    commands: HashMap<Box<[u8]>, Command>,
}

/// Longest name that is looked for; no engine has one of half that.
const NAME_BYTES_MAX: usize = 64;

impl Table {
    /// Reads what `COMMAND` replied. A command that `before` has as well is counted as the same.
    ///
    /// # Errors
    /// It is of no use.
    pub fn read(reply: &Value, before: Option<&Table>) -> Result<Self, TableError> {
        let mut table = Self::default();
        for item in reply.items() {
            let command = command(item, before)?;
            let name = command.spec.name.as_bytes().into();
            table.commands.insert(name, command);
        }
        if table.commands.is_empty() {
            return Err(TableError::Unreadable);
        }
        // What the front has and the engine has not.
        for spec in commands::all() {
            let name = spec.name.as_bytes();
            if !table.commands.contains_key(name) {
                let way = match answered_here(spec) {
                    true => Way::Here,
                    false => Way::Refused("the engine has no such command"),
                };
                table.commands.insert(name.into(), Command::new(spec, way));
            }
        }
        Ok(table)
    }

    /// The command that `args` name.
    #[inline]
    pub fn find(&self, args: &Args) -> Option<&Command> {
        let command = with_lower_case(args.get(0), |name| self.commands.get(name))?;
        match args.find(1) {
            Some(name) if !command.subcommands.is_empty() => {
                with_lower_case(name, |name| command.subcommands.get(name))
            }
            _ => Some(command),
        }
    }

    /// Every command and subcommand.
    pub fn all(&self) -> impl Iterator<Item = &Command> {
        let tops = self.commands.values();
        tops.flat_map(|top| [top].into_iter().chain(top.subcommands.values()))
    }
}

impl Command {
    fn new(spec: &'static Spec, way: Way) -> Self {
        Self {
            spec,
            way,
            shows: Shows::of(spec.name),
            keys: Vec::new(),
            subcommands: HashMap::new(),
        }
    }
}

fn with_lower_case<'t>(
    name: &[u8],
    find: impl FnOnce(&[u8]) -> Option<&'t Command>,
) -> Option<&'t Command> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let mut lower: SmallVec<[u8; 32]> = SmallVec::from_slice(name);
    lower.make_ascii_lowercase();
    find(&lower)
}

/// Whether the front answers a command of its own table without any data.
fn answered_here(spec: &Spec) -> bool {
    match spec.action {
        Action::Session(_) | Action::Report(_) => true,
        Action::Container => spec
            .subcommands
            .iter()
            .all(|sub| matches!(sub.action, Action::Table(_)) || answered_here(sub)),
        _ => false,
    }
}

fn command(item: &Value, before: Option<&Table>) -> Result<Command, TableError> {
    let fields = item.items();
    let [name, arity, flags, ..] = fields else {
        return Err(TableError::Unreadable);
    };
    let (Some(specs), Some(subcommands)) = (fields.get(8), fields.get(9)) else {
        return Err(TableError::Old);
    };
    let name = name.text().ok_or(TableError::Unreadable)?;
    let arity = arity.int().and_then(|arity| i8::try_from(arity).ok());
    let arity = arity.ok_or(TableError::Unreadable)?;
    let has = |flag: &str| {
        let mut flags = flags.items().iter();
        flags.any(|known| known.text() == Some(flag))
    };
    let read: Option<Vec<KeySpec>> = specs.items().iter().map(KeySpec::read).collect();
    let keys = read.filter(|keys| !keys.is_empty());
    let own = own(name);
    let way = Way::by_name(name).or_else(|| match own {
        Some(own) => answered_here(own).then_some(Way::Here),
        None => Way::beside_own(name),
    });
    let way = way.unwrap_or_else(|| match Way::by_flags(has) {
        Some(refused) => refused,
        None if keys.is_none() => Way::UNKNOWN,
        None if has("blocking") => Way::Waits,
        None => Way::Engine,
    });
    let (class, flags) = match way {
        // How long it takes, and what it does, its client knows alone.
        Way::Script if has("readonly") => (Class::Other, flags_of(has)),
        Way::Script => (Class::Other, flags_of(has).and(Flags::WRITE)),
        _ => (class(own, &keys, has), flags_of(has)),
    };
    let spec = spec(name, arity, class, flags, before);
    let keys = match KeySpec::of_channels(name) {
        Some(channels) => vec![channels],
        None => keys.unwrap_or_default(),
    };
    let subcommands = subcommands.items().iter().map(|item| {
        let sub = command(item, before)?;
        Ok((sub.spec.short_name().as_bytes().into(), sub))
    });
    Ok(Command {
        keys,
        subcommands: subcommands.collect::<Result<_, TableError>>()?,
        ..Command::new(spec, way)
    })
}

/// The front's own command of this name.
fn own(name: &str) -> Option<&'static Spec> {
    let (top, sub) = match name.split_once('|') {
        Some((top, _)) => (top, Some(name)),
        None => (name, None),
    };
    let top = commands::lookup(top.as_bytes())?;
    match sub {
        Some(name) => top.subcommands.iter().find(|sub| sub.name == name),
        None => Some(top),
    }
}

fn class(own: Option<&Spec>, keys: &Option<Vec<KeySpec>>, has: impl Fn(&str) -> bool) -> Class {
    if let Some(own) = own {
        return own.class;
    }
    match keys {
        None => Class::Other,
        // How long it takes is its client's wish.
        Some(_) if has("blocking") => Class::Other,
        Some(keys) if keys.len() > 1 || keys[0].several() => Class::Multiget,
        Some(_) if has("write") => Class::Put,
        Some(_) => Class::Get,
    }
}

fn flags_of(has: impl Fn(&str) -> bool) -> Flags {
    let known = [
        ("write", Flags::WRITE),
        ("readonly", Flags::READONLY),
        ("denyoom", Flags::DENYOOM),
        ("admin", Flags::ADMIN),
        ("fast", Flags::FAST),
        ("no_multi", Flags::NO_MULTI),
    ];
    let set = known.iter().filter(|(name, _)| has(name));
    set.fold(Flags::NONE, |flags, (_, flag)| flags.and(*flag))
}

/// What a command is counted as. It lives as long as the process, so one that is known already is
/// used again.
fn spec(
    name: &str,
    arity: i8,
    class: Class,
    flags: Flags,
    before: Option<&Table>,
) -> &'static Spec {
    let same = |command: &&Command| {
        let spec = command.spec;
        spec.name == name && spec.arity == arity && spec.class == class && spec.flags == flags
    };
    if let Some(known) = before.and_then(|table| table.all().find(same)) {
        return known.spec;
    }
    let name = Box::leak(name.to_owned().into_boxed_str());
    let spec = Spec::new(name, arity, Group::Generic, flags, Action::Engine).class(class);
    Box::leak(Box::new(spec))
}
