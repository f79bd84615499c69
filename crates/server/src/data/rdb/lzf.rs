//! LZF, in which Redis compresses long strings: literal runs and copies of what came before.

use engine::{Access, Stop};

/// Bytes that are written between two looks at whether the command may go on.
const STRETCH_BYTES: usize = 16 << 10;
/// Bytes that are written in the time of a step.
const BYTES_PER_STEP: usize = 1 << 10;

/// Undoes the compression of `from` into exactly `len` bytes; `None`: it does not come to that. The
/// memory that is taken grows with what is there: 88 bytes for one of the input at most.
///
/// # Errors
/// The command has to go on elsewhere.
pub fn decompress(from: &[u8], len: usize, access: &mut Access) -> Result<Option<Vec<u8>>, Stop> {
    let (mut to, mut rest, mut stretch_ends) = (Vec::new(), from, STRETCH_BYTES);
    while !rest.is_empty() {
        if to.len() >= stretch_ends {
            access.steps((STRETCH_BYTES / BYTES_PER_STEP) as u64)?;
            stretch_ends = to.len() + STRETCH_BYTES;
        }
        match run(rest, &mut to) {
            Some(behind) if to.len() <= len => rest = behind,
            _ => return Ok(None),
        }
    }
    Ok((to.len() == len).then_some(to))
}

/// Writes out the first run of `from`; returns what is behind it.
fn run<'f>(from: &'f [u8], to: &mut Vec<u8>) -> Option<&'f [u8]> {
    let (control, mut behind) = from.split_first()?;
    let control = usize::from(*control);
    if control < 32 {
        let (literal, behind) = behind.split_at_checked(control + 1)?;
        to.extend_from_slice(literal);
        return Some(behind);
    }
    let mut next = || {
        let (byte, rest) = behind.split_first()?;
        behind = rest;
        Some(usize::from(*byte))
    };
    let more = if control >> 5 == 7 { next()? } else { 0 };
    let back = (control & 0x1f) << 8 | next()?;
    let begin = to.len().checked_sub(back + 1)?;
    for at in begin..begin + (control >> 5) + more + 2 {
        // It may reach into what it writes itself.
        to.push(to[at]);
    }
    Some(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What it comes to, without a limit on the work.
    fn decompress(from: &[u8], len: usize) -> Option<Vec<u8>> {
        let (mut to, mut rest) = (Vec::new(), from);
        while !rest.is_empty() {
            rest = run(rest, &mut to)?;
        }
        (to.len() == len).then_some(to)
    }

    #[test]
    fn runs_and_copies_are_written_out() {
        assert_eq!(decompress(b"\x02abc", 3), Some(b"abc".to_vec()));
        // Three bytes, then seven from three back: they overlap.
        assert_eq!(
            decompress(b"\x02abc\xa0\x02", 10),
            Some(b"abcabcabca".to_vec())
        );
        assert_eq!(decompress(b"\x00a\xe0\xff\x00", 265), Some(vec![b'a'; 265]));
    }

    #[test]
    fn what_is_cut_or_reaches_too_far_is_refused() {
        for (bad, len) in [
            (&b"\x02ab"[..], 3),
            (b"\x20\x00", 3),
            (b"\x00a\x20\x01", 4),
            (b"\x00a\xe0", 10),
            (b"\x00a\xe0\xff", 264),
            (b"\x00a", 2),
            (b"\x00a", 0),
        ] {
            assert_eq!(decompress(bad, len), None, "{bad:?}");
        }
        assert_eq!(decompress(b"", 0), Some(Vec::new()));
    }
}
