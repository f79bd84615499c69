//! All promises of a tenant, found by lane and class.

use std::collections::BTreeMap;
use std::sync::Arc;

use policy::slo::control::{HANDLERS, STAGES};
use policy::Nanos;
use settings::tenant::{Settings, SloClass, WORKLOADS_MAX};
use smallvec::SmallVec;
use stage::{LaneAllocation, LaneId, Terms};
use telemetry::{Class, CLASSES};

use super::reserves::Reserves;
use super::{Meter, Workloads};

/// A tenant's workloads and the meters of its promises, as they are at one time.
#[derive(Default)]
pub struct Meters {
    /// Its workloads.
    pub workloads: Workloads,
    meters: Vec<Arc<Meter>>,
    /// What is reserved for it before an engine.
    pub reserves: Reserves,
    /// Places in `meters`, by lane and class; empty where nothing is promised. A class is in two at
    /// most: its own and that of any class.
    found: Vec<[SmallVec<[u16; 2]>; CLASSES]>,
}

impl Meters {
    /// Those of a tenant with these settings. A promise that was there `before` keeps its meter.
    pub fn new(settings: &Settings, before: &Self, cores: usize, now: Nanos) -> Self {
        let workloads = Workloads::new(&settings.workloads);
        let mut meters = Vec::with_capacity(settings.slos.len());
        let mut found = Vec::new();
        if !settings.slos.is_empty() {
            found.resize_with(workloads.lanes(), Default::default);
        }
        for slo in &settings.slos {
            let lane = match &slo.workload {
                None => Some(0),
                Some(name) => workloads.named(name),
            };
            // One that names no workload is refused before it comes here.
            let Some(lane) = lane else { continue };
            for class in classes(slo.class) {
                let of: &mut [SmallVec<_>; CLASSES] = &mut found[lane];
                of[class.index()].push(meters.len() as u16);
            }
            let same = before.meters.iter().find(|meter| *meter.slo() == *slo);
            let new = || {
                let meter = Meter::new(slo.clone(), cores, now);
                // What is promised now is for the same clients, wherever they are.
                let whose = |old: &&Arc<Meter>| old.name() == meter.name();
                if let Some(old) = before.meters.iter().find(whose) {
                    meter.set_portion(now, old.portion());
                    let part = old.record.lock().part();
                    meter.record.lock().set_part(now, part);
                }
                Arc::new(meter)
            };
            meters.push(same.map_or_else(new, Arc::clone));
        }
        let reserved = settings.promise().reserved_per_s;
        Self {
            workloads,
            meters,
            reserves: Reserves::new(reserved, &before.reserves, now),
            found,
        }
    }

    /// The meters of a class of a lane's requests.
    #[inline]
    pub fn of(&self, lane: usize, class: Class) -> impl Iterator<Item = &Arc<Meter>> {
        let places = self.places(lane, class).iter();
        places.map(|place| &self.meters[usize::from(*place)])
    }

    /// Their places among all.
    #[inline]
    pub fn places(&self, lane: usize, class: Class) -> &[u16] {
        let places = self.found.get(lane).map(|of| &of[class.index()]);
        places.map_or(&[], SmallVec::as_slice)
    }

    /// On what terms a connection of a lane waits for its turn, whose requests came at `came`: what
    /// they are is not known yet, so they are taken for what it asked for `last`, and of who asked
    /// for nothing the tightest of its promises counts. A core's turns are short beside a
    /// handler's, so a request that must have a handler in time has its turn here by then, too.
    pub fn terms(&self, lane: usize, last: Option<Class>, came: Nanos) -> Terms {
        let Some(class) = last else {
            let of = self.found.get(lane).into_iter().flatten().flatten();
            let meters = of.map(|place| &self.meters[usize::from(*place)]);
            let due = meters.filter_map(|meter| meter.due_at(HANDLERS, came));
            return terms(lane, due.min());
        };
        let due = self.of(lane, class);
        terms(
            lane,
            due.filter_map(|meter| meter.due_at(HANDLERS, came)).min(),
        )
    }

    /// A request of a class that came at `came` begins: which of its promises it is within the
    /// contract of, in the order of [`Meters::places`]. It uses these up.
    pub fn begin(&self, lane: usize, class: Class, came: Nanos) -> Within {
        self.of(lane, class)
            .map(|meter| meter.begin(came))
            .collect()
    }

    /// By stage, when one must have its turn that is `within` these contracts; `None`: when its
    /// share gives it one.
    pub fn due_at(
        &self,
        (lane, class): (usize, Class),
        within: &Within,
        came: Nanos,
    ) -> [Option<Nanos>; STAGES] {
        std::array::from_fn(|stage| {
            let meters = self
                .of(lane, class)
                .zip(within)
                .filter(|(_, within)| **within);
            meters
                .filter_map(|(meter, _)| meter.due_at(stage, came))
                .min()
        })
    }

    /// Of each contract and each throughput that is named here, this part is this server's from now
    /// on. True: of a contract it was another before.
    pub fn keep(&self, now: Nanos, parts: &BTreeMap<String, f64>) -> bool {
        let mut changed = self.reserves.keep(now, parts);
        for meter in &self.meters {
            let name = meter.name();
            if let Some(part) = parts.get(&name) {
                changed |= meter.set_portion(now, *part);
            }
            if let Some(part) = parts.get(&throughput(&name)) {
                meter.record.lock().set_part(now, *part);
            }
        }
        changed
    }

    /// What each lane is entitled to at a stage: weights, and with `contracts` how many requests a
    /// second may have due times. That is for where it is not known yet what requests are:
    /// elsewhere each has its own promise's. None: the tenant has no workloads and no promises.
    pub fn lanes(&self, contracts: bool) -> Vec<LaneAllocation> {
        if self.meters.is_empty() && self.workloads.lanes() == 1 {
            return Vec::new();
        }
        let lane = |lane| LaneAllocation {
            weight: self.workloads.weight(lane),
            contract_per_s: contracts.then(|| self.contract(lane)).flatten(),
        };
        (0..self.workloads.lanes()).map(lane).collect()
    }

    /// What is this server's of all contracts of a lane together; none if one of its promises has
    /// none.
    fn contract(&self, lane: usize) -> Option<f64> {
        let of = |meter: &&Arc<Meter>| match &meter.slo().workload {
            None => lane == 0,
            Some(name) => self.workloads.named(name) == Some(lane),
        };
        let of = self.meters.iter().filter(of);
        let timed = of.filter(|meter| meter.objective().latency.is_some());
        let each = timed.map(|meter| Some(meter.portion() * meter.objective().contract_per_s?));
        let all: Option<Vec<f64>> = each.collect();
        all.filter(|all| !all.is_empty())
            .map(|all| all.iter().sum())
    }

    /// All of them, in the order of the settings.
    pub fn all(&self) -> &[Arc<Meter>] {
        &self.meters
    }
}

/// What the throughput of a promise is called among the contracts of a tenant. No promise is called
/// so.
pub fn throughput(promise: &str) -> String {
    format!("throughput.{promise}")
}

/// The lanes that a tenant does not have which has so many.
pub fn lanes_beyond(lanes: usize) -> impl Iterator<Item = LaneId> {
    let beyond = lanes.max(1)..=WORKLOADS_MAX;
    beyond.filter_map(|lane| Some(LaneId(u8::try_from(lane).ok()?)))
}

/// What waits in a lane and has no due time.
pub fn in_lane(lane: usize) -> Terms {
    terms(lane, None)
}

fn terms(lane: usize, due_at: Option<Nanos>) -> Terms {
    Terms {
        lane: LaneId(u8::try_from(lane).unwrap_or(LaneId::REST.0)),
        due_at,
        ..Terms::default()
    }
}

/// Whether a request is within the contracts of its promises. It has two at most.
pub type Within = SmallVec<[bool; 2]>;

/// The classes of requests that a promise for `class` is for.
pub fn classes(class: SloClass) -> &'static [Class] {
    match class {
        SloClass::Get => &[Class::Get],
        SloClass::Put => &[Class::Put],
        SloClass::Multiget => &[Class::Multiget],
        SloClass::Scan => &[Class::Scan],
        SloClass::Any => &[Class::Get, Class::Put, Class::Multiget, Class::Scan],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slo::Took;
    use policy::slo::control::{PromiseGiven, DEVICE};
    use settings::tenant::{Slo, Workload};

    fn slo(workload: Option<&str>, class: SloClass, at_most_ns: u64) -> Slo {
        Slo {
            workload: workload.map(str::to_string),
            class,
            at_most_ns: Some(at_most_ns),
            ..Slo::default()
        }
    }

    fn settings(slos: Vec<Slo>) -> Settings {
        let batch = Workload {
            name: "batch".into(),
            ..Workload::default()
        };
        Settings {
            workloads: vec![batch],
            slos,
            ..Settings::default()
        }
    }

    #[test]
    fn a_request_counts_for_its_class_and_for_any() {
        let promised = [
            slo(None, SloClass::Get, 1),
            slo(None, SloClass::Any, 2),
            slo(Some("batch"), SloClass::Scan, 3),
        ];
        let meters = Meters::new(&settings(promised.to_vec()), &Meters::default(), 1, 0);
        let of = |lane, class| -> Vec<u64> {
            let of = meters.of(lane, class);
            of.filter_map(|meter| meter.slo().at_most_ns).collect()
        };
        assert_eq!(of(0, Class::Get), [1, 2]);
        assert_eq!(of(0, Class::Put), [2]);
        assert_eq!(of(0, Class::Other), Vec::<u64>::new());
        assert_eq!(of(1, Class::Scan), [3]);
        assert!(of(1, Class::Get).is_empty() && of(7, Class::Get).is_empty());
        assert!(Meters::default().of(0, Class::Get).next().is_none());
    }

    #[test]
    fn a_promise_that_stays_as_it_is_keeps_its_counts() {
        let (get, put) = (slo(None, SloClass::Get, 1), slo(None, SloClass::Put, 1));
        let before = Meters::new(&settings(vec![get.clone(), put]), &Meters::default(), 1, 0);
        for meter in before.all() {
            meter.answered(0, &Took::default(), 1);
        }
        let after = [get, slo(None, SloClass::Put, 9)];
        let after = Meters::new(&settings(after.to_vec()), &before, 1, 0);
        let counted = after.all().iter().map(|meter| meter.read().counts.requests);
        assert_eq!(
            counted.collect::<Vec<_>>(),
            [1, 0],
            "the other is a new promise"
        );
    }

    #[test]
    fn a_promise_that_is_changed_keeps_its_part_of_the_contract() {
        let mut get = slo(None, SloClass::Get, 1);
        (get.contract_per_s, get.throughput_per_s) = (Some(100.0), Some(80.0));
        let before = Meters::new(&settings(vec![get.clone()]), &Meters::default(), 1, 0);
        let parts = [("get".to_owned(), 0.25), ("throughput.get".to_owned(), 0.5)];
        let parts = BTreeMap::from(parts);
        assert!(before.keep(0, &parts) && !before.keep(0, &parts));
        assert_eq!(before.all()[0].here().throughput_per_s, Some(40.0));
        (get.contract_per_s, get.throughput_per_s) = (Some(200.0), Some(60.0));
        let after = Meters::new(&settings(vec![get]), &before, 1, 0);
        assert_eq!(after.all()[0].portion(), 0.25);
        assert_eq!(after.all()[0].here().throughput_per_s, Some(30.0));
        assert_eq!(after.lanes(true)[0].contract_per_s, Some(50.0));
    }

    #[test]
    fn the_tightest_promise_of_a_lane_says_when_its_connections_are_due() {
        let mut promised = vec![slo(None, SloClass::Get, 20), slo(None, SloClass::Any, 9)];
        promised[0].contract_per_s = Some(100.0);
        promised[1].contract_per_s = Some(50.0);
        let meters = Meters::new(&settings(promised), &Meters::default(), 1, 0);
        assert_eq!(meters.terms(0, None, 5).due_at, None, "no margins yet");
        for meter in meters.all() {
            meter.give(&PromiseGiven {
                margin_ns: Some([2; STAGES]),
                ..PromiseGiven::default()
            });
        }
        assert_eq!(meters.terms(0, None, 5).due_at, Some(12));
        let batch = meters.terms(1, None, 5);
        assert_eq!((batch.lane, batch.due_at), (LaneId(1), None));
        let other = meters.terms(0, Some(Class::Other), 5);
        assert_eq!(other.due_at, None, "it asked for what has no promise");
        assert!(meters.keep(
            0,
            &BTreeMap::from([("get".into(), 0.5), ("any".into(), 0.5)])
        ));
        let lanes = meters.lanes(true);
        let contracts: Vec<_> = lanes.iter().map(|lane| lane.contract_per_s).collect();
        assert_eq!(contracts, [Some(75.0), None]);
        assert!(Meters::default().lanes(false).is_empty());
    }

    /// Gets have a contract of 100 a second; puts, of the same lane, one without an end; and scans
    /// no promise.
    #[test]
    fn a_contract_buys_its_rate_and_nothing_for_a_class_that_it_does_not_name() {
        const S: Nanos = 1_000_000_000;
        let mut promised = vec![slo(None, SloClass::Get, 20), slo(None, SloClass::Put, 9)];
        promised[0].contract_per_s = Some(100.0);
        let meters = Meters::new(&settings(promised), &Meters::default(), 1, S);
        for meter in meters.all() {
            meter.give(&PromiseGiven {
                margin_ns: Some([2; STAGES]),
                ..PromiseGiven::default()
            });
        }
        let due = |class, came| {
            let within = meters.begin(0, class, came);
            meters.due_at((0, class), &within, came)[DEVICE]
        };
        let timed = |class, second: Nanos| {
            let all = (0..1_000).map(|number| second * S + number * S / 1_000);
            all.filter(|came| due(class, *came).is_some()).count()
        };
        assert_eq!(timed(Class::Scan, 1), 0, "scans are promised nothing");
        let gets = timed(Class::Get, 1);
        assert!((100..=112).contains(&gets), "{gets}");
        assert_eq!(timed(Class::Put, 2), 1_000);
        let gets = timed(Class::Get, 3);
        assert!(
            (100..=112).contains(&gets),
            "{gets}, whatever puts there were"
        );
        assert!(meters.keep(4 * S, &BTreeMap::from([("get".into(), 0.5)])));
        let gets = timed(Class::Get, 5);
        assert!((50..=57).contains(&gets), "{gets} at one of two fronts");
    }
}
