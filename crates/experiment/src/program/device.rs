//! `device-prices` and `device-interference`: tenants with raw I/O share the emulated SSD, in its
//! own time, or a real disk (Libra, thesis 6.2.2 and 7.2.2). The dispatch and the prices are what
//! ships.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use device::contest::Sweep;
use device::{calibrate, DeviceError, Disk, EmulatedDisk, Measured, Mix, Profile};
use policy::cost::device::{Op, Rule};
use policy::device::{Model, SsdParameters};

use super::disk::RealDisk;
use settings::table::Fields;

use super::{figures, seed, Observed, Program};
use crate::measure::median;

const KIB: u64 = 1 << 10;
/// Sizes that are paired: 64 pairs (7.2.2).
const SIZES: [u64; 8] = [
    KIB,
    2 * KIB,
    4 * KIB,
    8 * KIB,
    16 * KIB,
    32 * KIB,
    64 * KIB,
    128 * KIB,
];
/// Device time that each pair is measured for, seconds.
const SECONDS: f64 = 4.0;
/// What is read and written of a real disk: more than its own cache has.
const SCRATCH_BYTES: u64 = 2 << 30;

/// What both ask for.
struct Common {
    read: Vec<u64>,
    write: Vec<u64>,
    slice: Duration,
    seed: u64,
    /// Of a real disk; none: the emulated SSD.
    profile: Option<PathBuf>,
}

impl Common {
    fn read(parameters: &Fields) -> Self {
        let seconds = parameters.amount("seconds").unwrap_or(SECONDS);
        Self {
            read: parameters.sizes("read").unwrap_or(SIZES.to_vec()),
            write: parameters.sizes("write").unwrap_or(SIZES.to_vec()),
            slice: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
            seed: seed(parameters),
            profile: parameters.text("profile").map(PathBuf::from),
        }
    }

    fn sweep(&self) -> Result<Sweep, DeviceError> {
        let Some(profile) = &self.profile else {
            let disk = EmulatedDisk::new(Model::Ssd(SsdParameters::default()));
            let measured = calibrated(&disk)?;
            return Ok(Sweep::new(disk, measured, self.slice, self.seed));
        };
        let profile = Profile::load(profile)?;
        let (directory, nobody) = (profile.directory.as_ref(), Arc::<AtomicBool>::default());
        let disk = Disk::open(directory, SCRATCH_BYTES, nobody, &mut |_| {})?;
        Ok(Sweep::new(
            RealDisk(disk),
            profile.measured,
            self.slice,
            self.seed,
        ))
    }
}

/// What the emulated SSD is worth: the same for every run, as its seeds are its own.
fn calibrated(disk: &EmulatedDisk) -> Result<Measured, DeviceError> {
    static MEASURED: OnceLock<Measured> = OnceLock::new();
    if let Some(measured) = MEASURED.get() {
        return Ok(measured.clone());
    }
    let measured = calibrate(&mut disk.clone(), &disk.plan(), &mut |_, _| {})?;
    Ok(MEASURED.get_or_init(|| measured).clone())
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Not a number where there are none.
fn middle(values: &[f64]) -> f64 {
    median(values).unwrap_or(f64::NAN)
}

/// Readers beside writers, for each pair of sizes, under one price rule.
pub(super) const PRICES: Program = Program {
    name: "device-prices",
    timed: false,
    prepare: |parameters| {
        let word = parameters.word("rule", &Rule::ALL.map(Rule::name));
        let rule = Rule::ALL.into_iter().find(|rule| rule.name() == word);
        let common = Common::read(parameters);
        // A word that no rule has was noted as wrong.
        let rule = rule.unwrap_or(Rule::Exact);
        Box::new(move |_| prices(&common, rule).map_err(|error| error.to_string()))
    },
};

fn prices(common: &Common, rule: Rule) -> Result<Observed, DeviceError> {
    let sweep = common.sweep()?;
    let pairs = sweep.pairs(rule, &common.read, &common.write)?;
    let mmr: Vec<f64> = pairs.iter().map(|pair| pair.mmr).collect();
    let vop_mmr: Vec<f64> = pairs.iter().map(|pair| pair.vop_mmr).collect();
    let costs = sweep.costs(rule)?;
    let per_kib = |op, bytes: u64| costs.cost(op, bytes).get() * KIB as f64 / bytes as f64;
    Ok(figures([
        ("mmr-least", least(&mmr)),
        ("mmr-median", middle(&mmr)),
        ("vop-mmr-least", least(&vop_mmr)),
        ("vop-read", per_kib(Op::Read, common.write[0])),
        ("vop-write", per_kib(Op::Write, common.write[0])),
    ]))
}

/// The mixes of figure 6.5.
const MIXES: [(&str, Mix); 6] = [
    ("1:1", Mix::Halves),
    ("99:1", Mix::Reads(99)),
    ("75:25", Mix::Reads(75)),
    ("50:50", Mix::Reads(50)),
    ("25:75", Mix::Reads(25)),
    ("1:99", Mix::Reads(1)),
];

/// What is left of the device when reads and writes mix.
pub(super) const INTERFERENCE: Program = Program {
    name: "device-interference",
    timed: false,
    prepare: |parameters| {
        let words: Vec<&str> = MIXES.iter().map(|(word, _)| *word).chain(["all"]).collect();
        let word = parameters.word("mix", &words);
        let sigma = parameters.sizes("sigma").map_or(0, |sizes| sizes[0]);
        let common = Common::read(parameters);
        Box::new(move |_| interference(&common, word, sigma).map_err(|error| error.to_string()))
    },
};

fn interference(common: &Common, word: &str, sigma: u64) -> Result<Observed, DeviceError> {
    let sweep = common.sweep()?;
    let mut capacity = Vec::new();
    for (name, mix) in MIXES {
        if word == name || word == "all" {
            capacity.extend(sweep.capacity(mix, &common.read, &common.write, sigma)?);
        }
    }
    capacity.sort_by(f64::total_cmp);
    Ok(figures([
        ("vop-least", least(&capacity)),
        ("vop-p1", capacity[capacity.len() / 100]),
        ("vop-median", middle(&capacity)),
        ("vop-max", sweep.costs(Rule::Exact)?.max_per_s()),
        ("vop-floor", sweep.measured().floor_per_s),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common() -> Common {
        Common {
            read: vec![4 * KIB],
            write: vec![32 * KIB],
            slice: Duration::from_secs(2),
            seed: 1,
            profile: None,
        }
    }

    #[test]
    fn prices_are_judged_by_what_tenants_get() {
        let exact = prices(&common(), Rule::Exact).expect("figures").figures;
        let fixed = prices(&common(), Rule::Fixed).expect("figures").figures;
        assert!(exact["mmr-least"] > 0.95 && fixed["mmr-median"] < 0.7);
        assert!(exact["vop-read"] < exact["vop-write"], "{exact:?}");
    }

    #[test]
    fn a_sweep_knows_its_percentiles() {
        let all = interference(&common(), "all", 0).expect("figures").figures;
        let one = interference(&common(), "99:1", 0).expect("figures").figures;
        assert!(all["vop-least"] < one["vop-least"], "{all:?} {one:?}");
        assert!(all["vop-least"] <= all["vop-p1"] && all["vop-p1"] <= all["vop-median"]);
        assert!(all["vop-floor"] < all["vop-max"]);
    }
}
