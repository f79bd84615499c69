//! The commands: one table that says of each its name, number of words, flags, keys, class and
//! documentation, and by what name its implementation is known.
//!
//! * [`check`] finds the command that a request names, or Redis's error for it.
//! * [`Spec::each_key`] tells which keys it needs, [`Spec::action`] what it acts on.
//! * Commands about the table itself (`COMMAND`, `ACL CAT`, `… HELP`) are answered from here.
//!
//! Nothing here touches data: whoever has a keyspace, or a session, implements what
//! [`DataCommand`], [`KeyspaceCommand`] and [`SessionCommand`] name.

mod arguments;
mod data;
pub mod documentation;
mod glob;
mod introspect;
mod keyspec;
mod session;
mod spec;
mod table;

pub use data::{
    DataCommand, HashCommand, KeyCommand, KeyspaceCommand, SortedSetCommand, StringCommand,
};
pub use glob::{glob_matches, literal_prefix, match_steps, PATTERN_BYTES_MAX, PATTERN_TOO_LONG};
pub use keyspec::{Find, KeySpec};
pub use session::{
    AclCommand, ClientCommand, ClusterCommand, ConfigCommand, EntremetCommand, LatencyCommand,
    MemoryCommand, SessionCommand, SlowlogCommand,
};
pub use spec::{Action, Flags, Group, Spec};
pub use table::{all, lookup};

use resp::Args;

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
