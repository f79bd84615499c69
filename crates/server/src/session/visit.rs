//! One command on the connection or the server under way.

use std::sync::Arc;

use resp::{is, parse_i64, Args, Output, Reply};

use crate::session::State;
use crate::shared::Shared;
use crate::tenants::{Client, Hold, Tenant};

/// What such a command has at hand. It writes exactly one reply. It may run on the connection's
/// core or on a handler, so it has the connection's state and not the connection.
pub struct Visit<'a> {
    /// The whole server.
    pub shared: &'a Arc<Shared>,
    /// Who asks; nobody else's is shown.
    pub tenant: &'a Arc<Tenant>,
    /// The connection's public face.
    pub client: &'a Arc<Client>,
    /// What the connection remembers.
    pub state: &'a mut State,
    /// The connection's seat; it has none at hand inside a transaction and on a handler, where
    /// nobody logs in.
    pub hold: Option<&'a mut Hold>,
    /// Where the reply goes.
    pub output: &'a mut Output,
    /// The command's words.
    pub args: Args<'a>,
    /// Time of day, ms since the Unix epoch.
    pub now_ms: u64,
}

impl<'a> Visit<'a> {
    /// Where the reply goes.
    pub fn reply(&mut self) -> Reply<'_> {
        Reply::new(self.output, self.state.protocol)
    }

    /// Replies with an error.
    pub fn error(&mut self, text: &str) {
        self.reply().error(text);
    }

    /// True when its tenant may administer the server.
    pub fn operator(&self) -> bool {
        self.tenant.operator()
    }

    /// Replies with Redis's syntax error.
    pub fn syntax_error(&mut self) {
        self.error("ERR syntax error");
    }

    /// Word `index`.
    pub fn arg(&self, index: usize) -> &'a [u8] {
        self.args.get(index)
    }

    /// Word `index` as text for comparing and showing; bytes that are no UTF-8 are replaced.
    pub fn text(&self, index: usize) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(self.args.get(index))
    }

    /// True when word `index` is `option`, in any case.
    pub fn is(&self, index: usize, option: &str) -> bool {
        self.args.find(index).is_some_and(|word| is(word, option))
    }

    /// Word `index` as an integer.
    pub fn int(&self, index: usize) -> Option<i64> {
        parse_i64(self.args.find(index)?)
    }
}
