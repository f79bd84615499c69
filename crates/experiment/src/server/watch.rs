//! What a server tells of its device stage while it is loaded: its metrics, half a second by half a second.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::measure::median;

/// Often enough for the last second of a load to have two.
const EVERY: Duration = Duration::from_millis(500);
/// A server that does not answer for so long is left out of that sample.
const PATIENCE: Duration = Duration::from_secs(2);

/// A thread that looks, until it is told to stop.
pub struct Watch {
    stop: Sender<()>,
    looks: JoinHandle<Vec<Sample>>,
}

/// One look.
#[derive(Clone, Debug, PartialEq)]
struct Sample {
    at: Instant,
    told: Told,
}

/// What the metrics say of the device.
#[derive(Clone, Debug, Default, PartialEq)]
struct Told {
    floor: Option<f64>,
    capacity: Option<f64>,
    /// VOPs of all tenants so far, by what RocksDB did them for.
    vops: BTreeMap<String, f64>,
}

impl Watch {
    /// Begins to look at an admin address.
    pub fn begin(admin: SocketAddr) -> Self {
        let (stop, stopped) = channel();
        let look = move || {
            let mut samples = Vec::new();
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(EVERY) {
                if let Ok(page) = metrics(admin) {
                    let (at, told) = (Instant::now(), Told::read(&page));
                    samples.push(Sample { at, told });
                }
            }
            samples
        };
        Self {
            stop,
            looks: std::thread::spawn(look),
        }
    }

    /// The figures of the last `measured`; none where the server has no device stage.
    pub fn end(self, measured: Duration) -> BTreeMap<String, f64> {
        // It may have ended already, with nothing to tell.
        let _ = self.stop.send(());
        let samples = self.looks.join().unwrap_or_default();
        let last = samples.last().map(|sample| sample.at);
        let from = last.and_then(|last| last.checked_sub(measured));
        let within = |sample: &&Sample| from.is_none_or(|from| sample.at >= from);
        figures(&samples.iter().filter(within).collect::<Vec<_>>())
    }
}

fn metrics(admin: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&admin, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}

impl Told {
    fn read(page: &str) -> Self {
        let mut told = Self::default();
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let Some((series, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let Ok(value) = value.parse::<f64>() else {
                continue;
            };
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            match name {
                "entremet_device_floor_vops_per_second" => told.floor = Some(value),
                "entremet_device_capacity_vops_per_second" => told.capacity = Some(value),
                "entremet_tenant_device_vops_total" => {
                    let activity = labels.split("activity=\"").nth(1);
                    let activity = activity.and_then(|rest| rest.split('"').next());
                    *told.vops.entry(activity.unwrap_or("").into()).or_default() += value;
                }
                _ => {}
            }
        }
        told
    }
}

/// What is done at once for a request, what later; the rest is neither's.
const DIRECT: [&str; 4] = ["get", "multiget", "range", "log"];

fn figures(samples: &[&Sample]) -> BTreeMap<String, f64> {
    let mut figures = BTreeMap::new();
    let [first, .., last] = samples else {
        return figures;
    };
    let mut put = |name: &str, value: Option<f64>| {
        if let Some(value) = value {
            figures.insert(name.to_string(), value);
        }
    };
    let capacity = samples.iter().filter_map(|sample| sample.told.capacity);
    let capacity: Vec<f64> = capacity.collect();
    put("vop-floor", last.told.floor);
    put("vop-capacity", median(&capacity));
    if last.told.vops.is_empty() {
        return figures;
    }
    let seconds = (last.at - first.at).as_secs_f64();
    let per_s = |wanted: &dyn Fn(&str) -> bool| {
        let sum = |sample: &Sample| -> f64 {
            let vops = sample.told.vops.iter();
            vops.filter(|(name, _)| wanted(name))
                .map(|(_, vop)| vop)
                .sum()
        };
        Some((sum(last) - sum(first)) / seconds)
    };
    put("vop-rate", per_s(&|_| true));
    put("vop-direct", per_s(&|name| DIRECT.contains(&name)));
    put("vop-flush", per_s(&|name| name == "flush"));
    put("vop-compaction", per_s(&|name| name == "compaction"));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(get: u32, flush: u32) -> String {
        format!(
            "HTTP/1.1 200 OK\r\n\r\n# HELP entremet_device_floor_vops_per_second floor 9\n\
             entremet_device_floor_vops_per_second 17000\n\
             entremet_device_capacity_vops_per_second 2.5e4\n\
             entremet_tenant_device_vops_total{{tenant=\"a\",class=\"get\",activity=\"get\"}} {get}\n\
             entremet_tenant_device_vops_total{{tenant=\"b\",class=\"get\",activity=\"get\"}} 5\n\
             entremet_tenant_device_vops_total{{tenant=\"a\",class=\"put\",activity=\"flush\"}} {flush}\n"
        )
    }

    #[test]
    fn rates_are_differences_and_gauges_medians() {
        let begin = Instant::now();
        let at = |ms, get, flush| Sample {
            at: begin + Duration::from_millis(ms),
            told: Told::read(&page(get, flush)),
        };
        let samples = [at(0, 100, 10), at(500, 150, 10), at(2_000, 300, 50)];
        let figures = figures(&samples.iter().collect::<Vec<_>>());
        assert_eq!(figures["vop-rate"], 120.0);
        assert_eq!(figures["vop-direct"], 100.0);
        assert_eq!(figures["vop-flush"], 20.0);
        assert_eq!(figures["vop-compaction"], 0.0);
        assert_eq!(
            (figures["vop-floor"], figures["vop-capacity"]),
            (17e3, 25e3)
        );
    }

    #[test]
    fn a_server_without_a_stage_tells_nothing() {
        let told = Told::read("HTTP/1.1 200 OK\r\n\r\nentremet_uptime_seconds 3\n");
        assert_eq!(told, Told::default());
        let at = Instant::now();
        let samples = [
            Sample {
                at,
                told: told.clone(),
            },
            Sample {
                at: at + EVERY,
                told,
            },
        ];
        assert!(figures(&samples.iter().collect::<Vec<_>>()).is_empty());
    }
}
