//! What a connection remembers between commands, and the commands that work on it rather than on data.

mod client;
mod cluster;
mod config;
mod entremet;
mod info;
mod latency;
mod login;
mod server;
mod slow_log;
mod transaction;
mod visit;

use std::sync::Arc;

use bytes::Bytes;
use engine::Watch;

use crate::commands::{SessionCommand, Spec};
use crate::core::Errand;
use crate::resp::{OwnedArgs, Protocol};
use crate::tenants::{Checked, Question, Tenant};

pub use config::discipline_word;
pub use info::{Counted, REDIS_VERSION};
pub use login::{seat, FULL};
pub use slow_log::SlowLog;
pub use visit::Visit;

/// Bytes of commands that one transaction may queue.
const TRANSACTION_BYTES_MAX: usize = 256 << 20;

/// What a tenant that may not administer is told when it tries.
pub const NOT_OPERATOR: &str =
    "NOPERM this command is for tenants with `admin = true` in the server's configuration";

/// What `CLIENT REPLY` asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyMode {
    /// Every command is answered.
    #[default]
    On,
    /// None is.
    Off,
    /// The next one is not, nor is this.
    SkipNext,
    /// This one is not; the one after it is again.
    SkipThis,
}

impl ReplyMode {
    /// Whether the reply just written is to be dropped; moves on past a skipped one.
    pub fn suppresses(&mut self) -> bool {
        match self {
            Self::On => false,
            Self::Off => true,
            Self::SkipNext => {
                *self = Self::SkipThis;
                true
            }
            Self::SkipThis => {
                *self = Self::On;
                true
            }
        }
    }
}

/// Commands queued between `MULTI` and `EXEC`.
#[derive(Default)]
pub struct Transaction {
    /// In order.
    pub calls: Vec<(&'static Spec, OwnedArgs)>,
    /// A command was refused while queueing: `EXEC` will refuse all.
    pub spoiled: bool,
    bytes: usize,
}

impl Transaction {
    /// Queues a command; false if the transaction has grown too large, which spoils it.
    pub fn push(&mut self, command: &'static Spec, args: OwnedArgs) -> bool {
        self.bytes += args.len_bytes();
        if self.bytes > TRANSACTION_BYTES_MAX {
            self.spoiled = true;
            self.calls.clear();
            return false;
        }
        self.calls.push((command, args));
        true
    }
}

/// A key under `WATCH`.
pub struct Watched {
    /// Its name.
    pub key: Bytes,
    /// Whether it has been written.
    pub watch: Watch,
    /// Since when, ms since the Unix epoch.
    pub since_ms: u64,
}

/// One connection's session. That of one that has said nothing speaks RESP2.
#[derive(Default)]
pub struct Session {
    /// RESP 2 or 3.
    pub protocol: Protocol,
    /// It speaks for a tenant.
    pub authenticated: bool,
    /// How the slow check of the password it sent has ended; told to the `AUTH` or `HELLO` that waits.
    pub checked: Option<Checked>,
    /// What the command wanted done first has been done.
    pub prepared: bool,
    /// What `CLIENT REPLY` asked for.
    pub reply_mode: ReplyMode,
    /// Commands queued after `MULTI`.
    pub transaction: Option<Box<Transaction>>,
    /// Keys under `WATCH`.
    pub watches: Vec<Watched>,
}

/// What a session command leaves for the core to do. A command that must wait does nothing before that: it is
/// run again, or answered, when what it waits for is over.
pub enum Leftover {
    /// The connection speaks for this tenant from now on, whose seat it has; the reply is written.
    Speak(Arc<Tenant>),
    /// The connection speaks for nobody from now on; the reply is written.
    Leave,
    /// Only the slow check of a password can tell; the command is run again after it.
    Check(Box<Question>),
    /// A handler does this for the tenant first; the command is run again after it.
    First(Box<dyn FnOnce() + Send>),
    /// A handler does the rest, and its result is the reply.
    Errand(Errand),
}

/// Runs a session command other than `EXEC` and `WATCH`; a login is left to the core to carry out.
pub fn run(command: SessionCommand, mut visit: Visit<'_>) -> Option<Leftover> {
    use SessionCommand as Is;
    match command {
        Is::Auth => return login::auth(&mut visit),
        Is::Hello => return login::hello(&mut visit),
        Is::Reset => return Some(login::reset(&mut visit)),
        Is::Select => login::select(&mut visit),
        Is::Acl(command) => login::acl(command, &mut visit),
        Is::Quit => {
            visit.reply().ok();
            visit.connection.closing = true;
        }
        Is::Multi => transaction::multi(&mut visit),
        Is::Discard => transaction::discard(&mut visit),
        Is::Unwatch => transaction::unwatch(&mut visit),
        Is::Exec | Is::Watch => unreachable!("the core runs them"),
        Is::Client(command) => client::run(command, &mut visit),
        Is::Cluster(command) => cluster::run(command, &mut visit),
        Is::Config(command) => config::run(command, &mut visit),
        Is::Entremet(command) => return entremet::run(command, &mut visit).map(Leftover::Errand),
        Is::Info => return info::run(&mut visit),
        Is::Latency(command) => latency::run(command, &mut visit),
        Is::Slowlog(command) => slow_log::run(command, &mut visit),
        Is::Ping => server::ping(&mut visit),
        Is::Echo => server::echo(&mut visit),
        Is::Time => server::time(&mut visit),
        Is::Lolwut => server::lolwut(&mut visit),
        Is::Shutdown => server::shutdown(&mut visit),
        Is::FunctionFlush | Is::Readonly | Is::Readwrite => visit.reply().ok(),
    }
    None
}
