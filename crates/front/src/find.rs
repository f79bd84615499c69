//! Where the keys of a command are, as the engine says it (the key specifications of `COMMAND`).

use resp::{is, parse_i64, Args};
use smallvec::SmallVec;

use crate::value::Value;

/// Positions of words.
pub type Places = SmallVec<[usize; 8]>;

/// Where the search for keys begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Search {
    /// At this word.
    Index(usize),
    /// Behind the first word that is this one, from a position on.
    Keyword(String, usize),
}

/// How the keys follow one another from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// Up to a word; negative: counted from the last. `limit` of 2 or more: the first of so many
    /// equal parts of what follows.
    Range {
        /// The last key, from the first.
        last: i64,
        /// From one key to the next.
        step: usize,
        /// Parts; 0 or 1: all of it.
        limit: usize,
    },
    /// As many as a word says.
    Count {
        /// That word, from where the search begins.
        at: usize,
        /// The first key, likewise.
        first: usize,
        /// From one key to the next.
        step: usize,
    },
}

/// One key specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// Where the search begins.
    pub search: Search,
    /// How it goes on.
    pub find: Find,
}

/// Words whose keys are not certain.
const UNCERTAIN: &str = "ERR syntax error: which words are keys is not certain";

impl KeySpec {
    /// Reads one of the engine's. None: it says that it does not tell all keys.
    pub fn read(value: &Value) -> Option<Self> {
        let flags = value.get("flags")?.items();
        let open = |flag: &Value| matches!(flag.text(), Some("incomplete" | "not_key"));
        if flags.iter().any(open) {
            return None;
        }
        let (begin, find) = (value.get("begin_search")?, value.get("find_keys")?);
        let (from, how) = (begin.get("spec")?, find.get("spec")?);
        let number = |spec: &Value, name: &str| spec.get(name).and_then(Value::int);
        let place = |spec: &Value, name: &str| number(spec, name)?.try_into().ok();
        let search = match begin.get("type")?.text()? {
            "index" => Search::Index(place(from, "index")?),
            "keyword" => {
                let word = from.get("keyword")?.text()?.to_owned();
                Search::Keyword(word, place(from, "startfrom")?)
            }
            _ => return None,
        };
        let find = match find.get("type")?.text()? {
            "range" => Find::Range {
                last: number(how, "lastkey")?,
                step: place(how, "keystep").filter(|step| *step > 0)?,
                limit: place(how, "limit")?,
            },
            "keynum" => Find::Count {
                at: place(how, "keynumidx")?,
                first: place(how, "firstkey")?,
                step: place(how, "keystep").filter(|step| *step > 0)?,
            },
            _ => return None,
        };
        Some(Self { search, find })
    }

    /// Where a command names channels of shards, which lie in partitions as keys do. None: it names
    /// none. The engine tells that, too, and calls them `not_key`.
    pub(crate) fn of_channels(command: &str) -> Option<Self> {
        let last = match command {
            "spublish" => 0,
            "ssubscribe" | "sunsubscribe" => -1,
            _ => return None,
        };
        Some(Self {
            search: Search::Index(1),
            find: Find::Range {
                last,
                step: 1,
                limit: 0,
            },
        })
    }

    /// Whether it can tell more than one key.
    pub fn several(&self) -> bool {
        !matches!(self.find, Find::Range { last: 0, .. })
    }

    /// Adds the positions of the keys in `args` to `places`.
    ///
    /// # Errors
    /// The text of an error: they cannot be told for certain.
    pub fn places(&self, args: &Args, places: &mut Places) -> Result<(), &'static str> {
        let begin = match &self.search {
            Search::Index(index) => *index,
            Search::Keyword(word, from) => {
                let mut found = (*from..args.len()).filter(|at| is(args.get(*at), word));
                let Some(at) = found.next() else {
                    return Ok(());
                };
                // Commands differ in which of two they take.
                if found.next().is_some() && !self.takes_all_behind() {
                    return Err(UNCERTAIN);
                }
                at + 1
            }
        };
        let (first, last, step) = match self.find {
            Find::Range { last, step, limit } => (begin, end(begin, last, limit, args.len()), step),
            Find::Count { at, first, step } => {
                let count = args.find(begin + at).and_then(parse_i64);
                let count = count.and_then(|count| usize::try_from(count).ok());
                let count = count.ok_or("ERR numkeys is not an integer or out of range")?;
                if count == 0 {
                    return Ok(());
                }
                let first = begin + first;
                let last = count
                    .checked_mul(step)
                    .and_then(|words| first.checked_add(words - step));
                (first, last, step)
            }
        };
        match last.filter(|last| *last < args.len() && first <= *last) {
            Some(last) => places.extend((first..=last).step_by(step)),
            // The engine would find too few words, or none where a key must be.
            None => return Err(UNCERTAIN),
        }
        Ok(())
    }

    /// Whether it tells the keys that the command takes in every request of `least` words or more.
    /// Not where a keyword may come twice, of which the command takes the last and this finds the
    /// first; nor where the keys may be missing: an engine that misses some checks none.
    pub fn is_certain(&self, least: usize) -> bool {
        match (&self.search, self.find) {
            (Search::Keyword(..), _) => self.takes_all_behind(),
            (Search::Index(first), Find::Range { last, limit, .. }) => {
                let last = end(*first, last, limit, least);
                last.is_some_and(|last| *first <= last && last < least)
            }
            (Search::Index(_), Find::Count { .. }) => true,
        }
    }

    /// Whether all behind its keyword is its own, so that the keyword may come again there.
    fn takes_all_behind(&self) -> bool {
        matches!(self.find, Find::Range { last: -1, .. })
    }
}

/// The position of the last key.
fn end(first: usize, last: i64, limit: usize, len: usize) -> Option<usize> {
    if last >= 0 {
        return first.checked_add(last as usize);
    }
    let behind = len.checked_sub(first)?;
    let part = if limit > 1 { behind / limit } else { behind };
    (first + part).checked_sub(last.unsigned_abs() as usize)
}
