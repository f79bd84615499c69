//! What a server tells of itself while it is loaded: its metrics, half a second by half a second,
//! and its histograms of latency from the end of the warm-up on.

use std::collections::BTreeMap;
use std::io::Error;
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use telemetry::admin::ask;
use telemetry::api::HistogramsView;

use super::times::{latencies, Latencies};
use super::told::{cpu_per_s, figures, Sample, Told};
use super::windows::windows;

/// Often enough for the last second of a load to have two.
const EVERY: Duration = Duration::from_millis(500);
/// A server that does not answer for this long is left out of that sample.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was seen over the time of a load.
pub struct Seen {
    /// Figures of the device stage by name; none where the server has none.
    pub figures: BTreeMap<String, f64>,
    /// Processor time that tenants were charged, seconds per second.
    pub cpu_per_s: BTreeMap<String, f64>,
    /// In which windows the tenant's promise was kept.
    pub windows: BTreeMap<String, Vec<bool>>,
    /// What the server's own histograms say, by tenant; none without [`Watch::measure`].
    pub latencies: BTreeMap<String, Latencies>,
}

/// What the thread is told.
enum Order {
    /// The measured time begins.
    Measure,
    /// It is over.
    Stop,
}

/// What the thread saw.
#[derive(Default)]
struct Looks {
    samples: Vec<Sample>,
    /// At the beginning of the measured time, and at its end.
    histograms: Option<(Vec<HistogramsView>, Vec<HistogramsView>)>,
}

/// A thread that looks, until it is told to stop.
pub struct Watch {
    orders: Sender<Order>,
    looks: JoinHandle<Looks>,
}

impl Watch {
    /// Begins to look at an admin address.
    pub fn begin(admin: SocketAddr) -> Self {
        let (orders, heard) = channel();
        let look = move || {
            let (mut looks, mut begun) = (Looks::default(), None);
            loop {
                match heard.recv_timeout(EVERY) {
                    Ok(Order::Measure) => begun = histograms(admin).ok(),
                    Err(RecvTimeoutError::Timeout) => {
                        if let Ok(page) = get(admin, "/metrics") {
                            let (at, told) = (Instant::now(), Told::read(&page));
                            looks.samples.push(Sample { at, told });
                        }
                    }
                    Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            looks.histograms = begun.zip(histograms(admin).ok());
            looks
        };
        Self {
            orders,
            looks: std::thread::spawn(look),
        }
    }

    /// From now on histograms count.
    pub fn measure(&self) {
        // It may have ended already, with nothing to tell.
        let _ = self.orders.send(Order::Measure);
    }

    /// What was seen in the last `measured`.
    pub fn end(self, measured: Duration) -> Seen {
        let _ = self.orders.send(Order::Stop);
        let looks = self.looks.join().unwrap_or_default();
        let last = looks.samples.last().map(|sample| sample.at);
        let from = last.and_then(|last| last.checked_sub(measured));
        let within = |sample: &&Sample| from.is_none_or(|from| sample.at >= from);
        let samples = looks.samples.iter().filter(within).collect::<Vec<_>>();
        let histograms = looks.histograms.unwrap_or_default();
        Seen {
            figures: figures(&samples),
            cpu_per_s: cpu_per_s(&samples),
            windows: windows(&samples),
            latencies: latencies(&histograms.0, &histograms.1),
        }
    }
}

fn histograms(admin: SocketAddr) -> std::io::Result<Vec<HistogramsView>> {
    serde_json::from_str(&get(admin, "/api/histograms")?).map_err(Error::other)
}

/// What a page of an admin address says.
pub fn get(admin: SocketAddr, path: &str) -> std::io::Result<String> {
    let stream = TcpStream::connect_timeout(&admin, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let answer = ask(stream, "localhost", path, None)?;
    let answer = answer.filter(|answer| answer.status == 200);
    answer.map(|answer| answer.body).ok_or(Error::other(path))
}
