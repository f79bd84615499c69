//! `LCS`: the longest common subsequence of two strings, by the textbook table. Only two rows of
//! the table's lengths are kept, and for each cell a bit that says where its length comes from.

use std::cmp::Ordering;

use engine::Text;
use resp::{is, Reply};

use crate::data::call::{Call, Done, Fail, SYNTAX};

/// Cells of the table that are filled in about a microsecond.
const CELLS_PER_STEP: usize = 512;
/// And those that are counted together.
const CELLS_TOGETHER: usize = 8 << 10;

struct Options {
    len_only: bool,
    indices: bool,
    with_match_len: bool,
    match_len_min: usize,
}

/// `LCS key1 key2 [LEN] [IDX] [MINMATCHLEN n] [WITHMATCHLEN]`
pub(in crate::data) fn lcs(call: &mut Call) -> Done {
    // Redis gives this command a text of its own for a wrong type, and looks at the values first.
    let not_strings = || Fail::error("ERR The specified keys must contain string values");
    let mut texts = Vec::with_capacity(2);
    for index in [1, 2] {
        let found = match call.string(call.arg(index)) {
            Err(Fail::Error(_)) => return Err(not_strings()),
            other => other?,
        };
        texts.push(found.map(|(text, _)| text).unwrap_or_default());
    }
    let options = parse(call)?;
    // As large as Redis's, which has a length in each cell.
    let cells = (texts[0].len() + 1).checked_mul(texts[1].len() + 1);
    let bytes = cells.and_then(|cells| cells.checked_mul(4));
    if bytes.is_none_or(|bytes| bytes > call.context.value_bytes_max as u64) {
        return Err(Fail::error(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        ));
    }
    let (a, b) = (whole(call, &texts[0])?, whole(call, &texts[1])?);
    let (len, table) = fill(call, &a, &b, !options.len_only)?;
    let Some(table) = table else {
        call.reply.count(len);
        return Ok(());
    };
    let (text, matches) = walk_back(&a, &b, &table);
    if options.indices {
        let matches: Vec<_> = matches
            .into_iter()
            .filter(|found| found.len >= options.match_len_min)
            .collect();
        write_matches(&mut call.reply, &matches, len, options.with_match_len);
    } else {
        call.reply.bulk(&text);
    }
    Ok(())
}

/// All of a string together.
fn whole(call: &mut Call, text: &Text) -> Result<Vec<u8>, Fail> {
    call.access.work(text.len() as usize)?;
    let mut whole = Vec::with_capacity(text.len() as usize);
    let mut parts = call.access.parts(text, 0..text.len())?;
    while let Some(part) = parts.next(call.access)? {
        whole.extend_from_slice(&part);
    }
    Ok(whole)
}

fn parse(call: &Call) -> Result<Options, Fail> {
    let mut options = Options {
        len_only: false,
        indices: false,
        with_match_len: false,
        match_len_min: 0,
    };
    let mut index = 3;
    while let Some(word) = call.args.find(index) {
        match word {
            _ if is(word, "IDX") => options.indices = true,
            _ if is(word, "LEN") => options.len_only = true,
            _ if is(word, "WITHMATCHLEN") => options.with_match_len = true,
            _ if is(word, "MINMATCHLEN") && call.args.len() > index + 1 => {
                options.match_len_min = call.int(index + 1)?.max(0) as usize;
                index += 1;
            }
            _ => return Err(SYNTAX),
        }
        index += 1;
    }
    if options.indices && options.len_only {
        return Err(Fail::error(
            "ERR If you want both the length and indexes, please just use IDX.",
        ));
    }
    Ok(options)
}

/// Where a cell's length comes from, where its two bytes differ: a bit for each pair of bytes.
struct Table {
    width: usize,
    /// Set: it is the length without the byte of the first string.
    up: Vec<u64>,
}

impl Table {
    fn new(height: usize, width: usize) -> Table {
        let words = (height * width).div_ceil(64);
        let up = vec![0; words];
        Table { width, up }
    }

    /// The word and the bit of the pair `a[i]`, `b[j]`.
    fn place(&self, i: usize, j: usize) -> (usize, u64) {
        let at = i * self.width + j;
        (at / 64, 1 << (at % 64))
    }

    fn set_up(&mut self, i: usize, j: usize) {
        let (word, bit) = self.place(i, j);
        self.up[word] |= bit;
    }

    fn is_up(&self, i: usize, j: usize) -> bool {
        let (word, bit) = self.place(i, j);
        self.up[word] & bit != 0
    }
}

/// The length of the subsequence and, if it is `wanted`, the way to it.
fn fill(call: &mut Call, a: &[u8], b: &[u8], wanted: bool) -> Result<(usize, Option<Table>), Fail> {
    call.access
        .foresee((a.len() * b.len() / CELLS_PER_STEP) as u64)?;
    call.access.work((b.len() + 1) * 8)?;
    if wanted {
        call.access.work(a.len() * b.len() / 8)?;
    }
    let mut table = wanted.then(|| Table::new(a.len(), b.len()));
    // Lengths for the bytes of `a` so far and each number of bytes of `b`.
    let (mut above, mut row) = (vec![0u32; b.len() + 1], vec![0u32; b.len() + 1]);
    let mut cells = 0;
    for (i, byte) in a.iter().enumerate() {
        for (j, other) in b.iter().enumerate() {
            cells += 1;
            if cells == CELLS_TOGETHER {
                call.access.steps((cells / CELLS_PER_STEP) as u64)?;
                cells = 0;
            }
            row[j + 1] = if byte == other {
                above[j] + 1
            } else {
                // Among equals the second string is gone back in, as in Redis.
                let (up, left) = (above[j + 1], row[j]);
                if let (Ordering::Greater, Some(table)) = (up.cmp(&left), &mut table) {
                    table.set_up(i, j);
                }
                up.max(left)
            };
        }
        std::mem::swap(&mut above, &mut row);
    }
    Ok((above[b.len()] as usize, table))
}

/// A run of equal bytes: where it starts in either string, and its length.
struct Match {
    a: usize,
    b: usize,
    len: usize,
}

/// The subsequence and its runs from the last to the first, choosing among equals as Redis does.
fn walk_back(a: &[u8], b: &[u8], table: &Table) -> (Vec<u8>, Vec<Match>) {
    let (mut i, mut j) = (a.len(), b.len());
    let (mut text, mut matches) = (Vec::new(), Vec::<Match>::new());
    while i > 0 && j > 0 {
        if a[i - 1] == b[j - 1] {
            text.push(a[i - 1]);
            i -= 1;
            j -= 1;
            match matches.last_mut() {
                Some(run) if run.a == i + 1 && run.b == j + 1 => {
                    *run = Match {
                        a: i,
                        b: j,
                        len: run.len + 1,
                    };
                }
                _ => matches.push(Match { a: i, b: j, len: 1 }),
            }
        } else if table.is_up(i - 1, j - 1) {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    text.reverse();
    (text, matches)
}

fn write_matches(reply: &mut Reply, matches: &[Match], len: usize, with_match_len: bool) {
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(matches.len());
    for found in matches {
        reply.array(if with_match_len { 3 } else { 2 });
        for start in [found.a, found.b] {
            reply.array(2);
            reply.count(start);
            reply.count(start + found.len - 1);
        }
        if with_match_len {
            reply.count(found.len);
        }
    }
    reply.bulk(b"len");
    reply.count(len);
}
