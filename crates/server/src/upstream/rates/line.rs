//! What one front tells of one tenant, as a line of text.

use std::collections::BTreeMap;
use std::str::FromStr;

use policy::portion::Told;

use super::{PARTS, WEIGHT};

/// Of its rates and its weight, and of each of its promises that has a contract.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Line {
    /// As [`PARTS`] has them.
    pub parts: [Told; PARTS.len()],
    /// By what the promise is called.
    pub contracts: BTreeMap<String, Told>,
}

impl Line {
    /// As it is written down, of the tenant of that name. No name of a tenant or a promise has a
    /// space. Fronts of an older version do not read what comes after the parts.
    pub fn text(&self, tenant: &str) -> String {
        let of = |told: &Told| {
            let more = u8::from(told.more);
            format!(
                " {:.6} {more} {:.6} {} {:.3}",
                told.used, told.claim, told.requests, told.remembered
            )
        };
        let parts: String = self.parts.iter().map(of).collect();
        let contract = |(name, told): (&String, &Told)| format!(" {name}{}", of(told));
        let contracts: String = self.contracts.iter().map(contract).collect();
        format!("{tenant}{parts}{contracts}\n")
    }

    /// Reads it, with the name of its tenant.
    pub fn read(line: &str) -> Option<(&str, Self)> {
        let mut words = line.split(' ');
        let tenant = words.next()?;
        let mut line = Self::default();
        for part in &mut line.parts {
            *part = told(&mut words)?;
        }
        while let Some(name) = words.next() {
            line.contracts.insert(name.to_owned(), told(&mut words)?);
        }
        Some((tenant, line))
    }
}

/// By the names of tenants, how many times its configured weight each weighs at a front that has
/// told this, one of `fronts`.
pub fn weights_told(text: &str, fronts: usize) -> impl Iterator<Item = (&str, f64)> {
    let told = text.lines().filter_map(Line::read);
    told.map(move |(tenant, line)| {
        let part = line.parts[WEIGHT].claim;
        (tenant, PARTS[WEIGHT].times_even(part, fronts))
    })
}

fn told<'t>(words: &mut impl Iterator<Item = &'t str>) -> Option<Told> {
    let mut number = || f64::from_str(words.next()?).ok().filter(|n| n.is_finite());
    let (used, more, claim) = (number()?, number()?, number()?);
    let (requests, remembered) = (number()?, number()?);
    Some(Told {
        used: used.max(0.0),
        more: more > 0.0,
        claim: claim.clamp(0.0, 1.0),
        requests: requests.max(0.0),
        remembered: remembered.max(0.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read() {
        let told = |used, more, claim, requests| Told {
            used,
            more,
            claim,
            requests,
            remembered: requests * 1.5,
        };
        let parts = [
            told(0.25, true, 0.5, 0.0),
            told(1.5, false, 0.0, 12.0),
            told(2_000.0, true, 1.0, 2_000.0),
        ];
        let get = ("get".to_owned(), told(0.5, true, 0.25, 7.0));
        let scan = ("scan:batch".to_owned(), told(0.0, false, 1.0, 0.0));
        for contracts in [BTreeMap::new(), BTreeMap::from([get, scan])] {
            let line = Line { parts, contracts };
            let text = line.text("web");
            assert_eq!(Line::read(text.trim_end()), Some(("web", line)));
        }
        for bad in [
            "",
            "web",
            "web 1 2",
            "web 1 0 nan 1 1 1 0 1 1 1 1 0 1 1 1",
            "web 1 0 1 1 1 1 0 1 1 1",
            "web 1 0 1 1 1 1 0 1 1 1 1 0 1 1 1 get 1 0",
        ] {
            assert_eq!(Line::read(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_front_tells_what_tenants_weigh_there() {
        let text =
            "web 0 0 0.5 0 0 0 0 0.5 0 0 9 0 0.75 9 9\nidle 0 0 0.5 0 0 0 0 0.5 0 0 0 0 0 0 0\n";
        let weights: Vec<_> = weights_told(text, 2).collect();
        assert_eq!(weights, [("web", 1.5), ("idle", 0.01)]);
    }
}
