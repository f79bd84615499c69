//! What a cluster is asked for, as fronts and nodes tell it, and whether that is fresh.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use front::{Demand, Fronts, Peer, Value};

use super::book::Book;
use super::intent::LEASE_NS;
use super::nodes::Views;
use super::reach::Nodes;
use super::Failure;

/// What is known of the fronts.
pub struct Figures {
    began: Instant,
    fronts: Fronts,
    /// By the name of a front, its place.
    places: BTreeMap<String, String>,
    /// By the name of a front: what it told last, and since when; none: it may be old.
    told: BTreeMap<String, (Demand, Option<Instant>)>,
    /// By the name of a node: processor time that it had used at the last decision, and when that
    /// was.
    used: BTreeMap<String, (f64, Instant)>,
}

/// A tenant, as all fronts tell of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// What it weighs.
    pub weight: f64,
    /// It waits at a front.
    pub waits: bool,
    /// What each slot took of the time of its node, ns/s, as fronts count it.
    pub slots: BTreeMap<u16, u64>,
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            fronts: Fronts::default(),
            places: BTreeMap::new(),
            told: BTreeMap::new(),
            used: BTreeMap::new(),
        }
    }
}

impl Figures {
    /// Reads what fronts tell. It is to be called about once a second.
    ///
    /// # Errors
    /// The cluster cannot be asked.
    pub fn look(&mut self, nodes: &mut Nodes, book: &mut Book) -> Result<(), Failure> {
        let entries = book.fronts(nodes)?;
        let text = |text: &String| Value::Text(text.clone().into_bytes());
        let pairs = entries.iter().flat_map(|(id, said)| [text(id), text(said)]);
        let now = self.began.elapsed().as_nanos();
        let now = u64::try_from(now).unwrap_or(u64::MAX);
        self.fronts.hear(&Value::List(pairs.collect()), now);
        let peers = entries.iter().filter_map(|(id, said)| Peer::read(id, said));
        let place = |(peer, _): (Peer, String)| (peer.id.clone(), peer.to_string());
        self.places = peers.map(place).collect();
        let mut before = std::mem::take(&mut self.told);
        for (id, demand) in book.demands(nodes)? {
            let since = match before.remove(&id) {
                None => None,
                Some((told, since)) if told.beat == demand.beat => since,
                Some(_) => Some(Instant::now()),
            };
            self.told.insert(id, (demand, since));
        }
        Ok(())
    }

    /// What is asked of tenants, by their names.
    ///
    /// # Errors
    /// Why that is not known: in words.
    pub fn told(&self) -> Result<BTreeMap<String, Told>, String> {
        let there = self.fronts.there();
        if self.places.is_empty() {
            return Err("no front tells what is asked for: each needs [server.cluster]".into());
        }
        let mut all: BTreeMap<String, Told> = BTreeMap::new();
        for (id, at) in &self.places {
            if there.iter().all(|peer| peer.id != *id) {
                return Err(format!(
                    "the front at {at} is away: what it was asked for will come to others, or not"
                ));
            }
            let told = self.told.get(id);
            let fresh = |since: Instant| since.elapsed() < Duration::from_nanos(LEASE_NS);
            let told = told.filter(|(_, since)| since.is_some_and(fresh));
            let Some((demand, _)) = told else {
                return Err(format!(
                    "the front at {at} does not tell what it is asked for"
                ));
            };
            for tenant in &demand.tenants {
                let known = all.entry(tenant.name.clone()).or_insert_with(|| Told {
                    weight: tenant.weight,
                    waits: false,
                    slots: BTreeMap::new(),
                });
                if known.weight != tenant.weight {
                    return Err(format!(
                        "fronts do not agree: tenant {} weighs {} at {at} and {} elsewhere",
                        tenant.name, tenant.weight, known.weight
                    ));
                }
                known.waits |= tenant.waits;
                for (slot, ns_per_s) in &tenant.slots {
                    *known.slots.entry(*slot).or_default() += ns_per_s;
                }
            }
        }
        Ok(all)
    }

    /// What a unit of weight is charged before each master, ns, by its name. What several fronts
    /// before one serve adds up.
    pub fn prices(&self, views: &Views) -> BTreeMap<String, f64> {
        let mut served: BTreeMap<String, f64> = BTreeMap::new();
        for peer in self.fronts.there() {
            let told = self.told.get(&peer.id);
            let price = told.map_or(0, |(demand, _)| demand.price_ns);
            let mut masters = views.first.masters();
            let own = masters.find(|node| peer.node.as_ref() == Some(&node.at));
            if let Some(own) = own.filter(|_| price > 0) {
                *served.entry(own.id.clone()).or_default() += 1.0 / price as f64;
            }
        }
        let price = |(id, served)| (id, 1.0 / served);
        served.into_iter().map(price).collect()
    }

    /// The part of its processor that each master used since this was asked the last time, by its
    /// name.
    ///
    /// # Errors
    /// One does not say, or that was not asked before.
    pub fn uses(
        &mut self,
        nodes: &mut Nodes,
        views: &Views,
    ) -> Result<BTreeMap<String, f64>, Failure> {
        let before = std::mem::take(&mut self.used);
        let mut uses = BTreeMap::new();
        let mut new = None;
        for node in views.first.masters() {
            let info = nodes.text(&node.at, &[b"INFO", b"cpu"])?;
            let now = (
                used_s(&info).ok_or_else(|| not_said(&node.at))?,
                Instant::now(),
            );
            match before.get(&node.id) {
                // It may have been started again.
                Some((used, at)) if now.0 >= *used => {
                    let passed = now.1.duration_since(*at).as_secs_f64();
                    uses.insert(node.id.clone(), (now.0 - used) / passed.max(1e-3));
                }
                _ => new = Some(node.at.clone()),
            }
            self.used.insert(node.id.clone(), now);
        }
        match new {
            None => Ok(uses),
            Some(at) => Err(format!("what {at} does is not known yet").into()),
        }
    }
}

fn not_said(at: &str) -> String {
    format!("{at} does not say how much processor time it has used")
}

/// Processor time of the thread that serves requests, s; where a node does not tell it apart, of
/// all of it.
fn used_s(info: &str) -> Option<f64> {
    let field = |name: &str| {
        let value = info
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value?.trim().parse::<f64>().ok()
    };
    let sum = |of: &str| {
        let [user, system] = ["user", "sys"].map(|kind| field(&format!("used_cpu_{kind}{of}")));
        Some(user? + system?)
    };
    sum("_main_thread").or_else(|| sum(""))
}

#[cfg(test)]
mod tests {
    use super::super::nodes::View;
    use super::*;

    #[test]
    fn the_time_of_the_thread_that_serves_is_what_counts() {
        let info = "# CPU\r\nused_cpu_sys:1.5\r\nused_cpu_user:2.5\r\nused_cpu_sys_children:9\r\n";
        assert_eq!(used_s(info), Some(4.0));
        let main =
            format!("{info}used_cpu_sys_main_thread:0.5\r\nused_cpu_user_main_thread:0.25\r\n");
        assert_eq!(used_s(&main), Some(0.75));
        assert_eq!(used_s("# CPU\r\n"), None);
    }

    fn figures(fronts: &[(&str, &str)]) -> Figures {
        let mut figures = Figures::default();
        let mut entries = Vec::new();
        for (digit, told) in fronts {
            let id = digit.repeat(40);
            entries.push(Value::Text(id.clone().into_bytes()));
            entries.push(Value::Text(format!("1 h{digit} 1 -").into_bytes()));
            figures.places.insert(id.clone(), format!("h{digit}:1"));
            if let Some(demand) = Demand::read(told) {
                figures.told.insert(id, (demand, Some(Instant::now())));
            }
        }
        figures.fronts.hear(&Value::List(entries), 0);
        figures
    }

    #[test]
    fn what_fronts_tell_is_put_together() {
        let figures = figures(&[
            ("a", "1\nweb 2 0 3:100 4:10\nold 1 0 9:1"),
            ("b", "5\nweb 2 1 3:50"),
        ]);
        let told = figures.told().expect("fresh");
        let web = &told["web"];
        assert!(web.waits && web.weight == 2.0 && told.len() == 2);
        assert_eq!(web.slots, [(3, 150), (4, 10)].into());
    }

    #[test]
    fn what_is_charged_before_a_node_is_of_all_its_fronts() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let text = format!(
            "{a} h:1@2 myself,master - 0 0 1 connected 0-8191\n{b} h:2@3 master - 0 0 2 connected 8192-16383\n"
        );
        let views = Views {
            first: View::read(&text, "h").expect("nodes"),
            by_master: BTreeMap::new(),
        };
        let mut figures = Figures::default();
        let mut entries = Vec::new();
        // The last one knows of no price.
        for (digit, node, told) in [("c", 1, "1 300"), ("d", 1, "1 600"), ("e", 2, "1")] {
            let id = digit.repeat(40);
            entries.push(Value::Text(id.clone().into_bytes()));
            entries.push(Value::Text(format!("1 h 9 h:{node}").into_bytes()));
            let demand = Demand::read(told).expect("a demand");
            figures.told.insert(id, (demand, Some(Instant::now())));
        }
        figures.fronts.hear(&Value::List(entries), 0);
        let prices: Vec<_> = figures.prices(&views).into_iter().collect();
        let [(id, price)] = &prices[..] else {
            panic!("{prices:?}")
        };
        assert!(*id == a && (price - 200.0).abs() < 1e-6, "{prices:?}");
    }

    #[test]
    fn without_fresh_figures_it_is_said_why() {
        let why = |figures: &Figures| figures.told().expect_err("not known");
        assert!(why(&figures(&[])).contains("[server.cluster]"));
        assert!(why(&figures(&[("a", "1"), ("b", "")])).contains("hb:1 does not tell"));
        let disagree = figures(&[("a", "1\nweb 2 0 3:1"), ("b", "1\nweb 3 0 3:1")]);
        assert!(
            why(&disagree).contains("tenant web weighs 3"),
            "{}",
            why(&disagree)
        );
        let mut silent = figures(&[("a", "1")]);
        let text = |text: &str| Value::Text(text.as_bytes().to_vec());
        for second in 1..10 {
            let entry = [text(&"a".repeat(40)), text("1 ha 1 -")];
            silent
                .fronts
                .hear(&Value::List(entry.into()), second * 1_000_000_000);
        }
        assert!(why(&silent).contains("ha:1 is away"), "{}", why(&silent));
    }
}
