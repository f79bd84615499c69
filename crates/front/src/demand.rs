//! What a front tells of what partitions are asked for: whoever places them reads it.

use std::fmt::Write;
use std::str::FromStr;

/// What one front tells, once a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    /// It grows.
    pub beat: u64,
    /// What a unit of weight is charged before its node, ns; 0: that is not known.
    pub price_ns: u64,
    /// Tenants of which it served something of late, and those that wait.
    pub tenants: Vec<TenantDemand>,
}

/// What a front tells of a tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantDemand {
    /// Its name.
    pub name: String,
    /// What it was given as its weight.
    pub weight: f64,
    /// Something of it waited before a node most of the time.
    pub waits: bool,
    /// Slots of the engine, and what each took of the time of its node, ns a second.
    pub slots: Vec<(u16, u64)>,
}

impl Demand {
    /// As it is written down: a line for each tenant behind the two numbers. No tenant's name has a
    /// space.
    pub fn text(&self) -> String {
        let mut text = format!("{} {}", self.beat, self.price_ns);
        for tenant in &self.tenants {
            let waits = u8::from(tenant.waits);
            let _ = write!(text, "\n{} {} {waits}", tenant.name, tenant.weight);
            for (slot, ns_per_s) in &tenant.slots {
                let _ = write!(text, " {slot}:{ns_per_s}");
            }
        }
        text
    }

    /// Reads that. None: it is something else.
    pub fn read(text: &str) -> Option<Self> {
        let mut lines = text.split('\n');
        let first = lines.next()?;
        // Earlier fronts tell no price.
        let (beat, price_ns) = first.split_once(' ').unwrap_or((first, "0"));
        let tenants = lines.map(TenantDemand::read).collect::<Option<_>>()?;
        Some(Self {
            beat: beat.parse().ok()?,
            price_ns: price_ns.parse().ok()?,
            tenants,
        })
    }
}

impl TenantDemand {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let name = words.next().filter(|name| !name.is_empty())?;
        let weight = f64::from_str(words.next()?).ok()?;
        let waits = match words.next()? {
            "0" => false,
            "1" => true,
            _ => return None,
        };
        let slot = |word: &str| {
            let (slot, ns_per_s) = word.split_once(':')?;
            let slot = slot.parse().ok().filter(|slot| *slot < crate::SLOTS)?;
            Some((slot, ns_per_s.parse().ok()?))
        };
        Some(Self {
            name: name.to_owned(),
            weight: Some(weight).filter(|weight| weight.is_finite() && *weight > 0.0)?,
            waits,
            slots: words.map(slot).collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read() {
        let tenant = |name: &str, waits, slots| TenantDemand {
            name: name.into(),
            weight: 1.5,
            waits,
            slots,
        };
        let demand = Demand {
            beat: 7,
            price_ns: 33_000,
            tenants: vec![
                tenant("web", true, vec![(3, 1_000), (16_383, 5)]),
                tenant("idle", false, vec![]),
            ],
        };
        assert_eq!(Demand::read(&demand.text()), Some(demand));
        assert_eq!(
            Demand::read("8"),
            Some(Demand {
                beat: 8,
                ..Demand::default()
            })
        );
        for bad in [
            "",
            "x",
            "1 x",
            "1 2 3",
            "1\n",
            "1\nweb",
            "1\nweb 1",
            "1\nweb nan 0",
            "1\nweb 0 0",
            "1\nweb 1 2",
            "1\nweb 1 0 16384:1",
            "1\nweb 1 0 3:-1",
            "1\nweb 1 0 3",
        ] {
            assert_eq!(Demand::read(bad), None, "{bad:?}");
        }
    }
}
