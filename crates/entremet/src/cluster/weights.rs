//! What tenants weigh before each node, and what they take of its time, as fronts tell.

use std::collections::BTreeMap;

use front::{Demand, Peer};
use server::weights_told;

use super::nodes::Views;

const NS_PER_S: f64 = 1e9;

/// A tenant of which something was served of late.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weighs {
    /// Its weight, of all fronts.
    weight: f64,
    /// Something of it waits before a node most of the time.
    waits: bool,
    /// By the address of a node.
    nodes: BTreeMap<String, AtNode>,
}

/// What it is at a node.
#[derive(Clone, Debug, Default, PartialEq)]
struct AtNode {
    /// Its weight at each front that stands before the node.
    weights: Vec<f64>,
    /// The part of the node's time that it takes.
    busy: f64,
}

impl Weighs {
    /// In lines, below the tenant's name.
    pub fn lines(&self) -> Vec<String> {
        let lines = self.nodes.iter().map(|(at, node)| {
            let weights: Vec<String> = node.weights.iter().map(|it| format!("{it:.2}")).collect();
            let weighs = match weights.is_empty() {
                true => "no front stands before it".to_owned(),
                false => format!("weighs {} there", weights.join(" and ")),
            };
            format!(
                "{at}  {weighs}, takes {:.0} % of its time",
                node.busy * 100.0
            )
        });
        lines.collect()
    }

    /// Its weight, in words.
    pub fn says(&self) -> String {
        let waits = if self.waits { ", and it waits" } else { "" };
        format!("{}{waits}", self.weight)
    }
}

/// All such tenants by their names: of fronts, what each has written down of itself, of what is
/// asked for, and of what is divided.
pub fn weights(
    views: &Views,
    fronts: &[Peer],
    demands: &[(String, Demand)],
    rates: &[(String, String)],
) -> BTreeMap<String, Weighs> {
    let mut all: BTreeMap<String, Weighs> = BTreeMap::new();
    let there = |id: &str| fronts.iter().any(|peer| peer.id == id);
    let demands = demands.iter().filter(|(id, _)| there(id));
    for tenant in demands.flat_map(|(_, demand)| &demand.tenants) {
        let weighs = all.entry(tenant.name.clone()).or_default();
        weighs.weight = tenant.weight;
        weighs.waits |= tenant.waits;
        for (slot, ns_per_s) in &tenant.slots {
            if let Some(owner) = views.owner(*slot) {
                let node = weighs.nodes.entry(owner.at.clone()).or_default();
                node.busy += *ns_per_s as f64 / NS_PER_S;
            }
        }
    }
    for peer in fronts {
        let Some(at) = &peer.node else { continue };
        let told = rates.iter().find(|(id, _)| *id == peer.id);
        let text = told.map_or("", |(_, text)| text);
        let parts: BTreeMap<&str, f64> = weights_told(text, fronts.len()).collect();
        for (name, weighs) in &mut all {
            // Of whom a front tells nothing, all of the weight counts there.
            let part = parts.get(name.as_str()).copied().unwrap_or(1.0);
            let node = weighs.nodes.entry(at.clone()).or_default();
            node.weights.push(weighs.weight * part);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::nodes::View;
    use super::*;

    #[test]
    fn a_weight_is_where_it_is_served() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let text = format!(
            "{a} h:1@2 myself,master - 0 0 1 connected 0-8191\n{b} h:2@3 master - 0 0 2 connected 8192-16383\n"
        );
        let view = View::read(&text, "h").expect("nodes");
        let views = Views {
            first: view,
            by_master: BTreeMap::new(),
        };
        let front = |digit: &str, node: &str| {
            let text = format!("1 h 9 {node}");
            Peer::read(&digit.repeat(40), &text).expect("a front").0
        };
        let fronts = [front("c", "h:1"), front("d", "h:2")];
        let told = |digit: &str, text: &str| (digit.repeat(40), text.to_owned());
        let demand = |text: &str| Demand::read(text).expect("a demand");
        let demands = [
            (
                fronts[0].id.clone(),
                demand("1\nweb 4 1 7:250000000 9:250000000"),
            ),
            (fronts[1].id.clone(), demand("1\nweb 4 0 9000:10000000")),
            ("e".repeat(40), demand("1\ngone 1 1 7:1")),
        ];
        let line = |part: f64| format!("web 0 0 0 0 0 0 0 0 0 0 9 0 {part} 9 9\n");
        let rates = [told("c", &line(0.75)), told("d", &line(0.25))];
        let all = weights(&views, &fronts, &demands, &rates);
        assert_eq!(all.len(), 1);
        assert_eq!(all["web"].says(), "4, and it waits");
        assert_eq!(
            all["web"].lines(),
            [
                "h:1  weighs 6.00 there, takes 50 % of its time",
                "h:2  weighs 2.00 there, takes 1 % of its time",
            ]
        );
    }
}
