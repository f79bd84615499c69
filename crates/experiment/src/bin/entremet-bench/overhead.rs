//! What scheduling costs: `fair` against `fifo` in the same server. (Two processes of one binary
//! differ by more than a percent, for as long as they live: how their memory lies is chance.)

use std::time::Duration;

use experiment::ExperimentError;
use serde_json::json;
use toml::Table;
use workload::draw::Sizes;
use workload::report::rate;

use crate::load::{fill, shoot, stream, ClosedStream, Shot, GETS};
use crate::rows::{median, Bound, Row, Rows};
use crate::server::{identity, pin_client, Entremet, Tenant};
use crate::Setup;

const TENANTS: usize = 8;
const CONNECTIONS: usize = 8;
const KEYS: u64 = 2_000;

/// A difference of 1 % is below the noise of one run, and a shared machine changes its speed from
/// second to second: many short runs in turns see it.
const PAIRS_PER_REPEAT: usize = 25;
const PARTS_OF_A_RUN: u32 = 10;
const WARM_UP: Duration = Duration::from_millis(100);

/// Object cache of each tenant, MiB: everything fits.
const CACHE_MIB: u64 = 16;

pub fn run(setup: &Setup, rows: &mut Rows) -> Result<(), ExperimentError> {
    pin_client(&[setup.client_core]);
    let server = entremet(setup, "fair").start(setup)?;
    for (size, value_bytes, least) in [("1 KiB", 1024, 0.99), ("10 B", 10, 1.0)] {
        let sizes = Sizes::Constant(value_bytes);
        let depths: Vec<usize> = [1, 16]
            .into_iter()
            .filter(|depth| rows.wants(&name(size, *depth)))
            .collect();
        if !depths.is_empty() {
            fill(setup, &server, &streams(1, sizes.clone()))?;
        }
        for depth in depths {
            let row = Row::new(name(size, depth), Bound::AtLeast(least), Vec::new());
            let streams = streams(depth, sizes.clone());
            // It has changed long before the warm-up is over.
            let under = |request| {
                let (server, streams) = (&server, &streams);
                move |setup: &Setup| {
                    server.reconfigure(&entremet(setup, request).config(setup, &Table::new()))?;
                    shoot(setup, server, streams)
                }
            };
            let side = |word| Side {
                word,
                shoot: under(word),
            };
            rows.add(compare(setup, row, side("fair"), side("fifo"))?);
        }
    }
    Ok(())
}

/// What is compared: its word, and how one run of it is made.
pub struct Side<S> {
    pub word: &'static str,
    pub shoot: S,
}

/// One run of a side.
pub trait Shoot: Fn(&Setup) -> Result<Shot, ExperimentError> {}

impl<F: Fn(&Setup) -> Result<Shot, ExperimentError>> Shoot for F {}

/// Many short runs of each side, in turns, each side first every other time; The row has the ratios
/// of neighbouring runs.
pub fn compare(
    setup: &Setup,
    row: Row,
    ours: Side<impl Shoot>,
    theirs: Side<impl Shoot>,
) -> Result<Row, ExperimentError> {
    let setup = &Setup {
        run: setup.run / PARTS_OF_A_RUN,
        warm_up: WARM_UP,
        ..setup.clone()
    };
    let (mut first, mut second, mut remark) = (Vec::new(), Vec::new(), "");
    for pair in 0..setup.repeats * PAIRS_PER_REPEAT {
        let mut ours_now = || -> Result<(), ExperimentError> {
            let shot = (ours.shoot)(setup)?;
            remark = shot.remark();
            first.push(shot.rate());
            Ok(())
        };
        if pair % 2 == 0 {
            ours_now()?;
        }
        second.push((theirs.shoot)(setup)?.rate());
        if pair % 2 == 1 {
            ours_now()?;
        }
    }
    let ratios = first.iter().zip(&second).map(|(a, b)| a / b).collect();
    let sides = format!(
        "{} {}/s{remark}; {} {}/s",
        ours.word,
        rate(median(&first)),
        theirs.word,
        rate(median(&second))
    );
    let figures =
        json!({ format!("{}_per_s", ours.word): first, format!("{}_per_s", theirs.word): second });
    Ok(Row::new(row.name, row.bound, ratios)
        .sides(sides)
        .figures(figures))
}

fn name(size: &str, depth: usize) -> String {
    format!("fair / fifo, GET {size}, P={depth}")
}

fn entremet(setup: &Setup, request: &'static str) -> Entremet {
    let tenants: Vec<Tenant> = (0..TENANTS).map(|i| (format!("tenant{i}"), 1)).collect();
    let cores = vec![setup.server_core];
    Entremet {
        label: "entremet",
        request,
        cores,
        tenants,
        cache_mib: CACHE_MIB,
    }
}

fn streams(depth: usize, sizes: Sizes) -> Vec<ClosedStream> {
    let one = |i| {
        let identity = identity(&format!("tenant{i}"));
        stream(identity, CONNECTIONS, depth, GETS, KEYS, sizes.clone())
    };
    (0..TENANTS).map(one).collect()
}
