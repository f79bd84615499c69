//! From a scenario to the plan of a run.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use super::behaviour::{
    Arrivals as Due, Behaviour, Counts as Many, CurveFrom, Curved, Pace as Sent, Scale, Values,
};
use super::{Load, Scenario, Tenant};
use crate::arrivals::{Arrivals, Crowd, Curve, Profile};
use crate::client::plan::{Handshake, KeyText, Manners, Pace, Period, Plan, Stream};
use crate::client::preload::Keyspace;
use crate::client::{Identity, Quota, Target};
use crate::draw::{Asks, Class, Counts, Mixture, Popularity, Sizes, Ttl};
use crate::error::WorkloadError;
use crate::replay::{self, Settings};
use crate::rng::Rng;
use crate::source::{CurveSource, Delayed};
use crate::trace::{self, meta, multiget, rate, synthetic};
use policy::generator::mix64;

/// A scenario ready to run.
pub struct Built {
    /// What to send.
    pub plan: Plan,
    /// What to store before.
    pub preload: Vec<Keyspace>,
    /// Traces that are absent, so that what is sent was made from published statistics; each once.
    pub synthesised: Vec<String>,
}

/// Makes the plan; reads the traces that the scenario names from `folder`.
///
/// # Errors
/// [`WorkloadError::TraceFile`], [`WorkloadError::TraceLine`] if a trace is there and cannot be
/// used; [`WorkloadError::Usage`] if a tenant has no password.
pub fn build(scenario: &Scenario, target: &Target, folder: &Path) -> Result<Built, WorkloadError> {
    let mut builder = Builder {
        scenario,
        folder,
        synthesised: Vec::new(),
    };
    let (mut streams, mut preload) = (Vec::new(), Vec::new());
    for tenant in &scenario.tenants {
        let identity = target.identity(tenant)?;
        for load in &tenant.loads {
            let periods = builder.periods(tenant, load, &identity, &mut preload)?;
            let label = match tenant.loads.len() {
                1 => tenant.name.clone(),
                _ => format!("{} load {}", tenant.name, load.name),
            };
            streams.push(Stream {
                tenant: tenant.name.clone(),
                identity: identity.clone(),
                label,
                thread: load.thread,
                quota: load.requests.map(Quota::new),
                periods,
            });
        }
    }
    let plan = Plan {
        goal: target.goal.clone(),
        streams,
        warm_up: scenario.warm_up,
        duration: scenario.duration,
        drain: scenario.drain,
        threads: scenario.threads,
        spin: scenario.spin,
    };
    Ok(Built {
        plan,
        preload: union(preload),
        synthesised: builder.synthesised,
    })
}

/// Keyspaces that several loads or phases share are stored once, as large as the largest.
fn union(keyspaces: Vec<Keyspace>) -> Vec<Keyspace> {
    let mut kept: Vec<Keyspace> = Vec::new();
    for keyspace in keyspaces {
        let same = |other: &&mut Keyspace| {
            other.text == keyspace.text && other.identity == keyspace.identity
        };
        match kept.iter_mut().find(same) {
            Some(other) if other.count < keyspace.count => *other = keyspace,
            Some(_) => {}
            None => kept.push(keyspace),
        }
    }
    kept
}

struct Builder<'a> {
    scenario: &'a Scenario,
    folder: &'a Path,
    synthesised: Vec<String>,
}

/// It asks for keys at all.
fn looks_up(behaviour: &Behaviour) -> bool {
    let looks_up = |class| !matches!(class, Class::Increment | Class::Ping | Class::Invalid);
    behaviour.handshake != Handshake::Partial && behaviour.mix.classes().any(looks_up)
}

/// Scatters the letters of a name.
fn hash(seed: u64, text: &str) -> u64 {
    text.bytes()
        .fold(mix64(seed), |hash, byte| mix64(hash ^ u64::from(byte)))
}

pub(super) fn ns(time: Duration) -> u64 {
    time.as_nanos() as u64
}

impl Builder<'_> {
    /// The behaviours of a load, from when on each, and stillness before and after.
    fn periods(
        &mut self,
        tenant: &Tenant,
        load: &Load,
        identity: &Identity,
        preload: &mut Vec<Keyspace>,
    ) -> Result<Vec<Period>, WorkloadError> {
        let warm_up_ns = ns(self.scenario.warm_up);
        let joins_ns = load.from.map_or(0, |from| warm_up_ns + ns(from));
        let end = warm_up_ns + ns(self.scenario.duration);
        let leaves_ns = load.until.map_or(end, |until| warm_up_ns + ns(until));
        let mut begins = vec![joins_ns];
        begins.extend(load.phases.iter().map(|phase| match ns(phase.at) {
            0 => 0,
            at => warm_up_ns + at,
        }));
        let mut periods = Vec::new();
        for (place, behaviour) in load.behaviours().enumerate() {
            let until_ns = begins
                .get(place + 1)
                .map_or(leaves_ns, |next| leaves_ns.min(*next));
            let from_ns = begins[place].max(joins_ns);
            if until_ns <= from_ns {
                continue;
            }
            let stream = hash(hash(self.scenario.seed, &tenant.name), &load.name) ^ place as u64;
            let span = from_ns..until_ns;
            let mut period = self.period(tenant, behaviour, identity, stream, span, preload)?;
            period.what = match &behaviour.misbehave {
                Some(way) => format!("misbehaves: {way}"),
                None if place == 0 => "joins".into(),
                None if *behaviour == load.first => "is as it began".into(),
                None => "changes".into(),
            };
            periods.push(period);
        }
        if load.until.is_some() {
            let mut last = Period::still();
            (last.from_ns, last.what) = (leaves_ns, "leaves".into());
            periods.push(last);
        }
        Ok(periods)
    }

    fn period(
        &mut self,
        tenant: &Tenant,
        behaviour: &Behaviour,
        identity: &Identity,
        stream: u64,
        span_ns: Range<u64>,
        preload: &mut Vec<Keyspace>,
    ) -> Result<Period, WorkloadError> {
        let keys = &behaviour.keys;
        let key_seed = hash(hash(self.scenario.seed, &tenant.name), &keys.space);
        let mut text = KeyText::new(key_seed, keys.bytes);
        let from_ns = span_ns.start;
        let pace = if let Sent::Open {
            arrivals: Due::Trace(traced),
            outstanding,
            ..
        } = &behaviour.pace
        {
            let settings = Settings {
                folder: self.folder.into(),
                speed_up: traced.speed_up,
                rate_scale: traced.rate_scale,
                keys: 100_000,
                seed: self.scenario.seed,
            };
            let replay = replay::stream(&traced.name, &settings)?;
            self.note(replay.synthesised, &traced.name);
            text = KeyText::new(key_seed, replay.key_bytes);
            if keys.preload {
                let entries = replay.source.population().into_iter();
                preload.push(Keyspace::new(identity, text, entries));
            }
            let source = Delayed::new(replay.source, from_ns, span_ns.end);
            Pace::Open {
                source: Box::new(source),
                outstanding: *outstanding,
            }
        } else {
            let mixture = Mixture::new(key_seed, stream, self.asks(behaviour)?);
            if keys.preload && looks_up(behaviour) {
                preload.push(Keyspace::of(identity, text, &mixture));
            }
            self.pace(behaviour, mixture, stream, span_ns)?
        };
        let mut period = Period::new(behaviour.connections, text, pace);
        period.from_ns = from_ns;
        period.manners = Manners {
            handshake: behaviour.handshake,
            reconnect_after: behaviour.reconnect_after,
            read_rate: behaviour.read_rate,
        };
        Ok(period)
    }

    fn pace(
        &mut self,
        behaviour: &Behaviour,
        mixture: Mixture,
        stream: u64,
        span_ns: Range<u64>,
    ) -> Result<Pace, WorkloadError> {
        let (arrivals, spike, outstanding) = match &behaviour.pace {
            Sent::Closed { depth } => {
                return Ok(Pace::Closed {
                    mixture: Box::new(mixture),
                    depth: *depth,
                })
            }
            Sent::Open {
                arrivals,
                spike,
                outstanding,
            } => (arrivals, spike, *outstanding),
        };
        let mut profile = match arrivals {
            Due::Poisson(rate) | Due::Constant(rate) => Profile::new(Curve::flat(*rate)),
            Due::Curve(curved) => self.curved(curved)?,
            Due::Trace(_) => Profile::new(Curve::flat(0.0)),
        };
        profile.crowd = spike.map(|spike| Crowd {
            at_s: spike.at.as_secs_f64(),
            length_s: spike.length.as_secs_f64(),
            times: spike.times,
            every_s: spike
                .every
                .map_or(f64::INFINITY, |every| every.as_secs_f64()),
        });
        let random = (!matches!(arrivals, Due::Constant(_))).then(|| Rng::new(stream, 0x6172));
        let warm_up_s = self.scenario.warm_up.as_secs_f64();
        let at_s = |ns: u64| ns as f64 / 1e9 - warm_up_s;
        let arrivals = Arrivals::new(profile, random, at_s(span_ns.start)..at_s(span_ns.end));
        let source = CurveSource::paced(arrivals, mixture, warm_up_s);
        Ok(Pace::Open {
            source: Box::new(source),
            outstanding,
        })
    }

    /// The curve as it passes in this run.
    fn curved(&mut self, curved: &Curved) -> Result<Profile, WorkloadError> {
        let mut curve = match &curved.from {
            CurveFrom::Series(name) => {
                let (curve, synthesised) = rate::read(self.folder, name)?;
                self.note(synthesised, name);
                curve
            }
            CurveFrom::File { path, step } => rate::read_file(path, step.as_secs_f64())?,
        };
        let steps = curve.rates_per_s.len();
        let first = (curved.offset.as_secs_f64() / curve.step_s) as usize;
        let covered_s = self.scenario.duration.as_secs_f64() * curved.speed_up;
        let covered = ((covered_s / curve.step_s).ceil() as usize).clamp(1, steps);
        let part = (0..covered).map(|step| curve.rates_per_s[(first + step) % steps]);
        let (mean, peak) = part.fold((0.0, 0.0f64), |(mean, peak), rate| {
            (mean + rate / covered as f64, peak.max(rate))
        });
        let scale = match curved.scale {
            Scale::Own => 1.0,
            Scale::Mean(wanted) if mean > 0.0 => wanted / mean,
            Scale::Peak(wanted) if peak > 0.0 => wanted / peak,
            Scale::Mean(_) | Scale::Peak(_) => {
                let what = "a curve has no rate at all in the part that the run covers, so that it cannot be scaled: choose another `from`";
                return Err(WorkloadError::Usage(what.into()));
            }
        };
        curve.rates_per_s.iter_mut().for_each(|rate| *rate *= scale);
        curve.step_s /= curved.speed_up;
        Ok(Profile {
            curve,
            offset_s: curved.offset.as_secs_f64() / curved.speed_up,
            crowd: None,
        })
    }

    fn asks(&mut self, behaviour: &Behaviour) -> Result<Asks, WorkloadError> {
        let ttl_ms = behaviour.ttl.map(|ttl| (ttl.as_millis() as u64).max(1));
        Ok(Asks {
            shares: behaviour.mix,
            popularity: self.popularity(behaviour)?,
            sizes: self.sizes(&behaviour.values)?,
            multiget: self.counts(&behaviour.multiget)?,
            range: self.counts(&behaviour.range)?,
            range_values: behaviour.range_values,
            ttl: match ttl_ms {
                None => Ttl::None,
                Some(ms) if behaviour.ttl_together => Ttl::TogetherMs(ms),
                Some(ms) => Ttl::Ms(ms),
            },
        })
    }

    fn popularity(&mut self, behaviour: &Behaviour) -> Result<Popularity, WorkloadError> {
        let keys = behaviour.keys.count;
        let measured = |name: &str| Ok(self.measured(name)?.popularity(keys));
        behaviour.drawn_keys().or_else(measured)
    }

    fn sizes(&mut self, values: &Values) -> Result<Sizes, WorkloadError> {
        values
            .drawn()
            .or_else(|name| Ok(self.measured(name)?.sizes()))
    }

    fn counts(&mut self, counts: &Many) -> Result<Counts, WorkloadError> {
        counts.drawn().or_else(|name| {
            let absent = !self.folder.join(format!("multiget-{name}")).is_dir();
            self.note(absent, name);
            let lists = match (name, absent) {
                ("mooncake", true) => synthetic::mooncake().lists,
                ("mooncake", false) => multiget::mooncake(self.folder)?.lists,
                (_, true) => synthetic::kosarak(),
                (_, false) => multiget::kosarak(self.folder)?,
            };
            let counts = (0..lists.len()).map(|list| lists.get(list).len() as u32);
            Ok(Counts::Measured(counts.collect()))
        })
    }

    /// What was measured of one of Meta's workloads.
    fn measured(&mut self, name: &str) -> Result<meta::Distribution, WorkloadError> {
        let absent = !self.folder.join("kv-meta-cachelib").is_dir();
        self.note(absent, name);
        match absent {
            true => Ok(synthetic::meta(name)),
            false => meta::read(self.folder, name),
        }
    }

    fn note(&mut self, synthesised: bool, name: &str) {
        if synthesised && !self.synthesised.iter().any(|known| known == name) {
            self.synthesised.push(name.into());
        }
    }
}

/// Where traces are looked for when nobody says otherwise.
pub fn folder() -> std::path::PathBuf {
    trace::folder()
}
