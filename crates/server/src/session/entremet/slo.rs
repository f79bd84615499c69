//! `ENTREMET SLO LIST [tenant] | GET tenant class … | SET tenant class … | DEL tenant class …`:
//! what tenants were promised of latency and throughput, and how well it was kept.

use std::sync::Arc;

use policy::slo::admission::Admission;
use policy::slo::Counts;
use policy::words::Words;
use settings::tenant::{Field, Shown, Slo, SloClass, SLO};

use super::edits::Edits;
use super::{admission, Visit};
use crate::session::NOT_OPERATOR;
use crate::shared::Shared;
use crate::slo::{Bucket, History, Meter, Record, Window};
use crate::tenants::{RegistryError, Tenant};

const SYNTAX: &str = "ERR syntax: ENTREMET SLO LIST [tenant] | GET tenant class [WORKLOAD name] | \
                      SET tenant class [WORKLOAD name] [option value ...] [CHECK] | DEL tenant class [WORKLOAD name]";

/// Runs it.
pub fn run(visit: &mut Visit<'_>) {
    let words = visit.args.len();
    if visit.is(2, "LIST") && words <= 4 {
        return list(visit);
    }
    if visit.is(2, "GET") && words >= 5 {
        return get(visit);
    }
    let ended = match words {
        5.. if visit.is(2, "SET") => set(visit),
        5.. if visit.is(2, "DEL") => delete(visit),
        _ => Err(SYNTAX.into()),
    };
    match ended {
        Ok(None) => visit.reply().ok(),
        Ok(Some(text)) => super::lines(&mut visit.reply(), &text),
        Err(text) => visit.error(&text),
    }
}

/// Whose requests a promise is for, as words 4 and on say it.
struct Whose {
    class: SloClass,
    workload: Option<String>,
    /// The first word after it.
    rest: usize,
}

impl Whose {
    fn read(visit: &Visit<'_>) -> Result<Self, String> {
        let word = visit.text(4).to_ascii_lowercase();
        let class = SloClass::from_word(&word).ok_or_else(|| {
            let words: Vec<&str> = SloClass::ALL.iter().map(|(_, choice)| choice.0).collect();
            format!(
                "ERR '{word}' is not a class; there are {}",
                words.join(", ")
            )
        })?;
        let named = visit.is(5, "WORKLOAD");
        if named && visit.args.len() < 7 {
            return Err("ERR syntax error".into());
        }
        Ok(Self {
            class,
            workload: named.then(|| visit.text(6).into_owned()),
            rest: if named { 7 } else { 5 },
        })
    }

    fn is(&self, slo: &Slo) -> bool {
        slo.is_of(self.workload.as_deref(), self.class)
    }

    /// A promise of nothing yet.
    fn new_slo(&self) -> Slo {
        Slo {
            workload: self.workload.clone(),
            class: self.class,
            ..Slo::default()
        }
    }

    fn unknown(&self) -> String {
        format!("nothing is promised for {}", self.new_slo().of())
    }
}

fn list(visit: &mut Visit<'_>) {
    let all = visit.args.len() == 3 && visit.operator();
    let tenants = match all {
        true => visit.shared.tenants.list(),
        false => match super::named(visit, 3) {
            Some(tenant) => vec![tenant],
            None => return,
        },
    };
    let mut text = Vec::new();
    for tenant in tenants {
        let meters = tenant.meters();
        let whose = if all {
            format!("{}, ", tenant.name)
        } else {
            String::new()
        };
        let unix_s = visit.now_ms / 1_000;
        let line = |meter: &Arc<Meter>| {
            format!(
                "{whose}{}: {}",
                meter.slo(),
                how_well(meter, unix_s).join("; ")
            )
        };
        text.extend(meters.all().iter().map(line));
    }
    super::lines(&mut visit.reply(), &text);
}

/// How well a promise was kept, in words: here, and at all fronts where there are several.
pub fn how_well(meter: &Meter, unix_s: u64) -> Vec<String> {
    let record = meter.record.lock();
    let parts = [("contract", meter.portion()), ("throughput", record.part())];
    let parts = parts.iter().filter(|(_, part)| *part < 1.0);
    let here = parts.map(|(what, part)| format!("{:.1} % of its {what} is here", 100.0 * part));
    let mut said: Vec<String> = here.collect();
    said.extend(well(meter, &record, unix_s));
    drop(record);
    said.extend(at_all_fronts(meter, unix_s));
    said
}

/// How well a promise was kept at all fronts that keep it together; none: there is one.
fn at_all_fronts(meter: &Meter, unix_s: u64) -> Option<String> {
    let whole = meter.whole.lock();
    let (fronts, record) = whole.seen()?;
    let well = well(meter, record, unix_s).join(", ");
    Some(format!("at all {fronts} fronts: {well}"))
}

/// The same of all tenants' promises, a line each.
pub fn kept_at_all_fronts(shared: &Shared) -> Vec<String> {
    let unix_s = (shared.options.wall_ms)() / 1_000;
    let of = |tenant: Arc<Tenant>| {
        let meters = tenant.meters();
        let line = |meter: &Arc<Meter>| {
            let kept = at_all_fronts(meter, unix_s)?;
            Some(format!("{}, {}: {kept}", tenant.name, meter.slo()))
        };
        meters.all().iter().filter_map(line).collect::<Vec<_>>()
    };
    shared.tenants.list().into_iter().flat_map(of).collect()
}

fn well(meter: &Meter, record: &Record, unix_s: u64) -> Vec<String> {
    let last = match record.windows().next_back() {
        None => "no window is over yet".to_string(),
        Some(last) => last_window(meter, last),
    };
    let over = |bucket: Bucket, name: &str| {
        let attainment = bucket.attainment();
        let part = attainment.part()?;
        Some(format!(
            "{name}: {:.2} % of {} windows met",
            100.0 * part,
            attainment.judged()
        ))
    };
    let hour = over(record.history.last_hour(unix_s), "last hour");
    let days = over(record.history.last_30_days(unix_s), "30 days");
    [Some(last), hour, days].into_iter().flatten().collect()
}

fn last_window(meter: &Meter, last: &Window) -> String {
    let Counts {
        requests,
        late,
        beyond,
        ..
    } = last.counts;
    let measured = meter.objective().latency.zip(last.latency_ns);
    let percentile = measured.map_or(String::new(), |(latency, ns)| {
        let few = match requests < latency.sample_least() {
            true => ", which is their maximum",
            false => "",
        };
        let time = super::time(ns);
        format!(
            "p{} {time} over {requests} requests{few}, ",
            latency.percentile
        )
    });
    let late = match requests {
        0 => String::new(),
        _ => format!("{late} late, "),
    };
    let beyond = match beyond {
        0 => String::new(),
        beyond => format!("{beyond} beyond the contract, "),
    };
    format!(
        "last window: {percentile}{late}{beyond}{}",
        last.outcome.word()
    )
}

/// What is promised, a field each, and how well it was kept.
fn facts(meter: &Meter, unix_s: u64) -> Vec<(String, Shown)> {
    let slo = meter.slo();
    let set = SLO
        .iter()
        .map(|field| (field.option().to_ascii_lowercase(), field.shown(slo)));
    let mut facts: Vec<(String, Shown)> = set.collect();
    let total = meter.read().counts;
    for (name, count) in [
        ("requests", total.requests),
        ("late", total.late),
        ("beyond-contract", total.beyond),
    ] {
        facts.push((name.into(), Shown::Integer(count)));
    }
    let record = meter.record.lock();
    facts.extend(attained(meter, Some(&record), "", unix_s));
    let part = record.part();
    drop(record);
    let whole = meter.whole.lock();
    let (fronts, record) = whole.seen().unzip();
    let fronts = fronts.map_or(1, |fronts| fronts as u64);
    facts.push(("fronts".into(), Shown::Integer(fronts)));
    let contract = meter.objective().contract_per_s;
    let here = contract.map_or(Shown::Nothing, |_| Shown::Number(100.0 * meter.portion()));
    facts.push(("contract-percent-here".into(), here));
    let throughput = meter.objective().throughput_per_s;
    let here = throughput.map_or(Shown::Nothing, |_| Shown::Number(100.0 * part));
    facts.push(("throughput-percent-here".into(), here));
    facts.extend(attained(meter, record, "all-fronts-", unix_s));
    facts
}

/// How well a promise was kept by this record, a field each, whose names begin so; nothing is known
/// where there is none.
fn attained(
    meter: &Meter,
    record: Option<&Record>,
    begin: &str,
    unix_s: u64,
) -> Vec<(String, Shown)> {
    let last = record.and_then(|record| record.windows().next_back());
    let part = |part: Option<f64>| part.map_or(Shown::Nothing, |part| Shown::Number(100.0 * part));
    let bucket = |of: fn(&History, u64) -> Bucket| {
        record.map_or(Bucket::default(), |record| of(&record.history, unix_s))
    };
    let (hour, days) = (bucket(History::last_hour), bucket(History::last_30_days));
    let left = |bucket: &Bucket| {
        let latency = meter.objective().latency;
        let budget = latency.map(|latency| policy::slo::Budget::of(&latency, &bucket.counts()));
        part(budget.and_then(|budget| budget.left()))
    };
    let shown = |last: Option<Shown>| last.unwrap_or(Shown::Nothing);
    let latency = last.and_then(|last| last.latency_ns);
    let facts = [
        (
            "last-window",
            shown(last.map(|last| Shown::Text(last.outcome.word().into()))),
        ),
        (
            "last-window-requests",
            shown(last.map(|last| Shown::Integer(last.counts.requests))),
        ),
        (
            "last-window-latency-us",
            shown(latency.map(|ns| Shown::Number((ns / 1e3).round()))),
        ),
        ("met-percent-1h", part(hour.attainment().part())),
        ("met-percent-30d", part(days.attainment().part())),
        ("budget-left-percent-1h", left(&hour)),
        ("budget-left-percent-30d", left(&days)),
    ];
    facts
        .into_iter()
        .map(|(name, shown)| (format!("{begin}{name}"), shown))
        .collect()
}

fn get(visit: &mut Visit<'_>) {
    let whose = match Whose::read(visit) {
        Ok(whose) if whose.rest == visit.args.len() => whose,
        Ok(_) => return visit.error(SYNTAX),
        Err(text) => return visit.error(&text),
    };
    let Some(tenant) = super::named_of(visit, 3) else {
        return;
    };
    let meters = tenant.meters();
    let Some(meter) = meters.all().iter().find(|meter| whose.is(meter.slo())) else {
        return visit.error(&format!("ERR {}", whose.unknown()));
    };
    let facts = facts(meter, visit.now_ms / 1_000);
    super::map(&mut visit.reply(), facts);
}

/// Options that say whose requests are meant, and not what is promised.
fn says_what(field: &&'static Field<Slo>) -> bool {
    !["CLASS", "WORKLOAD"].contains(&field.option().as_str())
}

/// With `CHECK` it says what would come of it, and changes nothing. What does not fit is refused,
/// or taken with a warning, as `control.admission` has it.
fn set(visit: &Visit<'_>) -> Result<Option<Vec<String>>, String> {
    if !visit.operator() {
        return Err(NOT_OPERATOR.into());
    }
    let whose = Whose::read(visit)?;
    let words = visit.args.len();
    let checks = words > whose.rest && visit.is(words - 1, "CHECK");
    let options = words - whose.rest - usize::from(checks);
    let fields = SLO.iter().filter(says_what);
    let edits = Edits::read(
        visit.args.from(whose.rest),
        options,
        fields,
        "ENTREMET SLO SET",
    )?;
    let edit = |slos: &mut Vec<Slo>| {
        let at = slos.iter().position(|slo| whose.is(slo));
        let at = at.unwrap_or_else(|| {
            slos.push(whose.new_slo());
            slos.len() - 1
        });
        edits.apply(&mut slos[at]);
        Ok(())
    };
    let (tenant, shared) = (known(visit)?, visit.shared);
    let checked = shared.check_tenant(&tenant.name, |spec| {
        edit(&mut spec.settings.slos).map_err(RegistryError::Infeasible)
    });
    let mut said = checked.map_err(|error| format!("ERR {error}"))?;
    let mut slos = tenant.settings().slos.clone();
    edit(&mut slos)?;
    let slo = slos.iter().find(|slo| whose.is(slo));
    let policy = shared.tuning().admission;
    let asks = checks || policy != Admission::Off;
    let admitted = slo
        .filter(|_| asks)
        .and_then(|slo| shared.admit(&tenant, slo));
    if checks {
        said.extend(admission::told(shared, admitted.as_ref()));
        return Ok(Some(said));
    }
    let refusal = admitted.as_ref().and_then(admission::refusal);
    match refusal {
        None => change(visit, &tenant, edit),
        Some(why) if policy == Admission::Refuse => Err(format!(
            "ERR it does not fit: {why}; the same with CHECK at the end tells more"
        )),
        Some(why) => {
            change(visit, &tenant, edit)?;
            let of = whose.new_slo().of();
            tracing::warn!(
                tenant = tenant.name,
                of,
                "a promise was made that does not fit: {why}"
            );
            Ok(Some(vec![format!("taken, though it does not fit: {why}")]))
        }
    }
}

fn delete(visit: &Visit<'_>) -> Result<Option<Vec<String>>, String> {
    if !visit.operator() {
        return Err(NOT_OPERATOR.into());
    }
    let whose = Whose::read(visit)?;
    if whose.rest != visit.args.len() {
        return Err(SYNTAX.into());
    }
    let tenant = known(visit)?;
    change(visit, &tenant, |slos| {
        let before = slos.len();
        slos.retain(|slo| !whose.is(slo));
        match slos.len() < before {
            true => Ok(()),
            false => Err(whose.unknown()),
        }
    })
}

/// The tenant that word 3 names.
fn known(visit: &Visit<'_>) -> Result<Arc<Tenant>, String> {
    let name = visit.text(3);
    let tenant = visit.shared.tenants.get(&name);
    tenant.ok_or_else(|| super::no_such(&name))
}

fn change(
    visit: &Visit<'_>,
    tenant: &Tenant,
    edit: impl FnOnce(&mut Vec<Slo>) -> Result<(), String>,
) -> Result<Option<Vec<String>>, String> {
    let changed = visit.shared.change_tenant(&tenant.name, |spec| {
        edit(&mut spec.settings.slos).map_err(RegistryError::Infeasible)
    });
    changed
        .map(|()| None)
        .map_err(|error| format!("ERR {error}"))
}
