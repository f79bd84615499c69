//! Bandwidth-bound beside request-bound tenants.
//!
//! A tenant's dominant share is its rate over the rate that the server reaches when it serves only
//! requests of that kind. With equal weights the DRF optimum gives every tenant the same dominant
//! share, and wastes nothing: the shares add up to at least the whole (to more where the two kinds
//! lean on different resources). The row is the worse of the two: the least dominant share over the
//! greatest, and the sum.

use experiment::ExperimentError;
use serde_json::json;
use workload::draw::Sizes;
use workload::report::rate;

use crate::load::{fill, shoot, stream, ClosedStream, GETS};
use crate::rows::{median, Bound, Row, Rows};
use crate::server::{identity, pin_client, Entremet, Server, Tenant};
use crate::Setup;

const EACH: usize = 4;
const KEYS: u64 = 500;
const SMALL: Sizes = Sizes::Constant(10);
const LARGE: Sizes = Sizes::Constant(16 * 1024);

/// Object cache of each tenant, MiB: everything fits.
const CACHE_MIB: u64 = 32;

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<(), ExperimentError> {
    let name = "10 B beside 16 KiB, worse of MMR and sum";
    if !rows.wants(name) {
        return Ok(());
    }
    pin_client(&[setup.client_core]);
    let fifo = start(setup, "entremet (fifo)", "fifo", toml::Table::new())?;
    let fair = start(setup, "entremet (fair)", "fair", yardsticks(setup, &fifo)?)?;
    fill(
        setup,
        &fair,
        &[streams("small", SMALL), streams("large", LARGE)].concat(),
    )?;
    let (mut ours, mut theirs, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..setup.repeats {
        let measured = measure(setup, &fair)?;
        ours.push(measured.worse());
        theirs.push(measure(setup, &fifo)?.worse());
        all.push(measured);
    }
    let of = |pick: fn(&Measured) -> f64| median(&all.iter().map(pick).collect::<Vec<_>>());
    let sides = format!(
        "MMR {:.3}, sum {:.3}; alone {}/s of 10 B, {}/s of 16 KiB; fifo {:.3}",
        of(Measured::mmr),
        of(Measured::sum),
        rate(of(|m| m.alone[0])),
        rate(of(|m| m.alone[1])),
        median(&theirs)
    );
    let shares: Vec<&[f64]> = all.iter().map(|m| m.shares.as_slice()).collect();
    let row = Row::new(name, Bound::AtLeast(0.98), ours).sides(sides);
    rows.add(row.figures(json!({ "dominant_shares": shares, "fifo": theirs })));
    Ok(())
}

/// DRF divides capacities, so it has to be told them: what this machine's core does of each resource
/// when nothing else is asked of it.
fn yardsticks(setup: &Setup, server: &Server) -> Result<toml::Table, ExperimentError> {
    let (small, large) = (streams("small", SMALL), streams("large", LARGE));
    fill(setup, server, &[small.clone(), large.clone()].concat())?;
    let requests = shoot(setup, server, &small)?.rate();
    let shot = shoot(setup, server, &large)?;
    let bytes: u64 = shot
        .outcome
        .tenants
        .iter()
        .map(|stream| stream.total().bytes_in)
        .sum();
    let bytes_per_s = bytes as f64 / shot.outcome.elapsed_s;
    Ok(toml::Table::from_iter([
        ("requests".into(), format!("{requests:.0}/s").into()),
        (
            "bandwidth_out".into(),
            format!("{bytes_per_s:.0}B/s").into(),
        ),
    ]))
}

struct Measured {
    /// Rates of each kind when it has the server to itself.
    alone: [f64; 2],
    /// Dominant shares of all tenants side by side.
    shares: Vec<f64>,
}

impl Measured {
    fn mmr(&self) -> f64 {
        let least = self.shares.iter().copied().fold(f64::INFINITY, f64::min);
        least / self.shares.iter().copied().fold(1e-9, f64::max)
    }

    fn sum(&self) -> f64 {
        self.shares.iter().sum()
    }

    fn worse(&self) -> f64 {
        self.mmr().min(self.sum())
    }
}

fn measure(setup: &Setup, server: &Server) -> Result<Measured, ExperimentError> {
    let (small, large) = (streams("small", SMALL), streams("large", LARGE));
    let alone = [
        shoot(setup, server, &small)?.rate(),
        shoot(setup, server, &large)?.rate(),
    ];
    let rates = shoot(setup, server, &[small, large].concat())?.rates();
    let shares = rates
        .iter()
        .enumerate()
        .map(|(i, rate)| rate / alone[i / EACH].max(1e-9))
        .collect();
    Ok(Measured { alone, shares })
}

fn start(
    setup: &Setup,
    label: &'static str,
    request: &'static str,
    scheduler: toml::Table,
) -> Result<Server, ExperimentError> {
    let names = ["small", "large"]
        .into_iter()
        .flat_map(|kind| (0..EACH).map(move |i| (kind, i)));
    let tenants: Vec<Tenant> = names.map(|(kind, i)| (format!("{kind}{i}"), 1)).collect();
    let cores = vec![setup.server_core];
    Entremet {
        label,
        request,
        cores,
        tenants,
        cache_mib: CACHE_MIB,
        scheduler,
    }
    .start(setup)
}

fn streams(kind: &str, sizes: Sizes) -> Vec<ClosedStream> {
    let one = |i| {
        stream(
            identity(&format!("{kind}{i}")),
            (8, 8),
            GETS,
            KEYS,
            sizes.clone(),
        )
    };
    (0..EACH).map(one).collect()
}
