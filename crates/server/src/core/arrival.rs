//! When requests came: a core only sees them when it looks.

use policy::Nanos;

/// When something had come that a look at the poll found, which began and ended then; the look before it had ended at
/// `before`. A look that waited was ended by what came. Another found what had come since the one before, at any time
/// with equal chance: a client counts that wait, so the server must.
pub fn came_at(before: Nanos, began: Nanos, ended: Nanos) -> Nanos {
    let since = began.saturating_sub(before);
    if ended.saturating_sub(began) > since {
        ended
    } else {
        before + since / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_busy_core_finds_came_between_two_looks() {
        assert_eq!(came_at(1_000, 101_000, 102_000), 51_000);
        assert_eq!(came_at(1_000, 21_000, 500_000), 500_000);
        assert_eq!(came_at(1_000, 1_000, 1_000), 1_000);
    }
}
