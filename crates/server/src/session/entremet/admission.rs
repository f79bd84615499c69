//! Whether a promise fits, in words.

use policy::slo::admission::{Lack, Standing};

use super::time;
use crate::shared::{Admitted, Party, Shared};

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
    text.extend(gives_way(&admitted.parties, &answer.after));
    text.push(reckoned(new));
    text
}

/// What of a tenant's promises does not fit beside all that is promised.
pub fn unfit(shared: &Shared, tenant: &str) -> Vec<String> {
    let Some((parties, standing)) = shared.standing() else {
        return Vec::new();
    };
    let own = parties
        .iter()
        .zip(standing.lacks.iter().zip(&standing.kept));
    let own = own.filter(|(party, _)| party.tenant == tenant);
    let unfit = own.filter_map(|(party, (lack, kept))| {
        let lack = lacks(party, &(*lack)?);
        let of = party.slo.of();
        Some(format!(
            "the promise for {of} does not fit beside the others: {lack}; {:.0} % of it can be aimed at",
            100.0 * kept
        ))
    });
    unfit.collect()
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
    let whose = match party.slo.contract_per_s.or(party.slo.throughput_per_s) {
        Some(_) => "as promised",
        None => "as lately; a contract would bound them",
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
