//! Whether a promise fits, in words.

use policy::slo::admission::{Lack, Remedy, Standing};
use policy::slo::Outcome;
use settings::tenant::Slo;

use super::time;
use crate::shared::{Admitted, Party, Shared};
use crate::tenants::Tenant;

/// Promises of which it is said what they would take. With 500 in all, it takes a processor a
/// quarter of a second to find that for one.
const REMEDIES_OF_MAX: usize = 3;

/// The first word tells a program.
const FITS: &str = "fits";
const FITS_NOT: &str = "does not fit";

/// Why a promise that was just asked for does not fit, for whoever asked; `None`: it does.
pub fn refusal(admitted: &Admitted) -> Option<String> {
    if admitted.answer.fits() {
        return None;
    }
    Some(why_not(admitted).join("; "))
}

/// All that is to be said of a promise before it is made.
pub fn told(shared: &Shared, admitted: Option<&Admitted>) -> Vec<String> {
    let Some(admitted) = admitted else {
        let doubt = shared.options.disk.doubt().unwrap_or_default();
        return vec![format!("nobody knows whether it fits: {doubt}")];
    };
    let answer = &admitted.answer;
    let mut text = match refusal(admitted) {
        None => vec![format!(
            "{FITS} beside {} other promises",
            admitted.parties.len() - 1
        )],
        Some(why) => vec![format!("{FITS_NOT}: {why}")],
    };
    text.push(format!(
        "all promises take {:.0} % of the disk's time with it, and {:.0} % without",
        100.0 * answer.after.used,
        100.0 * answer.before.used
    ));
    let new = new(admitted);
    if let Some(latency) = new.slo.objective().latency {
        text.push(match answer.least_ns {
            Some(ns) => format!(
                "the least that could be promised of it: {} % within {}",
                latency.percentile,
                time(ns as f64)
            ),
            None => "no latency could be promised at this rate".into(),
        });
    }
    if !answer.fits() {
        let place = admitted.parties.len() - 1;
        text.push(takes(
            &admitted.parties,
            place,
            &answer.takes,
            disks(shared),
        ));
    }
    text.extend(gives_way(&admitted.parties, &answer.after));
    text.push(reckoned(new));
    text
}

/// What of a tenant's promises does not fit beside all that is promised, and what it would take.
/// What others were promised is for operators.
pub fn unfit(shared: &Shared, tenant: &Tenant, operator: bool) -> Vec<String> {
    let Some((parties, standing)) = shared.standing() else {
        return Vec::new();
    };
    let (mut text, mut lacking) = (Vec::new(), 0);
    let all = standing.lacks.iter().zip(&standing.kept);
    for (place, (lack, kept)) in all.enumerate() {
        let party = &parties[place];
        if party.tenant != tenant.name {
            continue;
        }
        let alone = || shared.lack_alone(party);
        text.extend(left(party, lack.as_ref(), *kept, alone));
        if lack.is_none() {
            if missed(tenant, &party.slo) {
                let (of, reckoned) = (party.slo.of(), reckoned(party));
                text.push(format!(
                    "the promise for {of} was missed and fits beside the others: {reckoned}"
                ));
            }
            continue;
        }
        lacking += 1;
        if lacking <= REMEDIES_OF_MAX {
            let all = shared.takes(&parties, place);
            let of_others = |remedy: &Remedy| matches!(remedy, Remedy::Other { .. });
            let (others, mut remedies): (Vec<_>, Vec<_>) = all.into_iter().partition(of_others);
            let untold = !others.is_empty() && !operator;
            remedies.extend(others.into_iter().filter(|_| operator));
            text.push(match remedies.is_empty() && untold {
                true => format!("others would have to give up some of what they were promised for {} to be kept", party.slo.of()),
                false => takes(&parties, place, &remedies, disks(shared)),
            });
            text.push(reckoned(party));
        }
    }
    if lacking > REMEDIES_OF_MAX {
        text.push(format!(
            "what it would take is said of the first {REMEDIES_OF_MAX} that do not fit"
        ));
    }
    text
}

/// What is left of a promise if not all are kept, for its `lack` or for what others lack, and what
/// it would lack `alone`. `None`: all of it.
fn left(
    party: &Party,
    lack: Option<&Lack>,
    kept: f64,
    alone: impl FnOnce() -> Option<Lack>,
) -> Option<String> {
    let of = party.slo.of();
    let why = match lack {
        Some(lack) => format!("does not fit beside the others: {}", lacks(party, lack)),
        None if kept < 1.0 => "fits, and gives way since others do not".to_owned(),
        None => return None,
    };
    if kept > 0.0 {
        let percent = 100.0 * kept;
        return Some(format!(
            "the promise for {of} {why}; {percent:.0} % of it can be aimed at"
        ));
    }
    Some(match alone() {
        Some(lack) => format!(
            "the promise for {of} is impossible, whatever else is promised: {}; it is given up",
            lacks(party, &lack)
        ),
        None => format!(
            "the promise for {of} {why}; less than a tenth of it would be left, so it is given up, \
             though alone it would fit"
        ),
    })
}

/// In the last window that is over.
fn missed(tenant: &Tenant, slo: &Slo) -> bool {
    let meters = tenant.meters();
    let meter = meters.all().iter().find(|meter| meter.slo() == slo);
    meter.is_some_and(|meter| {
        let record = meter.record.lock();
        let last = record.windows().next_back();
        last.is_some_and(|last| last.outcome == Outcome::Missed)
    })
}

fn disks(shared: &Shared) -> usize {
    let stage = shared.options.disk.stage();
    stage.map_or(0, |stage| stage.drives())
}

/// With what a promise would fit, each by itself.
fn takes(parties: &[Party], place: usize, remedies: &[Remedy], disks: usize) -> String {
    let own = &parties[place];
    let each = remedies.iter().map(|remedy| match remedy {
        Remedy::Rate(per_s) => {
            let asked = own.asked.demand.per_s;
            let now = match own.bounded() {
                true => "promised",
                false => "asked for lately",
            };
            format!("for up to {}/s ({}/s {now})", rate(*per_s), rate(asked))
        }
        Remedy::AtMost(ns) => {
            let at_most_ns = own.slo.at_most_ns.unwrap_or_default();
            let [then, now] = [*ns, at_most_ns].map(|ns| time(ns as f64));
            format!(
                "with {} % within {then} ({now} promised)",
                own.slo.percentile
            )
        }
        Remedy::Drives(count) => format!(
            "with {count} disks of this kind and as many handlers for each as now ({disks} now)"
        ),
        Remedy::Other { place, per_s } => {
            let other = &parties[*place];
            let (whose, of) = (&other.tenant, other.slo.of());
            let now = other.asked.demand.per_s;
            match *per_s > 0.0 {
                true => format!(
                    "if {whose} gave up {}/s of the {}/s for {of}",
                    rate(now - per_s),
                    rate(now)
                ),
                false => format!("if {whose} were promised nothing for {of}"),
            }
        }
    });
    let each: Vec<String> = each.collect();
    let of = own.slo.of();
    match each.is_empty() {
        true => format!("neither less of it, nor more disks, would do for {of}"),
        false => format!("what it would take: {of} is kept {}", each.join(", or ")),
    }
}

/// A rate as a person reads it: small ones with what makes them differ from nothing.
fn rate(per_s: f64) -> String {
    match per_s {
        per_s if per_s < 1.0 => format!("{per_s:.2}"),
        per_s if per_s < 10.0 => format!("{per_s:.1}"),
        per_s => format!("{per_s:.0}"),
    }
}

fn new(admitted: &Admitted) -> &Party {
    admitted.parties.last().expect("the new one is there")
}

fn why_not(admitted: &Admitted) -> Vec<String> {
    let answer = &admitted.answer;
    let mut why = Vec::new();
    if let Some(lack) = answer.lack_alone {
        why.push(format!(
            "it is impossible, whatever else is promised: {}",
            lacks(new(admitted), &lack)
        ));
    } else if let Some(lack) = answer.lack {
        why.push(lacks(new(admitted), &lack));
    }
    for place in &answer.harmed {
        let Party { tenant, slo, .. } = &admitted.parties[*place];
        why.push(format!(
            "it would break what {tenant} was promised for {}",
            slo.of()
        ));
    }
    why
}

fn lacks(party: &Party, lack: &Lack) -> String {
    let percentile = party.slo.percentile;
    match lack {
        Lack::Alone(ns) => format!(
            "{percentile} % of such requests take up to {} with nothing beside them",
            time(*ns as f64)
        ),
        Lack::Behind => format!(
            "fewer than {percentile} % of such requests are in time behind one piece of other work"
        ),
        Lack::Late(part) => format!(
            "{:.2} % of the requests would be late, and {:.2} % may be",
            100.0 * part,
            100.0 - percentile
        ),
        Lack::Handlers(held) => {
            format!("requests that may wait would hold {held:.0} handlers, so that these find none")
        }
        Lack::Device { needed, most } => format!(
            "the disk would be needed for {:.0} % of the time, and {:.0} % can be promised",
            100.0 * needed,
            100.0 * most
        ),
        Lack::Cores(times) => format!(
            "the cores would be needed for {:.0} % of the time",
            100.0 * times
        ),
    }
}

/// Who gives up how much if all is promised all the same.
fn gives_way(parties: &[Party], standing: &Standing) -> Option<String> {
    let less = parties
        .iter()
        .zip(&standing.kept)
        .filter(|(_, kept)| **kept < 1.0);
    let each = less.map(|(party, kept)| match *kept > 0.0 {
        true => format!(
            "{:.0} % of {}'s for {}",
            100.0 * kept,
            party.tenant,
            party.slo.of()
        ),
        false => format!("nothing of {}'s for {}", party.tenant, party.slo.of()),
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| {
        format!(
            "if it is promised all the same, by importance this is aimed at: {}",
            each.join(", ")
        )
    })
}

/// What was reckoned with.
fn reckoned(party: &Party) -> String {
    let demand = &party.asked.demand;
    let rate = format!("reckoned with {:.0} requests/s", demand.per_s);
    let whose = match party.bounded() {
        true => "as promised",
        false => "as lately; a contract would bound them",
    };
    match party.seen {
        true => format!(
            "{rate} ({whose}), {:.0} % of them from the disk, {:.1} reads each",
            100.0 * demand.missing,
            demand.work.ios
        ),
        false => format!("{rate} ({whose}), each a read of 4 KiB from the disk: none was seen yet"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::slo::admission::{Asked, Demand, Work};
    use settings::tenant::SloClass;

    fn party(tenant: &str, class: SloClass, contract_per_s: Option<f64>, per_s: f64) -> Party {
        let slo = Slo {
            class,
            at_most_ns: Some(20_000_000),
            contract_per_s,
            ..Slo::default()
        };
        Party {
            tenant: tenant.into(),
            asked: Asked {
                objective: slo.objective(),
                demand: Demand {
                    per_s,
                    missing: 0.25,
                    work: Work {
                        ios: 1.0,
                        moved_ns: 0.0,
                    },
                },
            },
            slo,
            seen: true,
        }
    }

    #[test]
    fn of_what_is_given_up_it_is_said_whether_it_is_impossible() {
        let web = party("web", SloClass::Get, Some(1_500.0), 1_500.0);
        let (late, alone) = (Lack::Late(0.5), Lack::Alone(40_000_000));
        let said = |lack, kept, alone| left(&web, lack, kept, || alone);
        assert_eq!(said(None, 1.0, None), None);
        assert_eq!(
            said(Some(&late), 0.4, None).as_deref(),
            Some(
                "the promise for get does not fit beside the others: 50.00 % of the requests would \
                 be late, and 1.00 % may be; 40 % of it can be aimed at"
            )
        );
        assert_eq!(
            said(None, 0.0, None).as_deref(),
            Some(
                "the promise for get fits, and gives way since others do not; less than a tenth of \
                 it would be left, so it is given up, though alone it would fit"
            )
        );
        assert_eq!(
            said(Some(&alone), 0.0, Some(alone)).as_deref(),
            Some(
                "the promise for get is impossible, whatever else is promised: 99 % of such \
                 requests take up to 40.00 ms with nothing beside them; it is given up"
            )
        );
    }

    #[test]
    fn what_it_would_take_is_said_with_what_is_now() {
        let parties = [
            party("web", SloClass::Get, Some(1_500.0), 1_500.0),
            party("batch", SloClass::Scan, None, 600.0),
        ];
        let other = |per_s| Remedy::Other { place: 1, per_s };
        let said = |place: usize, remedies: &[Remedy]| takes(&parties, place, remedies, 1);
        assert_eq!(
            said(0, &[Remedy::Rate(1_100.0), Remedy::AtMost(31_000_000), Remedy::Drives(3), other(300.0)]),
            "what it would take: get is kept for up to 1100/s (1500/s promised), or with 99 % within \
             31.00 ms (20.00 ms promised), or with 3 disks of this kind and as many handlers for \
             each as now (1 now), or if batch gave up 300/s of the 600/s for scan"
        );
        assert_eq!(
            said(0, &[other(0.0)]),
            "what it would take: get is kept if batch were promised nothing for scan"
        );
        assert_eq!(
            said(1, &[Remedy::Rate(0.25)]),
            "what it would take: scan is kept for up to 0.25/s (600/s asked for lately)"
        );
        assert_eq!(
            said(1, &[]),
            "neither less of it, nor more disks, would do for scan"
        );
    }
}
