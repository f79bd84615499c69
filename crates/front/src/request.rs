//! A request as the engine is sent it.

use resp::{is, Args};

use crate::draft::Draft;
use crate::find::Places;
use crate::slot::slot;
use crate::space::Space;
use crate::table::Command;
use crate::way::Way;

pub(crate) const FOREIGN: &str = "ERR names that begin with '{@' are those of other tenants";
const SYNTAX: &str = "ERR syntax error";
const DERIVED: &str =
    "ERR a pattern of SORT stands for keys of any partition: it needs a tenant with one";
/// As Redis Cluster says it.
const CROSSSLOT: &str = "CROSSSLOT Keys in request don't hash to the same slot";

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Keys in it.
    pub keys: usize,
    /// Their partition; none: there are no keys.
    pub part: Option<u16>,
}

impl Written {
    /// A request with both.
    ///
    /// # Errors
    /// The text of an error: they are for different partitions.
    pub fn and(self, other: Self) -> Result<Self, &'static str> {
        let part = match (self.part, other.part) {
            (Some(one), Some(another)) if one != another => return Err(CROSSSLOT),
            (one, another) => one.or(another),
        };
        let keys = self.keys + other.keys;
        Ok(Self { keys, part })
    }
}

impl Command {
    /// Appends the request `args` of this command to `out`, its keys marked, and says which those
    /// are.
    ///
    /// # Errors
    /// The text of an error: it cannot be sent, and nothing was written.
    pub fn write(
        &self,
        args: &Args,
        space: &Space,
        out: &mut Draft,
    ) -> Result<Written, &'static str> {
        let mut keys = Places::new();
        match self.way {
            Way::Channel => return self.write_channels(args, space, out),
            Way::Subscribe if !self.of_shards() => return self.write_channels(args, space, out),
            Way::EveryShard => return self.write_for_every_shard(args, space, out),
            // `SUNSUBSCRIBE` of all.
            Way::Subscribe if args.len() == 1 => {}
            Way::Sort => sort(args, space, &mut keys)?,
            _ => self.places(args, &mut keys)?,
        }
        if keys.iter().any(|at| !space.may_use(args.get(*at))) {
            return Err(FOREIGN);
        }
        if self.spec.name == "copy" && args.len() > 3 {
            copies_here(args)?;
        }
        let mut written = Written {
            keys: keys.len(),
            part: None,
        };
        for at in &keys {
            let part = Some(space.part(args.get(*at)));
            written = written.and(Written { keys: 0, part })?;
        }
        let mark = space.mark(written.part.unwrap_or_default());
        out.begin(args.len());
        let mut keys = keys.iter().copied().peekable();
        for at in 0..args.len() {
            match keys.next_if_eq(&at) {
                Some(_) => out.marked(mark, args, at),
                None => out.word(args, at),
            }
        }
        Ok(written)
    }

    fn places(&self, args: &Args, keys: &mut Places) -> Result<(), &'static str> {
        for spec in &self.keys {
            spec.places(args, keys)?;
        }
        keys.sort_unstable();
        Ok(())
    }

    /// The hash slot that a client takes the request to be for: that of its first key. None: it has
    /// no key.
    pub fn slot(&self, args: &Args) -> Option<u16> {
        let mut keys = Places::new();
        match self.way {
            Way::Sort => keys.push(1),
            _ => self.places(args, &mut keys).ok()?,
        }
        keys.first().map(|at| slot(args.get(*at)))
    }

    /// Whether the request may wait at the engine.
    pub fn may_wait(&self, args: &Args) -> bool {
        match self.spec.name {
            _ if self.way != Way::Waits => false,
            "xread" | "xreadgroup" => {
                let mut options = args.iter().take_while(|word| !is(word, "STREAMS"));
                options.any(|word| is(word, "BLOCK"))
            }
            _ => true,
        }
    }
}

/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC|DESC] [ALPHA] [STORE key]`:
/// patterns are marked like keys, but for those that stand for none.
fn sort(args: &Args, space: &Space, keys: &mut Places) -> Result<(), &'static str> {
    keys.push(1);
    let mut at = 2;
    while let Some(word) = args.find(at) {
        let behind = |count: usize| args.len() > at + count;
        let pattern = |at: usize| args.get(at).contains(&b'*');
        match word {
            _ if ["ASC", "DESC", "ALPHA"].iter().any(|flag| is(word, flag)) => at += 1,
            _ if is(word, "LIMIT") && behind(2) => at += 3,
            _ if is(word, "STORE") && behind(1) => {
                keys.push(at + 1);
                at += 2;
            }
            _ if (is(word, "BY") || is(word, "GET")) && behind(1) => {
                if pattern(at + 1) {
                    if space.parts() > 1 {
                        return Err(DERIVED);
                    }
                    if !space.may_derive(args.get(at + 1)) {
                        return Err(FOREIGN);
                    }
                    keys.push(at + 1);
                }
                at += 2;
            }
            _ => return Err(SYNTAX),
        }
    }
    Ok(())
}

/// `COPY source destination [DB n] [REPLACE]`: to the one database that there is.
fn copies_here(args: &Args) -> Result<(), &'static str> {
    let mut words = args.from(3).iter();
    while let Some(word) = words.next() {
        let here = match word {
            _ if is(word, "REPLACE") => true,
            _ if is(word, "DB") => words.next() == Some(b"0"),
            _ => return Err(SYNTAX),
        };
        if !here {
            return Err(
                "ERR DB index is out of range: tenants before an engine have one database, 0",
            );
        }
    }
    Ok(())
}
