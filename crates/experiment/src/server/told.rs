//! What metrics say of a device stage and of processor time, and what that comes to over the time
//! of a load.

use std::collections::BTreeMap;
use std::time::Instant;

use policy::cost::device::Vop;
use policy::profile::Done;

use crate::measure::median;

/// The metrics at one time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub at: Instant,
    pub told: Told,
}

/// What one tenant asked of one class so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Asked {
    requests: f64,
    /// Bytes that requests of this class carry: replies of gets, requests of puts.
    bytes: f64,
    /// VOPs of a normalised request, all parts, by the server's profile of it.
    price: f64,
}

/// What the metrics say of the device.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Told {
    floor: Option<f64>,
    promisable: Option<f64>,
    capacity: Option<f64>,
    reserved: Option<f64>,
    overbooked: Option<f64>,
    scale: Option<f64>,
    /// VOPs of everything so far.
    vops: Option<f64>,
    /// VOPs of all tenants so far, by class and by what RocksDB did them for.
    used: BTreeMap<(String, String), f64>,
    /// Processor time of the process so far, seconds.
    processor_s: Option<f64>,
    /// Processor time charged so far, seconds, by tenant.
    cpu: BTreeMap<String, f64>,
    /// Windows in which promises were kept and not kept, by tenant, workload and class.
    pub(super) windows: BTreeMap<[String; 3], [f64; 2]>,
    /// By class and tenant; of those that can be reserved.
    asked: BTreeMap<(&'static str, String), Asked>,
    /// By tenant, VOPs a second: what its reservations need, and what of it it gets.
    provided: BTreeMap<String, [f64; 2]>,
}

/// Requests that have a price, with the side on which they carry their value.
const PRICED: [(&str, &str); 2] = [
    ("get", "entremet_tenant_bytes_out_total"),
    ("put", "entremet_tenant_bytes_in_total"),
];

impl Told {
    /// From a page of metrics; what it does not have stays empty.
    pub(super) fn read(page: &str) -> Self {
        let mut told = Self::default();
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let Some((series, value)) = line.rsplit_once(' ') else {
                continue;
            };
            if let Ok(value) = value.parse::<f64>() {
                told.series(series, value);
            }
        }
        told
    }

    fn series(&mut self, series: &str, value: f64) {
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let label = |name: &str| -> String {
            let all = labels.trim_end_matches('}').split(',');
            let of = |pair: &str| Some(pair.strip_prefix(name)?.strip_prefix("=\"")?.to_owned());
            let found = all.filter_map(|pair| of(pair.trim_end_matches('"'))).next();
            found.unwrap_or_default()
        };
        match name {
            "entremet_device_floor_vops_per_second" => self.floor = Some(value),
            "entremet_device_promisable_vops_per_second" => self.promisable = Some(value),
            "entremet_device_capacity_vops_per_second" => self.capacity = Some(value),
            "entremet_device_reserved_vops_per_second" => self.reserved = Some(value),
            "entremet_device_overbooked_vops_per_second" => self.overbooked = Some(value),
            "entremet_device_reservation_scale" => self.scale = Some(value),
            "entremet_device_vops_total" => *self.vops.get_or_insert_default() += value,
            "redis_cpu_user_seconds_total" | "redis_cpu_sys_seconds_total" => {
                *self.processor_s.get_or_insert_default() += value;
            }
            "entremet_tenant_device_vops_total" => {
                let cell = (label("class"), label("activity"));
                *self.used.entry(cell).or_default() += value;
            }
            "entremet_tenant_device_reserved_vops_per_second" => {
                self.provided.entry(label("tenant")).or_default()[0] = value;
            }
            "entremet_tenant_device_allocated_vops_per_second" => {
                self.provided.entry(label("tenant")).or_default()[1] = value;
            }
            "entremet_tenant_cpu_seconds_total" => {
                *self.cpu.entry(label("tenant")).or_default() += value;
            }
            "entremet_promise_windows" if label("over") == "1h" => {
                let whose = ["tenant", "workload", "class"].map(label);
                let windows = self.windows.entry(whose).or_default();
                match label("outcome").as_str() {
                    "met" => windows[0] = value,
                    "missed" => windows[1] = value,
                    _ => {}
                }
            }
            "entremet_tenant_requests_total" => {
                self.asked(&label("class"), label("tenant"), |asked| {
                    asked.requests = value
                });
            }
            "entremet_tenant_request_cost_vops" => {
                self.asked(&label("request"), label("tenant"), |asked| {
                    asked.price += value
                });
            }
            _ => {
                let class = label("class");
                if PRICED.contains(&(&class, name)) {
                    self.asked(&class, label("tenant"), |asked| asked.bytes = value);
                }
            }
        }
    }

    /// While reservations need more than there is: least over greatest part of what it needs that
    /// a tenant gets.
    fn evenly_scaled(&self) -> Option<f64> {
        self.overbooked.filter(|over| *over > 0.0)?;
        let parts = self.provided.values();
        let parts = parts.filter(|[needs, _]| *needs > 0.0);
        let parts: Vec<f64> = parts.map(|[needs, gets]| gets / needs).collect();
        let least = parts.iter().copied().reduce(f64::min)?;
        Some(least / parts.into_iter().fold(0.0, f64::max))
    }

    fn asked(&mut self, class: &str, tenant: String, tell: impl Fn(&mut Asked)) {
        if let Some((class, _)) = PRICED.iter().find(|(priced, _)| *priced == class) {
            tell(self.asked.entry((class, tenant)).or_default());
        }
    }

    /// VOPs so far of the cells that are wanted, by class and activity.
    fn used(&self, wanted: impl Fn(&str, &str) -> bool) -> f64 {
        let cells = self.used.iter();
        let wanted = cells.filter(|((class, activity), _)| wanted(class, activity));
        wanted.map(|(_, vops)| vops).sum()
    }

    /// 1 KiB-normalised requests of a class since `before`, by tenant, each with its price now.
    fn normalised<'a>(
        &'a self,
        before: &'a Told,
        class: &'a str,
    ) -> impl Iterator<Item = (f64, f64)> + 'a {
        let all = self.asked.iter().filter(move |((of, _), _)| *of == class);
        all.map(|(whose, now)| {
            let before = before.asked.get(whose).copied().unwrap_or_default();
            let done = Done {
                requests: (now.requests - before.requests).max(0.0) as u64,
                bytes: (now.bytes - before.bytes).max(0.0) as u64,
                direct: Vop::ZERO,
                written_bytes: 0,
            };
            (done.normalised(), now.price)
        })
    }
}

/// No request waits for it.
const NONE: &str = "none";

/// Part of flushing: flushes, and what a memtable that was flushed leaves behind (a new log,
/// metadata of files).
fn flush(class: &str, activity: &str) -> bool {
    class == NONE && ["flush", "log", "other"].contains(&activity)
}

fn compaction(_: &str, activity: &str) -> bool {
    activity == "compaction"
}

/// Processor time charged between the first sample and the last, seconds per second, by tenant.
pub(super) fn cpu_per_s(samples: &[&Sample]) -> BTreeMap<String, f64> {
    let [first, .., last] = samples else {
        return BTreeMap::new();
    };
    let seconds = (last.at - first.at).as_secs_f64();
    let tenants = last.told.cpu.iter();
    let each = tenants.map(|(tenant, now)| {
        let before = first.told.cpu.get(tenant).copied().unwrap_or_default();
        (tenant.clone(), (now - before) / seconds)
    });
    each.collect()
}

/// Figures of the time between the first sample and the last; none without a device stage.
pub(super) fn figures(samples: &[&Sample]) -> BTreeMap<String, f64> {
    let mut figures = BTreeMap::new();
    let [first, .., last] = samples else {
        return figures;
    };
    let mut put = |name: &str, value: Option<f64>| {
        if let Some(value) = value {
            figures.insert(name.to_string(), value);
        }
    };
    let each = |of: fn(&Told) -> Option<f64>| -> Vec<f64> {
        samples.iter().filter_map(|one| of(&one.told)).collect()
    };
    put("vop-floor", last.told.floor);
    put("vop-promisable", median(&each(|told| told.promisable)));
    put("vop-capacity", median(&each(|told| told.capacity)));
    put("vop-reserved", median(&each(|told| told.reserved)));
    let most = |values: Vec<f64>| values.into_iter().reduce(f64::max);
    let least = |values: Vec<f64>| values.into_iter().reduce(f64::min);
    put("vop-overbooked", most(each(|told| told.overbooked)));
    put("overbooked-mmr", least(each(Told::evenly_scaled)));
    put("reserved-scale", least(each(|told| told.scale)));
    let seconds = (last.at - first.at).as_secs_f64();
    let processor_s = last.told.processor_s.zip(first.told.processor_s);
    put(
        "processor",
        processor_s.map(|(now, before)| (now - before) / seconds),
    );
    let (Some(vops), Some(vops_before)) = (last.told.vops, first.told.vops) else {
        return figures;
    };
    let held = |of: fn(&Told) -> Option<f64>| held(samples, of);
    put("capacity-held", most(held(|told| told.capacity)));
    put("floor-held", most(held(|told| told.floor)));
    let used = |wanted: fn(&str, &str) -> bool| last.told.used(wanted) - first.told.used(wanted);
    put("vop-rate", Some((vops - vops_before) / seconds));
    for (name, wanted) in [
        (
            "vop-direct",
            (|class, _| class != NONE) as fn(&str, &str) -> bool,
        ),
        ("vop-flush", flush),
        ("vop-compaction", compaction),
    ] {
        put(name, Some(used(wanted) / seconds));
    }
    let asked = |class| -> f64 {
        last.told
            .normalised(&first.told, class)
            .map(|one| one.0)
            .sum()
    };
    let (gets, puts) = (asked("get"), asked("put"));
    let each = |vops: f64, requests: f64| (requests > 0.0).then(|| vops / requests);
    let requests = |class: &str, _: &str| PRICED.iter().any(|(priced, _)| *priced == class);
    let charged = used(requests) + used(flush) + used(compaction);
    put("vop-charged", Some(charged / seconds));
    put("get-direct", each(used(|class, _| class == "get"), gets));
    put("put-direct", each(used(|class, _| class == "put"), puts));
    put("put-flush", each(used(flush), puts));
    put("put-compaction", each(used(compaction), puts));
    put("vop-priced", Some(priced(samples) / seconds));
    figures
}

/// Whoever promises as much at some time must be able to keep it for this long.
const KEPT_S: f64 = 5.0;

/// What is promised at each time over what is done in the seconds after it, whatever is asked then;
/// times without as many seconds after them are left out.
fn held(samples: &[&Sample], promised: fn(&Told) -> Option<f64>) -> Vec<f64> {
    let each = samples.iter().enumerate().filter_map(|(index, from)| {
        let after = |to: &&&Sample| (to.at - from.at).as_secs_f64() >= KEPT_S;
        let to = samples[index..].iter().find(after)?;
        let done = to.told.vops? - from.told.vops?;
        let per_s = done / (to.at - from.at).as_secs_f64();
        (per_s > 0.0).then_some(promised(&from.told)? / per_s)
    });
    each.collect()
}

/// VOPs that all requests came to at the prices of their time.
fn priced(samples: &[&Sample]) -> f64 {
    let pairs = samples.windows(2);
    pairs
        .flat_map(|pair| {
            PRICED.map(|(class, _)| {
                let asked = pair[1].told.normalised(&pair[0].told, class);
                asked.map(|(requests, price)| requests * price).sum::<f64>()
            })
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn page(get: u32, flush: u32) -> String {
        format!(
            "# HELP entremet_device_floor_vops_per_second floor 9\n\
             entremet_device_floor_vops_per_second 17000\n\
             entremet_device_promisable_vops_per_second 21000\n\
             entremet_device_capacity_vops_per_second 25000\n\
             entremet_device_reserved_vops_per_second 30000\n\
             entremet_device_overbooked_vops_per_second 5000\n\
             entremet_device_reservation_scale 0.8\n\
             entremet_tenant_device_reserved_vops_per_second{{tenant=\"a\"}} 20000\n\
             entremet_tenant_device_allocated_vops_per_second{{tenant=\"a\"}} 16000\n\
             entremet_tenant_device_reserved_vops_per_second{{tenant=\"b\"}} 10000\n\
             entremet_tenant_device_allocated_vops_per_second{{tenant=\"b\"}} 6000\n\
             entremet_tenant_device_reserved_vops_per_second{{tenant=\"c\"}} 0\n\
             entremet_device_vops_total{{operation=\"read\"}} {total}\n\
             entremet_device_vops_total{{operation=\"write\"}} {flush}\n\
             entremet_promise_windows{{tenant=\"a\",workload=\"\",class=\"get\",over=\"1h\",outcome=\"met\"}} {get}\n\
             entremet_promise_windows{{tenant=\"a\",workload=\"\",class=\"get\",over=\"1h\",outcome=\"missed\"}} {flush}\n\
             entremet_promise_windows{{tenant=\"a\",workload=\"\",class=\"get\",over=\"30d\",outcome=\"met\"}} 7\n\
             entremet_promise_windows{{tenant=\"a\",workload=\"x\",class=\"any\",over=\"1h\",outcome=\"met\"}} {get}\n\
             redis_cpu_user_seconds_total {get}\n\
             redis_cpu_sys_seconds_total {flush}\n\
             entremet_tenant_cpu_seconds_total{{tenant=\"a\",class=\"get\"}} {get}\n\
             entremet_tenant_cpu_seconds_total{{tenant=\"a\",class=\"put\"}} {flush}\n\
             entremet_tenant_requests_total{{tenant=\"a\",class=\"get\"}} {get}\n\
             entremet_tenant_bytes_out_total{{tenant=\"a\",class=\"get\"}} {bytes}\n\
             entremet_tenant_requests_total{{tenant=\"b\",class=\"put\"}} {flush}\n\
             entremet_tenant_request_cost_vops{{tenant=\"a\",request=\"get\",part=\"direct\"}} 0.25\n\
             entremet_tenant_request_cost_vops{{tenant=\"a\",request=\"get\",part=\"flush\"}} 0\n\
             entremet_tenant_request_cost_vops{{tenant=\"b\",request=\"put\",part=\"flush\"}} 1.5\n\
             entremet_tenant_device_vops_total{{tenant=\"a\",class=\"get\",activity=\"get\"}} {get}\n\
             entremet_tenant_device_vops_total{{tenant=\"b\",class=\"get\",activity=\"get\"}} {get}\n\
             entremet_tenant_device_vops_total{{tenant=\"b\",class=\"none\",activity=\"flush\"}} {flush}\n\
             entremet_tenant_device_vops_total{{tenant=\"b\",class=\"none\",activity=\"open\"}} 7\n",
            total = 2 * get + 7,
            // 4 KiB each, and what every reply carries besides.
            bytes = get * (4096 + 64),
        )
    }

    #[test]
    fn differences_of_totals_become_rates_and_costs() {
        let start = Instant::now();
        let at = |ms, get, flush| Sample {
            at: start + Duration::from_millis(ms),
            told: Told::read(&page(get, flush)),
        };
        let samples = [at(0, 100, 10), at(500, 150, 10), at(2_000, 300, 50)];
        let samples = samples.iter().collect::<Vec<_>>();
        let cpu_per_s = cpu_per_s(&samples);
        assert_eq!(cpu_per_s, BTreeMap::from([("a".into(), 120.0)]));
        let figures = figures(&samples);
        let expected = [
            ("vop-floor", 17e3),
            ("vop-promisable", 21e3),
            ("vop-capacity", 25e3),
            ("vop-reserved", 30e3),
            ("vop-overbooked", 5e3),
            ("reserved-scale", 0.8),
            // .8 of what one needs, .6 of what the other does.
            ("overbooked-mmr", 0.6 / 0.8),
            ("vop-rate", 220.0),
            ("processor", 120.0),
            ("vop-direct", 200.0),
            ("vop-flush", 20.0),
            ("vop-compaction", 0.0),
            // 400 VOPs for 200 gets of 4 KiB.
            ("vop-charged", 220.0),
            ("get-direct", 0.5),
            ("put-direct", 0.0),
            ("put-flush", 1.0),
            ("put-compaction", 0.0),
            // 800 normalised gets and 40 puts in 2 s.
            ("vop-priced", 800.0 * 0.25 / 2.0 + 40.0 * 1.5 / 2.0),
        ];
        let expected = expected.map(|(name, value)| (name.to_string(), value));
        assert_eq!(figures, BTreeMap::from(expected));
    }

    #[test]
    fn what_is_held_at_a_time_is_compared_with_what_is_done_after_it() {
        let start = Instant::now();
        // 100 VOP/s for six seconds, then 50.
        let done = [0u32, 300, 600, 750, 900];
        let samples: Vec<Sample> = (0u64..).zip(done).map(|(at, vops)| {
            let told = format!("entremet_device_capacity_vops_per_second 100\nentremet_device_vops_total {vops}\n");
            Sample { at: start + Duration::from_secs(3 * at), told: Told::read(&told) }
        }).collect();
        let samples: Vec<&Sample> = samples.iter().collect();
        // Over six seconds each: 100 a second, 75, 50.
        let held = held(&samples, |told| told.capacity);
        let near = [1.0, 100.0 / 75.0, 2.0].iter().zip(&held);
        assert!(
            held.len() == 3 && near.clone().all(|(one, other)| (one - other).abs() < 1e-9),
            "{held:?}"
        );
        assert!(super::held(&samples, |told| told.floor).is_empty());
    }

    #[test]
    fn a_server_without_a_stage_tells_nothing() {
        let told = Told::read("entremet_uptime_seconds 3\n");
        assert_eq!(told, Told::default());
        let at = Instant::now();
        let later = at + Duration::from_secs(1);
        let samples = [at, later].map(|at| Sample {
            at,
            told: told.clone(),
        });
        assert!(figures(&samples.iter().collect::<Vec<_>>()).is_empty());
    }
}
