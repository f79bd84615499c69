//! `admission`: whether promises fit together, asked beforehand and then tried.
//!
//! Each mix is drawn: tenants that read values of a size at a rate and were promised a percentile
//! of latency, tenants that scan and were promised a rate, and clients beside them that scan as
//! fast as they can and were promised nothing. An `answer` is given of the drives' figures and the
//! mix alone. Then the simulator plays the mix with the controller that ships, and shows which
//! promises were kept.

mod node;

use policy::device::{Device, Event, HddParameters, Io, Model, SsdParameters};
use policy::replica::Rule;
use policy::slo::admission::{stand, Asked, Capacity, Demand, Drives, Work as AtDrive};
use policy::slo::control::{Auto, AutoOptions, Controller};
use policy::slo::{Counts, Latency, Objective};
use policy::{cost::device::Op, Nanos};
use sim::{run, Arrivals, Keeper, Redundancy, Routing, Selection, Spec, Tenant, TenantOutcome};
use workload::rng::Rng;

use settings::table::Fields;

use super::{figures, seed, Program, Work};
use node::{in_turn, node, tenant};

const MS: f64 = 1e6;
const S: Nanos = 1_000_000_000;
/// Drives of the node.
const DRIVES: u32 = 4;
/// I/Os that a drive may have.
const DEPTH: u32 = 32;
const HANDLERS: u32 = 128;
/// What the processors of the simulated node serve a second.
const REQUESTS_PER_S: f64 = 160_000.0;
/// The controller learns for so long before promises count, as a part of the time in which they do.
const WARM_UP: f64 = 0.33;
/// Of a promised rate, what counts as kept: the last requests are under way at the end.
const RATE_KEPT: f64 = 0.98;

/// `device`, `answer`, how many `mixes`, `seconds` of each.
pub(super) const ADMISSION: Program = Program {
    name: "admission",
    timed: false,
    prepare,
};

fn prepare(parameters: &Fields) -> Work {
    let place = parameters.word("device", &["hdd-5gb", "hdd", "ssd"]);
    let answer = parameters.word("answer", &["ours", "rates", "yes"]);
    let mixes = parameters.count("mixes").unwrap_or(100) as u64;
    let seconds = parameters.number("seconds").unwrap_or(60.0);
    let seed = seed(parameters);
    Box::new(move |_| {
        let place = Place::named(place);
        let mut tally = Tally::default();
        for mix in 0..mixes {
            let mix = Mix::drawn(&place, Rng::new(seed, mix));
            let says = match answer {
                "ours" => mix.fits(&place.capacity),
                "rates" => mix.rates_fit(&place.capacity),
                _ => true,
            };
            tally.count(says, mix.kept(&place, seconds, seed ^ mix.number));
        }
        Ok(figures(tally.figures()))
    })
}

/// Answers, and what then happened.
#[derive(Default)]
struct Tally {
    admitted: [u64; 2],
    refused: [u64; 2],
}

impl Tally {
    fn count(&mut self, admitted: bool, kept: bool) {
        let of = match admitted {
            true => &mut self.admitted,
            false => &mut self.refused,
        };
        of[usize::from(kept)] += 1;
    }

    fn figures(&self) -> [(&'static str, f64); 5] {
        let [broken, right] = self.admitted.map(|mixes| mixes as f64);
        let [rightly_refused, spared] = self.refused.map(|mixes| mixes as f64);
        let all = broken + right + rightly_refused + spared;
        [
            ("answers-right", (right + rightly_refused) / all),
            ("promises-broken", broken),
            ("needlessly-refused", spared),
            ("let-in", (broken + right) / all),
            ("all-kept", (right + spared) / all),
        ]
    }
}

/// The drives of a node, and what they can do.
struct Place {
    model: Model,
    span_bytes: u64,
    capacity: Capacity,
}

impl Place {
    fn named(name: &str) -> Self {
        let (model, span_bytes) = match name {
            "hdd-5gb" => (Model::Hdd(HddParameters::default()), 5_000_000_000),
            "hdd" => (Model::Hdd(HddParameters::default()), 1_000_000_000_000),
            _ => (Model::Ssd(SsdParameters::default()), 64 << 30),
        };
        let tried = |depth, bytes| closed(&model, span_bytes, depth, bytes);
        let (mut alone_ns, _) = tried(1, 4 << 10);
        alone_ns.sort_unstable();
        let at = |part: f64| alone_ns[(part * (alone_ns.len() - 1) as f64) as usize];
        let (_, together_per_s) = tried(DEPTH, 4 << 10);
        let (_, large_per_s) = tried(1, 4 << 20);
        let seeks = matches!(model, Model::Hdd(_));
        let way_ns = if seeks { at(0.5) as f64 } else { 0.0 };
        let drives = Drives {
            count: DRIVES,
            seeks,
            alone_ns: [at(0.5), at(0.99)],
            together_ns: 1e9 / together_per_s,
            depth: DEPTH,
            stream_bytes_per_s: f64::from(4 << 20) * 1e9 / (1e9 / large_per_s - way_ns),
        };
        Place {
            capacity: Capacity {
                drives,
                handlers: HANDLERS,
                requests_per_s: REQUESTS_PER_S,
                floor: AutoOptions::default().floor,
            },
            span_bytes,
            model,
        }
    }
}

/// Reads anywhere in the span, so many at a time: how long each took, ns, and their rate a second.
fn closed(model: &Model, span_bytes: u64, depth: u32, bytes: u64) -> (Vec<Nanos>, f64) {
    let (mut device, mut rng) = (Device::new(model, 1), Rng::new(1, 1));
    let until_ns = 20 * S;
    let mut begun = Vec::new();
    let mut next = |device: &mut Device, begun: &mut Vec<Nanos>, now: Nanos| {
        let offset = rng.below(span_bytes / 4_096) * 4_096;
        let op = Op::Read;
        device.submit(now, begun.len() as u64, Io { op, offset, bytes });
        begun.push(now);
    };
    (0..depth).for_each(|_| next(&mut device, &mut begun, 0));
    let (mut now, mut took) = (0, Vec::new());
    while now < until_ns {
        match device.next(now) {
            Event::At(at) => now = at,
            Event::Idle => break,
            Event::Done { tag, .. } => {
                took.push(now - begun[tag as usize]);
                next(&mut device, &mut begun, now);
            }
        }
    }
    let per_s = took.len() as f64 * 1e9 / now as f64;
    (took, per_s)
}

/// What a tenant of a mix asks, and was promised.
#[derive(Clone, Debug)]
struct Member {
    asked: Asked,
    arrivals: Arrivals,
    bytes: u32,
}

/// Tenants with promises, and how many clients scan beside them.
#[derive(Clone, Debug)]
struct Mix {
    number: u64,
    members: Vec<Member>,
    scanners: u32,
}

impl Mix {
    /// Up to four tenants. What all of them ask, and how soon they want it, is spread widely, so
    /// that some mixes fit easily, some not at all, and many are near.
    fn drawn(place: &Place, mut rng: Rng) -> Self {
        let number = rng.bits();
        let count = 1 + rng.below(4);
        let load = between(&mut rng, 0.05, 1.2);
        let member = |_| Member::drawn(place, load / count as f64, &mut rng);
        let members = (0..count).map(member).collect();
        Mix {
            number,
            members,
            scanners: 8 << rng.below(4),
        }
    }

    fn asked(&self) -> Vec<Asked> {
        self.members.iter().map(|member| member.asked).collect()
    }

    fn fits(&self, capacity: &Capacity) -> bool {
        stand(capacity, &self.asked())
            .lacks
            .iter()
            .all(Option::is_none)
    }

    /// The usual answer: rates are held against what the drives do, latencies against nothing.
    fn rates_fit(&self, capacity: &Capacity) -> bool {
        let takes = |one: &Asked| {
            let full = f64::from(capacity.drives.depth);
            one.demand.per_s * capacity.drives.takes_ns(&one.demand.work, full) / 1e9
        };
        let all: f64 = self.asked().iter().map(takes).sum();
        all <= f64::from(capacity.drives.count)
    }

    /// Whether all promises are kept when it is played.
    fn kept(&self, place: &Place, seconds: f64, seed: u64) -> bool {
        let spec = self.spec(place, seconds, seed);
        let out = run(&spec);
        let mut members = self.members.iter().zip(&out.tenants);
        members.all(|(member, outcome)| member.kept(outcome, out.measured_ns))
    }

    fn spec(&self, place: &Place, seconds: f64, seed: u64) -> Spec {
        let warm_up_ns = (WARM_UP * seconds * 1e9) as Nanos;
        let drives = &place.capacity.drives;
        let members = self.members.iter().enumerate();
        let mut tenants: Vec<Tenant> = members
            .map(|(number, member)| {
                let objective = Some(member.asked.objective);
                tenant(
                    &format!("t{number}"),
                    objective,
                    member.arrivals,
                    member.bytes,
                )
            })
            .collect();
        let clients = self.scanners;
        tenants.push(tenant("rest", None, Arrivals::Closed { clients }, 4 << 20));
        let auto = Auto::new(AutoOptions {
            seeks: drives.seeks,
            depth: drives.depth,
            stream_bytes_per_s: drives.stream_bytes_per_s,
            handlers: HANDLERS,
            ..AutoOptions::default()
        });
        Spec {
            seed,
            duration_ns: warm_up_ns + (seconds * 1e9) as Nanos,
            warm_up_ns,
            drain_ns: 20 * S,
            cluster: node(place),
            scheduler: in_turn(),
            routing: Routing {
                selection: Selection::Rule(Rule::LeastFinish),
                redundancy: Redundancy::None,
                probe_from: None,
            },
            tenants,
            faults: Vec::new(),
            pauses: Vec::new(),
            keeper: Some(Keeper {
                controller: Controller::Auto(Box::new(auto)),
                interval_ns: S,
            }),
        }
    }
}

/// Spread evenly in the logarithm.
fn between(rng: &mut Rng, least: f64, most: f64) -> f64 {
    least * (most / least).powf(rng.unit())
}

impl Member {
    /// One that asks for about `load` of the drives' time, by what they do with full queues.
    fn drawn(place: &Place, load: f64, rng: &mut Rng) -> Self {
        let drives = &place.capacity.drives;
        let scans = rng.unit() < 0.25;
        let bytes: u32 = match scans {
            true => 1 << 20 << rng.below(3),
            false => 4 << 10 << (2 * rng.below(3)),
        };
        let moved_bytes = f64::from(bytes - (4 << 10));
        let work = AtDrive {
            ios: 1.0,
            moved_ns: moved_bytes * 1e9 / drives.stream_bytes_per_s,
        };
        let takes_ns = drives.takes_ns(&work, f64::from(drives.depth));
        let per_s = load * f64::from(drives.count) * 1e9 / takes_ns;
        let per_s = if scans {
            per_s.max(0.2)
        } else {
            per_s.max(5.0)
        };
        let percentile = [90.0, 95.0, 99.0][rng.below(3) as usize];
        let alone_ns = drives.alone_ns[0] as f64;
        let at_most_ns = between(rng, 1.5 * alone_ns, 150.0 * alone_ns).max(0.2 * MS) as Nanos;
        let importance = 1 + rng.below(100) as u32;
        let objective = Objective {
            latency: (!scans).then_some(Latency {
                percentile,
                at_most_ns,
            }),
            throughput_per_s: scans.then_some(per_s),
            contract_per_s: None,
            importance,
            window_ns: 10 * S,
        };
        Member {
            asked: Asked {
                objective,
                demand: Demand {
                    per_s,
                    missing: 1.0,
                    work,
                },
            },
            // One that was promised a rate asks for more.
            arrivals: match scans {
                true => Arrivals::Closed { clients: 64 },
                false => Arrivals::Poisson { per_s },
            },
            bytes,
        }
    }

    /// Whether its promise was kept over the whole of the measured time. What was never answered
    /// was late.
    fn kept(&self, outcome: &TenantOutcome, measured_ns: Nanos) -> bool {
        let objective = &self.asked.objective;
        if let Some(per_s) = objective.throughput_per_s {
            let served_per_s = outcome.answered as f64 * 1e9 / measured_ns as f64;
            return served_per_s >= RATE_KEPT * per_s;
        }
        let Some(latency) = objective.latency else {
            return true;
        };
        let mut counts = Counts::default();
        outcome
            .windows
            .iter()
            .for_each(|window| counts.add(&window.counts));
        counts.late + outcome.unanswered()
            <= latency.late_max(counts.requests + outcome.unanswered())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(at_most_ns: Nanos, per_s: f64) -> Member {
        let mut member = Member::drawn(&Place::named("hdd-5gb"), 0.1, &mut Rng::new(1, 3));
        member.asked.objective.latency = Some(Latency {
            percentile: 90.0,
            at_most_ns,
        });
        member.asked.objective.throughput_per_s = None;
        member.asked.demand.per_s = per_s;
        (member.arrivals, member.bytes) = (Arrivals::Poisson { per_s }, 4 << 10);
        member
    }

    /// What is answered and what happens, of one tenant beside scans.
    fn told(at_most_ns: Nanos, per_s: f64) -> (bool, bool) {
        let place = Place::named("hdd-5gb");
        let mix = Mix {
            number: 1,
            members: vec![member(at_most_ns, per_s)],
            scanners: 8,
        };
        (mix.fits(&place.capacity), mix.kept(&place, 40.0, 1))
    }

    #[test]
    fn an_answer_is_what_then_happens() {
        assert_eq!(told(400_000_000, 20.0), (true, true));
        assert_eq!(told(5_000_000, 20.0), (false, false), "less than a seek");
        assert_eq!(
            told(400_000_000, 4_000.0),
            (false, false),
            "more than the disks do"
        );
    }

    #[test]
    fn answers_are_told_from_what_happened() {
        let mut tally = Tally::default();
        for (admitted, kept) in [(true, true), (true, false), (false, false), (false, true)] {
            tally.count(admitted, kept);
        }
        let figures = tally.figures().map(|(_, figure)| figure);
        assert_eq!(figures, [0.5, 1.0, 1.0, 0.5, 0.5]);
    }
}
