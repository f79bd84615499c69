//! `LCS`: the longest common subsequence of two strings, by the textbook table.

use crate::commands::call::{is, Call, Done, Fail, SYNTAX};
use crate::resp::Reply;

struct Options {
    len_only: bool,
    indices: bool,
    with_match_len: bool,
    match_len_min: usize,
}

/// `LCS key1 key2 [LEN] [IDX] [MINMATCHLEN n] [WITHMATCHLEN]`
pub(in crate::commands) fn lcs(call: &mut Call) -> Done {
    // Redis gives this command a text of its own for a wrong type, and looks at the values first.
    let not_strings = || Fail::error("ERR The specified keys must contain string values");
    let mut values = Vec::with_capacity(2);
    for index in [1, 2] {
        let value = match call.string(call.arg(index)) {
            Err(Fail::Error(_)) => return Err(not_strings()),
            other => other?,
        };
        values.push(value.map(|(value, _)| value).unwrap_or_default());
    }
    let options = parse(call)?;
    let (a, b) = (&values[0][..], &values[1][..]);
    let cells = (a.len() + 1)
        .checked_mul(b.len() + 1)
        .and_then(|cells| cells.checked_mul(4));
    if cells.is_none_or(|bytes| bytes > call.context.value_bytes_max) {
        return Err(Fail::error(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        ));
    }
    let table = lengths(a, b);
    let len = table[table.len() - 1] as usize;
    if options.len_only {
        call.reply.count(len);
        return Ok(());
    }
    let (text, matches) = walk_back(a, b, &table);
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

/// Cell `(i, j)`, at `i * (b.len() + 1) + j`: the length for the first `i` and `j` bytes.
fn lengths(a: &[u8], b: &[u8]) -> Vec<u32> {
    let width = b.len() + 1;
    let mut table = vec![0u32; (a.len() + 1) * width];
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            table[i * width + j] = if a[i - 1] == b[j - 1] {
                table[(i - 1) * width + j - 1] + 1
            } else {
                table[(i - 1) * width + j].max(table[i * width + j - 1])
            };
        }
    }
    table
}

/// A run of equal bytes: where it starts in either string, and its length.
struct Match {
    a: usize,
    b: usize,
    len: usize,
}

/// The subsequence and its runs from the last to the first, choosing among equals as Redis does.
fn walk_back(a: &[u8], b: &[u8], table: &[u32]) -> (Vec<u8>, Vec<Match>) {
    let width = b.len() + 1;
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
        } else if table[(i - 1) * width + j] > table[i * width + j - 1] {
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
