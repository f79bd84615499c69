//! What a connection remembers between commands, and the commands that work on it rather than on
//! data.

mod client;
mod cluster;
mod config;
mod entremet;
mod figures;
mod info;
mod latency;
mod login;
mod memory;
mod save;
mod server;
mod slow_log;
mod transaction;
mod visit;

use std::sync::Arc;

use commands::SessionCommand;
use engine::Database;
use resp::Protocol;

use crate::tenants::{Checked, Client, Labels, Question, Tenant};

pub use entremet::{explained, kept_at_all_fronts, slow_line};
pub use info::REDIS_VERSION;
pub use login::{seat, FULL};
pub use transaction::{Calls, Extent, Transaction, Watches};
pub use visit::Visit;

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

/// What a connection remembers between commands, and commands on the connection change. A
/// transaction works on a copy, which counts when the transaction takes effect. That of one that
/// has said nothing speaks RESP2.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// RESP 2 or 3.
    pub protocol: Protocol,
    /// It speaks for a tenant.
    pub authenticated: bool,
    /// The database that it has selected.
    pub database: Database,
    /// How the slow check of the password it sent has ended; told to the `AUTH` or `HELLO` that
    /// waits.
    pub checked: Option<Checked>,
    /// What `CLIENT REPLY` asked for.
    pub reply_mode: ReplyMode,
    /// What it has told of itself.
    pub labels: Labels,
    /// A front serves it what it only reads, wherever the home of that is (`READONLY`).
    pub reads_anywhere: bool,
    /// It is closed when its replies have left.
    pub closing: bool,
}

impl State {
    /// Shows others what has changed; true if it calls itself otherwise now.
    pub fn publish(&self, client: &Client) -> bool {
        client.speaks(self.protocol);
        client.selects(self.database);
        client.relabel(&self.labels)
    }
}

/// One connection's session.
#[derive(Default)]
pub struct Session {
    /// What commands on the connection change.
    pub state: State,
    /// Commands queued after `MULTI`.
    pub transaction: Option<Box<Transaction>>,
    /// Keys under `WATCH`.
    pub watches: Watches,
}

/// What a session command leaves for the core to do.
pub enum Leftover {
    /// The connection speaks for this tenant from now on, whose seat it has; the reply is written.
    Speak(Arc<Tenant>),
    /// The connection speaks for nobody from now on; the reply is written.
    Leave,
    /// Only the slow check of a password can tell; the command is run again after it.
    Check(Box<Question>),
}

/// Runs a session command other than those on the transaction; a login is left to the core to carry
/// out.
pub fn run(command: SessionCommand, visit: &mut Visit<'_>) -> Option<Leftover> {
    use SessionCommand as Is;
    match command {
        Is::Auth => return login::auth(visit),
        Is::Hello => return login::hello(visit),
        Is::Reset => return Some(login::reset(visit)),
        Is::Select => login::select(visit),
        Is::Acl(command) => login::acl(command, visit),
        Is::Quit => {
            visit.reply().ok();
            visit.state.closing = true;
        }
        Is::Discard | Is::Exec | Is::Multi | Is::Watch => unreachable!("the core runs them"),
        Is::Client(command) => client::run(command, visit),
        Is::Cluster(command) => cluster::run(command, visit),
        Is::Config(command) => config::run(command, visit),
        Is::Entremet(command) => entremet::run(command, visit),
        Is::Info => info::run(visit),
        Is::Memory(command) => memory::run(command, visit),
        Is::Bgsave => save::bgsave(visit),
        Is::Lastsave => save::lastsave(visit),
        Is::Save => save::save(visit),
        Is::ModuleList => visit.reply().array(0),
        Is::Role => server::role(visit),
        Is::Wait => server::wait(visit),
        Is::Latency(command) => latency::run(command, visit),
        Is::Slowlog(command) => slow_log::run(command, visit),
        Is::Ping => server::ping(visit),
        Is::Echo => server::echo(visit),
        Is::Time => server::time(visit),
        Is::Lolwut => server::lolwut(visit),
        Is::Shutdown => server::shutdown(visit),
        // `UNWATCH` comes here from a transaction only, whose end forgets what was watched.
        Is::Readonly | Is::Readwrite => {
            visit.state.reads_anywhere = matches!(command, Is::Readonly);
            visit.reply().ok();
        }
        Is::FunctionFlush | Is::Unwatch => visit.reply().ok(),
    }
    None
}
