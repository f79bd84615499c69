//! The commands: one table that says what each is, and a plain function for each that works on
//! data.
//!
//! * [`check`] finds the command that a request names, or Redis's error for it.
//! * [`Spec::each_key`] tells which keys it needs, [`Spec::handler`] who runs it.
//! * [`run`] runs a data command over an [`engine::Access`] and writes its reply.
//!
//! A data command does not know on which thread it runs, nor whether it has run before: when the
//! engine stops it, its reply is taken back and the same call is made again. It checks everything
//! before it changes anything.

mod arguments;
mod call;
mod collection;
mod cursors;
pub mod documentation;
mod glob;
mod hashes;
pub mod introspect;
mod keys;
mod keyspace;
mod keyspec;
mod long_double;
mod number;
mod random;
mod rdb;
mod session;
mod sorted_sets;
mod spec;
mod strings;
mod table;

use engine::{Access, Stop};

pub use call::{is, Context};
pub use cursors::ScanCursors;
pub use glob::{glob_matches, PATTERN_BYTES_MAX, PATTERN_TOO_LONG};
pub use keyspec::{Find, KeySpec};
pub use session::{
    AclCommand, ClientCommand, ClusterCommand, ConfigCommand, EntremetCommand, LatencyCommand,
    MemoryCommand, SessionCommand, SlowlogCommand,
};
pub use spec::{Flags, Group, Handler, Spec};
pub use table::{all, lookup};

use crate::resp::{Args, Reply};
use call::{Call, Fail};

/// Elements taken from the engine at a time, so that a long walk holds little in memory.
const CHUNK: usize = 512;
/// Collections up to this long are returned whole by `HSCAN` and `ZSCAN`, as Redis does with its
/// "listpacks".
const SCAN_WHOLE_LEN: u64 = 128;
/// Bytes of a client's words that an error repeats at most.
const ECHO_BYTES: usize = 128;

/// A request that is no command.
#[derive(Debug)]
pub struct Unusable {
    /// The command that it names, if it names one: then there are too few or too many words.
    pub spec: Option<&'static Spec>,
    /// The error to reply with.
    pub text: String,
}

/// The command that `args` name, its arity checked.
///
/// # Errors
/// There is no such command, or it takes another number of words.
pub fn check(args: &Args) -> Result<&'static Spec, Unusable> {
    let unknown = |text| Unusable { spec: None, text };
    let Some(command) = lookup(args.get(0)) else {
        return Err(unknown(unknown_command(args)));
    };
    let spec = match args.find(1) {
        Some(name) if !command.subcommands.is_empty() => table::subcommand(command, name)
            .ok_or_else(|| unknown(unknown_subcommand(command, name)))?,
        _ => command,
    };
    if !spec.takes(args.len()) {
        return Err(Unusable {
            spec: Some(spec),
            text: format!("ERR wrong number of arguments for '{}' command", spec.name),
        });
    }
    Ok(spec)
}

fn unknown_command(args: &Args) -> String {
    let mut shown = String::new();
    for word in args.iter().skip(1) {
        if shown.len() >= ECHO_BYTES {
            break;
        }
        shown.push_str(&format!("'{}' ", text(word, ECHO_BYTES - shown.len())));
    }
    let name = text(args.get(0), ECHO_BYTES);
    format!("ERR unknown command '{name}', with args beginning with: {shown}")
}

fn unknown_subcommand(command: &Spec, name: &[u8]) -> String {
    let command = command.name.to_ascii_uppercase();
    format!(
        "ERR unknown subcommand '{}'. Try {command} HELP.",
        text(name, ECHO_BYTES)
    )
}

/// The first `max` bytes of `word` as text, up to a NUL, as C's `%.*s` prints it.
fn text(word: &[u8], max: usize) -> std::borrow::Cow<'_, str> {
    let word = &word[..word.len().min(max)];
    String::from_utf8_lossy(word.split(|&byte| byte == 0).next().unwrap_or_default())
}

/// Runs a command that needs no session: [`Handler::Data`], [`Handler::Keyspace`],
/// [`Handler::KeyspaceWriter`], [`Handler::Table`].
///
/// `Ok` means that a reply was written, be it an error of the command's. On `Err` nothing was: the
/// engine wants the same call again ([`Stop::Disk`]) or has failed.
///
/// # Panics
/// For the other handlers, which the caller runs itself.
pub fn run(
    spec: &'static Spec,
    access: &mut Access,
    args: Args,
    mut reply: Reply,
    context: Context,
) -> Result<(), Stop> {
    let handler = match spec.handler {
        Handler::Data(run) | Handler::Keyspace(run) | Handler::KeyspaceWriter(run) => run,
        Handler::Table(run) => {
            let before = reply.len_bytes();
            run(spec, &args, &mut reply);
            return access.hold(reply.len_bytes().saturating_sub(before));
        }
        Handler::Session(_) | Handler::Report(_) | Handler::Container => {
            panic!("`{}` needs a session", spec.name)
        }
    };
    let (mark, lookups) = (reply.mark(), access.lookups);
    if spec.flags.has(Flags::READONLY) {
        access.hold_at_most(context.held_bytes_max);
    }
    let ended = handler(&mut Call {
        access: &mut *access,
        args,
        reply: reply.reborrow(),
        context,
        spec,
    });
    // As in Redis, what a write looks at first is no read.
    if !spec.flags.has(Flags::READONLY) {
        access.lookups = lookups;
    }
    ended.or_else(|fail| {
        reply.rollback(mark);
        match fail {
            Fail::Error(text) => {
                reply.error(&text);
                Ok(())
            }
            Fail::Stop(stop) => Err(stop),
        }
    })
}
