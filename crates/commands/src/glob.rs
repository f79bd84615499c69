//! Glob patterns, matched exactly as Redis matches them, on bytes.

/// Longer patterns are refused.
pub const PATTERN_BYTES_MAX: usize = 4_096;

/// The error for a pattern that is too long.
pub const PATTERN_TOO_LONG: &str = "ERR a pattern may have at most 4096 bytes";

/// Steps ([`engine::TURN_STEPS`]) that a match may take: each star may look at all of the text.
pub fn match_steps(pattern: &[u8], text: &[u8]) -> u64 {
    const COMPARED_PER_STEP: u64 = 1_024;
    pattern.len() as u64 * text.len() as u64 / COMPARED_PER_STEP
}

/// True when `text` matches `pattern`: `*`, `?`, `[abc]`, `[^a-z]`, and `\` to quote.
pub fn glob_matches(pattern: &[u8], text: &[u8]) -> bool {
    matches_case(pattern, text, false)
}

/// As [`glob_matches`], upper and lower case alike.
pub fn glob_matches_any_case(pattern: &[u8], text: &[u8]) -> bool {
    matches_case(pattern, text, true)
}

/// The bytes that every match of `pattern` starts with.
pub fn literal_prefix(pattern: &[u8]) -> &[u8] {
    let len = pattern
        .iter()
        .take_while(|byte| !b"*?[\\".contains(byte))
        .count();
    &pattern[..len]
}

/// Goes back only to the last `*`: each earlier one has already taken the least it could, and
/// giving it more would only move the same remaining text along. So a match costs at most pattern
/// times text, where Redis's recursion can be exponential; the answers are the same.
fn matches_case(pattern: &[u8], text: &[u8], any_case: bool) -> bool {
    if text.is_empty() {
        // Redis matches nothing empty but knows a lone `*` as "all".
        return pattern.is_empty() || pattern == b"*";
    }
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        if p < pattern.len() && pattern[p] == b'*' {
            while p < pattern.len() && pattern[p] == b'*' {
                p += 1;
            }
            if p == pattern.len() {
                return true;
            }
            star = Some((p, t));
            continue;
        }
        if t == text.len() {
            return p == pattern.len();
        }
        let step = (p < pattern.len())
            .then(|| one(&pattern[p..], text[t], any_case))
            .flatten();
        match (step, star) {
            (Some(used), _) => {
                p += used;
                t += 1;
            }
            (None, Some((after_star, from))) => {
                star = Some((after_star, from + 1));
                p = after_star;
                t = from + 1;
            }
            (None, None) => return false,
        }
    }
}

/// Matches one byte against the start of `pattern`; gives how much of the pattern that used.
fn one(pattern: &[u8], byte: u8, any_case: bool) -> Option<usize> {
    let fold = |b: u8| if any_case { b.to_ascii_lowercase() } else { b };
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', class @ ..] => {
            let (holds, used) = class_holds(class, byte, fold);
            holds.then_some(used + 1)
        }
        [b'\\', quoted, ..] => (fold(*quoted) == fold(byte)).then_some(2),
        [literal, ..] => (fold(*literal) == fold(byte)).then_some(1),
        [] => None,
    }
}

/// Whether the class after `[` holds `byte`, and how many bytes the class takes with its `]` (which
/// may be missing).
fn class_holds(class: &[u8], byte: u8, fold: impl Fn(u8) -> u8) -> (bool, usize) {
    let negated = class.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut holds = false;
    loop {
        match &class[at.min(class.len())..] {
            [] => break,
            [b'\\', quoted, ..] => {
                holds |= *quoted == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [low, b'-', high, ..] => {
                let (low, high) = (fold(*low.min(high)), fold(*low.max(high)));
                holds |= (low..=high).contains(&fold(byte));
                at += 3;
            }
            [literal, ..] => {
                holds |= fold(*literal) == fold(byte);
                at += 1;
            }
        }
    }
    (holds != negated, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("[", "a", false),
            ("[a", "a", true),
            ("[\\]]", "]", true),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "a1b2b3", false),
            ("", "", true),
            ("", "a", false),
            ("a", "", false),
            ("\\", "\\", true),
            ("*?", "", false),
            ("**", "", false),
            ("*[a]", "ba", true),
        ] {
            assert_eq!(
                glob_matches(pattern.as_bytes(), text.as_bytes()),
                expected,
                "{pattern} {text}"
            );
        }
        assert!(glob_matches_any_case(b"MAX*", b"maxmemory"));
        assert_eq!(literal_prefix(b"user:1*"), b"user:1");
        let many = "*a".repeat(64);
        assert!(!glob_matches(many.as_bytes(), &[b'a'; 63]));
    }
}
