//! What tenants are promised, added up, so that a change of one looks at no other.

use super::memory::MEMORIES;
use super::Settings;

/// The sums over some tenants. Rates and weights that are no whole numbers may be off in their last digits after many
/// changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Tenants that may administer the server.
    pub operators: u64,
    /// Weights.
    pub weight: f64,
    /// Reserved requests per second.
    pub reserved_per_s: f64,
    /// Reserved permits.
    pub reserved_permits: u64,
    /// Of each of [`MEMORIES`].
    pub memories: [Claimed; MEMORIES.len()],
}

/// Of one memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Claimed {
    /// Fixed allotments, bytes.
    pub fixed: u64,
    /// Weights of the tenants without one.
    pub weights: f64,
}

impl Totals {
    /// With a tenant more.
    #[must_use]
    pub fn with(mut self, settings: &Settings) -> Self {
        self.operators += u64::from(settings.admin);
        self.weight += settings.weight;
        self.reserved_per_s += settings.promise().requests_per_s();
        self.reserved_permits += u64::from(settings.reserved_permits);
        for (claimed, memory) in self.memories.iter_mut().zip(&MEMORIES) {
            match (memory.allotment)(settings) {
                Some(bytes) => claimed.fixed = claimed.fixed.saturating_add(bytes),
                None => claimed.weights += settings.weight,
            }
        }
        self
    }

    /// Without a tenant that was counted with these settings.
    #[must_use]
    pub fn without(mut self, settings: &Settings) -> Self {
        self.operators -= u64::from(settings.admin);
        self.weight -= settings.weight;
        self.reserved_per_s -= settings.promise().requests_per_s();
        self.reserved_permits -= u64::from(settings.reserved_permits);
        for (claimed, memory) in self.memories.iter_mut().zip(&MEMORIES) {
            match (memory.allotment)(settings) {
                Some(bytes) => claimed.fixed = claimed.fixed.saturating_sub(bytes),
                None => claimed.weights -= settings.weight,
            }
        }
        self
    }
}

impl<'s> FromIterator<&'s Settings> for Totals {
    fn from_iter<I: IntoIterator<Item = &'s Settings>>(tenants: I) -> Self {
        tenants.into_iter().fold(Self::default(), Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_and_goes_leaves_the_others_sums() {
        let plain = Settings {
            weight: 4.0,
            reserve_get_per_s: Some(100.0),
            ..Settings::default()
        };
        let rich = Settings {
            admin: true,
            weight: 2.0,
            reserved_permits: 3,
            reserve_put_per_s: Some(50.0),
            cache_bytes: Some(1 << 20),
            write_buffer_bytes: Some(2 << 20),
            ..Settings::default()
        };
        let both: Totals = [&plain, &rich].into_iter().collect();
        assert_eq!(both.without(&rich), Totals::default().with(&plain));
        assert_eq!(both.without(&plain), Totals::default().with(&rich));
        assert_eq!((both.operators, both.weight), (1, 6.0));
        assert_eq!((both.reserved_per_s, both.reserved_permits), (150.0, 3));
        let [cache, blocks, buffers] = both.memories;
        assert_eq!((cache.fixed, cache.weights), (1 << 20, 4.0));
        assert_eq!((blocks.fixed, blocks.weights), (0, 6.0));
        assert_eq!((buffers.fixed, buffers.weights), (2 << 20, 4.0));
    }
}
