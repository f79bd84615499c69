//! Connections to the engine, of all cores.

use std::sync::atomic::{AtomicU64, Ordering};

use telemetry::EngineLinks;

/// How many there are.
#[derive(Default)]
pub struct LinkCounts {
    open: AtomicU64,
    apart: AtomicU64,
    turned: AtomicU64,
}

impl LinkCounts {
    /// A core has so many open, and so many of them have one tenant's large values; `told` is what
    /// it said last.
    pub fn count(&self, told: &mut [u64; 2], now: [u64; 2]) {
        for (all, (old, new)) in [&self.open, &self.apart]
            .into_iter()
            .zip(told.iter().zip(now))
        {
            // Wraps, as it should where there are fewer.
            all.fetch_add(new.wrapping_sub(*old), Ordering::Relaxed);
        }
        *told = now;
    }

    /// A large reply has begun on a link that was shared, and another is from now on.
    pub fn turned(&self) {
        self.turned.fetch_add(1, Ordering::Relaxed);
    }

    /// As they are shown, where so many requests wait.
    pub fn read(&self, waiting: u64) -> EngineLinks {
        EngineLinks {
            open: self.open.load(Ordering::Relaxed),
            apart: self.apart.load(Ordering::Relaxed),
            turned: self.turned.load(Ordering::Relaxed),
            waiting,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_added_up_as_they_change() {
        let links = LinkCounts::default();
        let (mut one, mut other) = ([0; 2], [0; 2]);
        links.count(&mut one, [2, 1]);
        links.count(&mut other, [3, 0]);
        links.count(&mut one, [1, 0]);
        let shown = links.read(5);
        assert_eq!((shown.open, shown.apart, shown.turned), (4, 0, 0));
        assert_eq!(shown.waiting, 5);
    }
}
