//! `SCAN` before a cluster: over the nodes that have a tenant's partitions, one after the other,
//! and what its cursor remembers. Whatever is there from beginning to end is shown at least once,
//! also while nodes come, go and take each other's places.
//!
//! Partitions are gone over in order. The node of the first is asked for keys of all of them,
//! since it looks at all it has anyway; then that of the next which no such node had, and so on. A
//! cursor has the number of the partition, the engine's cursor, and a mark of where all partitions
//! were. While that is so, all partitions before the one under way are done, and those of the
//! nodes that had them.
//!
//! Where something has changed meanwhile, it is not known any more which of the later ones are
//! done. From then on partitions are gone over one by one, from the one under way on, each from
//! its beginning; the cursor has a mark of its node only, and if that changes, this one partition
//! begins anew: an engine's cursor says nothing to another.

use resp::{is, parse_i64, Args};

use crate::reply::Shows;
use crate::slot::PARTS_MAX;
use crate::space::Space;
use crate::value::frame;
use crate::walk::{STEP, STEP_KEYS};

/// Bits of the engine's cursors: of the largest table that it can have, and beside that, where it
/// keeps one for each, a slot.
const ENGINE_BITS: u32 = 42;
/// Bits of cursors in all: many clients take them for signed numbers.
const BITS: u32 = 63;

/// Where a partition is: the place of its node, and the node's name. None: nobody has it.
pub type Lies<'n> = Option<(usize, &'n str)>;

/// What is asked for a page, or that there is none.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    /// The node at this place, whose reply is shown so.
    Node(usize, Shows),
    /// All was shown.
    Nothing,
}

/// Where a `SCAN` is, but for the engine's own cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    /// The partition under way.
    part: u16,
    /// Partitions are gone over one by one.
    one_by_one: bool,
    /// A mark of where all of them are, or of the node of this one.
    mark: u64,
}

/// How cursors are written for a tenant of so many partitions.
#[derive(Clone, Copy)]
struct Format {
    parts: u64,
    marks: u64,
}

impl Format {
    fn of(space: &Space) -> Self {
        let parts = u64::from(space.parts().min(PARTS_MAX)).next_power_of_two();
        Self {
            parts,
            marks: 1 << (BITS - ENGINE_BITS - 1 - parts.trailing_zeros()),
        }
    }

    /// What the engine's cursors are multiplied by.
    fn times(self) -> u64 {
        self.parts * self.marks * 2
    }

    /// What is added to them.
    fn rest(self, at: Position) -> u64 {
        (at.mark * 2 + u64::from(at.one_by_one)) * self.parts + u64::from(at.part)
    }

    fn read(self, cursor: u64) -> (u64, Position) {
        let (engine, rest) = (cursor / self.times(), cursor % self.times());
        let marked = rest / self.parts;
        let at = Position {
            part: (rest % self.parts) as u16,
            one_by_one: marked % 2 == 1,
            mark: marked / 2,
        };
        (engine, at)
    }
}

/// A number that is the same in all processes (FNV-1a).
fn hash(before: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(before, step)
}

/// Partitions over which a `SCAN` goes, in ascending order, and where they are.
struct Parts<'l, 'n> {
    all: &'l [(u16, Lies<'n>)],
    format: Format,
}

impl<'n> Parts<'_, 'n> {
    fn mark_of(&self, those: &[(u16, Lies<'n>)]) -> u64 {
        let mark = those
            .iter()
            .fold(0xcbf2_9ce4_8422_2325, |mark, (part, lies)| {
                let mark = hash(mark, &part.to_le_bytes());
                hash(mark, lies.map_or(&b""[..], |(_, name)| name.as_bytes()))
            });
        // The last bits of such a number depend on the first of what it is made of only.
        (mark ^ (mark >> 32)) % self.format.marks
    }

    fn lies(&self, part: u16) -> Lies<'n> {
        let mut all = self.all.iter();
        all.find(|(known, _)| *known == part)?.1
    }

    /// Whether a partition is the first that its node has.
    fn is_first(&self, part: u16) -> bool {
        let same = |lies: &Lies<'n>| lies.map(|(place, _)| place) == self.lies(part).map(|it| it.0);
        let first = self.all.iter().find(|(_, lies)| same(lies));
        first.is_some_and(|(first, _)| *first == part)
    }

    /// The beginning of what comes at `part` or behind it; none: nothing does.
    fn from(&self, part: u16, one_by_one: bool) -> Option<Position> {
        let mut behind = self.all.iter().filter(|(known, _)| *known >= part);
        let next = behind.find(|(part, _)| one_by_one || self.is_first(*part))?;
        Some(Position {
            part: next.0,
            one_by_one,
            mark: match one_by_one {
                true => self.mark_of(std::slice::from_ref(next)),
                false => self.mark_of(self.all),
            },
        })
    }

    /// Where it is, and the engine's cursor there. None: all was shown.
    fn resume(&self, cursor: u64) -> Option<(u64, Position)> {
        if cursor == 0 {
            return Some((0, self.from(0, false)?));
        }
        let (engine, at) = self.format.read(cursor);
        if self.from(at.part, at.one_by_one) == Some(at) {
            return Some((engine, at));
        }
        Some((0, self.from(at.part, true)?))
    }
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`, over the tenant's keys only, which are
/// in partitions that lie so, in ascending order; none: before one engine.
///
/// # Errors
/// The text of an error; `nobody`, if no node has the partition whose turn it is.
pub fn scan(
    args: &Args,
    space: &Space,
    parts: Option<&[(u16, Lies<'_>)]>,
    nobody: &'static str,
    out: &mut Vec<u8>,
) -> Result<Asked, &'static str> {
    let pattern = match (2..args.len())
        .step_by(2)
        .rfind(|at| is(args.get(*at), "MATCH"))
    {
        Some(at) => args.find(at + 1).ok_or("ERR syntax error")?,
        None => b"*",
    };
    let Some(all) = parts else {
        let shows = Shows::Page {
            times: 1,
            rest: 0,
            next: 0,
        };
        page(args, args.get(1), &space.glob(pattern), out)?;
        return Ok(Asked::Node(0, shows));
    };
    let cursor = parse_i64(args.get(1)).and_then(|cursor| u64::try_from(cursor).ok());
    let cursor = cursor.ok_or("ERR invalid cursor")?;
    let format = Format::of(space);
    let parts = Parts { all, format };
    let Some((engine, at)) = parts.resume(cursor) else {
        return Ok(Asked::Nothing);
    };
    let (place, _) = parts.lies(at.part).ok_or(nobody)?;
    let next = parts.from(at.part + 1, at.one_by_one);
    let glob = match at.one_by_one {
        true => [space.mark(at.part), pattern].concat(),
        false => space.glob(pattern),
    };
    page(args, engine.to_string().as_bytes(), &glob, out)?;
    let shows = Shows::Page {
        times: format.times(),
        rest: format.rest(at),
        next: next.map_or(0, |next| format.rest(next)),
    };
    Ok(Asked::Node(place, shows))
}

/// A cursor as the client has it, of the engine's; none: it is larger than any can be.
pub(crate) fn cursor_for_client(engine: u64, times: u64, rest: u64, next: u64) -> Option<u64> {
    match engine {
        0 => Some(next),
        engine => engine.checked_mul(times)?.checked_add(rest),
    }
}

/// Writes what the engine is asked.
fn page(args: &Args, cursor: &[u8], glob: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    let mut words: Vec<&[u8]> = vec![args.get(0), cursor, b"MATCH", glob];
    let mut at = 2;
    while at < args.len() {
        let (option, Some(value)) = (args.get(at), args.find(at + 1)) else {
            return Err("ERR syntax error");
        };
        // A count is a hint, and the engine serves nobody else during a step.
        let most = is(option, "COUNT") && parse_i64(value).is_some_and(|count| count > STEP_KEYS);
        match option {
            _ if most => words.extend([option, STEP]),
            _ if is(option, "MATCH") => {}
            _ => words.extend([option, value]),
        }
        at += 2;
    }
    frame(words.into_iter(), out);
    Ok(())
}
