//! `rein`: Rein's evaluation on a simulated cluster, one contender at a time (`sim::rein`).

use sim::rein::{self, Before, Contender, Setting};
use sim::scenario::Plan;
use sim::{run, Arrivals, Noise, Spec};
use workload::trace::{self, multiget};

use policy::multiget::Rates;

use settings::table::Fields;

use super::{seed, Program, Work};
use crate::observed::Observed;
use crate::simulated;

/// Load at which nobody waits, share of what can be served.
const UNLOADED: f64 = 0.02;
/// A light load, from which it is a step to the usual one.
const LIGHT: f64 = 0.25;

/// `contender`, or `levels` for Rein over `count` levels of `range` and `rates`; the cluster
/// (`setup`, `permits`, `processors`, `nodes`); how long an operation takes (`service`); the
/// requests (`sizes`, `popularity`, `load`), and what they were `before` measuring began; whether
/// `machines` are even or rough; `seconds` of simulated time.
pub(super) const REIN: Program = Program {
    name: "rein",
    timed: false,
    prepare,
};

fn prepare(parameters: &Fields) -> Work {
    let mut words: Vec<&'static str> = Contender::ALL.iter().map(|one| one.name()).collect();
    words.extend(["levels", "unloaded"]);
    let contender = parameters.word("contender", &words);
    let (setting, lacking) = setting(parameters);
    let levels = (
        parameters.count("count").unwrap_or(4),
        parameters.amount("range").unwrap_or(3.0),
        rates(parameters),
    );
    let seed = seed(parameters);
    Box::new(move |_| {
        let Some(spec) = setting.spec(seed) else {
            return Ok(Observed::default());
        };
        let spec = match contender {
            "levels" => {
                let (mut spec, (count, range, rates)) = (spec, levels);
                rein::levels(&mut spec, count, range, rates);
                spec
            }
            "unloaded" => unloaded(spec),
            name => match Contender::ALL.iter().find(|one| one.name() == name) {
                Some(contender) => contender.apply(&spec),
                None => spec,
            },
        };
        let plan = Plan {
            name: contender.into(),
            spec,
        };
        let mut observed = simulated::observed(&plan, &run(&plan.spec));
        observed.generator.complaint = lacking;
        Ok(observed)
    })
}

/// The cluster and its load, and what to know about it.
fn setting(parameters: &Fields) -> (Setting, Option<String>) {
    let (sizes, lacking) = sizes(parameters);
    let duration_ns = (parameters.amount("seconds").unwrap_or(5.0) * 1e9) as u64;
    let usual = match parameters.word_or_first("setup", &["simulation", "testbed"]) {
        "testbed" => Setting::testbed(sizes, duration_ns),
        _ => Setting::published(sizes, duration_ns),
    };
    let count = |key, usual: u32| parameters.count(key).unwrap_or(usual as usize) as u32;
    let permits = count("permits", usual.permits);
    let zipf = match parameters.word_or_first("popularity", &["uniform", "zipf", "soundcloud"]) {
        "zipf" => Some(0.99),
        "soundcloud" => Some(rein::SOUNDCLOUD_ZIPF),
        _ => None,
    };
    let (size_share, noise) =
        match parameters.word_or_first("service", &["mixed", "exponential", "by-value"]) {
            "exponential" => (0.0, Noise::Exponential),
            "by-value" => (1.0, Noise::None),
            _ => (usual.size_share, usual.noise),
        };
    let rough = parameters.word_or_first("machines", &["even", "rough"]) == "rough";
    // What the load is until measuring begins.
    let before = match parameters.word_or_first("before", &["alike", "light", "constant-50"]) {
        "light" => Some((usual.sizes.clone(), LIGHT)),
        "constant-50" => Some((vec![(50, 1.0)], usual.load)),
        _ => None,
    };
    let before = before.map(|(sizes, load)| Before { load, sizes });
    let setting = Setting {
        nodes: count("nodes", usual.nodes).max(3),
        permits,
        processors: count("processors", usual.processors.min(permits)),
        load: parameters.amount("load").unwrap_or(usual.load),
        zipf,
        size_share,
        noise,
        rough,
        before,
        ..usual
    };
    (setting, lacking)
}

/// (keys, weight) of requests, and what to know about them.
fn sizes(parameters: &Fields) -> (Vec<(u32, f64)>, Option<String>) {
    let words = ["soundcloud", "constant-50", "log-normal", "kosarak"];
    match parameters.word_or_first("sizes", &words) {
        "constant-50" => (vec![(50, 1.0)], None),
        // Facebook's (Rein 5.1).
        "log-normal" => (rein::log_normal(2.5, 1.25), None),
        "kosarak" => match multiget::kosarak(&trace::folder()) {
            Ok(lists) => (rein::sessions(&lists), None),
            Err(error) => {
                let lacking = format!("SoundCloud-like sizes instead of real sessions: {error}");
                (rein::soundcloud(), Some(lacking))
            }
        },
        _ => (rein::soundcloud(), None),
    }
}

fn rates(parameters: &Fields) -> Rates {
    match parameters.word_or_first("rates", &["linear", "geometric"]) {
        "geometric" => Rates::Geometric(4),
        _ => Rates::Linear,
    }
}

/// The baseline with hardly a request: what no order can beat.
fn unloaded(mut spec: Spec) -> Spec {
    for stream in &mut spec.tenants[0].streams {
        if let Arrivals::Poisson { per_s } = &mut stream.arrivals {
            *per_s *= UNLOADED;
        }
    }
    spec
}
