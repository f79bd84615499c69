//! How evenly a run was answered: replies by short windows of the measured time.

/// Length of a window, ns: as short as what tells one moment of a server from the next.
pub const WINDOW_NS: u64 = 5_000_000;

/// What comes after the first ten minutes is not kept.
const WINDOWS_MAX: usize = 120_000;

/// Replies in each window of [`WINDOW_NS`], of all tenants together.
#[derive(Clone, Debug, Default)]
pub struct Pace(Vec<u32>);

impl Pace {
    /// A reply came so long after measuring began.
    pub(crate) fn answered(&mut self, since_ns: u64) {
        let window = (since_ns / WINDOW_NS) as usize;
        if window < WINDOWS_MAX {
            if window >= self.0.len() {
                self.0.resize(window + 1, 0);
            }
            self.0[window] += 1;
        }
    }

    /// Adds what another thread counted.
    pub(crate) fn add(&mut self, other: &Pace) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine += theirs;
        }
    }

    /// Replies by window; one after the last reply is not there.
    pub fn windows(&self) -> &[u32] {
        &self.0
    }
}

impl FromIterator<u32> for Pace {
    fn from_iter<I: IntoIterator<Item = u32>>(counts: I) -> Self {
        Self(counts.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_counted_in_the_window_in_which_they_came() {
        let mut pace = Pace::default();
        for since_ns in [0, WINDOW_NS - 1, 3 * WINDOW_NS] {
            pace.answered(since_ns);
        }
        pace.answered(WINDOWS_MAX as u64 * WINDOW_NS);
        assert_eq!(pace.windows(), [2, 0, 0, 1]);
        let mut other = Pace::default();
        other.answered(WINDOW_NS);
        other.add(&pace);
        assert_eq!(other.windows(), [2, 1, 0, 1]);
    }
}
