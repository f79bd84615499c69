//! Tenants and loads of a scenario, as far as they can be simulated.

use super::{cluster, ns};
use crate::keys::KeyCount;
use crate::spec::{Arrivals, Quota, Requests, Stream, Tenant};
use policy::slo::Objective;
use settings::tenant::{room::permits, Slo};
use std::collections::BTreeMap;
use std::time::Duration;
use workload::draw::{Counts, Popularity, Sizes};
use workload::rng::Rng;
use workload::scenario::{self, Behaviour, Load, Pace, Scenario, Values};

pub(super) fn tenants(
    scenario: &Scenario,
    cluster: &cluster::Read,
    problems: &mut Vec<String>,
) -> Vec<Tenant> {
    let handlers = cluster
        .cluster
        .device
        .as_ref()
        .and_then(|device| device.handlers);
    let mut one = |tenant: &scenario::Tenant| {
        let promise = tenant.terms.settings.promise();
        if promise.reserved_permits > 0 && handlers.is_none() {
            problems.push(format!(
                "tenant {:?}: `reserved_permits` are handlers kept free, and there are none; give `cluster.device` and `cluster.handlers`, or leave them out",
                tenant.name
            ));
        }
        let mut streams = Vec::new();
        for (number, load) in (0..).zip(&tenant.loads) {
            let quota = load.requests.map(|requests| Quota {
                load: number,
                requests,
            });
            for (behaviour, from, until) in stretches(load) {
                match stream(behaviour, scenario.warm_up, from, until) {
                    Ok(stream) => streams.push(Stream { quota, ..stream }),
                    Err(what) => {
                        let (tenant, load) = (&tenant.name, &load.name);
                        problems.push(format!("tenant {tenant:?}, load {load:?}: {what}"));
                    }
                }
            }
        }
        Tenant {
            name: tenant.name.clone(),
            group: tenant.group.clone(),
            promise,
            objective: objective(tenant, &mut *problems),
            partitions: cluster.partitions,
            streams,
        }
    };
    let tenants: Vec<Tenant> = scenario.tenants.iter().map(&mut one).collect();
    let reserved = tenants
        .iter()
        .map(|t| u64::from(t.promise.reserved_permits));
    let reserved: u64 = reserved.sum();
    let short = handlers.and_then(|all| permits(reserved, all.into(), "cluster.handlers"));
    problems.extend(short.map(|problem| problem.to_string()));
    tenants
}

/// What a tenant is promised: one thing at most, for all of its requests.
fn objective(tenant: &scenario::Tenant, problems: &mut Vec<String>) -> Option<Objective> {
    let settings = &tenant.terms.settings;
    if settings.slos.len() > 1 || !settings.workloads.is_empty() {
        problems.push(format!(
            "tenant {:?}: the simulator has one promise for a tenant and no workloads; make tenants of them",
            tenant.name
        ));
    }
    settings.slos.first().map(Slo::objective)
}

/// A load's behaviours, each with when it begins (`None`: it is there from the warm-up on) and
/// ends.
fn stretches(load: &Load) -> Vec<(&Behaviour, Option<Duration>, Option<Duration>)> {
    let ends = |from: Option<Duration>| {
        let next = load.phases.iter().map(|phase| phase.at);
        let next = next.filter(|at| Some(*at) > from).min();
        match (next, load.until) {
            (Some(next), Some(until)) => Some(next.min(until)),
            (next, until) => next.or(until),
        }
    };
    let mut all = vec![(&load.first, load.from, ends(load.from))];
    for phase in &load.phases {
        let from = load.from.map_or(phase.at, |from| from.max(phase.at));
        all.push((&phase.behaviour, Some(from), ends(Some(phase.at))));
    }
    all.retain(|(_, from, until)| until.is_none() || from < until);
    all
}

fn stream(
    behaviour: &Behaviour,
    warm_up: Duration,
    from: Option<Duration>,
    until: Option<Duration>,
) -> Result<Stream, String> {
    let mix = &behaviour.mix;
    let others = [
        mix.delete,
        mix.increment,
        mix.bitcount,
        mix.ping,
        mix.invalid,
    ];
    if others.iter().any(|weight| *weight > 0.0) {
        return Err(
            "the simulator has only `get`, `put`, `multiget` and `range`; leave the rest out of `mix`"
                .into(),
        );
    }
    let single = mix.get + mix.put;
    let range = mix.range > 0.0;
    if range && single + mix.multiget > 0.0 {
        return Err("the simulator has ranges only in loads of nothing else".into());
    }
    let keys = match range {
        true => key_counts(0.0, mix.range, &counts(&behaviour.range)?),
        false => key_counts(single, mix.multiget, &counts(&behaviour.multiget)?),
    };
    let keys =
        keys.ok_or("`mix` asks for nothing; give `get`, `put`, `multiget` or `range` a weight")?;
    Ok(Stream {
        arrivals: arrivals(behaviour)?,
        from_ns: from.map_or(0, |from| ns(warm_up + from)),
        until_ns: until.map_or(u64::MAX, |until| ns(warm_up + until)),
        quota: None,
        requests: Requests {
            keys,
            range,
            puts: mix.put / single.max(f64::MIN_POSITIVE),
            popularity: popularity(behaviour)?,
            values: values(&behaviour.values)?,
        },
    })
}

fn arrivals(behaviour: &Behaviour) -> Result<Arrivals, String> {
    match &behaviour.pace {
        Pace::Closed { depth } => Ok(Arrivals::Closed {
            clients: u32::try_from(behaviour.connections.saturating_mul(*depth))
                .map_err(|_| "`connections` times `depth` is more than can be simulated")?,
        }),
        Pace::Open { spike: Some(_), .. } => {
            Err("the simulator has no `spike`; write phases with other rates".into())
        }
        Pace::Open { arrivals, .. } => match arrivals {
            scenario::Arrivals::Poisson(per_s) => Ok(Arrivals::Poisson { per_s: *per_s }),
            scenario::Arrivals::Constant(per_s) => Ok(Arrivals::Constant { per_s: *per_s }),
            scenario::Arrivals::Curve(_) | scenario::Arrivals::Trace(_) => Err(
                "the simulator plays `poisson` and `constant` arrivals, no `curve` or `trace`"
                    .into(),
            ),
        },
    }
}

/// Draws that stand for a distribution of keys.
const DRAWS: u32 = 50_000;

fn key_counts(single: f64, several: f64, counts: &Counts) -> Option<KeyCount> {
    let mut weights = BTreeMap::from([(1, single)]);
    if several > 0.0 {
        let mut rng = Rng::new(0, 0);
        for _ in 0..DRAWS {
            *weights.entry(counts.draw(&mut rng)).or_default() += several / f64::from(DRAWS);
        }
    }
    KeyCount::new(weights)
}

fn counts(counts: &scenario::Counts) -> Result<Counts, String> {
    let why = "the simulator draws `multiget` sizes; `trace` is not one of its kinds";
    counts.drawn().map_err(|_| why.into())
}

fn popularity(behaviour: &Behaviour) -> Result<Popularity, String> {
    let why = "the simulator has no `popularity` from a trace";
    behaviour.drawn_keys().map_err(|_| why.into())
}

fn values(values: &Values) -> Result<Sizes, String> {
    let why = "the simulator has no `values` from a trace";
    values.drawn().map_err(|_| why.into())
}
