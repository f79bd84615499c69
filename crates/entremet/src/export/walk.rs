//! One tenant, key by key.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::client::{Client, ClientError, Reply, Target, Words};

use super::line::{score, text, Key, Part};
use super::pace::Pace;
use super::progress::{Journal, Reached};
use super::ExportError;

/// Numbered databases of a tenant.
const DATABASES: usize = 16;
/// A page is to have about so many bytes: it is held in memory, and it is one request among others'
/// at the server.
const PAGE_BYTES: u64 = 1 << 20;
/// Keys of the first page, and of the largest; of a collection's parts elements.
const COUNT_FIRST: u64 = 16;
const COUNT_MAX: u64 = 1_000;
/// A larger collection is read and written in parts.
const WHOLE_BYTES: i64 = 1 << 20;
/// A key that has become something else so often between two looks is given up.
const LOOKS_MAX: u32 = 100;
/// What is written down is synced so often: what a killed run did after that is done again.
const KEEP: Duration = Duration::from_secs(1);

/// Reads one tenant.
pub struct Walk<'w> {
    /// Where.
    pub target: &'w Target,
    /// How far it and others are.
    pub journal: &'w Journal,
    /// How fast all of them may read.
    pub pace: &'w Pace,
    /// Whom.
    pub tenant: &'w str,
}

/// A tenant's file as it is written.
struct Writer<'w> {
    walk: &'w Walk<'w>,
    client: Client,
    file: File,
    reached: Reached,
    buffer: Vec<u8>,
    kept: Instant,
    size: Size,
}

/// A key of a page: its name, its value or what it is, and when it expires.
type Item = (Vec<u8>, Reply, Option<i64>);

impl Walk<'_> {
    /// Reads from where an earlier run ended to the end.
    ///
    /// # Errors
    /// Whatever keeps it from that; what was read stays.
    pub fn run(&self, password: Option<&str>) -> Result<(), ExportError> {
        let (file, reached) = self.journal.begin(self.tenant)?;
        if reached.done {
            return Ok(());
        }
        let mut writer = Writer {
            client: Client::connect(self.target, self.tenant, password)?,
            walk: self,
            file,
            reached,
            buffer: Vec::new(),
            kept: Instant::now(),
            size: Size::default(),
        };
        writer.reached.expected = expected(&mut writer.client)?;
        let first = writer.reached.database;
        for database in first..DATABASES {
            if database > first {
                (writer.reached.database, writer.reached.after) = (database, None);
            }
            let number = database.to_string();
            writer.client.ask(vec![b"SELECT", number.as_bytes()])?;
            while writer.page()? {}
        }
        writer.reached.done = true;
        writer.keep()
    }
}

impl Writer<'_> {
    /// Reads and writes a page; false: there was none.
    fn page(&mut self) -> Result<bool, ExportError> {
        let before_bytes = self.client.read_bytes;
        let items = self.items()?;
        let Some((last, ..)) = items.last() else {
            return Ok(false);
        };
        let (count, last) = (items.len() as u64, last.clone());
        let page_bytes = self.client.read_bytes - before_bytes;
        self.size.follow(count, page_bytes);
        for (name, value, expires_at_ms) in items {
            let key = Key {
                database: self.reached.database,
                name: &name,
                expires_at_ms,
            };
            match value {
                Reply::Bulk(value) => self.write(&key.line("string", text(&value), None)),
                Reply::Simple(_) => self.one(key)?,
                _ => return Err(strange("ENTREMET.RANGE")),
            }
        }
        self.reached.keys += count;
        self.reached.after = Some(last);
        if self.kept.elapsed() >= KEEP {
            self.keep()?;
        } else {
            self.flush()?;
        }
        self.walk.pace.spend(page_bytes);
        Ok(true)
    }

    /// The next keys.
    fn items(&mut self) -> Result<Vec<Item>, ExportError> {
        let start = match &self.reached.after {
            None => b"-".to_vec(),
            Some(last) => [b"(", &last[..]].concat(),
        };
        let count = self.size.count.to_string();
        let words: Words = vec![
            b"ENTREMET.RANGE",
            &start,
            b"+",
            b"COUNT",
            count.as_bytes(),
            b"EXPIRES",
        ];
        let Reply::List(replies) = self.client.ask(words)? else {
            return Err(strange("ENTREMET.RANGE"));
        };
        let mut replies = replies.into_iter();
        let mut items = Vec::new();
        while let Some(key) = replies.next() {
            match (key, replies.next(), replies.next()) {
                (Reply::Bulk(key), Some(value), Some(Reply::Integer(at_ms))) => {
                    items.push((key, value, (at_ms >= 0).then_some(at_ms)));
                }
                _ => return Err(strange("ENTREMET.RANGE")),
            }
        }
        Ok(items)
    }

    /// A key as it is now: whole and as of one moment, or in parts if it is large.
    fn one(&mut self, key: Key<'_>) -> Result<(), ExportError> {
        // It may become something else between two looks, and is then looked at again.
        for _ in 0..LOOKS_MAX {
            let looks = [
                vec![b"TYPE" as &[u8], key.name],
                vec![b"MEMORY", b"USAGE", key.name],
            ];
            let (kind, bytes) = match <[Reply; 2]>::try_from(self.client.ask_all(&looks)?) {
                Ok([Reply::Simple(kind), Reply::Integer(bytes)]) => (kind, bytes),
                // It is gone.
                Ok([_, Reply::Nothing]) => return Ok(()),
                _ => return Err(strange("TYPE")),
            };
            let whole: Words = match (kind.as_str(), bytes > WHOLE_BYTES) {
                ("hash" | "zset", true) => return self.in_parts(key, &kind),
                ("hash", false) => vec![b"HGETALL", key.name],
                ("zset", false) => vec![b"ZRANGE", key.name, b"0", b"-1", b"WITHSCORES"],
                ("string", _) => vec![b"GET", key.name],
                _ => return Err(strange("TYPE")),
            };
            let expiry: Words = vec![b"PEXPIRETIME", key.name];
            let transaction = [vec![b"MULTI" as &[u8]], expiry, whole, vec![b"EXEC"]];
            let Some(Reply::List(done)) = self.client.ask_all(&transaction)?.pop() else {
                return Err(strange("EXEC"));
            };
            let (at_ms, value) = match <[Reply; 2]>::try_from(done) {
                Ok([Reply::Integer(-2), _]) => return Ok(()),
                Ok([Reply::Integer(at_ms), Reply::Bulk(value)]) => (at_ms, text(&value)),
                Ok([Reply::Integer(at_ms), Reply::List(all)]) => (at_ms, pairs(&kind, &all)?),
                Ok([_, Reply::Error(why)]) if why.starts_with("WRONGTYPE") => continue,
                Ok([_, Reply::Error(reply)]) => {
                    let command = kind;
                    return Err(ClientError::Refused { command, reply }.into());
                }
                _ => return Err(strange("EXEC")),
            };
            let key = Key {
                expires_at_ms: (at_ms >= 0).then_some(at_ms),
                ..key
            };
            self.write(&key.line(&kind, value, None));
            return Ok(());
        }
        Err(strange("TYPE"))
    }

    /// A large collection: every element that is there from the first part to the last, once.
    fn in_parts(&mut self, key: Key<'_>, kind: &str) -> Result<(), ExportError> {
        let walk: &[u8] = if kind == "hash" { b"HSCAN" } else { b"ZSCAN" };
        let (mut cursor, mut size) = (b"0".to_vec(), Size::default());
        for number in 0.. {
            let before_bytes = self.client.read_bytes;
            let count = size.count.to_string();
            let words = vec![walk, key.name, &cursor, b"COUNT", count.as_bytes()];
            let (next, elements) = match self.client.ask(words) {
                Ok(Reply::List(reply)) => match <[Reply; 2]>::try_from(reply) {
                    Ok([Reply::Bulk(next), Reply::List(elements)]) => (next, elements),
                    _ => return Err(strange("HSCAN")),
                },
                // It has become something else: its elements are gone.
                Err(ClientError::Refused { reply, .. }) if reply.starts_with("WRONGTYPE") => {
                    (b"0".to_vec(), Vec::new())
                }
                Err(error) => return Err(error.into()),
                Ok(_) => return Err(strange("HSCAN")),
            };
            let more = next != b"0";
            let part = Part { number, more };
            self.write(&key.line(kind, pairs(kind, &elements)?, Some(part)));
            self.flush()?;
            let read_bytes = self.client.read_bytes - before_bytes;
            size.follow(elements.len() as u64 / 2, read_bytes);
            self.walk.pace.spend(read_bytes);
            if !more {
                break;
            }
            cursor = next;
        }
        Ok(())
    }

    fn write(&mut self, line: &[u8]) {
        self.buffer.extend_from_slice(line);
    }

    /// What is written goes to the kernel.
    fn flush(&mut self) -> Result<(), ExportError> {
        let written = self.file.write_all(&self.buffer);
        written.map_err(|source| self.wrong(source))?;
        self.reached.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// What is written is on the disk, and written down.
    fn keep(&mut self) -> Result<(), ExportError> {
        self.flush()?;
        self.file.sync_data().map_err(|source| self.wrong(source))?;
        self.walk.journal.reach(self.walk.tenant, &self.reached)?;
        self.kept = Instant::now();
        Ok(())
    }

    fn wrong(&self, source: std::io::Error) -> ExportError {
        ExportError::File {
            path: self
                .walk
                .journal
                .path(self.walk.tenant)
                .display()
                .to_string(),
            source,
        }
    }
}

/// How many elements to ask for, so that they have about [`PAGE_BYTES`].
struct Size {
    count: u64,
}

impl Default for Size {
    fn default() -> Self {
        Size { count: COUNT_FIRST }
    }
}

impl Size {
    /// So many elements had so many bytes. Values grow and shrink from page to page: at most twice
    /// as many as before.
    fn follow(&mut self, elements: u64, bytes: u64) {
        let fit = elements.max(1) * PAGE_BYTES / bytes.max(1);
        self.count = fit.clamp(1, (2 * self.count).min(COUNT_MAX));
    }
}

/// Fields and values, or members and scores.
fn pairs(kind: &str, elements: &[Reply]) -> Result<Value, ExportError> {
    let pair = |pair: &[Reply]| match pair {
        [Reply::Bulk(name), Reply::Bulk(value)] => Ok(match kind {
            "hash" => json!([text(name), text(value)]),
            _ => json!([text(name), score(value)]),
        }),
        _ => Err(strange("a collection")),
    };
    let pairs: Result<Vec<Value>, ExportError> = elements.chunks(2).map(pair).collect();
    pairs.map(Value::Array)
}

/// About how many keys a tenant has.
fn expected(client: &mut Client) -> Result<u64, ExportError> {
    let Reply::Bulk(text) = client.ask(vec![b"INFO", b"keyspace"])? else {
        return Err(strange("INFO"));
    };
    let text = String::from_utf8_lossy(&text);
    let keys = text.lines().filter_map(|line| {
        let (_, facts) = line.split_once(":keys=")?;
        facts.split(',').next()?.parse::<u64>().ok()
    });
    Ok(keys.sum())
}

fn strange(command: &str) -> ExportError {
    let command = command.into();
    ClientError::Strange { command }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_grow_slowly_and_shrink_at_once() {
        let mut size = Size::default();
        let mut follow = |elements, bytes| {
            size.follow(elements, bytes);
            size.count
        };
        assert_eq!(follow(16, 1_600), 32);
        assert_eq!(follow(32, 32 << 20), 1);
        assert_eq!(follow(1, 100), 2);
        assert_eq!(follow(0, 10), 4, "a page of none");
    }
}
