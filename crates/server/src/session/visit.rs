//! One session command under way.

use std::sync::Arc;

use crate::commands::is;
use crate::connection::Connection;
use crate::resp::{parse_i64, Args, Reply};
use crate::shared::Shared;

/// What a session command has at hand. It writes exactly one reply.
pub struct Visit<'a> {
    /// The whole server.
    pub shared: &'a Arc<Shared>,
    /// The connection that asked. It may see its own tenant only.
    pub connection: &'a mut Connection,
    /// The command's words.
    pub args: Args<'a>,
    /// Time of day, ms since the Unix epoch.
    pub now_ms: u64,
    /// It is one of the commands between `MULTI` and `EXEC`.
    pub inside_transaction: bool,
}

impl<'a> Visit<'a> {
    /// Where the reply goes.
    pub fn reply(&mut self) -> Reply<'_> {
        let protocol = self.connection.session.protocol;
        Reply::new(&mut self.connection.output, protocol)
    }

    /// Replies with an error.
    pub fn error(&mut self, text: &str) {
        self.reply().error(text);
    }

    /// True when its tenant may administer the server.
    pub fn operator(&self) -> bool {
        self.connection.tenant.operator()
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
