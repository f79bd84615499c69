//! `entremet load SCENARIO`.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;

use super::ending::{conclude, json, Output};
use super::progress::Teller;
use super::{interrupt, LoadArgs};
use crate::client::{Identity, Target};
use crate::error::WorkloadError;
use crate::report::{figures, rate};
use crate::scenario::{self, Event, RunOptions, Scenario};
use crate::trace;

pub(super) fn run(args: &LoadArgs, file: &Path) -> Result<(), WorkloadError> {
    let mut loaded = Scenario::load(file)?;
    eprint!("{}", loaded.report);
    let scenario = &mut loaded.scenario;
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    scenario.duration = args.duration.unwrap_or(scenario.duration);
    if args.check {
        println!("{}: good, {}.\n", file.display(), loaded.report.summary());
        print!("{}", scenario::words(scenario));
        return Ok(());
    }
    play(args, scenario)
}

fn play(args: &LoadArgs, scenario: &Scenario) -> Result<(), WorkloadError> {
    let target = target(args)?;
    println!(
        "{} against {} for {:?} after {:?}, {} tenants, seed {}",
        scenario.name,
        args.target,
        scenario.duration,
        scenario.warm_up,
        scenario.tenants.len(),
        scenario.seed
    );
    if args.provision {
        provision(args, scenario, &target)?;
    }
    left_alone(args, scenario);
    let stop = interrupt::flag()?;
    let mut teller = Teller::new(scenario.warm_up, scenario.duration);
    let mut tell = |event: Event<'_>| hear(&mut teller, event);
    let mut options = RunOptions::new(&mut tell);
    options.preload = !args.no_preload;
    let outcome = scenario::run(scenario, &target, &mut options, &stop);
    teller.finish();
    let outcome = outcome?;
    let weight = |name: &str| {
        let tenant = scenario.tenants.iter().find(|tenant| tenant.name == name);
        tenant.map_or(1.0, |tenant| tenant.terms.settings.weight)
    };
    let output = Output {
        folder: args.out.as_deref(),
        histograms: args.histograms,
    };
    let figures = json(&figures(&outcome, weight));
    conclude(&outcome, &output, &scenario.name, scenario.seed, figures)
}

fn target(args: &LoadArgs) -> Result<Target, WorkloadError> {
    // Nobody needs to know the password of tenants that are made for a run.
    let made_up = || format!("{:016x}", RandomState::new().build_hasher().finish());
    Ok(Target {
        goal: args.goal()?,
        passwords: args.tenant.iter().cloned().collect(),
        password: args.password.clone().or(args.provision.then(made_up)),
        anonymous: args.anonymous,
    })
}

fn provision(args: &LoadArgs, scenario: &Scenario, target: &Target) -> Result<(), WorkloadError> {
    let operator = Identity {
        credentials: args.operator.clone(),
        tag: String::new(),
        ..Identity::default()
    };
    let left = scenario::provision(scenario, target, &operator)?;
    println!("made {} tenants", scenario.tenants.len());
    if !left.is_empty() {
        println!(
            "NOTE: ENTREMET TENANT SET has no option for {}: that is not promised in this run",
            left.join(", ")
        );
    }
    Ok(())
}

/// Says what of the scenario is not acted on.
fn left_alone(args: &LoadArgs, scenario: &Scenario) {
    if !scenario.server.is_empty() {
        println!(
            "NOTE: [server] is left alone: the server at {} was started by somebody else",
            args.target
        );
    }
    let promised = |tenant: &&scenario::Tenant| !tenant.terms.given.is_empty();
    let count = scenario.tenants.iter().filter(promised).count();
    if !args.provision && count > 0 {
        println!(
            "NOTE: what the scenario promises {count} of its tenants (weight, …) is left alone: the server has its own settings; \
             --provision sends them"
        );
    }
}

fn hear(teller: &mut Teller, event: Event<'_>) {
    match event {
        Event::Running(progress) => teller.tell(progress),
        Event::Synthesised(names) => println!(
            "SYNTHESISED from published statistics, because {} holds no such trace: {}",
            trace::folder().display(),
            names.join(", ")
        ),
        Event::Filling(keyspaces) => teller.line(&format!("filling {keyspaces} keyspaces")),
        Event::Filled {
            keys,
            bytes,
            seconds,
        } => println!(
            "loaded {} keys, {:.1} MB, in {seconds:.1} s",
            rate(keys as f64),
            bytes as f64 / 1e6
        ),
    }
}
