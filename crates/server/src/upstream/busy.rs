//! Engines that serve nobody because a script runs for too long: they are told to end it.
//!
//! An engine that has been in a script for some time (`busy-reply-threshold`) answers `BUSY` to
//! everybody, and does what it is told only by `SCRIPT KILL`. A script that has written it does not
//! end.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use policy::Nanos;

use super::talk::Talk;
use super::UpstreamOptions;

/// What a node says that is busy with a script, where that is told as a reason.
pub(super) const SAYS: &str = "it says: BUSY ";

/// A node is not told again for so long.
const PAUSE_NS: Nanos = 1_000_000_000;

/// A node that has not been busy for so long is well again.
const WELL_NS: Nanos = 10_000_000_000;

/// Which nodes are busy with a script.
#[derive(Default)]
pub struct Busy {
    /// By name, `host:port`.
    nodes: Mutex<BTreeMap<String, Node>>,
}

#[derive(Default)]
struct Node {
    /// It is to be told.
    due: bool,
    asked_at: Nanos,
    /// Tenants that had scripts out there.
    tenants: BTreeSet<String>,
    /// What it said the last time.
    said: String,
}

impl Busy {
    /// A node has said that it is busy; these tenants have scripts out there. If it `may` be one of
    /// ours, it is to be told soon ([`Busy::end_scripts`]): true.
    pub fn hears(
        &self,
        node: &str,
        tenants: Vec<String>,
        now: Nanos,
        may: impl FnOnce() -> bool,
    ) -> bool {
        let mut nodes = self.nodes.lock();
        nodes.retain(|_, node| node.due || now.saturating_sub(node.asked_at) < WELL_NS);
        let node = nodes.entry(node.to_owned()).or_default();
        node.tenants.extend(tenants);
        if node.due || node.asked_at > 0 && now.saturating_sub(node.asked_at) < PAUSE_NS {
            return false;
        }
        (node.due, node.asked_at) = (may(), now);
        node.due
    }

    /// Tells those that are to be told, and waits for what they say.
    pub(super) fn end_scripts(&self, options: &UpstreamOptions) {
        let due = |(name, node): (&String, &mut Node)| {
            std::mem::take(&mut node.due).then(|| (name.clone(), std::mem::take(&mut node.tenants)))
        };
        let due: Vec<_> = self.nodes.lock().iter_mut().filter_map(due).collect();
        for (at, tenants) in due {
            let talk = Talk::begin(&at, options);
            let said = talk.and_then(|mut talk| talk.ask(&[b"SCRIPT", b"KILL"]));
            let tenants: Vec<String> = tenants.into_iter().collect();
            self.heard(&at, &tenants.join(", "), said.err());
        }
    }

    fn heard(&self, at: &str, tenants: &str, why: Option<String>) {
        let known = match self.nodes.lock().get_mut(at) {
            Some(node) => {
                let said = format!("{tenants} {}", why.as_deref().unwrap_or_default());
                std::mem::replace(&mut node.said, said.clone()) == said
            }
            None => false,
        };
        match why {
            None => tracing::warn!(
                tenants,
                "the engine at {at}: a script ran for too long and was ended. It may be one of these tenants'"
            ),
            // It had ended by then.
            Some(why) if why.contains("NOTBUSY") => {}
            Some(_) if known => {}
            Some(why) => tracing::error!(
                tenants,
                "the engine at {at} serves nobody: a script runs for too long, perhaps one of these tenants', \
                 and cannot be ended: {why}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: Nanos = 1_000_000_000;

    #[test]
    fn a_busy_node_is_told_once_in_a_while() {
        let busy = Busy::default();
        let [one, other] = ["127.0.0.1:1", "127.0.0.1:2"];
        let hears = |at: &str, now| busy.hears(at, vec!["web".into()], now, || true);
        let told = || {
            let mut nodes = busy.nodes.lock();
            let due = nodes.values_mut();
            due.map(|node| std::mem::take(&mut node.due))
                .collect::<Vec<bool>>()
        };
        assert!(hears(one, 7) && !hears(one, 8) && !hears(one, 5 * SECOND_NS));
        assert!(hears(other, 9), "each for itself");
        assert_eq!(told(), [true, true]);
        assert!(!hears(one, 7 + PAUSE_NS - 1) && hears(one, 7 + PAUSE_NS));
        told();
        assert!(hears(other, 60 * SECOND_NS));
        assert_eq!(told(), [true], "the first is well again");
        assert!(!busy.hears(one, Vec::new(), 90 * SECOND_NS, || false));
        assert_eq!(told(), [false], "nobody here has scripts");
    }
}
