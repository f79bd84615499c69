//! What commands on data do: a plain function for each.
//!
//! [`run`] runs one over an [`engine::Access`] and writes its reply. A function does not know on
//! which thread it runs, nor whether it has run before: when the engine stops it, its reply is
//! taken back and the same call is made again. It checks everything before it changes anything.

mod call;
mod collection;
mod cursors;
mod functions;
mod hashes;
mod keys;
mod keyspace;
mod long_double;
mod number;
pub mod random;
mod rdb;
mod sorted_sets;
mod strings;

use commands::{Action, DataCommand, Flags, KeyCommand, Spec};
use engine::{Access, Database, Stop};
use resp::{parse_i64, Args, Reply};

pub use call::Context;
pub use cursors::ScanCursors;

use call::{Call, Done, Fail};

/// Elements taken from the engine at a time, so that a long walk holds little in memory.
const CHUNK: usize = 512;
/// Collections up to this long are returned whole by `HSCAN` and `ZSCAN`, as Redis does with its
/// "listpacks".
const SCAN_WHOLE_LEN: u64 = 128;

/// A number that no database has.
const NO_DATABASE: &str = "ERR DB index is out of range";

/// The database of the number that a word is.
///
/// # Errors
/// What a client is told whose word is none.
pub fn numbered(word: &[u8]) -> Result<Database, &'static str> {
    let number = parse_i64(word).ok_or("ERR value is not an integer or out of range")?;
    if i32::try_from(number).is_err() {
        return Err("ERR value is out of range, value must between -2147483648 and 2147483647");
    }
    Database::new(number).ok_or(NO_DATABASE)
}

/// Whether a command may name a key of another database than the one it is sent to.
pub fn crosses(spec: &Spec) -> bool {
    matches!(
        spec.action,
        Action::Data(DataCommand::Key(KeyCommand::Copy | KeyCommand::Move))
    )
}

/// Calls `each` with every key that a command sent to `database` names, and with its database.
pub fn each_key<'a>(
    spec: &Spec,
    args: &Args<'a>,
    database: Database,
    mut each: impl FnMut(Database, &'a [u8]),
) {
    spec.each_key(args, |key| each(database, key));
    let other = match spec.action {
        Action::Data(DataCommand::Key(KeyCommand::Copy)) => keys::copy_to(args, database),
        Action::Data(DataCommand::Key(KeyCommand::Move)) => keys::move_to(args),
        _ => return,
    };
    // Without one it fails before it looks for a key.
    if let Ok((database, key)) = other {
        each(database, key);
    }
}

/// Runs a command that needs no session: [`Action::Data`], [`Action::Keyspace`],
/// [`Action::KeyspaceWriter`], [`Action::Table`].
///
/// `Ok` means that a reply was written, be it an error of the command's. On `Err` nothing was: the
/// engine wants the same call again ([`Stop::Disk`]) or has failed.
///
/// # Panics
/// For the others, which the caller runs itself.
pub fn run(
    spec: &'static Spec,
    access: &mut Access,
    args: Args,
    mut reply: Reply,
    context: Context,
) -> Result<(), Stop> {
    let (mark, lookups) = (reply.mark(), access.lookups);
    if spec.flags.has(Flags::READONLY) {
        access.hold_at_most(context.held_bytes_max);
    }
    let ended = act(&mut Call {
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

fn act(call: &mut Call) -> Done {
    match call.spec.action {
        Action::Data(command) => functions::run(command, call),
        Action::Keyspace(command) | Action::KeyspaceWriter(command) => {
            functions::run_keyspace(command, call)
        }
        Action::Table(run) => {
            let before = call.reply.len_bytes();
            run(call.spec, &call.args, &mut call.reply);
            let written = call.reply.len_bytes().saturating_sub(before);
            Ok(call.access.hold(written)?)
        }
        Action::Session(_) | Action::Report(_) | Action::Container | Action::Engine => {
            panic!("`{}` needs a session", call.spec.name)
        }
    }
}
