//! One execution of a data command: what it may touch, and how it ends.

use std::borrow::Cow;

use bytes::Bytes;
use commands::Spec;
use engine::{Access, Entry, Header, Kind, Object, Stop, Text};
use resp::{Args, Output, Reply};

use super::cursors::ScanCursors;
use super::long_double::{self, LongDouble};

/// A value of another type than the command is for.
pub const WRONG_TYPE: Fail = Fail::Error(Cow::Borrowed(
    "WRONGTYPE Operation against a key holding the wrong kind of value",
));
/// Arguments that make no sense together.
pub const SYNTAX: Fail = Fail::Error(Cow::Borrowed("ERR syntax error"));
/// Text where an integer was due.
pub const NOT_AN_INTEGER: Fail =
    Fail::Error(Cow::Borrowed("ERR value is not an integer or out of range"));
/// Text where a number was due.
pub const NOT_A_FLOAT: Fail = Fail::Error(Cow::Borrowed("ERR value is not a valid float"));

/// Why a command ends early.
#[derive(Debug)]
pub enum Fail {
    /// With an error for the client. Nothing was changed.
    Error(Cow<'static, str>),
    /// With nothing for the client yet: the engine needs another attempt, or has failed.
    Stop(Stop),
}

impl Fail {
    /// An error with a text of its own, code first.
    pub fn error(text: impl Into<Cow<'static, str>>) -> Fail {
        Fail::Error(text.into())
    }
}

impl From<Stop> for Fail {
    fn from(stop: Stop) -> Fail {
        Fail::Stop(stop)
    }
}

/// How a command ends. One that fails must not have written to its access before.
pub type Done = Result<(), Fail>;

/// What a command needs of its tenant and of the server's settings.
#[derive(Clone, Copy)]
pub struct Context<'t> {
    /// Positions of the tenant's `SCAN`s.
    pub cursors: &'t ScanCursors,
    /// Largest string in bytes (`proto-max-bulk-len`).
    pub value_bytes_max: usize,
    /// Most elements one `ENTREMET.RANGE` returns.
    pub range_count_max: usize,
    /// Bytes of values that a reading command may hold for its reply.
    pub held_bytes_max: usize,
}

/// A command under way.
pub struct Call<'c, 'k> {
    /// The keyspace as this command may see and change it.
    pub access: &'c mut Access<'k>,
    /// Its words.
    pub args: Args<'c>,
    /// Where its reply goes. A failed call's reply is taken back.
    pub reply: Reply<'c>,
    /// Its tenant's and the server's settings.
    pub context: Context<'c>,
    /// Which command it is.
    pub spec: &'static Spec,
}

impl<'c> Call<'c, '_> {
    /// Word `index`, as [`Args::get`].
    #[inline]
    pub fn arg(&self, index: usize) -> &'c [u8] {
        self.args.get(index)
    }

    /// Word `index` as an integer.
    pub fn int(&self, index: usize) -> Result<i64, Fail> {
        resp::parse_i64(self.arg(index)).ok_or(NOT_AN_INTEGER)
    }

    /// The number that `text` is, if it is one.
    pub fn long_double(&mut self, text: &[u8]) -> Result<Option<LongDouble>, Stop> {
        self.access.steps(long_double::steps(text.len()))?;
        Ok(LongDouble::parse(text))
    }

    /// A number as it is stored and told.
    pub fn printed(&mut self, value: LongDouble) -> Result<Bytes, Stop> {
        let text = value.to_text();
        self.access.steps(long_double::steps(text.len()))?;
        Ok(Bytes::from(text))
    }

    /// The string under `key`, if there is one, with its expiry.
    pub fn string(&mut self, key: &[u8]) -> Result<Option<(Text, Option<u64>)>, Fail> {
        match self.access.get(key)? {
            None => Ok(None),
            Some(Entry {
                object: Object::String(text),
                expire_at_ms,
            }) => Ok(Some((text, expire_at_ms))),
            Some(_) => Err(WRONG_TYPE),
        }
    }

    /// The collection of `kind` under `key`, if there is one, with its expiry.
    pub fn collection(
        &mut self,
        key: &[u8],
        kind: Kind,
    ) -> Result<Option<(Header, Option<u64>)>, Fail> {
        match self.access.get(key)? {
            None => Ok(None),
            Some(Entry {
                object: Object::Collection(header),
                expire_at_ms,
            }) if header.kind == kind => Ok(Some((header, expire_at_ms))),
            Some(_) => Err(WRONG_TYPE),
        }
    }

    /// Replies with what `walk` finds: `write` makes each item, `header` what stands before them,
    /// of their number and of what the walk returns. They are counted as they come: a reply whose
    /// header promised another number would break everything that the client reads after it. A
    /// streamed reply is of any length, and what it reads does not change: then `walk` goes twice,
    /// to count and to write.
    pub fn list<T, E>(
        &mut self,
        walk: impl Fn(&mut Self, &mut dyn FnMut(&mut Self, T)) -> Result<E, Fail>,
        header: impl Fn(&mut Reply, usize, E),
        write: impl Fn(&mut Reply, T),
    ) -> Done {
        let mut count = 0;
        if self.reply.is_streamed() {
            let end = walk(self, &mut |_, _| count += 1)?;
            header(&mut self.reply, count, end);
            walk(self, &mut |call, item| write(&mut call.reply, item))?;
            return Ok(());
        }
        let mut items = Output::new();
        let mut writer = Reply::new(&mut items, self.reply.protocol());
        let end = walk(self, &mut |_, item| {
            write(&mut writer, item);
            count += 1;
        })?;
        header(&mut self.reply, count, end);
        self.reply.append(items);
        Ok(())
    }

    /// The "invalid expire time" of this command.
    pub fn invalid_expire(&self) -> Fail {
        Fail::error(format!(
            "ERR invalid expire time in '{}' command",
            self.spec.name
        ))
    }
}
